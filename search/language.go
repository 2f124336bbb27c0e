package search

import (
	"math/bits"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	arabicstem "github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	tamilstem "github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/helve-ai/helve/letters"
)

// A language has a stemmer, stop words, or both.
type language struct {
	code   string
	script script
	stem   func(*snowballstem.Env) bool // nil: none is known
	stop   string
}

// languages is in order of preference between equally likely ones.
var languages = []language{
	{"en", latin, english.Stem, stopEnglish + " " + politeEnglish},
	{"es", latin, spanish.Stem, stopSpanish},
	{"fr", latin, french.Stem, stopFrench},
	{"de", latin, german.Stem, stopGerman},
	{"pt", latin, portuguese.Stem, stopPortuguese},
	{"it", latin, italian.Stem, stopItalian},
	{"nl", latin, dutch.Stem, stopDutch},
	{"pl", latin, nil, stopPolish},
	{"tr", latin, turkish.Stem, stopTurkish},
	{"id", latin, nil, stopIndonesian},
	{"sv", latin, swedish.Stem, stopSwedish},
	{"da", latin, danish.Stem, stopDanish},
	{"no", latin, norwegian.Stem, stopNorwegian},
	{"fi", latin, finnish.Stem, stopFinnish},
	{"ro", latin, romanian.Stem, stopRomanian},
	{"hu", latin, hungarian.Stem, stopHungarian},
	{"ru", cyrillic, russian.Stem, stopRussian},
	{"ar", arabic, arabicstem.Stem, stopArabic},
	{"ta", tamil, tamilstem.Stem, ""},
	{"zh", han, nil, stopChinese},
	{"ja", hiragana, nil, stopJapanese},
}

// langs is a set of languages, by their place in the list.
type langs uint32

const (
	inEnglish langs = 1
	inGerman  langs = 1 << 3
	inRussian langs = 1 << 16
	inArabic  langs = 1 << 17
	inTamil   langs = 1 << 18
)

// stopWords says in which languages a folded word is a stop word.
var stopWords = sync.OnceValue(func() map[string]langs {
	m := make(map[string]langs, 3000)
	var s splitter
	for i, l := range languages {
		for w := range strings.FieldsSeq(l.stop) {
			s.split(letters.Compose(w))
			for _, w := range s.words {
				m[string(s.plain(w))] |= 1 << i
			}
		}
	}
	return m
})

// polite holds the words of politeEnglish.
var polite = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(politeEnglish) {
		m[w] = true
	}
	return m
})

// A ballot counts in which language a text has how many stop words. A word
// that is one in several languages counts for each of them in part.
type ballot struct {
	votes [32]float32
	odd   bool // the text has Latin letters that English has not
}

func (b *ballot) add(l langs) {
	n := bits.OnesCount32(uint32(l))
	for ; l != 0; l &= l - 1 {
		b.votes[bits.TrailingZeros32(uint32(l))] += 1 / float32(n)
	}
}

// winners returns the languages that a text of Latin letters is likely written
// in: English, unless another has more stop words. Equals win together, at most three.
func (b *ballot) winners() langs {
	best := b.votes[0]
	for i, l := range languages {
		if l.script == latin {
			best = max(best, b.votes[i])
		}
	}
	if best == b.votes[0] && !(b.odd && best == 0) {
		return inEnglish
	}
	var out langs
	for i, l := range languages {
		if l.script == latin && b.votes[i] == best && bits.OnesCount32(uint32(out)) < 3 {
			out |= 1 << i
		}
	}
	return out
}

// stemmersFor returns the languages whose stemmers suit a word of script s in
// a text whose Latin words are in l.
func stemmersFor(s script, l langs) langs {
	switch s {
	case latin:
		return l
	case cyrillic:
		return inRussian
	case arabic:
		return inArabic
	case tamil:
		return inTamil
	}
	return 0
}

// appendStem appends the folded stem of a word, spelt with its accents, in the
// one language l. It appends nothing where there is no stemmer or nothing to cut.
func appendStem(dst []byte, spelt []byte, l langs) []byte {
	lang := &languages[bits.TrailingZeros32(uint32(l))]
	if lang.stem == nil || len(spelt) < 3 || len(spelt) > 2*maxWord {
		return dst
	}
	env := snowballstem.NewEnv(string(spelt))
	lang.stem(env)
	for _, r := range env.Current() {
		if s := letters.ScriptOf(r); s != mark || letters.KeepsMarks(lang.script) {
			dst = letters.AppendFolded(dst, r, s)
		}
	}
	return dst
}
