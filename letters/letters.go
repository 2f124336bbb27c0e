// Package letters tells the scripts of a text apart and folds case and accents away.
package letters

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A Script is a group of writing systems whose letters make up words together.
type Script uint8

// The scripts.
const (
	None Script = iota // not a letter, digit or mark
	Latin
	Cyrillic
	Greek
	Arabic
	Hebrew
	Tamil
	Other // further letters
	Digits
	Mark // belongs to the letter before it
	// The scripts from here on are written without spaces between words.
	Han
	Hiragana
	Katakana
	Hangul
	Thai
)

// Unspaced reports whether words of the script stand together without spaces.
func (s Script) Unspaced() bool { return s >= Han }

var tables = []struct {
	table  *unicode.RangeTable
	script Script
}{
	{unicode.Latin, Latin}, {unicode.Cyrillic, Cyrillic}, {unicode.Greek, Greek},
	{unicode.Arabic, Arabic}, {unicode.Hebrew, Hebrew}, {unicode.Tamil, Tamil},
	{unicode.Han, Han}, {unicode.Hiragana, Hiragana}, {unicode.Katakana, Katakana}, {unicode.Hangul, Hangul},
	{unicode.Thai, Thai}, {unicode.Lao, Thai}, {unicode.Khmer, Thai}, {unicode.Myanmar, Thai},
}

// ScriptOf returns the script of a letter.
func ScriptOf(r rune) Script {
	if r < utf8.RuneSelf {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return Latin
		case '0' <= r && r <= '9':
			return Digits
		}
		return None
	}
	switch { // most of what is met
	case 0x4e00 <= r && r <= 0x9fff:
		return Han
	case 0xac00 <= r && r <= 0xd7a3:
		return Hangul
	case 0x0430 <= r && r <= 0x044f:
		return Cyrillic
	}
	switch {
	case unicode.IsDigit(r):
		return Digits
	case unicode.Is(unicode.M, r):
		return Mark
	case r == 'ー':
		return Katakana
	case r == 'ـ': // the Arabic kashida stretches words and says nothing
		return Mark
	case !unicode.IsLetter(r):
		return None
	}
	for _, s := range tables {
		if unicode.Is(s.table, r) {
			return s.script
		}
	}
	return Other
}

// spelled are letters that are written out with the plain alphabet where
// theirs is not at hand, and that Unicode does not decompose.
var spelled = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ı': "i", 'ħ': "h", 'ŋ': "n",
	'ς': "σ", 'ё': "е", 'ى': "ي", 'ة': "ه", 'ک': "ك", 'ی': "ي",
}

// AppendFolded appends the lower-case r, which is of script s, without its
// accents. Marks that make another letter of one, as in Cyrillic й or Japanese
// が, stay.
func AppendFolded(dst []byte, r rune, s Script) []byte {
	if r < utf8.RuneSelf {
		return append(dst, lowerASCII(r))
	}
	if s >= Han {
		return utf8.AppendRune(dst, r)
	}
	r = unicode.ToLower(r)
	if t, ok := spelled[r]; ok {
		return append(dst, t...)
	}
	if s == Latin || s == Greek || s == Arabic {
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], r)
		if d := norm.NFD.Properties(buf[:n]).Decomposition(); len(d) > 0 {
			base, _ := utf8.DecodeRune(d)
			if s := ScriptOf(base); s != Mark {
				return AppendFolded(dst, base, s)
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

// KeepsMarks reports whether a mark after a letter of s is part of the word's
// spelling rather than an accent or an optional vowel sign.
func KeepsMarks(s Script) bool {
	switch s {
	case Latin, Greek, Cyrillic, Arabic, Hebrew:
		return false
	}
	return true
}

// Compose brings equal texts to equal code points.
func Compose(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFKC.String(text)
		}
	}
	return text
}
