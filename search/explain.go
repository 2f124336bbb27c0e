package search

import (
	"math"
	"strings"
)

// parts returns what each channel adds to a document's score. The first of the
// channels holds the sum of all by now; it is what the others leave of it.
func (r *ranker) parts(c ranked, q *query, kept float32, channels []channel, bonus, brought, meaning, habit, repeated float32) []Part {
	left := c.score + repeated - bonus - meaning - habit
	full := left / kept
	rest := full - brought
	others := []Part{{"meaning", float64(meaning)}, {"brought along", float64(brought)}, {"habits", float64(habit)}, {"repeats", float64(-repeated)}, {"rest of the name", float64(left - full)}}
	for _, ch := range channels[1:] {
		x := ch.scores[c.doc] * ch.scale
		others = append(others, Part{ch.name, float64(x)})
		rest -= x
	}
	words, concepts := r.slotParts(c.doc, q)
	words, concepts = words*channels[0].scale, concepts*channels[0].scale
	loss := r.lossOf(c.doc, q)
	others = append(others, Part{"does otherwise", float64(rest - rest/(1-loss))})
	rest /= 1 - loss
	all := append([]Part{{"name", float64(bonus)}, {channels[0].name, float64(words)}, {"concepts", float64(concepts)},
		{"neighbours", float64(max(0, rest-words-concepts))}}, others...)
	out := all[:0]
	for _, p := range all {
		if math.Abs(p.Score) > 1e-6 {
			out = append(out, p)
		}
	}
	return out
}

// slotParts returns what a document has of the query's words, and of the
// concepts that they stand for.
func (r *ranker) slotParts(doc int, q *query) (words, concepts float32) {
	for _, list := range [][]slot{q.slots, q.low} {
		for i := range list {
			best, concept := r.bestOf(doc, &list[i])
			if concept {
				concepts += best
			} else {
				words += best
			}
		}
	}
	return words, concepts
}

// bestOf returns what a document has of a slot, and whether that is a concept.
func (r *ranker) bestOf(doc int, sl *slot) (best float32, concept bool) {
	v := r.snap.viewOf(doc)
	for _, a := range sl.alts {
		id, ok := v.seg.find(a.term, hashTerm(a.term))
		if !ok {
			continue
		}
		if x := a.weight * float32(v.seg.impactOf(id, uint16(doc-v.base))) / 255; x > best {
			best, concept = x, strings.HasPrefix(string(a.term), classConcept)
		}
	}
	return best, concept
}
