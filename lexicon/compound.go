package lexicon

import "unicode/utf8"

// Compounds of German, Dutch and Danish: words of eight letters and more that
// are not known, whose parts are. The last part says what the whole is.
const (
	minCompound    = 8
	minPart        = 3
	weightHead     = .8 // the last part
	weightModifier = .6 // those before it
)

// links may stand between the parts of a compound.
var links = [...]string{"", "s", "n", "en", "es", "er", "e"}

// compound notes the parts of the word i, if it is made of words that are known.
func (m *matcher) compound(i int, a *atom) bool {
	langs := compounded & (m.likely | m.hint.Likely)
	if !m.hint.Firm && m.likely&^English == 0 {
		langs = compounded
	}
	for ; langs != 0; langs &= langs - 1 {
		lang := langs.index()
		first := len(m.hits)
		if m.parts(m.z.folding(a), lang, 0) {
			for k := range m.hits[first:] {
				h := &m.hits[first+k]
				h.best = m.bestFactor(i, *h)
			}
			return true
		}
	}
	return false
}

// parts notes the parts of a word in a language, the fewest that make it up.
func (m *matcher) parts(word []byte, lang, depth int) bool {
	if depth == 3 {
		return false
	}
	for cut := len(word) - minPart; cut >= minPart; cut-- {
		if !utf8.RuneStart(word[cut]) {
			continue
		}
		head, ok := m.part(word[cut:], lang, depth > 0)
		if !ok {
			continue
		}
		for _, link := range links {
			front, ok := cutSuffix(word[:cut], link)
			if !ok || len(front) < minPart {
				continue
			}
			if r, ok := m.part(front, lang, false); ok {
				m.hits = append(m.hits, hit{n: 1, refs: r, langs: 1 << lang, weight: weightModifier}, hit{n: 1, refs: head, langs: 1 << lang, weight: weightHead})
				return true
			}
		}
	}
	return false
}

func cutSuffix(b []byte, s string) ([]byte, bool) {
	if len(b) < len(s) || string(b[len(b)-len(s):]) != s {
		return b, false
	}
	return b[:len(b)-len(s)], true
}

// part looks up a part of a compound: as it is written or, at the end, inflected.
func (m *matcher) part(part []byte, lang int, inner bool) (refs, bool) {
	if r, ok := m.findIn(join(exact, hash(part)), lang); ok {
		return r, true
	}
	if inner {
		return refs{}, false
	}
	st := m.stem.of(part, hash(part), lang)
	if st.hash == 0 || st.weight < 1 {
		return refs{}, false
	}
	return m.findIn(join(stemSeed(lang), st.hash), lang)
}

// findIn looks a key up that has a sense in a language.
func (m *matcher) findIn(key uint64, lang int) (refs, bool) {
	r, found, _ := m.find(key)
	return r, found && m.langsIn(r, 1<<lang)
}

func (m *matcher) langsIn(r refs, langs Langs) bool {
	any := false
	m.eachSense(hit{refs: r, langs: langs}, func(sense) { any = true })
	return any
}
