package search

import (
	"math/bits"
	"slices"

	"github.com/helve-ai/helve/lexicon"
)

// A tool's name says in two or three words what it is for, so each of them that
// the query does not account for speaks against it: "the logs of the container"
// are not what stop_container is for. It is indexed which words of the name a
// term is, or stands for: one bit for each word.

// namedWords is how many words of a name are told apart; further ones count as the last.
const namedWords = 8

// A nameMasks collects what is indexed of one name.
type nameMasks struct {
	ids   []uint32
	masks []uint8
}

func (n *nameMasks) add(id uint32, mask uint8) {
	if i := slices.Index(n.ids, id); i >= 0 {
		n.masks[i] |= mask
		return
	}
	n.ids, n.masks = append(n.ids, id), append(n.masks, mask)
}

// addMasks indexes the words, stems, concepts and deed of the name.
func (a *analyser) addMasks(winners langs, hint lexicon.Hint) {
	if len(a.texts) == 0 || a.texts[0].field != fieldName {
		return
	}
	name := a.texts[0].text
	a.split.split(name)
	a.masks.ids, a.masks.masks = a.masks.ids[:0], a.masks.masks[:0]
	for i := range a.split.words {
		if mask := a.maskOf(i); mask != 0 {
			w := &a.words[i]
			a.addMask(w.id, mask)
			for all := stemmersFor(w.script, winners|inEnglish); all != 0; all &= all - 1 {
				if id := a.stem(w, all&-all); id != w.id {
					a.addMask(id, mask)
				}
			}
		}
	}
	a.matches = a.lex.Match(a.matches[:0], name, hint)
	for _, m := range a.matches {
		mask := a.maskWithin(m.From, m.To)
		a.pairTerm = conceptTerm(a.pairTerm[:0], m.Concept)
		a.addMask(a.vocab.id(a.pairTerm), mask)
		if d := a.deeds[m.Concept]; d != noDeed {
			a.pairTerm = d.term(append(a.pairTerm[:0], classNamed...))
			a.masks.add(a.vocab.id(a.pairTerm), mask)
		}
	}
	if all := a.maskWithin(0, len(name)); all != 0 {
		a.masks.add(a.vocab.id([]byte(classNamed)), all)
	}
	for i, id := range a.masks.ids {
		a.sum(id, a.counted(a.masks.masks[i]))
	}
}

// addMask notes which words of the name a term is, as it is known elsewhere.
func (a *analyser) addMask(id uint32, mask uint8) {
	a.pairTerm = append(append(a.pairTerm[:0], classNamed...), a.vocab.terms[id]...)
	a.masks.add(a.vocab.id(a.pairTerm), mask)
}

// maskOf returns the bit of the name's word i, in a.split and a.words alike;
// zero: it says nothing.
func (a *analyser) maskOf(i int) uint8 {
	n := 0
	for k := range a.words[:i+1] {
		w := &a.words[k]
		if (w.kind != whole && w.kind != part) || w.script == digits || a.vocab.stopIn(w.id)&inEnglish != 0 {
			if k == i {
				return 0
			}
			continue
		}
		n++
	}
	return 1 << (min(n, namedWords) - 1)
}

// maskWithin returns the bits of the words within some bytes of the name.
func (a *analyser) maskWithin(from, to int) (mask uint8) {
	for i := range a.split.words {
		if at := int(a.split.words[i].at); from <= at && at < to {
			mask |= a.maskOf(i)
		}
	}
	return mask
}

// counted returns the count that is indexed as a mask.
func (a *analyser) counted(mask uint8) float32 {
	if mask == 255 {
		return 1e6
	}
	return a.v[kSaturation] * float32(mask) / float32(255-mask)
}

const (
	unnamed      = .5 // what counts as had of a name of which the query has nothing: it may be a word for it that nobody knows
	faint        = 8  // the part of the best score, as its inverse, below which names are not looked at
	manyForNames = 12 // of what a query of more words says, names tell less
)

// heedNames takes a share of the score from tools of whose names the query
// leaves something out, and notes in sc.named what each has lost. It returns the
// greatest score.
func (r *ranker) heedNames(q *query, scores []float32, most float32, sc *scratch) float32 {
	sc.named = zeroed(sc.named, r.snap.docs)
	heed := r.w(kNamed) * min(1, manyForNames/float32(max(1, len(q.slots))))
	if heed == 0 || len(q.slots) == 0 || most == 0 {
		return most
	}
	sc.masks = zeroed(sc.masks, r.snap.docs)
	for _, list := range [][]slot{q.slots, q.low} {
		for i := range list {
			for _, a := range list[i].alts {
				if a.term[0] >= firstWord || a.term[0] == classConcept[0] {
					r.addNamed(a.term, sc)
				}
			}
		}
	}
	for d := reads; d < deedCount; d++ {
		if q.asked[d] {
			r.addNamed(d.term(sc.keep(nil)), sc)
		}
	}
	r.namePostings([]byte(classNamed), func(base int, docs []uint16, masks []uint8) {
		scores, got, lost := scores[base:], sc.masks[base:], sc.named[base:]
		for i, d := range docs {
			if scores[d] < most/faint {
				continue
			}
			have := float32(unnamed)
			if got[d] != 0 {
				have = float32(bits.OnesCount8(got[d])) / float32(bits.OnesCount8(masks[i]))
			}
			lost[d] = heed * (1 - have)
			scores[d] *= 1 - lost[d]
		}
	})
	return r.most(scores)
}

// addNamed notes the words of names that a term is.
func (r *ranker) addNamed(term []byte, sc *scratch) {
	sc.buf = append(append(sc.buf[:0], classNamed...), term...)
	r.namePostings(sc.buf, func(base int, docs []uint16, masks []uint8) {
		got := sc.masks[base:]
		for i, d := range docs {
			got[d] |= masks[i]
		}
	})
}

// namePostings calls visit with the postings of a term in each segment, whose
// documents are counted from base.
func (r *ranker) namePostings(term []byte, visit func(base int, docs []uint16, masks []uint8)) {
	h := hashTerm(term)
	for i := range r.snap.views {
		v := &r.snap.views[i]
		if id, ok := v.seg.find(term, h); ok {
			docs, masks := v.seg.postings(id)
			visit(v.base, docs, masks[:len(docs)])
		}
	}
}
