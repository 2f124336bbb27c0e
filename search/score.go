package search

import (
	"cmp"
	"slices"
	"sync"

	"github.com/helve-ai/helve/lexicon"
	"github.com/helve-ai/helve/tool"
)

// A scratch is the working memory of one search.
type scratch struct {
	split               splitter
	composed            string // the query's text
	ballot              ballot
	list                []token
	matches             []lexicon.Match
	slots, low, unknown []slot
	alts                []alternative
	expansions          []expansion
	expanded            int // words for which expansions were sought
	bytes               fuzzyWalk[byte]
	wide                fuzzyWalk[rune]
	runes               []rune
	counter             gramCounter

	channels        []channel
	words, grams    []float32 // by document
	pieces          []float32 // by document
	named           []float32 // by document: the share of the score that was lost for the name
	masks           []uint8   // by document: the words of the name that the query has
	clauses, clause []float32 // by document: the best of all clauses, and the one at hand
	intents         []intent
	ruled           []span    // bytes of the query's text that are ruled out
	slot            []float32 // by document: the best so far of one slot; zero between slots
	touched         []uint32
	verdicts        []uint8   // by document: what accept said
	shares          []float32 // by hit and slot: what cover compares
	ids             []uint32
	terms           []uint32 // hashes of the pieces of words that were asked for
	pair, stems     []byte
	buf             []byte
	arena           []byte // terms of the query at hand
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// zeroed returns s, or a longer one, as n zeros.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	s = s[:n]
	clear(s)
	return s
}

// A channel gives every document a score. Channels are brought to one scale by
// their greatest score before they are added.
type channel struct {
	name   string
	weight float32
	scores []float32 // by document; zero: the channel does not know it
	scale  float32   // what a score is multiplied by; fuse fills it in
}

// addSlot adds, to the score of each document, that of the slot's best
// alternative. With known, it passes over documents without a score.
func (s *snapshot) addSlot(sl *slot, acc []float32, known bool, sc *scratch) {
	if len(sl.alts) == 1 {
		s.addOne(&sl.alts[0], acc, known)
		return
	}
	for _, a := range sl.alts {
		s.eachPosting(a.term, func(doc uint32, impact uint8) {
			x := a.weight * float32(impact) / 255
			if have := sc.slot[doc]; have == 0 {
				sc.touched = append(sc.touched, doc)
				sc.slot[doc] = x
			} else if x > have {
				sc.slot[doc] = x
			}
		})
	}
	for _, doc := range sc.touched {
		if !known || acc[doc] > 0 {
			acc[doc] += sc.slot[doc]
		}
		sc.slot[doc] = 0
	}
	sc.touched = sc.touched[:0]
}

func (s *snapshot) addOne(a *alternative, acc []float32, known bool) {
	h, w := hashTerm(a.term), a.weight/255
	for i := range s.views {
		v := &s.views[i]
		id, ok := v.seg.find(a.term, h)
		if !ok {
			continue
		}
		docs, impact := v.seg.postings(id)
		part := acc[v.base : v.base+len(v.seg.tools)]
		impact = impact[:len(docs)]
		for j, d := range docs {
			if !known || part[d] > 0 {
				part[d] += w * float32(impact[j])
			}
		}
	}
}

// eachPosting calls visit for every document that contains the term.
func (s *snapshot) eachPosting(term []byte, visit func(doc uint32, impact uint8)) {
	h := hashTerm(term)
	for i := range s.views {
		v := &s.views[i]
		if id, ok := v.seg.find(term, h); ok {
			docs, impact := v.seg.postings(id)
			for j, d := range docs {
				visit(uint32(v.base)+uint32(d), impact[j])
			}
		}
	}
}

// score runs the query over the snapshot.
func (r *ranker) score(q *query, sc *scratch) []channel {
	s := r.snap
	sc.words, sc.slot = zeroed(sc.words, s.docs), zeroed(sc.slot, s.docs)
	several := r.w(kClauses) > 0 && q.clauses() > 1
	sc.intents = sc.intents[:0]
	if several {
		r.scoreClauses(q.slots, sc)
	} else {
		for i := range q.slots {
			s.addSlot(&q.slots[i], sc.words, false, sc)
		}
	}
	for i := range q.low {
		s.addSlot(&q.low[i], sc.words, true, sc)
	}
	r.addPairs(q.langs, sc)
	r.disagree(q, sc.words, sc)
	out := append(sc.channels[:0], channel{name: "words", weight: 1, scores: sc.words})
	if len(q.unknown) > 0 {
		sc.grams = zeroed(sc.grams, s.docs)
		for i := range q.unknown {
			s.addSlot(&q.unknown[i], sc.grams, false, sc)
		}
		out = append(out, channel{name: "similar", weight: r.w(kSimilar), scores: sc.grams})
	}
	if r.w(kGrams) > 0 {
		r.scorePieces(q.tokens, sc)
		confine(sc.pieces, out)
		out = append(out, channel{name: "letters", weight: r.w(kGrams), scores: sc.pieces})
	}
	if several {
		out = append(out, channel{name: "sentences", weight: r.w(kClauses), scores: sc.clauses})
	}
	sc.channels = out
	return out
}

// confine takes the score from the tools that no channel knows: letters alone
// do not bring a tool into the answer.
func confine(scores []float32, channels []channel) {
	for doc := range scores {
		known := false
		for _, c := range channels {
			known = known || c.scores[doc] > 0
		}
		if !known {
			scores[doc] = 0
		}
	}
}

// keep returns a copy of a term that lives as long as the query.
func (sc *scratch) keep(term []byte) []byte {
	if len(sc.arena)+len(term) > cap(sc.arena) {
		sc.arena = make([]byte, 0, max(512, len(term)))
	}
	from := len(sc.arena)
	sc.arena = append(sc.arena, term...)
	return sc.arena[from:len(sc.arena):len(sc.arena)]
}

// A ranker picks the best documents of a snapshot.
type ranker struct {
	snap     *snapshot
	accept   func(*tool.Tool) bool
	verdicts []uint8 // by document
}

const (
	notAsked uint8 = iota
	accepted
	rejected
)

// sees reports whether a document may be found.
func (r *ranker) sees(doc int) bool {
	if r.verdicts[doc] == notAsked {
		r.verdicts[doc] = rejected
		v := r.snap.viewOf(doc)
		if i := doc - v.base; !v.isGone(i) && (r.accept == nil || r.accept(v.seg.tools[i])) {
			r.verdicts[doc] = accepted
		}
	}
	return r.verdicts[doc] == accepted
}

// A ranked document.
type ranked struct {
	doc   int
	score float32
	tool  *tool.Tool
}

func compareRanked(a, b ranked) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(a.tool.Name, b.tool.Name)
}

// fuse adds up the channels, each scaled to its weight by its greatest score,
// into the first one's scores. It returns the greatest sum.
func (r *ranker) fuse(channels []channel) (sum []float32, most float32) {
	for i := range channels {
		c := &channels[i]
		var scale float32
		if top := r.most(c.scores); top > 0 {
			scale = c.weight / top
		}
		c.scale = scale
		if i == 0 {
			sum = c.scores
			for doc := range sum {
				sum[doc] *= scale
			}
			continue
		}
		for doc, x := range c.scores {
			sum[doc] += scale * x
		}
	}
	return sum, r.most(sum)
}

// rank returns the n documents of the best scores that are seen and reach the
// floor, best first.
func (r *ranker) rank(scores []float32, floor float32, n int) []ranked {
	var top []ranked // a heap, once there are n, whose first is the worst
	for doc, x := range scores {
		if x < floor || x == 0 || !r.sees(doc) {
			continue
		}
		c := ranked{doc, x, r.snap.at(doc)}
		switch {
		case len(top) < n:
			if top = append(top, c); len(top) < n {
				continue
			}
			slices.SortFunc(top, func(a, b ranked) int { return compareRanked(b, a) })
		case compareRanked(c, top[0]) < 0:
			top[0] = c
			sink(top)
		}
		floor = max(floor, top[0].score)
	}
	slices.SortFunc(top, compareRanked)
	return top
}

// sink restores the order of a heap whose first has changed.
func sink(h []ranked) {
	for i := 0; ; {
		kid := 2*i + 1
		if kid >= len(h) {
			return
		}
		if kid+1 < len(h) && compareRanked(h[kid+1], h[kid]) > 0 {
			kid++
		}
		if compareRanked(h[kid], h[i]) < 0 {
			return
		}
		h[i], h[kid] = h[kid], h[i]
		i = kid
	}
}

// most returns the greatest score of a document that is seen.
func (r *ranker) most(scores []float32) float32 {
	var most float32
	for doc, x := range scores {
		if x > most && r.sees(doc) {
			most = x
		}
	}
	return most
}

func (r *ranker) w(k knob) float32 { return r.snap.engine.v[k] }
