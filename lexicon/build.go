package lexicon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helve-ai/helve/letters"
)

// A builder compiles data files into a table.
type builder struct {
	below *Lexicon
	names []string
	kinds []Kind
	is    [][]entry // by concept: the names of broader ones
	near  [][]entry // by concept: the names of related ones
	files []string  // by concept: where it stands
	ids   map[string]ID
	keys  map[uint64]keyed
	z     atomiser
	stem  stemmer
}

// newBuilder builds upon a lexicon, or upon nothing.
func newBuilder(below *Lexicon) *builder {
	b := &builder{below: below, ids: map[string]ID{}, keys: map[uint64]keyed{}}
	if below != nil {
		for i, n := range below.names {
			b.ids[n] = ID(i)
		}
		b.names = append(b.names, below.names...)
		b.kinds = append(b.kinds, below.kinds...)
		for k, v := range below.over {
			b.keys[k] = keyed{slices.Clone(v.senses), v.goesOn}
		}
	}
	if below == nil {
		b.functionWords()
	}
	b.is, b.near, b.files = make([][]entry, len(b.names)), make([][]entry, len(b.names)), make([]string, len(b.names))
	return b
}

// add takes in the concepts of a file.
func (b *builder) add(f file) error {
	for i := range f.concepts {
		c := &f.concepts[i]
		id, ok := b.ids[c.name]
		switch {
		case ok && b.kinds[id] != c.kind:
			return Problem{File: f.name, Line: c.line, Text: fmt.Sprintf("%s is known as %s; want %s (%s), or another name", c.name, b.kinds[id], c.name, b.kinds[id])}
		case !ok && len(b.names) == maxConcepts:
			return Problem{File: f.name, Line: c.line, Text: fmt.Sprintf("%d concepts are as many as there may be", maxConcepts)}
		case !ok:
			id = ID(len(b.names))
			b.ids[c.name] = id
			b.names, b.kinds = append(b.names, c.name), append(b.kinds, c.kind)
			b.is, b.near, b.files = append(b.is, nil), append(b.near, nil), append(b.files, f.name)
		}
		b.is[id], b.near[id], b.files[id] = append(b.is[id], c.broader...), append(b.near[id], c.near...), f.name
		for lang, words := range c.words {
			for _, e := range words {
				b.entry(id, lang, e)
			}
		}
	}
	return nil
}

// Weights of what is in the data, of 255.
const (
	weightEntry = 255
	weightForm  = 230 // a shape that follows from rules
	weightStem  = 220 // another inflection
	weightPlain = 235 // what has accents, written without
)

// entry adds all keys by which an entry is found.
func (b *builder) entry(id ID, lang int, e entry) {
	weigh := func(w uint8) uint8 {
		if e.ambiguous {
			return w / 2
		}
		return w
	}
	text := letters.Compose(e.text)
	lower := strings.ToLower(text)
	b.phrase(id, lang, lower, weigh(weightEntry))
	if lower != text {
		b.phrase(id, lang, text, weigh(weightEntry))
	}
	if parts := strings.FieldsFunc(lower, func(r rune) bool { return r == ' ' || r == '-' }); len(parts) == 2 && len(lower) >= 7 {
		b.phrase(id, lang, parts[0]+parts[1], weigh(weightForm))
	}
	for _, form := range moreForms(lower, lang, b.kinds[id]) {
		b.phrase(id, lang, form, weigh(weightForm))
		b.stems(id, lang, form, weigh(weightStem))
	}
	b.stems(id, lang, lower, weigh(weightStem))
	b.apart(id, lang, lower, weigh(weightEntry))
}

func (b *builder) phrase(id ID, lang int, text string, weight uint8) {
	b.z.split(text)
	if a := b.z.atoms; len(a) == 1 && a[0].accented() {
		b.put(join(speltSeed, hash(b.z.spelling(&a[0]))), id, lang, weight, true)
		weight = min(weight, weightPlain)
	}
	key := uint64(exact)
	for i := range b.z.atoms {
		key = join(key, b.z.atoms[i].hash)
		b.put(key, id, lang, weight, i == len(b.z.atoms)-1)
	}
}

// stems adds the key of the stems of an entry's words.
func (b *builder) stems(id ID, lang int, text string, weight uint8) {
	if !stemmed.has(lang) {
		return
	}
	b.z.split(text)
	key := stemSeed(lang)
	for i := range b.z.atoms {
		a := &b.z.atoms[i]
		if a.unspaced() {
			return
		}
		key = join(key, b.z.stem(&b.stem, a, lang).hash)
		b.put(key, id, lang, weight, i == len(b.z.atoms)-1)
	}
}

// put notes a key, which is the last of a phrase or goes on.
func (b *builder) put(key uint64, id ID, lang int, weight uint8, last bool) {
	k := b.keys[key]
	if !last {
		k.goesOn = true
		b.keys[key] = k
		return
	}
	l := Langs(1) << lang
	for i := range k.senses {
		s := &k.senses[i]
		if s.concept != id {
			continue
		}
		if s.langs&l != 0 && s.weight >= weight {
			b.keys[key] = k
			return
		}
		if s.langs&l != 0 {
			s.langs &^= l
		}
	}
	out := k.senses[:0]
	for _, s := range k.senses {
		if s.langs != 0 {
			out = append(out, s)
		}
	}
	k.senses = out
	for i := range k.senses {
		if s := &k.senses[i]; s.concept == id && s.weight == weight {
			s.langs |= l
			b.keys[key] = k
			return
		}
	}
	k.senses = append(k.senses, sense{concept: id, langs: l, weight: weight})
	b.keys[key] = k
}

// lexicon returns what was built, upon what is below.
func (b *builder) lexicon() (*Lexicon, error) {
	l := &Lexicon{names: b.names, kinds: b.kinds, byName: b.ids}
	var broader, near [][]ID
	if b.below != nil {
		broader, near = b.below.broader, b.below.near
	}
	var err error
	if l.broader, err = b.refer("is", broader, b.is); err != nil {
		return nil, err
	}
	if l.near, err = b.refer("is near", near, b.near); err != nil {
		return nil, err
	}
	if b.below != nil {
		l.tables, l.over = append(l.tables, b.below.tables[0]), b.keys
	}
	l.tables = append(l.tables, newTable(b.keys))
	return l, nil
}

// refer returns for each concept those that lists name, after those it had below.
func (b *builder) refer(how string, below [][]ID, lists [][]entry) ([][]ID, error) {
	out := make([][]ID, len(b.names))
	for i, list := range lists {
		if i < len(below) {
			out[i] = append(out[i], below[i]...)
		}
		for _, e := range list {
			id, ok := b.ids[e.text]
			if !ok {
				return nil, Problem{File: b.files[i], Line: e.line, Text: fmt.Sprintf("%s %s %s, which is no concept; want the name of one", b.names[i], how, e.text)}
			}
			out[i] = append(out[i], id)
		}
	}
	return out, nil
}
