package search

import "math"

// unrelated reports whether the query has nothing to do with any tool: what
// even the best of them explains of it is little, and a small part of it.
func (r *ranker) unrelated(q *query, words *channel, sc *scratch) bool {
	if len(q.slots) == 0 || words.scale == 0 {
		return false // similar words are all there is, and have a floor of their own
	}
	top := words.weight / words.scale
	return top < r.w(kScoreFloor) && top < r.w(kShareFloor)*r.mass(q, sc)
}

// pairShare is what two neighbouring characters weigh of what a word does, in
// scripts without spaces: each stands in two pairs, and most pairs are no words.
const pairShare = .2

// mass is what a tool would score that explained all of the query. Words that
// no tool has weigh as if there were none rarer.
func (r *ranker) mass(q *query, sc *scratch) float32 {
	var mass float32
	for i := range q.slots {
		mass += q.slots[i].most()
	}
	rarest := float32(math.Log1p(2 * float64(len(r.snap.places))))
	for _, t := range q.tokens {
		if t.weight >= r.w(kContentFloor) && (t.spelled() || t.kind == pair) && slotAt(q.slots, int(t.at)) < 0 && !sc.isMeant(t.word) {
			share := t.weight
			if t.kind == pair {
				share *= pairShare
			}
			mass += rarest * share
		}
	}
	return mass
}
