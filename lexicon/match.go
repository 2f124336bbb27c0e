package lexicon

import (
	"unicode"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

// A Match says that a piece of a text stands for a concept.
type Match struct {
	From, To int     // the bytes of the text
	Concept  ID      //
	Weight   float32 // how sure that is: 1 for an entry of a likely language as it stands in the data, half for ambiguous ones, less for inflections and parts of compounds; never zero
	Langs    Langs   // the languages in which it is so understood
}

// A Hint says what is known of the languages of a text. The zero Hint leaves
// it to the words of the text.
type Hint struct {
	Likely Langs // probably one of these
	Firm   bool  // Latin words are in these languages or in English, and in no others
}

// Match appends to dst the concepts that words of a text stand for, in the
// order of the text. Where several phrases begin at a word the longest counts,
// and what lies within it is not looked at again unless it is an action that
// names what it is done to; one piece may stand for several concepts. The text
// should be NFKC. Identifiers are taken apart. Match allocates nothing but room
// in dst, once it has met the words.
func (l *Lexicon) Match(dst []Match, text string, hint Hint) []Match {
	m, _ := l.pool.Get().(*matcher)
	if m == nil {
		m = &matcher{}
	}
	m.lex = l
	dst = m.match(dst, text, hint)
	l.pool.Put(m)
	return dst
}

// A matcher is at work on one text.
type matcher struct {
	lex  *Lexicon
	z    atomiser
	stem stemmer
	text string
	hint Hint

	votes   [langCount]float32
	likely  Langs // languages of the Latin words
	hasKana bool
	hits    []hit // of the atom at hand
	forms   []form
	end     int  // the atom before which phrases end
	guesses int  // unknown words that were looked into
	goesOn  bool // longer phrases begin like the one that was walked last

	particles []int // atoms
}

// A hit is a phrase of n atoms that was found, with where its senses are in each table.
type hit struct {
	n      int
	refs   refs
	langs  Langs // in which the senses count
	weight float32
	best   float32 // the greatest factor of its senses
}

type refs [maxTables]uint32

// maxGuesses bounds how many unknown words of a text are taken apart, which
// costs a hundred times what others do.
const maxGuesses = 64

const (
	weightWithin = .5 // part of a longer phrase
	weightBeside = .6 // an inflection of a word that also stands for something as it is
	weightNamed  = .3 // what seems an inflection, and is more likely a name: Luca is no light
)

// maxTables is how many tables a lexicon has at most: its own, and one of all
// that extends it.
const maxTables = 2

func (m *matcher) match(dst []Match, text string, hint Hint) []Match {
	m.text, m.hint, m.guesses = text, hint, 0
	m.z.split(text)
	m.weighLanguages()
	m.findParticles()
	for i := 0; i < len(m.z.atoms); {
		n := 0
		dst, n = m.at(dst, i)
		i += max(1, n)
	}
	m.text = ""
	return dst
}

// find looks a key up in all tables.
func (m *matcher) find(key uint64) (r refs, found, goesOn bool) {
	for i, t := range m.lex.tables {
		ref, on := t.find(key)
		r[i] = ref
		found, goesOn = found || ref != 0, goesOn || on
	}
	return r, found, goesOn
}

// at appends what the longest phrase that begins with atom i stands for, and
// returns its length in atoms; zero: nothing begins there.
func (m *matcher) at(dst []Match, i int) ([]Match, int) {
	m.hits, m.end = m.hits[:0], len(m.z.atoms)
	a := &m.z.atoms[i]
	if a.unspaced() {
		m.walkUnspaced(i)
	} else {
		m.walkWords(i)
	}
	longest := m.longest()
	if longest == 0 || longest == 1 && !a.unspaced() && m.isFunctional(i) {
		return dst, 0
	}
	from := len(dst)
	dst = m.emit(dst, i, longest)
	if longest > 1 && m.allActions(dst[from:]) {
		dst = m.within(dst, i, longest, dst[from].Langs)
	}
	return dst, longest
}

func (m *matcher) allActions(list []Match) bool {
	for i := range list {
		if m.lex.kinds[list[i].Concept] != Action {
			return false
		}
	}
	return true
}

// within appends what the words of the phrase of n atoms at i stand for, which
// is an action in langs, if there are several and one is a thing: "merge a pull
// request" is about pull requests and about merging; "get rid of" is not about
// getting, "log in" not about logs.
func (m *matcher) within(dst []Match, i, n int, langs Langs) []Match {
	from, pieces := len(dst), 0
	for k := i; k < i+n; {
		m.hits, m.end = m.hits[:0], min(k+n-1, i+n)
		least := 1
		if m.z.atoms[k].unspaced() {
			m.walkUnspaced(k)
			least = 2 // a character of many says little
		} else if !m.isFunctional(k) {
			m.walkWords(k)
		}
		longest := m.longest()
		if longest >= least {
			before := len(dst)
			if dst = m.emitWithin(dst, k, longest, langs); len(dst) > before {
				pieces++
			}
		}
		k += max(1, longest)
	}
	if pieces < 2 || m.allActions(dst[from:]) {
		dst = dst[:from]
	}
	return dst
}

func (m *matcher) emitWithin(dst []Match, i, n int, langs Langs) []Match {
	for k := range m.hits {
		m.hits[k].weight *= weightWithin
	}
	from := len(dst)
	dst = m.emit(dst, i, n)
	kept := dst[:from]
	for _, x := range dst[from:] {
		if x.Langs&langs != 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// longest returns the length of the longest of the hits.
func (m *matcher) longest() int {
	n := 0
	for i := range m.hits {
		n = max(n, m.hits[i].n)
	}
	return n
}

// walkWords collects the phrases that begin with the word i: as they are
// written, then by stems.
func (m *matcher) walkWords(i int) {
	a := &m.z.atoms[i]
	own := writtenIn(a.script)
	if i+1 < m.end && m.z.atoms[i+1].unspaced() && m.z.atoms[i+1].from == a.to {
		own |= writtenIn(m.z.atoms[i+1].script) // PR出して
	}
	if len(m.particles) > 0 && m.walkApart(i) {
		return
	}
	asWritten := 0
	m.goesOn = false
	written := m.walk(i, exact, -1, own)
	if a.accented() {
		written = m.asSpelt(i, own, written)
	}
	if written && m.hits[len(m.hits)-1].best >= 1 {
		asWritten = m.hits[len(m.hits)-1].n
	}
	likely := own
	if a.script == letters.Latin {
		likely &= m.likely | English
	}
	if a.script == letters.Digits {
		return
	}
	if asWritten > 0 && !m.goesOn {
		likely &^= English // nothing longer begins so
	}
	if m.walkStems(i, likely, asWritten) || m.hint.Firm || len(m.hits) > 0 {
		return
	}
	if !m.walkStems(i, own&^likely, 0) && a.script == letters.Latin && m.functionalIn(i) == 0 && m.mayGuess() {
		m.walkTypos(i)
	}
}

// isNamed reports whether the word i begins with a capital and the one before
// it, to which it is joined by a space, does not.
func (m *matcher) isNamed(i int) bool {
	if i == 0 || !m.adjoins(i) {
		return false
	}
	a, before := &m.z.atoms[i], &m.z.atoms[i-1]
	if m.text[a.from-1] != ' ' {
		return false
	}
	own, _ := utf8.DecodeRuneInString(m.text[a.from:])
	other, _ := utf8.DecodeRuneInString(m.text[before.from:])
	return unicode.IsUpper(own) && unicode.IsLower(other)
}

// asSpelt has the word i stand for what is spelt with just its accents, if
// there is such, in place of what is spelt alike but for accents.
func (m *matcher) asSpelt(i int, langs Langs, found bool) bool {
	if found && m.hits[len(m.hits)-1].n > 1 {
		return true
	}
	h := hit{n: 1, langs: langs, weight: 1}
	h.refs, _, _ = m.find(join(speltSeed, hash(m.z.spelling(&m.z.atoms[i]))))
	if h.best = m.bestFactor(i, h); h.best == 0 {
		return found
	}
	if found {
		m.hits = m.hits[:len(m.hits)-1]
	}
	m.hits = append(m.hits, h)
	return true
}

// mayGuess reports whether one more unknown word of the text may be taken apart.
func (m *matcher) mayGuess() bool {
	m.guesses++
	return m.guesses <= maxGuesses
}

// walkStems collects the phrases that begin with the word i by its inflections.
// Where it stands for something as it is written, with asWritten words, those
// as long count less, and in English nothing: settings are not set.
func (m *matcher) walkStems(i int, langs Langs, asWritten int) bool {
	first := len(m.hits)
	for ; langs != 0; langs &= langs - 1 {
		lang := langs.index()
		if stemmed.has(lang) && m.walk(i, stemSeed(lang), lang, 1<<lang) {
			if at := len(m.hits) - 1; Langs(1<<lang) == Turkish && m.walkForms(i, lang) {
				m.hits[at].weight *= weightBeside // toplantım is a meeting rather than a sum
			}
			continue
		}
		m.walkForms(i, lang)
	}
	kept, named := m.hits[:first], m.isNamed(i)
	for _, h := range m.hits[first:] {
		if h.n <= asWritten {
			h.weight *= weightBeside
		}
		if named && h.n == 1 && h.langs != German {
			h.weight *= weightNamed
		}
		if h.n > asWritten || h.n == asWritten && h.langs != English {
			kept = append(kept, h)
		}
	}
	m.hits = kept
	if a := &m.z.atoms[i]; len(m.hits) == 0 && a.runes >= minCompound && m.mayGuess() {
		m.compound(i, a)
	}
	return len(m.hits) > first
}

// walk follows a phrase from atom i as far as there are any, by stems if lang
// is not negative, and notes the longest.
func (m *matcher) walk(i int, key uint64, lang int, langs Langs) bool {
	best, weight := hit{}, float32(1)
	for j := i; j < m.end; j++ {
		if j > i && !m.adjoins(j) {
			break
		}
		st := stem{m.z.atoms[j].hash, 1}
		if lang >= 0 {
			st = m.z.stem(&m.stem, &m.z.atoms[j], lang)
		}
		key, weight = join(key, st.hash), weight*st.weight
		r, found, goesOn := m.find(key)
		if found {
			m.better(&best, i, hit{n: j - i + 1, refs: r, langs: langs, weight: weight})
		}
		m.goesOn = m.goesOn || goesOn
		if !goesOn {
			break
		}
	}
	if best.n == 0 {
		return false
	}
	m.hits = append(m.hits, best)
	return true
}

// better puts h, which is longer, in the place of best if any of its senses counts.
func (m *matcher) better(best *hit, i int, h hit) {
	if h.best = m.bestFactor(i, h); h.best > 0 {
		*best = h
	}
}

// bestFactor returns the greatest factor that a sense of a hit at i has.
func (m *matcher) bestFactor(i int, h hit) float32 {
	most := float32(0)
	for k, t := range m.lex.tables {
		for ref := h.refs[k]; ref != 0; ref++ {
			s := t.sense(ref)
			if langs := s.langs & h.langs; langs != 0 {
				most = max(most, m.factor(i, h.n, langs))
			}
			if s.last {
				break
			}
		}
	}
	return most
}

// walkForms is walk by what the words may be inflections of. At each word the
// first form counts with which there is any phrase.
func (m *matcher) walkForms(i, lang int) bool {
	best := hit{}
	key, weight := uint64(exact), float32(1)
	for j := i; j < m.end && (j == i || m.adjoins(j)); j++ {
		next, r, found, goesOn, w := m.step(key, j, lang)
		if !found && !goesOn {
			break
		}
		key, weight = next, weight*w
		if found {
			m.better(&best, i, hit{n: j - i + 1, refs: r, langs: 1 << lang, weight: weight})
		}
		if !goesOn {
			break
		}
	}
	if best.n > 0 {
		m.hits = append(m.hits, best)
	}
	return best.n > 0
}

// step looks up key with the word j, as it is written and then by its forms.
func (m *matcher) step(key uint64, j, lang int) (next uint64, r refs, found, goesOn bool, weight float32) {
	a := &m.z.atoms[j]
	next = join(key, a.hash)
	if key != exact || m.goesOn { // else it is known that there is nothing
		if r, found, goesOn = m.find(next); goesOn || found && m.langsIn(r, 1<<lang) {
			return next, r, found, goesOn, 1
		}
	}
	for _, f := range m.formsOf(a, lang) {
		next = join(key, f.hash)
		if r, found, goesOn = m.find(next); found && m.langsIn(r, 1<<lang) || goesOn {
			return next, r, found, goesOn, f.weight
		}
	}
	return 0, r, false, false, 0
}

// adjoins reports whether nothing but a space or a joint stands before atom j.
func (m *matcher) adjoins(j int) bool {
	gap := m.text[m.z.atoms[j-1].to:m.z.atoms[j].from]
	if len(gap) > 2 {
		return false
	}
	for _, c := range []byte(gap) {
		switch c {
		case ' ', '-', '_', '/', '\'', '.', '\n':
		default:
			return false
		}
	}
	return gap != ". " && gap != ".\n"
}

// eachSense calls visit for the senses of a hit that count in its languages.
func (m *matcher) eachSense(h hit, visit func(sense)) {
	for i, t := range m.lex.tables {
		ref := h.refs[i]
		if ref == 0 {
			continue
		}
		for {
			s := t.sense(ref)
			if s.langs&h.langs != 0 {
				visit(s)
			}
			if s.last {
				break
			}
			ref++
		}
	}
}

// emit appends the senses of the phrase of n atoms at i. Where there are any of
// the languages that the text is in, those of others are left out.
func (m *matcher) emit(dst []Match, i, n int) []Match {
	most := float32(0)
	for _, h := range m.hits {
		if h.n == n {
			most = max(most, h.best)
		}
	}
	from := len(dst)
	for _, h := range m.hits {
		if h.n != n {
			continue
		}
		m.eachSense(h, func(s sense) {
			if f := m.factor(i, n, s.langs&h.langs); f > 0 && (f == most || most < 1) {
				dst = m.note(dst, from, i, h, s, f)
			}
		})
	}
	return dst
}

// note appends a sense. A concept that is there for the piece already, since
// from, keeps the greater weight.
func (m *matcher) note(dst []Match, from, i int, h hit, s sense, factor float32) []Match {
	x := Match{int(m.z.atoms[i].from), int(m.z.atoms[i+h.n-1].to), s.concept, h.weight * float32(s.weight) / 255 * factor, s.langs & h.langs}
	for k := from; k < len(dst); k++ {
		if d := &dst[k]; d.Concept == x.Concept {
			d.Weight, d.Langs = max(d.Weight, x.Weight), d.Langs|x.Langs
			return dst
		}
	}
	return append(dst, x)
}
