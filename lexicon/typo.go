package lexicon

// Slips of the keyboard in words of six letters and more that are not known in
// any language: a letter that should be double, one that should not, and in
// longer words two that changed places. Others are left alone: names and rarer
// words are too often one letter away from words that are here.
const (
	minTypo    = 6
	minSwapped = 7
	maxTypo    = 20
	weightTypo = .5
)

// walkTypos notes what the word i may be a slip for.
func (m *matcher) walkTypos(i int) {
	a := &m.z.atoms[i]
	if a.runes < minTypo || a.runes > maxTypo {
		return
	}
	word := m.z.folding(a)
	for at := 1; at < len(word); at++ { // the first letter is seldom wrong
		double := word[at] == word[at-1]
		switch {
		case double && m.tryTypo(i, word[:at], word[at+1:]),
			!double && m.tryTypo(i, word[:at], word[at-1:]),
			len(word) >= minSwapped && at+1 < len(word) && m.tryTypo(i, word[:at], word[at+1:at+2], word[at:at+1], word[at+2:]):
			return
		}
	}
}

// tryTypo looks up the word that parts make.
func (m *matcher) tryTypo(i int, parts ...[]byte) bool {
	key := uint64(fnvOffset)
	for _, p := range parts {
		for _, c := range p {
			key = (key ^ uint64(c)) * fnvPrime
		}
	}
	r, found, _ := m.find(join(exact, mix(key)))
	if !found {
		return false
	}
	h := hit{n: 1, refs: r, langs: inLatin, weight: weightTypo}
	if h.best = m.bestFactor(i, h); h.best == 0 {
		return false
	}
	m.hits = append(m.hits, h)
	return true
}
