// Package poison finds what in the definition of a tool is meant to mislead a model or the people who look at it.
package poison

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Kind is a kind of attack that a text may carry.
type Kind string

// The kinds.
const (
	Hidden       Kind = "hidden"       // characters that people do not see: zero-width, bidi, tags, long padding
	Control      Kind = "control"      // control characters and terminal escapes
	Lookalike    Kind = "lookalike"    // a name in letters of several scripts, or one that spells a word of another
	Instruction  Kind = "instruction"  // speaks to the model about its instructions, its role or its user
	Exfiltration Kind = "exfiltration" // has secrets read, or what is read sent away
	Shadowing    Kind = "shadowing"    // governs other tools
	Payload      Kind = "payload"      // a command that is encoded
	Turncoat     Kind = "turncoat"     // speaks of what it does when nobody looks any more
)

// Severe reports whether findings of this kind are hardly ever made in good faith.
func (k Kind) Severe() bool {
	return k == Hidden || k == Exfiltration || k == Payload
}

// A Finding is one thing that was found.
type Finding struct {
	Kind  Kind   `json:"kind"`
	Where string `json:"where"` // a JSON pointer into the definition
	What  string `json:"what"`  // in words for people; printable
}

// String returns the finding as one line.
func (f Finding) String() string { return fmt.Sprintf("%s at %s: %s", f.Kind, f.Where, f.What) }

// Severe reports whether one of the findings is of a severe kind.
func Severe(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Kind.Severe() })
}

// The bounds of one scan; what lies beyond is not looked at, and said so.
const (
	maxFindings = 20
	maxDepth    = 64
	maxText     = 256 << 10 // bytes of one text
)

// Definition looks at all texts of a tool's definition, as its server lists
// it: an object with name, title, description, inputSchema, outputSchema and
// annotations. What is no JSON has no findings; who reads it refuses it.
func Definition(raw json.RawMessage) []Finding {
	var def map[string]any
	if json.Unmarshal(raw, &def) != nil {
		return nil
	}
	s := &scan{}
	name, _ := def["name"].(string)
	s.name("/name", name)
	for _, key := range []string{"title", "description", "inputSchema", "outputSchema", "annotations"} {
		s.value("/"+key, def[key], 0)
	}
	return s.found
}

// Text looks at one text, such as a result.
func Text(where, text string) []Finding {
	s := &scan{}
	s.text(where, text)
	return s.found
}

type scan struct{ found []Finding }

func (s *scan) add(k Kind, where, format string, args ...any) {
	if len(s.found) >= maxFindings || slices.ContainsFunc(s.found, func(f Finding) bool { return f.Kind == k && f.Where == where }) {
		return
	}
	s.found = append(s.found, Finding{k, cutTo(printable(where), 200), fmt.Sprintf(format, args...)})
}

// value looks at a JSON value: its strings, and the names of what it holds.
func (s *scan) value(where string, v any, depth int) {
	if depth > maxDepth || len(s.found) >= maxFindings {
		return
	}
	switch v := v.(type) {
	case string:
		s.text(where, v)
	case []any:
		for i, x := range v {
			s.value(fmt.Sprintf("%s/%d", where, i), x, depth+1)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := where + "/" + escapePointer(key)
			s.hidden(at, key)
			if strings.HasSuffix(where, "/properties") {
				s.name(at, key)
				s.text(at, wordBreaks.Replace(key))
			}
			s.value(at, v[key], depth+1)
		}
	}
}

var (
	pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
	wordBreaks     = strings.NewReplacer("_", " ", "-", " ")
)

func escapePointer(key string) string { return pointerEscapes.Replace(key) }

func (s *scan) name(where, name string) {
	s.hidden(where, name)
	if why := mixedScripts(name); why != "" {
		s.add(Lookalike, where, "%s", why)
	}
}

func (s *scan) text(where, text string) {
	if text == "" {
		return
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	s.hidden(where, text)
	low := fold(text)
	var has shingles
	has.add(low)
	for i := range rules {
		r := &rules[i]
		if !has.anyOf(low, r.words) || r.also != nil && !has.anyOf(low, r.also) {
			continue
		}
		for _, at := range r.match.find(low, 8) {
			if r.mention && mentioned(low, at[0], at[1]) {
				continue
			}
			s.add(r.kind, where, "%s: %q", r.what, cutTo(printable(strings.TrimSpace(low[at[0]:at[1]])), 120))
			break
		}
	}
	if command := encoded(text); command != "" {
		s.add(Payload, where, "an encoded command: %q", cutTo(printable(command), 120))
	}
}

// shingles are the runs of three bytes of a text, by a hash: what is not among
// them is not in the text. Most words of most rules are told off by it.
type shingles [64]uint64

func (s *shingles) add(text string) {
	for i := 0; i+3 <= len(text); i++ {
		h := shingle(text, i)
		s[h>>6] |= 1 << (h & 63)
	}
}

// shingle hashes the three bytes at i to twelve bits.
func shingle(text string, i int) uint32 {
	v := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16
	return v * 0x9E3779B1 >> 20
}

// anyOf reports whether one of the words is in the text that s was made of.
func (s *shingles) anyOf(text string, words []string) bool {
	for _, w := range words {
		if s.may(w) && strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func (s *shingles) may(word string) bool {
	for i := 0; i+3 <= len(word); i++ {
		if h := shingle(word, i); s[h>>6]&(1<<(h&63)) == 0 {
			return false
		}
	}
	return true
}

// printable shows what cannot be seen by its code.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' {
			b.WriteByte(' ')
		} else if why := unseen(r); why != "" || r < ' ' {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func cutTo(s string, n int) string {
	if chars := []rune(s); len(chars) > n {
		return string(chars[:n]) + "…"
	}
	return s
}
