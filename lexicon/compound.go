package lexicon

import (
	"bytes"
	"unicode/utf8"
)

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

// counts may begin a compound and are no part of its sense: Dreizimmerwohnung.
var counts = [...]string{"ein", "zwei", "drei", "vier", "funf", "sechs", "acht", "zehn", "een", "twee", "vijf", "zes", "tien", "fire", "fem", "seks"}

// compound notes the parts of the word i, if it is made of words that are known.
func (m *matcher) compound(i int, a *atom) bool {
	langs := compounded & (m.likely | m.hint.Likely)
	if !m.hint.Firm && m.likely&^English == 0 {
		langs = compounded
	}
	for ; langs != 0; langs &= langs - 1 {
		lang := langs.index()
		first := len(m.hits)
		if m.parts(m.z.folding(a), lang) {
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
func (m *matcher) parts(word []byte, lang int) bool {
	if m.twoParts(word, lang, false) {
		return true
	}
	for _, n := range counts {
		if rest, ok := bytes.CutPrefix(word, []byte(n)); ok && len(rest) >= minCompound && m.twoParts(rest, lang, false) {
			return true
		}
	}
	return m.moreParts(word, lang)
}

// twoParts notes the two parts of a word; the later the second begins, the
// better. Within a longer word it is the earlier: Wetter-datenbank-abfrage.
func (m *matcher) twoParts(word []byte, lang int, within bool) bool {
	for i := range len(word) - 2*minPart + 1 {
		cut := len(word) - minPart - i
		if within {
			cut = minPart + i
		}
		if utf8.RuneStart(word[cut]) && m.cutAt(word, cut, lang, within) {
			return true
		}
	}
	return false
}

// cutAt notes the two parts of a word of which the second begins at cut, if both are known.
func (m *matcher) cutAt(word []byte, cut, lang int, within bool) bool {
	head, ok := m.part(word[cut:], lang, within)
	if !ok {
		return false
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
	return false
}

// moreParts notes the three parts of a word of which the first two are a compound themselves.
func (m *matcher) moreParts(word []byte, lang int) bool {
	for cut := len(word) - minLastPart; cut >= minCompound; cut-- {
		if !utf8.RuneStart(word[cut]) {
			continue
		}
		head, ok := m.part(word[cut:], lang, false)
		if !ok {
			continue
		}
		for _, link := range links {
			front, ok := cutSuffix(word[:cut], link)
			if !ok || len(front) < minCompound {
				continue
			}
			first := len(m.hits)
			if m.twoParts(front, lang, true) {
				for i := range m.hits[first:] {
					m.hits[first+i].weight = weightModifier
				}
				m.hits = append(m.hits, hit{n: 1, refs: head, langs: 1 << lang, weight: weightHead})
				return true
			}
		}
	}
	return false
}

// minLastPart is how long the last of three parts is at least.
const minLastPart = 4

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
