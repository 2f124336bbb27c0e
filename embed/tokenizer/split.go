package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A piece is text that the model takes by itself.
type piece struct {
	text  string
	first bool // it begins where the text began
}

// A splitter splits pieces further.
type splitter func([]piece) []piece

type splitterFile struct {
	Type          string
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Replacement   string            `json:"replacement"`
	PrefixSpace   *bool             `json:"add_prefix_space"`
	Prepend       string            `json:"prepend_scheme"`
	Split         *bool             `json:"split"`
	Behavior      string            `json:"behavior"`
	Individual    bool              `json:"individual_digits"`
}

func parseSplitter(data json.RawMessage) (splitter, error) {
	if len(data) == 0 || string(data) == "null" {
		return func(in []piece) []piece { return each(in, func(p piece) []piece { return []piece{p} }) }, nil
	}
	var f splitterFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "Sequence":
		return splitters(f.PreTokenizers)
	case "BertPreTokenizer":
		return func(in []piece) []piece { return each(each(in, atSpaces), isolate(isBertPunct)) }, nil
	case "WhitespaceSplit":
		return func(in []piece) []piece { return each(in, atSpaces) }, nil
	case "Whitespace":
		return func(in []piece) []piece { return each(each(in, atSpaces), words) }, nil
	case "Punctuation":
		if f.Behavior != "" && f.Behavior != "Isolated" {
			return nil, fmt.Errorf("the behavior %q of Punctuation is not known; Isolated is", f.Behavior)
		}
		return func(in []piece) []piece { return each(in, isolate(isBertPunct)) }, nil
	case "Metaspace":
		return f.metaspace()
	}
	return nil, fmt.Errorf("type %q is not known", f.Type)
}

func splitters(parts []json.RawMessage) (splitter, error) {
	var all []splitter
	for i, p := range parts {
		s, err := parseSplitter(p)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		all = append(all, s)
	}
	return func(in []piece) []piece {
		for _, s := range all {
			in = s(in)
		}
		return in
	}, nil
}

// each splits each piece, and leaves out empty ones.
func each(in []piece, split func(piece) []piece) []piece {
	var out []piece
	for _, p := range in {
		for _, q := range split(p) {
			if q.text != "" {
				out = append(out, q)
			}
		}
	}
	return out
}

func atSpaces(p piece) []piece {
	var out []piece
	first := p.first && strings.IndexFunc(p.text, unicode.IsSpace) != 0
	for _, f := range strings.FieldsFunc(p.text, unicode.IsSpace) {
		out = append(out, piece{f, first})
		first = false
	}
	return out
}

// isolate makes pieces of the characters that are, and of what is between them.
func isolate(is func(rune) bool) func(piece) []piece {
	return func(p piece) []piece {
		var out []piece
		from := 0
		for i, r := range p.text {
			if is(r) {
				end := i + utf8.RuneLen(r)
				out = append(out, piece{p.text[from:i], p.first && from == 0}, piece{p.text[i:end], p.first && i == 0})
				from = end
			}
		}
		return append(out, piece{p.text[from:], p.first && from == 0})
	}
}

// words splits where \w+ and [^\w\s]+ meet.
func words(p piece) []piece {
	var out []piece
	from, inWord := 0, false
	for i, r := range p.text {
		if w := isWord(r); i == 0 || w != inWord {
			out = append(out, piece{p.text[from:i], p.first && from == 0})
			from, inWord = i, w
		}
	}
	return append(out, piece{p.text[from:], p.first && from == 0})
}

func isBertPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7F && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return unicode.IsPunct(r)
}

// metaspace writes spaces as a visible character, which begins pieces.
func (f *splitterFile) metaspace() (splitter, error) {
	mark := f.Replacement
	if utf8.RuneCountInString(mark) != 1 {
		return nil, fmt.Errorf("the replacement %q of Metaspace is not one character", mark)
	}
	scheme := f.Prepend
	if scheme == "" {
		scheme = "always"
		if !isTrue(f.PrefixSpace) {
			scheme = "never"
		}
	}
	if scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("the prepend_scheme %q of Metaspace is not known; always, first and never are", scheme)
	}
	split := isTrue(f.Split)
	return func(in []piece) []piece {
		return each(in, func(p piece) []piece {
			p.text = strings.ReplaceAll(p.text, " ", mark)
			if p.text != "" && !strings.HasPrefix(p.text, mark) && (scheme == "always" || scheme == "first" && p.first) {
				p.text = mark + p.text
			}
			if !split {
				return []piece{p}
			}
			return before(p, mark)
		})
	}, nil
}

// before splits before each mark.
func before(p piece, mark string) []piece {
	var out []piece
	for from := 0; from < len(p.text); {
		_, n := utf8.DecodeRuneInString(p.text[from:])
		end := len(p.text)
		if next := strings.Index(p.text[from+n:], mark); next >= 0 {
			end = from + n + next
		}
		out = append(out, piece{p.text[from:end], p.first && from == 0})
		from = end
	}
	return out
}
