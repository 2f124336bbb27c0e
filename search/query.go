package search

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxQuery   = 8 << 10 // bytes of a query; the rest is ignored
	maxSlots   = 128     // different words of a query; further ones are ignored
	maxUnknown = 12      // unknown words of a query for which similar ones are sought
)

// A slot is what one word of the query looks for. A document's score for it is
// that of the best of its alternatives.
type slot struct {
	text   []byte // the word, folded
	weight float32
	least  uint8 // impacts below it do not count
	alts   []alternative
}

// An alternative is a term of the dictionaries that a slot takes.
type alternative struct {
	term   []byte
	weight float32 // idf included
}

// A parsed query.
type query struct {
	slots   []slot // what brings a tool into the answer
	low     []slot // what only orders it
	unknown []slot // what no tool says in these words: similar words, for the channel of n-grams
	names   []naming
}

// A naming says that the query is, or mentions, what some tools are called.
type naming struct {
	term  []byte // with its class
	bonus float32
}

// cut returns the beginning of text that is read.
func cut(text string) string {
	if len(text) <= maxQuery {
		return text
	}
	n := maxQuery
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// A token is a different word of the query.
type token struct {
	word
	weight float32
	stop   bool
}

// parse makes out what text asks of the snapshot's tools.
func (s *snapshot) parse(text string, sc *scratch) query {
	sp := &sc.split
	sp.split(text)
	tokens, winners := sc.tokens(sp)
	var q query
	var low []slot
	for _, t := range tokens {
		sl := s.resolve(t, winners, sc)
		switch {
		case len(sl.alts) == 0:
		case t.weight < contentFloor || t.weight < .5 && t.kind != single:
			low = append(low, sl)
		default:
			q.slots = append(q.slots, sl)
		}
		if len(sl.alts) == 0 && !t.stop && t.kind != joined && len(q.unknown) < maxUnknown && gramWord(sl.text) {
			if sl.alts = s.similar(sl.text, sc); len(sl.alts) > 0 {
				q.unknown = append(q.unknown, sl)
			}
		}
	}
	q.low = low
	if len(q.slots) == 0 && len(q.unknown) == 0 {
		q.slots, q.low = promote(low), nil
	}
	q.names = namings(text, sc)
	return q
}

// promote makes the best of a request without any word of weight: it finds
// tools by their names alone.
func promote(low []slot) []slot {
	for i := range low {
		low[i].least = quantise(fields[fieldName].weight / 2)
	}
	return slices.DeleteFunc(low, func(s slot) bool { return len(s.text) < 2 })
}

// tokens returns the different words of a text that was split, with their
// weights, and the languages that its Latin words are likely in.
func (sc *scratch) tokens(sp *splitter) ([]token, langs) {
	var b ballot
	sc.list = sc.list[:0]
	clear(sc.seen)
	for _, w := range sp.words {
		plain := sp.plain(w)
		if w.script == latin {
			b.add(stopWords[string(plain)])
			b.odd = b.odd || len(sp.spelt(w)) != len(plain)
		}
		if sc.seen[string(plain)] {
			continue
		}
		if len(sc.list) == maxSlots {
			break
		}
		sc.seen[string(plain)] = true
		sc.list = append(sc.list, token{word: w})
	}
	winners := b.winners()
	for i := range sc.list {
		t := &sc.list[i]
		plain := sp.plain(t.word)
		t.stop = stopWords[string(plain)]&stopIn(t.script, winners) != 0
		t.weight = weigh(t, plain)
	}
	return sc.list, winners
}

// stopIn returns the languages whose stop words count among words of a script.
func stopIn(s script, winners langs) langs {
	if s == latin {
		return winners
	}
	var out langs
	for i, l := range languages {
		if l.script != latin {
			out |= 1 << i
		}
	}
	return out
}

func weigh(t *token, plain []byte) float32 {
	switch {
	case t.stop:
		return weightStop
	case t.script == digits:
		return weightNumber
	case t.kind == single:
		if t.script == han {
			return weightSingle
		}
		return weightStop
	case len(plain) == 1:
		return weightNumber
	}
	return 1
}

// resolve finds the terms that a word stands for.
func (s *snapshot) resolve(t token, winners langs, sc *scratch) slot {
	plain := bytes.Clone(sc.split.plain(t.word))
	sl := slot{text: plain, weight: t.weight}
	df := s.df(plain)
	terms := []alternative{}
	if df > 0 {
		terms = append(terms, alternative{plain, 1})
	}
	most := df
	if t.kind == whole || t.kind == part {
		for all := stemmersFor(t.script, winners); all != 0; all &= all - 1 {
			stem := appendStem(nil, sc.split.spelt(t.word), all&-all)
			if len(stem) == 0 || bytes.Equal(stem, plain) {
				continue
			}
			if n := s.df(stem); n > 0 {
				terms = append(terms, alternative{stem, weightStem})
				most = max(most, n)
			}
		}
	}
	for i := range terms {
		terms[i].weight *= t.weight * s.idf(most)
	}
	if most == 0 && !t.stop && (t.kind == whole || t.kind == part) && t.script != digits {
		terms = s.expand(plain, t.weight, sc, terms)
	}
	sl.alts = terms
	return sl
}

// expand appends words that go on where q ends, and words that q may be a slip for.
func (s *snapshot) expand(q []byte, weight float32, sc *scratch, out []alternative) []alternative {
	if utf8.RuneCount(q) < 3 {
		return out
	}
	list := sc.expansions[:0]
	for i := range s.views {
		list = s.views[i].withPrefix(q, list)
	}
	for i := range list {
		list[i].weight *= weightPrefix
	}
	for i := range s.views {
		list = s.views[i].fuzzy(&sc.walk, q, list)
	}
	sc.expansions = list
	for _, e := range best(list) {
		out = append(out, alternative{e.term, e.weight * weight * s.idf(s.df(e.term))})
	}
	return out
}

func (s *snapshot) similar(q []byte, sc *scratch) []alternative {
	list := sc.expansions[:0]
	for i := range s.views {
		list = s.views[i].similar(&sc.counter, q, list)
	}
	sc.expansions = list
	var out []alternative
	for _, e := range best(list) {
		out = append(out, alternative{e.term, e.weight * s.idf(s.df(e.term))})
	}
	return out
}

// df returns how many documents contain a term.
func (s *snapshot) df(term []byte) uint32 {
	h, n := hashTerm(term), uint32(0)
	for i := range s.views {
		if id, ok := s.views[i].seg.find(term, h); ok {
			n += s.views[i].df(id)
		}
	}
	return n
}

// idf is Lucene's: the logarithm of how rare a term is, never negative.
func (s *snapshot) idf(df uint32) float32 {
	n, d := float64(len(s.places)), float64(df)
	return float32(math.Log1p((n - d + .5) / (d + .5)))
}

// namings returns the ways in which the query may be or mention a tool's name.
func namings(text string, sc *scratch) []naming {
	key := func(class, name string) []byte { return squeeze([]byte(class), name) }
	whole := strings.TrimSpace(text)
	if len(whole) > 512 {
		whole = ""
	}
	var out []naming
	if all := key("", whole); len(all) > 0 {
		out = append(out,
			naming{append([]byte(className), all...), bonusForm},
			naming{append([]byte(classShort), all...), bonusShort},
			naming{append([]byte(classAlias), all...), bonusAlias})
	}
	for f := range strings.FieldsSeq(text) {
		f = strings.TrimFunc(f, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if f == whole || !looksLikeName(f) || len(out) > 16 {
			continue
		}
		out = append(out, naming{key(className, f), bonusInner}, naming{key(classShort, f), bonusInner / 2.})
	}
	return out
}

// looksLikeName reports whether a word of a sentence is more likely the name of
// a tool than a word: it has a dot, a dash, an underscore or a capital inside.
func looksLikeName(w string) bool {
	inner := false
	for i, r := range w {
		inner = inner || i > 0 && (r == '_' || r == '.' || r == '-' || r == '/' || unicode.IsUpper(r))
	}
	return inner && len(w) > 3
}
