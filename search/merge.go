package search

import (
	"bytes"
)

// merge makes one segment of what is left of some, maxDocs documents at most.
func merge(views []view) *segment {
	out := &segment{}
	renumbered := make([][]uint32, len(views)) // by view and document: its new place
	for i, v := range views {
		renumbered[i] = make([]uint32, len(v.seg.tools))
	}
	for n, p := range inOrder(views) {
		renumbered[p.view][p.doc] = uint32(n)
		out.tools = append(out.tools, views[p.view].seg.tools[p.doc])
	}
	out.mergeTerms(views, renumbered)
	return out
}

// mergeTerms walks the dictionaries side by side, in order.
func (s *segment) mergeTerms(views []view, renumbered [][]uint32) {
	at := make([]uint32, len(views))
	var triples []triple
	for {
		least := leastTerm(views, at)
		if least == nil {
			break
		}
		id, before := uint32(len(s.ends)), len(triples)
		for i := range views {
			v := &views[i]
			if int(at[i]) == v.seg.terms() || !bytes.Equal(v.seg.term(at[i]), least) {
				continue
			}
			docs, impact := v.seg.postings(at[i])
			for j, d := range docs {
				if !v.isGone(int(d)) {
					triples = append(triples, triple{id, uint16(renumbered[i][d]), impact[j]})
				}
			}
			at[i]++
		}
		if len(triples) > before {
			s.text = append(s.text, least...)
			s.ends = append(s.ends, uint32(len(s.text)))
		}
	}
	s.finish(byDocument(triples, len(s.tools)))
}

func leastTerm(views []view, at []uint32) []byte {
	var least []byte
	for i, v := range views {
		if int(at[i]) < v.seg.terms() {
			if t := v.seg.term(at[i]); least == nil || bytes.Compare(t, least) < 0 {
				least = t
			}
		}
	}
	return least
}

// byDocument orders triples by document, keeping the order of terms.
func byDocument(triples []triple, docs int) []triple {
	next := make([]uint32, docs+1)
	for _, t := range triples {
		next[int(t.doc)+1]++
	}
	for d := range docs {
		next[d+1] += next[d]
	}
	out := make([]triple, len(triples))
	for _, t := range triples {
		out[next[t.doc]] = t
		next[t.doc]++
	}
	return out
}
