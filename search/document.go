package search

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/helve-ai/helve/letters"
	"github.com/helve-ai/helve/lexicon"
	"github.com/helve-ai/helve/tool"
)

// Terms of the dictionary that are not words of texts begin with one of these
// bytes, which no word contains.
const (
	className    = "\x01" // a whole name, squeezed
	classShort   = "\x02" // a name without its module, squeezed
	classAlias   = "\x03" // an alias or title, squeezed
	classConcept = "\x04" // a concept of the lexicon
	classNeeds   = "\x07" // a thing whose id the tool asks for
	classGives   = "\x08" // a thing that the tool finds
	classPair    = "\x05" // two neighbouring words
	classGram    = "\x06" // four neighbouring letters
	classDoes    = "\x0e" // what a tool does to things
	classNamed   = "\x0f" // a term that stands in the name, by the words of it
	firstWord    = ' '    // words begin with no byte below this
)

// eachText calls visit for every text of the tool that is indexed.
func eachText(t *tool.Tool, visit func(field, string)) {
	action, module := nameParts(t)
	visit(fieldName, action)
	visit(fieldModule, module)
	visit(fieldTitle, t.Title)
	visit(fieldCategory, string(t.Category))
	visit(fieldDescription, t.Description)
	visit(fieldHelp, t.Help)
	for _, s := range t.Tags {
		visit(fieldTags, s)
	}
	for _, s := range t.Aliases {
		visit(fieldAliases, s)
	}
	for _, s := range t.SideEffects {
		visit(fieldSideEffects, s)
	}
	for _, raw := range t.Examples {
		visit(fieldExamples, string(raw))
	}
	if t.Input == nil {
		return
	}
	for _, p := range t.Input.Parameters() {
		visit(fieldParams, p.Name)
		visit(fieldParamDocs, p.Description)
		for _, e := range p.Enum {
			visit(fieldParamDocs, e)
		}
	}
}

// nameParts returns the name without the module, and the module without the
// mark of upstream servers.
func nameParts(t *tool.Tool) (action, module string) {
	module = t.ModuleName()
	action = t.Action()
	if action == "" || module == t.Name {
		return t.Name, ""
	}
	return action, strings.TrimPrefix(module, "mcp.")
}

// A posting says how much a term counts in a document.
type posting struct {
	term   uint32
	weight float32
}

// A vocabulary gives terms ids in the order in which they are first met, and
// remembers of each word what it stems to.
type vocabulary struct {
	ids   map[string]uint32
	terms []string
	infos []wordInfo            // by term id
	stems [32]map[string]uint32 // by language: the word as it is spelt → term id of its stem
}

type wordInfo struct {
	known  bool
	langs  langs
	pieces []uint32 // the terms of its letters; nil: not known yet
}

func newVocabulary(size int) *vocabulary {
	return &vocabulary{ids: make(map[string]uint32, size)}
}

func (v *vocabulary) id(term []byte) uint32 {
	if id, ok := v.ids[string(term)]; ok {
		return id
	}
	id := uint32(len(v.terms))
	s := string(term)
	v.ids[s] = id
	v.terms = append(v.terms, s)
	v.infos = append(v.infos, wordInfo{})
	return id
}

// stopIn returns in which languages the term is a stop word.
func (v *vocabulary) stopIn(id uint32) langs {
	info := &v.infos[id]
	if !info.known {
		info.known, info.langs = true, stopWords()[v.terms[id]]
	}
	return info.langs
}

// maxText bounds the bytes of a tool that are indexed; the rest is ignored.
const maxText = 128 << 10

// An analyser turns tools into postings. Its buffers are reused from tool to tool.
type analyser struct {
	*engine
	vocab    *vocabulary
	split    splitter
	words    []docWord
	texts    []docText
	matches  []lexicon.Match
	sizes    [fieldCount]float32
	left     int       // bytes of text that may still be read of the document at hand
	sums     []float32 // by term id: the weighted count in the document at hand
	used     []uint32  // the terms whose sums are not zero
	buf      []byte
	letters  []byte
	pairTerm []byte
	masks    nameMasks
}

// A docWord is a word of a document whose stems are not known yet.
type docWord struct {
	id     uint32
	field  field
	script script
	kind   kind
	spelt  span // in analyser.buf
}

// A docText is a text of a document whose concepts are not known yet.
type docText struct {
	field field
	text  string // composed
}

// analyse returns what is indexed of t, in no particular order. The slice
// serves until the next call.
func (a *analyser) analyse(t *tool.Tool, out []posting) []posting {
	a.words, a.texts, a.buf, a.sizes, a.left = a.words[:0], a.texts[:0], a.buf[:0], [fieldCount]float32{}, maxText
	var b ballot
	eachText(t, func(f field, text string) { a.collect(f, text, &b) })
	winners := b.winners()
	a.addWords(winners)
	a.addConcepts(b.hint())
	a.addLinks()
	a.addMasks(winners, b.hint())
	a.addDeed(b.hint())
	a.addNames(t)
	for _, id := range a.used {
		out = append(out, posting{id, a.sums[id]})
		a.sums[id] = 0
	}
	a.used = a.used[:0]
	return out
}

func (a *analyser) collect(f field, text string, b *ballot) {
	text = cut(text, a.left)
	if text == "" {
		return
	}
	a.left -= len(text)
	text = letters.Compose(text)
	a.split.split(text)
	a.texts = append(a.texts, docText{f, text})
	prose := f == fieldDescription || f == fieldHelp
	for _, w := range a.split.words {
		id := a.vocab.id(a.split.plain(w))
		from := uint32(len(a.buf))
		a.buf = append(a.buf, a.split.spelt(w)...)
		a.words = append(a.words, docWord{id, f, w.script, w.kind, span{from, uint32(len(a.buf))}})
		if w.kind != single && w.kind != joined {
			a.sizes[f]++
		}
		if prose && w.script == latin {
			b.add(a.vocab.stopIn(id))
		}
	}
}

// addWords counts the words, their stems, their letters and their neighbours.
func (a *analyser) addWords(winners langs) {
	before, field := uint32(none), fieldCount // the last word's stem, and its field
	for i := range a.words {
		w := &a.words[i]
		weight := a.occurrence(w.field, a.v[w.field.own(0)], a.sizes[w.field])
		a.sum(w.id, weight)
		if w.kind != whole && w.kind != part {
			continue
		}
		a.addStems(w, winners, weight)
		if !neighbourly(w) || a.vocab.stopIn(w.id)&stopIn(w.script, winners) != 0 {
			continue
		}
		a.addPieces(w.id, weight*a.v[kGramWeight])
		stem := w.id
		if w.script == latin {
			stem = a.stem(w, winners&-winners)
		}
		if before != none && field == w.field {
			a.pairTerm = appendPair(a.pairTerm[:0], []byte(a.vocab.terms[before]), []byte(a.vocab.terms[stem]))
			a.sum(a.vocab.id(a.pairTerm), weight*a.v[kPairs])
		}
		before, field = stem, w.field
	}
}

// none is no term.
const none = ^uint32(0)

// neighbourly reports whether a word is one of which letters and neighbours
// are indexed: those of long texts would cost more than they tell.
func neighbourly(w *docWord) bool {
	switch w.field {
	case fieldHelp, fieldParamDocs, fieldSideEffects, fieldExamples:
		return false
	}
	return !w.script.Unspaced() && w.script != digits
}

// addPieces counts the letters of a word, which are found once for all documents.
func (a *analyser) addPieces(id uint32, weight float32) {
	info := &a.vocab.infos[id]
	if info.pieces == nil {
		pieces := []uint32{}
		a.letters = eachPiece(a.letters, []byte(a.vocab.terms[id]), func(term []byte) { pieces = append(pieces, a.vocab.id(term)) })
		a.vocab.infos[id].pieces = pieces
		info = &a.vocab.infos[id]
	}
	for _, p := range info.pieces {
		a.sum(p, weight)
	}
}

// addConcepts counts what the texts speak of.
func (a *analyser) addConcepts(hint lexicon.Hint) {
	for _, x := range a.texts {
		weight := a.v[x.field.concept()]
		if weight == 0 {
			continue
		}
		weight = a.occurrence(x.field, weight, a.sizes[x.field])
		a.matches = a.lex.Match(a.matches[:0], x.text, hint)
		for _, m := range a.matches {
			a.split.folded = conceptTerm(a.split.folded[:0], m.Concept)
			a.sum(a.vocab.id(a.split.folded), weight*m.Weight)
		}
	}
}

func (a *analyser) addStems(w *docWord, winners langs, weight float32) {
	all := stemmersFor(w.script, winners)
	if w.script == latin && w.field == fieldName {
		all |= inEnglish
	}
	var seen [4]uint32
	n := 0
	for ; all != 0; all &= all - 1 {
		id := a.stem(w, all&-all)
		if id == w.id || n == len(seen) || slices.Contains(seen[:n], id) {
			continue
		}
		a.sum(id, weight)
		seen[n] = id
		n++
	}
}

// stem returns the term id of the word's stem, or of the word itself.
func (a *analyser) stem(w *docWord, l langs) uint32 {
	m := &a.vocab.stems[bits.TrailingZeros32(uint32(l))]
	if *m == nil {
		*m = map[string]uint32{}
	}
	spelt := a.buf[w.spelt.from:w.spelt.to]
	if id, ok := (*m)[string(spelt)]; ok {
		return id
	}
	id := w.id
	if s := appendStem(a.split.folded[:0], spelt, l); len(s) > 0 {
		id = a.vocab.id(s)
	}
	(*m)[string(spelt)] = id
	return id
}

func (a *analyser) sum(id uint32, weight float32) {
	if weight <= 0 {
		return
	}
	for int(id) >= len(a.sums) {
		a.sums = append(a.sums, 0)
	}
	if a.sums[id] == 0 {
		a.used = append(a.used, id)
	}
	a.sums[id] += weight
}

// addNames indexes what the tool may be called by, as a whole.
func (a *analyser) addNames(t *tool.Tool) {
	add := func(class, name string) {
		key := squeeze(append(a.split.folded[:0], class...), name)
		a.split.folded = key
		if len(key) > len(class) {
			a.sum(a.vocab.id(key), 1)
		}
	}
	add(className, t.Name)
	if len(t.Name) > tool.MaxWire || strings.ContainsFunc(t.Name, notWire) {
		add(className, tool.Wire(t.Name))
	}
	action, _ := nameParts(t)
	add(classShort, action)
	if i := strings.LastIndexAny(action, "./:"); i >= 0 {
		add(classShort, action[i+1:])
	}
	for _, s := range t.Aliases {
		add(classAlias, s)
	}
	add(classAlias, t.Title)
}

func notWire(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
}
