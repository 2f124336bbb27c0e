package search

import (
	"bytes"
	"slices"
	"strings"

	"github.com/helve-ai/helve/letters"
)

// maxWhy bounds the words that Why names.
const maxWhy = 6

// why says what of the query the document matched.
func (s *snapshot) why(doc int, q *query, bonus float32, full bool, sc *scratch) string {
	most := maxWhy
	if full {
		most = maxSlots
	}
	terms := s.matched(doc, q, most, sc)
	var b strings.Builder
	switch {
	case bonus >= bonusShort:
		b.WriteString("exact name")
	case bonus == bonusAlias:
		b.WriteString("exact alias")
	case bonus > 0:
		b.WriteString("name mentioned")
	}
	if full {
		s.whyInFull(&b, doc, terms, q.langs)
		s.whatIsMeant(&b, terms)
		return b.String()
	}
	for _, t := range terms {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.Write(t.said)
	}
	return b.String()
}

// A match is a term of a document and the word of the query that asked for it.
type match struct{ said, term []byte }

// matched returns what of the query the document contains, one match for each
// slot, the most at most.
func (s *snapshot) matched(doc int, q *query, most int, sc *scratch) []match {
	v, ids := s.viewOf(doc), sc.ids[:0]
	v.seg.eachTerm(uint16(doc-v.base), func(id uint32) { ids = append(ids, id) })
	sc.ids = ids
	var out []match
	for _, list := range [][]slot{q.slots, q.unknown} {
		for i := range list {
			sl := &list[i]
			if len(out) == most {
				return out
			}
			for _, a := range sl.alts {
				if id, ok := v.seg.find(a.term, hashTerm(a.term)); ok {
					if _, has := slices.BinarySearch(ids, id); has {
						out = append(out, match{sl.text, a.term})
						break
					}
				}
			}
		}
	}
	return out
}

// whyInFull names the fields too, which the index does not keep apart: it
// reads the tool again.
func (s *snapshot) whyInFull(b *strings.Builder, doc int, terms []match, l langs) {
	var found [fieldCount][]string
	var sp splitter
	eachText(s.at(doc), func(f field, text string) {
		sp.split(letters.Compose(text))
		for _, w := range sp.words {
			plain := sp.plain(w)
			if len(found[f]) < maxWhy && meets(terms, plain, sp.spelt(w), stemmersFor(w.script, l)) && !slices.Contains(found[f], string(plain)) {
				found[f] = append(found[f], string(plain))
			}
		}
	})
	for f, words := range found {
		if len(words) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(labels[f] + ": " + strings.Join(words, ", "))
	}
}

// meets reports whether a word of a tool, or its stem in one of the languages, is among the terms.
func meets(terms []match, plain, spelt []byte, l langs) bool {
	is := func(word []byte) bool {
		return slices.ContainsFunc(terms, func(m match) bool { return bytes.Equal(m.term, word) })
	}
	if is(plain) {
		return true
	}
	for ; l != 0; l &= l - 1 {
		if stem := appendStem(nil, spelt, l&-l); len(stem) > 0 && is(stem) {
			return true
		}
	}
	return false
}

// whatIsMeant names the concepts among the terms, with the words that stood for them.
func (s *snapshot) whatIsMeant(b *strings.Builder, terms []match) {
	first := true
	for _, m := range terms {
		id, ok := conceptOf(m.term)
		if !ok || int(id) >= s.engine.lex.Len() {
			continue
		}
		switch {
		case !first:
			b.WriteString(", ")
		case b.Len() > 0:
			b.WriteString("; concepts: ")
		default:
			b.WriteString("concepts: ")
		}
		first = false
		b.WriteString(s.engine.lex.Name(id))
		if name := s.engine.lex.Name(id); name != string(m.said) {
			b.WriteString(" (" + string(m.said) + ")")
		}
	}
}
