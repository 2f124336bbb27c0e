package search

// Tools that are much alike, such as the same one of several servers, would
// fill the answer to a request that needs different ones. So each of the first
// hits gives up some of its score for what those before it have of the request
// already.

const (
	coverWindow = 12 // how many of the best tools are put in order so
	coverLeast  = 3  // parts of a request below which there is nothing to share out
)

// cover puts the best of top, which is in order, into the order in which each
// adds most to those before it. It returns top, and what each document has lost.
func (r *ranker) cover(q *query, top []ranked, sc *scratch) ([]ranked, map[int]float32) {
	loss := r.w(kRepeat)
	n := min(len(top), coverWindow)
	if loss == 0 || len(q.slots) < coverLeast || n < 3 {
		return top, nil
	}
	shares := r.sharesOf(q, top[:n], sc)
	have := make([]float32, len(q.slots))
	lost := make(map[int]float32, n)
	for at := range n {
		best, score, less := at, float32(-1), float32(0)
		for i := at; i < n; i++ {
			repeated := loss * repetition(shares[i*len(have):][:len(have)], have)
			if x := top[i].score * (1 - repeated); x > score {
				best, score, less = i, x, top[i].score*repeated
			}
		}
		raise(top, best, at)
		raiseRow(shares, len(have), best, at)
		top[at].score = score
		if less > 0 {
			lost[top[at].doc] = less
		}
		for k, x := range shares[at*len(have):][:len(have)] {
			have[k] = max(have[k], x)
		}
	}
	for i := n; i < len(top); i++ {
		if most := top[i-1].score; top[i].score > most {
			lost[top[i].doc] = top[i].score - most
			top[i].score = most
		}
	}
	return top, lost
}

// repetition returns which share of what a tool has of the query is had already.
func repetition(own, have []float32) float32 {
	var all, new float32
	for k, x := range own {
		all += x
		new += max(0, x-have[k])
	}
	if all == 0 {
		return 0
	}
	return 1 - new/all
}

// sharesOf returns, for each of some documents, what it has of each slot.
func (r *ranker) sharesOf(q *query, top []ranked, sc *scratch) []float32 {
	sc.shares = zeroed(sc.shares, len(top)*len(q.slots))
	for k := range q.slots {
		for _, a := range q.slots[k].alts {
			h := hashTerm(a.term)
			for i := range r.snap.views {
				v := &r.snap.views[i]
				id, ok := v.seg.find(a.term, h)
				if !ok {
					continue
				}
				for j := range top {
					doc := top[j].doc - v.base
					if doc < 0 || doc >= len(v.seg.tools) {
						continue
					}
					x := &sc.shares[j*len(q.slots)+k]
					if a.weight <= *x {
						continue // it would not count for more, wherever it stands
					}
					*x = max(*x, a.weight*float32(v.seg.impactOf(id, uint16(doc)))/255)
				}
			}
		}
	}
	return sc.shares
}

// raise moves an element forward, past those between.
func raise[T any](list []T, from, to int) {
	x := list[from]
	copy(list[to+1:from+1], list[to:from])
	list[to] = x
}

// raiseRow does so with the rows of a table.
func raiseRow(table []float32, width, from, to int) {
	for ; from > to; from-- {
		for k := range width {
			a, b := &table[from*width+k], &table[(from-1)*width+k]
			*a, *b = *b, *a
		}
	}
}
