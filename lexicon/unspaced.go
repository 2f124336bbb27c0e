package lexicon

import "github.com/helve-ai/helve/letters"

// What phrases count that may be part of a longer word which is not known.
const (
	weightLone  = .5 // one character of many
	weightInner = .6 // it begins within a Korean word, or ends within one of katakana
)

// walkUnspaced notes the longest phrase that begins with the character i.
func (m *matcher) walkUnspaced(i int) {
	if !m.walk(i, exact, -1, ^Langs(0)) {
		return
	}
	h := &m.hits[len(m.hits)-1]
	a, z := &m.z.atoms[i], &m.z.atoms[i+h.n-1]
	switch {
	case z.script == letters.Latin || a.first && z.last:
	case a.script == letters.Hangul:
		m.weighHangul(i, h)
	case a.script == letters.Katakana && z.script == letters.Katakana:
		m.weighKatakana(i, h)
	case h.n == 1:
		h.weight = weightLone
	}
}

// weighHangul makes less of what begins within a word, and nothing of single
// syllables within words but for those that a particle follows.
func (m *matcher) weighHangul(i int, h *hit) {
	a := &m.z.atoms[i]
	switch {
	case h.n == 1 && a.first && i+2 == m.wordEnd(i) && particles[string(m.z.folding(&m.z.atoms[i+1]))]:
	case h.n == 1:
		m.hits = m.hits[:0]
	case !a.first:
		h.weight = weightInner
	}
}

// particles are the Korean ones of one syllable.
var particles = map[string]bool{"을": true, "를": true, "은": true, "는": true, "이": true, "가": true, "의": true, "에": true, "로": true, "와": true, "과": true, "도": true, "만": true}

// wordEnd returns the atom after the run of letters that i is in.
func (m *matcher) wordEnd(i int) int {
	for !m.z.atoms[i].last {
		i++
	}
	return i + 1
}

// weighKatakana makes less of a phrase that begins or ends within a run of
// katakana, in which single foreign words are written: ログ is no part of ブログ.
func (m *matcher) weighKatakana(i int, h *hit) {
	inner := !m.z.atoms[i].first && m.z.atoms[i-1].script == letters.Katakana
	j := i + h.n - 1
	cut := !m.z.atoms[j].last && m.z.atoms[j+1].script == letters.Katakana
	switch {
	case (inner || cut) && h.n < 3:
		m.hits = m.hits[:0]
	case inner:
		h.weight = weightInner
	}
}
