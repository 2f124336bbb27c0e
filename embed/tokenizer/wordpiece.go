package tokenizer

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// wordPiece takes, from the left, the longest piece of a word that its
// vocabulary has.
type wordPiece struct {
	whole   map[string]int32 // pieces that begin a word
	inner   map[string]int32 // pieces that go on, without their prefix
	unknown int32
	longest int // characters of a word that is not unknown for its length alone
	most    int
}

func parseWordPiece(data json.RawMessage) (model, error) {
	var f struct {
		Vocab   map[string]int32 `json:"vocab"`
		Unknown string           `json:"unk_token"`
		Prefix  *string          `json:"continuing_subword_prefix"`
		Longest int              `json:"max_input_chars_per_word"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	prefix := "##"
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	w := &wordPiece{whole: f.Vocab, inner: map[string]int32{}, longest: f.Longest}
	if w.longest == 0 {
		w.longest = 100
	}
	for text, id := range f.Vocab {
		if id < 0 {
			return nil, fmt.Errorf("vocab: %q has the id %d", text, id)
		}
		w.most = max(w.most, int(id))
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			w.inner[text[len(prefix):]] = id
		}
	}
	id, ok := f.Vocab[f.Unknown]
	if !ok {
		return nil, fmt.Errorf("unk_token %q is not in the vocabulary", f.Unknown)
	}
	w.unknown = id
	return w, nil
}

func (w *wordPiece) size() int { return w.most + 1 }

func (w *wordPiece) encode(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > w.longest {
		return append(ids, w.unknown)
	}
	began := len(ids)
	vocab := w.whole
	for from := 0; from < len(word); {
		end := len(word)
		id, ok := vocab[word[from:end]]
		for !ok {
			_, n := utf8.DecodeLastRuneInString(word[from:end])
			if end -= n; end == from {
				return append(ids[:began], w.unknown)
			}
			id, ok = vocab[word[from:end]]
		}
		ids = append(ids, id)
		from, vocab = end, w.inner
	}
	return ids
}
