package lexicon

import (
	"slices"
	"strings"

	"github.com/helve-ai/helve/letters"
)

// verbParticles stand apart from their verb, later in the sentence: "lade die Datei
// hoch", "turn the light off".
var verbParticles = map[Langs]string{
	English: "on off up down out in away back over",
	German:  "hoch herunter runter auf an ab aus ein um zu weiter zurück fest hinzu vor nach mit los zusammen durch bei her hin weg heraus raus hinaus frei dar",
	Dutch:   "op af aan uit in toe door terug weg mee bij samen vast neer om over weer zien",
	Danish:  "op ned ud ind til fra af om sammen væk tilbage",
}

const apartLangs = English | German | Dutch | Danish

const (
	particleSeed = 0x70617274 // of particles
	apartSeed    = 0x61706172 // of verbs with particles

	maxApart    = 7   // words between a verb and its particle
	weightApart = .85 // of a verb that is found with its particle
)

// mayBeParticle tells most words off without a lookup.
var mayBeParticle = func() (filter [filterSize]bool) {
	for _, words := range verbParticles {
		for p := range strings.FieldsSeq(words) {
			filter[hash(appendFoldedWord(nil, p))%filterSize] = true
		}
	}
	return filter
}()

const (
	filterSize  = 1024
	maxParticle = 9
)

// apart adds the keys by which a verb is found whose particle stands apart. The
// entry is of two words, or joins the two as the infinitive does.
func (b *builder) apart(id ID, lang int, text string, weight uint8) {
	verb, particle := splitParticle(text, lang)
	if verb == "" {
		return
	}
	b.z.split(verb + " " + particle)
	if len(b.z.atoms) != 2 {
		return
	}
	v, p := &b.z.atoms[0], &b.z.atoms[1]
	b.put(join(join(apartSeed, v.hash), p.hash), id, lang, weight, true)
	if stemmed.has(lang) {
		b.put(join(join(apartSeed+stemSeed(lang), b.z.stem(&b.stem, v, lang).hash), p.hash), id, lang, weight, true)
	}
	b.put(join(particleSeed, p.hash), functionalWord, lang, 255, true)
}

// splitParticle takes a verb and its particle apart; an empty verb: there is none.
func splitParticle(text string, lang int) (verb, particle string) {
	words := strings.Fields(text)
	for p := range strings.FieldsSeq(verbParticles[1<<lang]) {
		switch {
		case len(words) == 2 && words[1] == p:
			return words[0], p
		case len(words) == 1 && compounded.has(lang) && strings.HasPrefix(text, p) && strings.HasSuffix(text, "n") && len(text) >= len(p)+4:
			if len(p) > len(particle) {
				verb, particle = text[len(p):], p
			}
		}
	}
	return verb, particle
}

// withZu returns the German infinitive with zu: hochzuladen.
func withZu(text string) (string, bool) {
	verb, particle := splitParticle(text, German.index())
	return particle + "zu" + verb, verb != "" && !strings.Contains(text, " ")
}

// findParticles notes where words stand that may belong to a verb before them.
func (m *matcher) findParticles() {
	m.particles = m.particles[:0]
	for i := 2; i < len(m.z.atoms); i++ {
		if a := &m.z.atoms[i]; a.script == letters.Latin && a.runes <= maxParticle && mayBeParticle[a.hash%filterSize] && m.langsOf(join(particleSeed, a.hash), m.likely|English) != 0 {
			m.particles = append(m.particles, i)
		}
	}
}

// walkApart looks for verb i with a particle that stands later.
func (m *matcher) walkApart(i int) bool {
	from, _ := slices.BinarySearch(m.particles, i+2)
	for _, p := range m.particles[from:] {
		if p > i+1+maxApart {
			break
		}
		for langs := m.likely | English; langs != 0; langs &= langs - 1 {
			if m.apartIn(i, p, langs.index()) {
				return true
			}
		}
	}
	return false
}

func (m *matcher) apartIn(i, p, lang int) bool {
	if !apartLangs.has(lang) {
		return false
	}
	particle := m.z.atoms[p].hash
	keys := [2]uint64{join(join(apartSeed, m.z.atoms[i].hash), particle)}
	if stemmed.has(lang) {
		keys[1] = join(join(apartSeed+stemSeed(lang), m.z.stem(&m.stem, &m.z.atoms[i], lang).hash), particle)
	}
	for _, key := range keys {
		if r, ok := m.findIn(key, lang); ok {
			h := hit{n: 1, refs: r, langs: 1 << lang, weight: weightApart}
			h.best = m.bestFactor(i, h)
			m.hits = append(m.hits, h)
			return h.best > 0
		}
	}
	return false
}
