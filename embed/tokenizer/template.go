package tokenizer

import (
	"encoding/json"
	"fmt"
)

// A template is what stands before and after a text's tokens.
type template struct {
	before, after           []int32
	beforeTypes, afterTypes []int32
	kind                    int32 // the type of the text itself
}

func (t *template) len() int { return len(t.before) + len(t.after) }

func (t *template) apply(ids []int32) Tokens {
	n := len(ids) + t.len()
	out := Tokens{IDs: make([]int32, 0, n), Types: make([]int32, 0, n)}
	out.IDs = append(append(append(out.IDs, t.before...), ids...), t.after...)
	out.Types = append(out.Types, t.beforeTypes...)
	for range ids {
		out.Types = append(out.Types, t.kind)
	}
	out.Types = append(out.Types, t.afterTypes...)
	return out
}

type templateFile struct {
	Type       string
	Processors []json.RawMessage `json:"processors"`
	Single     []struct {
		SpecialToken *templatePart
		Sequence     *templatePart
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
	Sep named `json:"sep"`
	Cls named `json:"cls"`
}

type templatePart struct {
	ID     string `json:"id"`
	TypeID int32  `json:"type_id"`
}

// A named token is ["text", id].
type named struct{ id *int32 }

func (n *named) UnmarshalJSON(data []byte) error {
	var text string
	return json.Unmarshal(data, &[2]any{&text, &n.id})
}

func parseTemplate(data json.RawMessage) (template, error) {
	var f templateFile
	if len(data) == 0 || string(data) == "null" {
		return template{}, nil
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return template{}, err
	}
	switch f.Type {
	case "TemplateProcessing":
		return f.template()
	case "BertProcessing", "RobertaProcessing":
		if f.Cls.id == nil || f.Sep.id == nil {
			return template{}, fmt.Errorf("%s without cls or sep", f.Type)
		}
		return template{before: []int32{*f.Cls.id}, after: []int32{*f.Sep.id}, beforeTypes: []int32{0}, afterTypes: []int32{0}}, nil
	case "Sequence":
		if len(f.Processors) == 1 {
			return parseTemplate(f.Processors[0])
		}
		return template{}, fmt.Errorf("a Sequence of %d processors is not known; of one it is", len(f.Processors))
	}
	return template{}, fmt.Errorf("type %q is not known", f.Type)
}

func (f *templateFile) template() (t template, err error) {
	seen := false
	for _, p := range f.Single {
		switch {
		case p.Sequence != nil && seen:
			return t, fmt.Errorf("the text stands in the template twice")
		case p.Sequence != nil:
			seen, t.kind = true, p.Sequence.TypeID
		case p.SpecialToken != nil:
			special, ok := f.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return t, fmt.Errorf("special token %q has no ids", p.SpecialToken.ID)
			}
			for _, id := range special.IDs {
				if seen {
					t.after, t.afterTypes = append(t.after, id), append(t.afterTypes, p.SpecialToken.TypeID)
				} else {
					t.before, t.beforeTypes = append(t.before, id), append(t.beforeTypes, p.SpecialToken.TypeID)
				}
			}
		}
	}
	if !seen {
		return t, fmt.Errorf("the template has no place for the text")
	}
	return t, nil
}
