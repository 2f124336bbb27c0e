package search

import (
	"bytes"
	"slices"
	"strings"
)

// maxWhy bounds the words that Why names.
const maxWhy = 6

// why says what of the query the document matched.
func (s *snapshot) why(doc int, q *query, full bool) string {
	terms := s.matched(doc, q)
	if full {
		return s.whyInFull(doc, q, terms)
	}
	var b strings.Builder
	n := 0
	for i := range terms {
		if n == maxWhy {
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		b.Write(terms[i].said)
		n++
	}
	if n == 0 {
		return "name"
	}
	return b.String()
}

// A match is a term of a document and the word of the query that asked for it.
type match struct{ said, term []byte }

// matched returns what of the query the document contains, one match for each slot.
func (s *snapshot) matched(doc int, q *query) []match {
	v := s.viewOf(doc)
	var ids []uint32
	v.seg.eachTerm(uint16(doc-v.base), func(id uint32) { ids = append(ids, id) })
	var out []match
	for _, list := range [][]slot{q.slots, q.unknown} {
		for i := range list {
			sl := &list[i]
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
func (s *snapshot) whyInFull(doc int, q *query, terms []match) string {
	var found [fieldCount][]string
	var sp splitter
	t := s.at(doc)
	eachText(t, func(f field, text string) {
		sp.split(text)
		for _, w := range sp.words {
			if m, ok := whichMatch(terms, sp.plain(w), sp.spelt(w)); ok && len(found[f]) < maxWhy && !slices.Contains(found[f], m) {
				found[f] = append(found[f], m)
			}
		}
	})
	var parts []string
	for f, words := range found {
		if len(words) > 0 {
			parts = append(parts, fields[f].label+": "+strings.Join(words, ", "))
		}
	}
	if len(parts) == 0 {
		return "name: " + t.Name
	}
	return strings.Join(parts, "; ")
}

func whichMatch(terms []match, plain, spelt []byte) (string, bool) {
	for _, m := range terms {
		if bytes.Equal(m.term, plain) || len(plain) >= 3 && bytes.Equal(m.term, appendStem(nil, spelt, inEnglish)) {
			return string(plain), true
		}
	}
	return "", false
}
