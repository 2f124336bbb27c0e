package search

import (
	"slices"

	"github.com/helve-ai/helve/letters"
)

// maxWords bounds the words that Words returns.
const maxWords = 32

// Words returns the different words of a query by which it can be told from
// others, folded and stemmed, in order: no stop words, at most 32.
func Words(text string) []string {
	var sp splitter
	sp.split(letters.Compose(cut(text, maxQuery)))
	var b ballot
	for _, w := range sp.words {
		if w.script == latin {
			b.add(stopWords()[string(sp.plain(w))])
		}
	}
	winners := b.winners()
	var out []string
	for _, w := range sp.words {
		plain := sp.plain(w)
		if w.kind == joined || w.kind == single || len(out) == maxWords || stopWords()[string(plain)]&stopIn(w.script, winners) != 0 {
			continue
		}
		word := string(plain)
		if all := stemmersFor(w.script, winners); all != 0 {
			if stem := appendStem(nil, sp.spelt(w), all&-all); len(stem) > 0 {
				word = string(stem)
			}
		}
		out = append(out, word)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addHabits raises the tools that were of use after queries like this one, by
// a bounded share of the best score. It returns what it added by document, and
// the greatest score.
func (r *ranker) addHabits(habits map[string]float32, scores []float32, most float32) (map[int]float32, float32) {
	weight := r.w(kHabits)
	if weight == 0 || len(habits) == 0 {
		return nil, most
	}
	best, added := most, map[int]float32{}
	if best == 0 {
		best = 1 // the words found nothing
	}
	for name, x := range habits {
		if doc, ok := r.snap.docOf(name); ok && r.sees(doc) {
			added[doc] = weight * best * min(max(x, 0), 1)
			scores[doc] += added[doc]
			most = max(most, scores[doc])
		}
	}
	return added, most
}
