package openai

import (
	"encoding/json"
	"fmt"
)

// details are the pieces of reasoning that a gateway wants back, put together
// as they come: OpenRouter's reasoning_details.
type details []map[string]any

// add puts pieces to those of the same index and type.
func (d *details) add(pieces []json.RawMessage) {
	for _, raw := range pieces {
		var piece map[string]any
		if json.Unmarshal(raw, &piece) != nil || piece == nil {
			continue
		}
		if at := d.at(piece); at != nil {
			join(at, piece)
		} else {
			*d = append(*d, piece)
		}
	}
}

// at returns what a piece belongs to, nil if it begins something.
func (d *details) at(piece map[string]any) map[string]any {
	if len(*d) == 0 || piece["index"] == nil {
		return nil
	}
	for _, known := range *d {
		if same(known["index"], piece["index"]) && same(known["type"], piece["type"]) &&
			(piece["id"] == nil || known["id"] == nil || same(known["id"], piece["id"])) {
			return known
		}
	}
	return nil
}

// same compares what may be of any type, as == cannot.
func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func join(at, piece map[string]any) {
	for k, v := range piece {
		text, isText := v.(string)
		before, had := at[k].(string)
		if (k == "text" || k == "summary") && isText && had {
			at[k] = before + text
		} else if v != nil {
			at[k] = v
		}
	}
}

// textsOf returns what people can read of pieces.
func textsOf(pieces []json.RawMessage) (text string) {
	for _, raw := range pieces {
		var p struct {
			Text    string `json:"text"`
			Summary string `json:"summary"`
		}
		if json.Unmarshal(raw, &p) == nil {
			text += p.Text + p.Summary
		}
	}
	return text
}
