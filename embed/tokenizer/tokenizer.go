// Package tokenizer turns texts into the token ids that a sentence model was
// trained on, by the model's tokenizer.json.
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Tokenizer is a tokenizer.json of the kinds that sentence encoders have:
// WordPiece (BERT) and Unigram (XLM-RoBERTa, T5). It gives the ids that the
// reference implementation, huggingface/tokenizers, gives. It is safe for
// concurrent use.
type Tokenizer struct {
	raw       *addedTokens // found before normalising
	late      *addedTokens // found after it
	normalise func(string) string
	split     splitter
	model     model
	frame     template
	limit     int // of the file's truncation; zero: none
}

// Tokens are a text as a model reads it.
type Tokens struct {
	IDs   []int32
	Types []int32 // which sentence each belongs to
}

// A model turns a piece of text into ids.
type model interface {
	encode(ids []int32, piece string) []int32
	size() int // one more than the greatest id
}

type file struct {
	Truncation *struct {
		MaxLength int    `json:"max_length"`
		Direction string `json:"direction"`
	} `json:"truncation"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

// Load reads the tokenizer.json at path.
func Load(path string) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads the content of a tokenizer.json. It fails, naming it, on what
// this package does not know: a tokenizer that is nearly right gives wrong
// vectors.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	var err error
	if t.normalise, err = parseNormaliser(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.split, err = parseSplitter(f.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.frame, err = parseTemplate(f.PostProcessor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if t.model, err = parseModel(f.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	t.raw, t.late = splitAdded(f.AddedTokens, t.normalise)
	if f.Truncation != nil {
		if f.Truncation.Direction == "Left" {
			return nil, errors.New("truncation: direction Left is not known; only Right is")
		}
		t.limit = f.Truncation.MaxLength
	}
	return t, nil
}

func parseModel(data json.RawMessage) (model, error) {
	kind, err := kindOf(data)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "WordPiece":
		return parseWordPiece(data)
	case "Unigram":
		return parseUnigram(data)
	case "":
		return nil, errors.New("it has no type; WordPiece and Unigram are known")
	}
	return nil, fmt.Errorf("type %q is not known; WordPiece and Unigram are", kind)
}

// kindOf returns the type of a part of the file: "" if it is null or left out.
func kindOf(data json.RawMessage) (string, error) {
	if len(data) == 0 {
		return "", nil
	}
	var head struct{ Type string }
	err := json.Unmarshal(data, &head)
	return head.Type, err
}

// Size returns one more than the greatest id that the tokenizer gives.
func (t *Tokenizer) Size() int {
	n := t.model.size()
	for _, ids := range [][]int32{t.raw.ids, t.late.ids, t.frame.before, t.frame.after} {
		for _, id := range ids {
			n = max(n, int(id)+1)
		}
	}
	return n
}

// Limit returns how many tokens the file allows a text; zero: any number.
func (t *Tokenizer) Limit() int { return t.limit }

// Encode returns the tokens of text, those that frame it included, limit at
// most: what is too long loses its end. A limit of zero is the file's own. A
// limit below the number of framing tokens leaves these alone. Invalid UTF-8 is
// read as U+FFFD.
func (t *Tokenizer) Encode(text string, limit int) Tokens {
	text = strings.ToValidUTF8(text, "�")
	if limit <= 0 {
		limit = t.limit
	}
	ids := t.ids(text)
	if room := limit - t.frame.len(); limit > 0 && len(ids) > room {
		ids = ids[:max(room, 0)]
	}
	return t.frame.apply(ids)
}

func (t *Tokenizer) ids(text string) []int32 {
	var out []int32
	for at, s := range t.raw.sections(text) {
		if s.id >= 0 {
			out = append(out, s.id)
			continue
		}
		normal := t.normalise(s.text)
		for i, s := range t.late.sections(normal) {
			if s.id >= 0 {
				out = append(out, s.id)
				continue
			}
			for _, p := range t.split([]piece{{s.text, at == 0 && i == 0}}) {
				out = t.model.encode(out, p.text)
			}
		}
	}
	return out
}
