package search

import (
	"bytes"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

// A gramIndex leads from three neighbouring letters to the words of a
// dictionary that contain them. Different letters may share a bucket; what it
// gives is compared in full later.
type gramIndex struct {
	first []uint32 // by bucket; one more than there are buckets
	terms []uint32
}

const (
	minGramWord = 6 // letters of words that are compared by n-grams: shorter ones have too few to tell them apart
	minGram     = 3
	maxGram     = 5
)

// gramWord reports whether a term is a word that is compared by n-grams.
func gramWord(term []byte) bool {
	if len(term) < minGramWord || term[0] < firstWord {
		return false
	}
	r, _ := utf8.DecodeRune(term)
	s := letters.ScriptOf(r)
	return s != digits && !s.Unspaced() && (term[0] < utf8.RuneSelf || utf8.RuneCount(term) >= minGramWord)
}

// eachTrigram calls visit with a hash for every three letters of the word and
// the marks of its two ends.
func eachTrigram(term []byte, visit func(uint32)) {
	a, b := rune('^'), rune(0)
	for i := 0; i <= len(term); {
		r, n := rune('$'), 1
		if i < len(term) {
			r, n = utf8.DecodeRune(term[i:])
		}
		i += n
		if b != 0 {
			h := (uint32(a)*0x9E3779B1 ^ uint32(b)) * 0x85EBCA6B
			h = (h ^ h>>15 ^ uint32(r)) * 0xC2B2AE35
			visit(h ^ h>>16)
			a = b
		}
		b = r
	}
}

func indexGrams(s *segment) gramIndex {
	total := 0
	for id := range uint32(s.terms()) {
		if t := s.term(id); gramWord(t) {
			eachTrigram(t, func(uint32) { total++ })
		}
	}
	buckets := 16
	for buckets < total/8 {
		buckets *= 2
	}
	g := gramIndex{make([]uint32, buckets+1), make([]uint32, total)}
	mask := uint32(buckets - 1)
	each := func(visit func(id, bucket uint32)) {
		for id := range uint32(s.terms()) {
			if t := s.term(id); gramWord(t) {
				eachTrigram(t, func(h uint32) { visit(id, h&mask) })
			}
		}
	}
	each(func(_, b uint32) { g.first[b+1]++ })
	for b := range buckets {
		g.first[b+1] += g.first[b]
	}
	next := make([]uint32, buckets)
	copy(next, g.first)
	each(func(id, b uint32) {
		g.terms[next[b]] = id
		next[b]++
	})
	return g
}

// bucket returns the terms that may contain the trigram of this hash.
func (g *gramIndex) bucket(h uint32) []uint32 {
	b := h & uint32(len(g.first)-2)
	return g.terms[g.first[b]:g.first[b+1]]
}

// gramSimilarity is the share of n-grams of three to five letters that two
// words have in common: Dice's coefficient, longer grams weighing more.
func gramSimilarity(a, b []byte) float32 {
	var common, total float32
	for n := minGram; n <= maxGram; n++ {
		w := float32(n - minGram + 1)
		na, nb := max(0, len(a)-n+1), max(0, len(b)-n+1)
		total += w * float32(na+nb)
		for i := range na {
			if bytes.Contains(b, a[i:i+n]) {
				common += 2 * w
			}
		}
	}
	if total == 0 {
		return 0
	}
	return min(1, common/total)
}
