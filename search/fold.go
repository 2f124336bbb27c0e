package search

import (
	"strings"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

type script = letters.Script

const (
	noScript = letters.None
	latin    = letters.Latin
	cyrillic = letters.Cyrillic
	arabic   = letters.Arabic
	tamil    = letters.Tamil
	digits   = letters.Digits
	mark     = letters.Mark
	han      = letters.Han
	hiragana = letters.Hiragana
	katakana = letters.Katakana
	hangul   = letters.Hangul
)

// squeeze returns the folded letters and digits of name and nothing else, so
// that File.Read, file__read and "file read" are one. A name without any stays
// as it is.
func squeeze(dst []byte, name string) []byte {
	before, empty := noScript, len(dst)
	for _, r := range letters.Compose(name) {
		s := letters.ScriptOf(r)
		switch {
		case s == noScript:
			continue
		case s == mark:
			if letters.KeepsMarks(before) {
				dst = utf8.AppendRune(dst, r)
			}
			continue
		}
		dst = letters.AppendFolded(dst, r, s)
		before = s
	}
	if len(dst) == empty {
		dst = append(dst, strings.TrimSpace(name)...)
	}
	return dst
}
