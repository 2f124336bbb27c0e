package lexicon

import "github.com/helve-ai/helve/letters"

// What a sense counts whose language the text is probably not in.
const (
	factorEnglish = .8 // English words stand in texts of all languages
	factorLong    = .5 // few languages share long words
	factorMiddle  = .25
	factorKana    = .6 // the other one of Chinese and Japanese
)

// What languages have to their credit before the words are counted, and how
// much of the best one's votes makes a language likely.
const (
	votesEnglish = .25
	votesHinted  = 1
	votesMixed   = 2
	shareLikely  = .6
)

// weighLanguages makes out which languages the Latin words are in, and whether
// there is Japanese.
func (m *matcher) weighLanguages() {
	m.hasKana = false
	for i := range m.z.atoms {
		s := m.z.atoms[i].script
		m.hasKana = m.hasKana || s == letters.Hiragana || s == letters.Katakana
	}
	if m.hint.Firm {
		m.likely = m.hint.Likely
		return
	}
	m.votes = [langCount]float32{votesEnglish}
	if m.isMixed() {
		m.votes[English.index()] += votesMixed
	}
	m.vote(m.hint.Likely, votesHinted*float32(m.hint.Likely.len()))
	for i := range m.z.atoms {
		if m.z.atoms[i].script != letters.Latin {
			continue
		}
		if langs := m.functionalIn(i); langs != 0 {
			m.vote(langs, 1)
		} else if m.z.atoms[i].runes > 1 {
			m.vote(m.heardIn(i), 1)
		}
	}
	most := float32(0)
	for _, v := range m.votes {
		most = max(most, v)
	}
	m.likely = 0
	for i, v := range m.votes {
		if v >= shareLikely*most {
			m.likely |= 1 << i
		}
	}
}

// isMixed reports whether the text is in a script other than the Latin one:
// what stands in Latin letters there is most often English.
func (m *matcher) isMixed() bool {
	for i := range m.z.atoms {
		if s := m.z.atoms[i].script; s != letters.Latin && s != letters.Digits {
			return true
		}
	}
	return false
}

// vote shares a vote out among languages.
func (m *matcher) vote(langs Langs, vote float32) {
	vote /= float32(max(1, langs.len()))
	for ; langs != 0; langs &= langs - 1 {
		m.votes[langs.index()] += vote
	}
}

// heardIn returns the languages in which a word stands for something: as it is
// written, else by its stem.
func (m *matcher) heardIn(i int) Langs {
	if langs := m.langsOf(join(exact, m.z.atoms[i].hash), inLatin); langs != 0 {
		return langs
	}
	out := m.stemsIn(i, m.hint.Likely|English)
	if out == 0 {
		out = m.stemsIn(i, inLatin&^(m.hint.Likely|English))
	}
	return out
}

func (m *matcher) stemsIn(i int, langs Langs) (out Langs) {
	for langs &= inLatin; langs != 0; langs &= langs - 1 {
		lang := langs.index()
		if stemmed.has(lang) {
			out |= m.langsOf(join(stemSeed(lang), m.z.stem(&m.stem, &m.z.atoms[i], lang).hash), 1<<lang)
		}
		for _, f := range m.formsOf(&m.z.atoms[i], lang) {
			out |= m.langsOf(join(exact, f.hash), 1<<lang)
		}
	}
	return out
}

func (m *matcher) langsOf(key uint64, within Langs) (out Langs) {
	r, found, _ := m.find(key)
	if found {
		m.eachSense(hit{refs: r, langs: within}, func(s sense) { out |= s.langs & within })
	}
	return out
}

// factor returns what a sense counts that the phrase of n atoms at i has in langs.
func (m *matcher) factor(i, n int, langs Langs) float32 {
	a := &m.z.atoms[i]
	switch a.script {
	case letters.Latin:
		return m.factorLatin(a, n, langs)
	case letters.Han:
		switch other := m.hasKana && langs&Japanese == 0 || !m.hasKana && langs&Chinese == 0; {
		case other && n == 1:
			return 0
		case other:
			return factorKana
		}
	}
	return 1
}

func (m *matcher) factorLatin(a *atom, n int, langs Langs) float32 {
	switch {
	case langs&m.likely != 0, langs&^inLatin != 0 && n > 1:
		return 1
	case langs&English != 0:
		return factorEnglish
	case m.hint.Firm && langs&inLatin != 0:
		return 0
	case n > 1 || a.runes >= 6:
		return factorLong
	case a.runes >= 4:
		return factorMiddle
	}
	return 0
}
