package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A script is a group of writing systems whose letters make up words together.
type script uint8

const (
	noScript script = iota // not a letter, digit or mark
	latin
	cyrillic
	greek
	arabic
	hebrew
	tamil
	otherLetters
	digits
	mark // belongs to the letter before it
	// The scripts from here on are written without spaces between words.
	han
	hiragana
	katakana
	hangul
	thai
)

func (s script) unspaced() bool { return s >= han }

var scripts = []struct {
	table *unicode.RangeTable
	script
}{
	{unicode.Latin, latin}, {unicode.Cyrillic, cyrillic}, {unicode.Greek, greek},
	{unicode.Arabic, arabic}, {unicode.Hebrew, hebrew}, {unicode.Tamil, tamil},
	{unicode.Han, han}, {unicode.Hiragana, hiragana}, {unicode.Katakana, katakana}, {unicode.Hangul, hangul},
	{unicode.Thai, thai}, {unicode.Lao, thai}, {unicode.Khmer, thai}, {unicode.Myanmar, thai},
}

func scriptOf(r rune) script {
	if r < utf8.RuneSelf {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return latin
		case '0' <= r && r <= '9':
			return digits
		}
		return noScript
	}
	switch {
	case unicode.IsDigit(r):
		return digits
	case unicode.Is(unicode.M, r):
		return mark
	case r == 'ー':
		return katakana
	case r == 'ـ': // the Arabic kashida stretches words and says nothing
		return mark
	case !unicode.IsLetter(r):
		return noScript
	}
	for _, s := range scripts {
		if unicode.Is(s.table, r) {
			return s.script
		}
	}
	return otherLetters
}

// spelled are letters that are written out with the plain alphabet where
// theirs is not at hand, and that Unicode does not decompose.
var spelled = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ı': "i", 'ħ': "h", 'ŋ': "n",
	'ς': "σ", 'ё': "е", 'ى': "ي", 'ة': "ه", 'ک': "ك", 'ی': "ي",
}

// appendFolded appends the lower-case r without its accents. Marks that make
// another letter of one, as in Cyrillic й or Japanese が, stay.
func appendFolded(dst []byte, r rune, s script) []byte {
	if r < utf8.RuneSelf {
		return append(dst, lowerASCII(r))
	}
	r = unicode.ToLower(r)
	if t, ok := spelled[r]; ok {
		return append(dst, t...)
	}
	if s == latin || s == greek || s == arabic {
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], r)
		if d := norm.NFD.Properties(buf[:n]).Decomposition(); len(d) > 0 {
			base, _ := utf8.DecodeRune(d)
			if s := scriptOf(base); s != mark {
				return appendFolded(dst, base, s)
			}
		}
	}
	return utf8.AppendRune(dst, r)
}

func lowerASCII(r rune) byte {
	if 'A' <= r && r <= 'Z' {
		return byte(r) + 'a' - 'A'
	}
	return byte(r)
}

// keepsMarks reports whether a mark after a letter of s is part of the word's
// spelling rather than an accent or an optional vowel sign.
func keepsMarks(s script) bool {
	switch s {
	case latin, greek, cyrillic, arabic, hebrew:
		return false
	}
	return true
}

// compose brings equal texts to equal code points.
func compose(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFKC.String(text)
		}
	}
	return text
}

// squeeze returns the folded letters and digits of name and nothing else, so
// that File.Read, file__read and "file read" are one. A name without any stays
// as it is.
func squeeze(dst []byte, name string) []byte {
	before, empty := noScript, len(dst)
	for _, r := range compose(name) {
		s := scriptOf(r)
		switch {
		case s == noScript:
			continue
		case s == mark:
			if keepsMarks(before) {
				dst = utf8.AppendRune(dst, r)
			}
			continue
		}
		dst = appendFolded(dst, r, s)
		before = s
	}
	if len(dst) == empty {
		dst = append(dst, strings.TrimSpace(name)...)
	}
	return dst
}
