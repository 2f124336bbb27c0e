package lexicon

import (
	"math/bits"
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/turkish"

	"github.com/helve-ai/helve/letters"
)

// Langs is a set of the languages that the lexicon has.
type Langs uint16

// The languages, in the order in which data files have them.
const (
	English Langs = 1 << iota
	French
	German
	Spanish
	Italian
	Portuguese
	Dutch
	Polish
	Russian
	Turkish
	Arabic
	Indonesian
	Japanese
	Korean
	Chinese
	Danish
)

const (
	langCount  = 16
	inLatin    = English | French | German | Spanish | Italian | Portuguese | Dutch | Polish | Turkish | Indonesian | Danish
	stemmed    = inLatin&^English | Russian | Arabic // have stems; other inflections are told by rules
	compounded = German | Dutch | Danish             // write compounds as one word
)

// codes holds the languages' ISO 639-1 codes.
var codes = [langCount]string{"en", "fr", "de", "es", "it", "pt", "nl", "pl", "ru", "tr", "ar", "id", "ja", "ko", "zh", "da"}

// Codes returns the ISO 639-1 codes of the languages, in the order of data files.
func Codes() []string { return codes[:] }

// LangOf returns the language of an ISO 639-1 code, and the empty set for
// those that the lexicon has not.
func LangOf(code string) Langs {
	for i, c := range codes {
		if c == code {
			return 1 << i
		}
	}
	return 0
}

// String returns the codes of the set, with commas between them.
func (l Langs) String() string {
	var out []string
	for ; l != 0; l &= l - 1 {
		out = append(out, codes[l.index()])
	}
	return strings.Join(out, ",")
}

// index returns the place of the first language of the set.
func (l Langs) index() int { return bits.TrailingZeros16(uint16(l)) }

func (l Langs) has(lang int) bool { return l&(1<<lang) != 0 }

func (l Langs) len() int { return bits.OnesCount16(uint16(l)) }

// snowball holds the stemmers by language; nil: own rules, or none.
var snowball = [langCount]func(*snowballstem.Env) bool{
	nil, french.Stem, german.Stem, spanish.Stem, italian.Stem, portuguese.Stem, dutch.Stem, nil, russian.Stem, turkish.Stem, arabic.Stem,
	nil, nil, nil, nil, danish.Stem,
}

// writtenIn returns the languages that are written in a script.
func writtenIn(s letters.Script) Langs {
	switch s {
	case letters.Latin, letters.Digits:
		return inLatin
	case letters.Cyrillic:
		return Russian
	case letters.Arabic:
		return Arabic
	case letters.Han:
		return Chinese | Japanese
	case letters.Hiragana, letters.Katakana:
		return Japanese
	case letters.Hangul:
		return Korean
	}
	return 0
}
