package tokenizer

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An addedToken is text that is one token, wherever it stands.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// addedTokens finds added tokens in a text.
type addedTokens struct {
	byFirst map[byte][]addedToken // longest first
	ids     []int32
}

// splitAdded returns the tokens that are looked for in raw text, and those
// that are in normalised text.
func splitAdded(all []addedToken, normalise func(string) string) (raw, late *addedTokens) {
	raw, late = &addedTokens{byFirst: map[byte][]addedToken{}}, &addedTokens{byFirst: map[byte][]addedToken{}}
	for _, t := range all {
		into := raw
		if t.Normalized {
			into, t.Content = late, normalise(t.Content)
		}
		into.ids = append(into.ids, t.ID)
		if t.Content != "" {
			into.byFirst[t.Content[0]] = append(into.byFirst[t.Content[0]], t)
		}
	}
	for _, a := range []*addedTokens{raw, late} {
		for _, list := range a.byFirst {
			sort.SliceStable(list, func(i, j int) bool { return len(list[i].Content) > len(list[j].Content) })
		}
	}
	return raw, late
}

// A section is a stretch of text, or an added token.
type section struct {
	text string
	id   int32 // below zero: text
}

// sections splits text at the tokens in it: the leftmost first, of several
// there the longest.
func (a *addedTokens) sections(text string) []section {
	if len(a.byFirst) == 0 {
		return []section{{text, -1}}
	}
	var out []section
	from := 0 // of what is not split yet
	for at := 0; at < len(text); {
		t := a.at(text, at)
		if t == nil {
			at++
			continue
		}
		start, end := at, at+len(t.Content)
		at = end
		if t.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if t.LStrip {
			start = max(len(strings.TrimRightFunc(text[:start], unicode.IsSpace)), from)
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if from < start {
			out = append(out, section{text[from:start], -1})
		}
		out = append(out, section{text[start:end], t.ID})
		from = end
	}
	if from < len(text) || len(out) == 0 {
		out = append(out, section{text[from:], -1})
	}
	return out
}

func (a *addedTokens) at(text string, at int) *addedToken {
	list := a.byFirst[text[at]]
	for i := range list {
		if strings.HasPrefix(text[at:], list[i].Content) {
			return &list[i]
		}
	}
	return nil
}

func endsWithWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord is \w of the reference implementation's regular expressions.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.Nd, r) || unicode.Is(unicode.Nl, r) ||
		unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Other_Alphabetic, r) || r == 0x200C || r == 0x200D
}
