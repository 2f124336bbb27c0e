package guard

import (
	"strings"
	"unicode"

	"github.com/helve-ai/helve/lexicon"
)

// A vocabulary is what texts are about: the stems of their words, and the
// concepts that these stand for, in whatever language they are. The zero
// vocabulary is about nothing.
type vocabulary struct {
	stems    map[string]bool
	concepts map[lexicon.ID]bool
	full     bool // there was more than is kept
}

// hear adds a text.
func (v *vocabulary) hear(text string) {
	if v.stems == nil {
		v.stems, v.concepts = map[string]bool{}, map[lexicon.ID]bool{}
	}
	met := map[string]bool{}
	for _, w := range saidWords(text) {
		if !met[w] {
			met[w] = true
			note(v.stems, stem(w))
		}
	}
	for _, m := range conceptsOf(text) {
		if len(v.concepts) < maxTaintValues {
			v.concepts[m] = true
		}
	}
	v.full = v.full || len(v.stems) >= maxTaintValues || len(v.concepts) >= maxTaintValues
}

// add adds what another vocabulary has.
func (v *vocabulary) add(o vocabulary) {
	if v.stems == nil {
		*v = o
		return
	}
	for w := range o.stems {
		note(v.stems, w)
	}
	for id := range o.concepts {
		if len(v.concepts) < maxTaintValues {
			v.concepts[id] = true
		}
	}
	v.full = v.full || o.full || len(v.stems) >= maxTaintValues || len(v.concepts) >= maxTaintValues
}

// has reports whether the texts speak of what a word means.
func (v *vocabulary) has(w word) bool {
	if v.stems[w.stem] {
		return true
	}
	for _, id := range w.concepts {
		if v.concepts[id] {
			return true
		}
	}
	return false
}

// A word is a stem, and the concepts that the word stands for.
type word struct {
	stem     string
	concepts []lexicon.ID
}

// wordOf reads a word of the name of a tool, or of a value.
func wordOf(text string) word { return word{stem(text), conceptsOf(text)} }

// sure is how sure it must be that a word stands for a concept.
const sure = .6

// conceptsOf returns the concepts of a text.
func conceptsOf(text string) (ids []lexicon.ID) {
	for _, m := range lexicon.Default().Match(nil, text, lexicon.Hint{}) {
		if m.Weight >= sure {
			ids = append(ids, m.Concept)
		}
	}
	return ids
}

// heard is what texts from outside say. The zero heard is nothing.
type heard struct {
	about  vocabulary      // of those in which somebody says something
	texts  strings.Builder // these, folded
	fields map[string]bool // all texts of results as they stand there, folded
	size   int             // bytes of texts and fields
}

// A told is what the texts of one result say.
type told struct {
	about  vocabulary
	talk   string
	fields []string
}

// tellOf reads the texts of a result: talk, and names and values.
func tellOf(leaves []string) (t told) {
	for _, leaf := range leaves {
		folded := foldSpace(unescape(leaf))
		t.fields = append(t.fields, folded)
		switch {
		case !isTalk(folded):
		case len(t.talk)+len(folded) > maxTainted:
			t.about.full = true
		default:
			t.about.hear(unescape(leaf))
			t.talk += " " + folded
		}
	}
	return t
}

// add notes what a result tells. What is too much may be about anything.
func (h *heard) add(t told) {
	h.about.add(t.about)
	if h.texts.Len()+len(t.talk) > maxTainted {
		h.about.full = true
	} else {
		h.texts.WriteString(t.talk)
		h.size += len(t.talk)
	}
	if h.fields == nil && len(t.fields) > 0 {
		h.fields = map[string]bool{}
	}
	for _, f := range t.fields {
		if !h.fields[f] && h.size+len(f) <= 2*maxTainted {
			note(h.fields, f)
			h.size += len(f)
		}
	}
}

// isTalk reports whether a text has as many words as an order needs.
func isTalk(text string) bool {
	words, unspaced := 0, 0
	for w := range strings.FieldsSeq(text) {
		words++
		for _, r := range w {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) {
				unspaced++
			}
		}
		if words >= 4 || unspaced >= 6 {
			return true
		}
	}
	return false
}
