package search

import (
	"strings"
	"sync"

	"github.com/helve-ai/helve/lexicon"
)

// thens are words between two things to be done. What comes after them is a
// sentence of its own.
var thens = strings.NewReplacer(
	" and then ", ". ", ", then ", ". ", " after that ", ". ", " and afterwards ", ". ",
	" und dann ", ". ", " und danach ", ". ", ", dann ", ". ", " anschließend ", ". ",
	" et ensuite ", ". ", " et puis ", ". ", " puis ", ". ", ", ensuite ", ". ",
	" y luego ", ". ", " y después ", ". ", ", luego ", ". ", " e poi ", ". ", ", poi ", ". ", " e depois ", ". ", ", depois ", ". ",
	" en dan ", ". ", " en daarna ", ". ", ", daarna ", ". ", " a potem ", ". ", " i potem ", ". ", ", a następnie ", ". ",
	" а затем ", ". ", " и потом ", ". ", ", затем ", ". ", ", потом ", ". ", " ve sonra ", ". ", " ardından ", ". ",
	" ثم ", ". ", " lalu ", ". ", " kemudian ", ". ", " og derefter ", ". ", " og så ", ". ",
	"然后", "。", "然後", "。", "接着", "。", "之后再", "。", "それから", "。", "そして", "。", "その後", "。", "그리고", ". ", "그런 다음", ". ", "그 다음", ". ",
)

// ands are words that may stand between two things to be done, or between two
// words: it is the former if something to be done comes next.
var ands = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("and then und dann et puis y e luego poi en daarna i oraz и затем потом ve sonra و ثم dan lalu og") {
		m[w] = true
	}
	return m
})

// cutAtActions ends clauses at conjunctions that something to be done follows.
func (r *ranker) cutAtActions(sc *scratch) {
	words := sc.split.words
	var more uint16
	for i := range words {
		w := &words[i]
		if i > 0 && i+1 < len(words) && w.kind == whole && ands()[string(sc.split.plain(*w))] && r.isAction(words[i+1], sc) {
			more++
		}
		w.clause += more
	}
	if more == 0 {
		return
	}
	for i := range sc.list {
		for j := range words {
			if words[j].at == sc.list[i].at {
				sc.list[i].clause = words[j].clause
				break
			}
		}
	}
}

// isAction reports whether a word begins something to be done.
func (r *ranker) isAction(w word, sc *scratch) bool {
	for _, m := range sc.matches {
		if uint32(m.From) == w.at && r.snap.engine.lex.Kind(m.Concept) == lexicon.Action {
			return true
		}
	}
	return false
}

// clauses returns how many clauses of the query have words of weight.
func (q *query) clauses() int {
	n := 0
	for i := range q.slots {
		if i == 0 || q.slots[i].clause != q.slots[i-1].clause {
			n++
		}
	}
	return n
}

// clauseAt returns the clause of the query at a byte of its text.
func (sc *scratch) clauseAt(at int) uint16 {
	var c uint16
	for i := range sc.split.words {
		if int(sc.split.words[i].at) > at {
			break
		}
		c = sc.split.words[i].clause
	}
	return c
}

// maxIntents is how many things a query may ask for at once.
const maxIntents = 6

// An intent is the best tool for one of a query's clauses.
type intent struct {
	doc   int
	share float32 // what it explains of the clause
}

// scoreClauses runs each clause by itself, scaled to 1 for its best tool. It
// leaves the sum of all in sc.words, the best of each in sc.clauses, and the
// best tools in sc.intents.
func (r *ranker) scoreClauses(slots []slot, sc *scratch) {
	sc.clauses, sc.clause = zeroed(sc.clauses, r.snap.docs), zeroed(sc.clause, r.snap.docs)
	for len(slots) > 0 {
		n := 0
		var mass float32
		for ; n < len(slots) && slots[n].clause == slots[0].clause; n++ {
			r.snap.addSlot(&slots[n], sc.clause, false, sc)
			mass += slots[n].most()
		}
		best, top := r.first(sc.clause)
		var scale float32
		if top > 0 && n > 1 {
			scale = 1 / top
			sc.intents = append(sc.intents, intent{best, top / mass})
		}
		for doc, x := range sc.clause {
			if x > 0 {
				sc.words[doc] += x
				sc.clauses[doc] = max(sc.clauses[doc], x*scale)
				sc.clause[doc] = 0
			}
		}
		slots = slots[n:]
	}
}

// first returns the seen document of the greatest score.
func (r *ranker) first(scores []float32) (best int, most float32) {
	for doc, x := range scores {
		if x > most && r.sees(doc) {
			best, most = doc, x
		}
	}
	return best, most
}

// most returns what a document may have of a slot at most.
func (s *slot) most() float32 {
	var most float32
	for _, a := range s.alts {
		most = max(most, a.weight)
	}
	return most
}

// raiseIntents lifts the best tool of each of the things that are asked for to
// a share of the best score, so that all are among the first hits. It returns
// what it has added by document.
func (r *ranker) raiseIntents(scores []float32, most float32, sc *scratch, added map[int]float32) map[int]float32 {
	weight := r.w(kIntents)
	if weight == 0 || len(sc.intents) < 2 || len(sc.intents) > maxIntents {
		return added
	}
	for _, t := range sc.intents {
		more := weight*most - scores[t.doc]
		if t.share < r.w(kIntentShare) || more <= 0 {
			continue
		}
		if added == nil {
			added = map[int]float32{}
		}
		added[t.doc] += more
		scores[t.doc] += more
	}
	return added
}
