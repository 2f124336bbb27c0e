package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/helve-ai/helve/letters"
)

const (
	maxQuery   = 8 << 10 // bytes of a query; the rest is ignored
	maxSlots   = 128     // different words of a query; further ones are ignored
	maxUnknown = 16      // unknown words of a query for which near ones are sought
)

// A slot is what one word of the query looks for. A document's score for it is
// that of the best of its alternatives.
type slot struct {
	text   []byte // the word, folded
	weight float32
	alts   []alternative
	clause uint16 // of the query
	at     uint32 // where its word begins in the query; noPlace: nowhere
}

const noPlace = ^uint32(0)

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
	langs   langs // of the Latin words
	tokens  []token
	asked   [deedCount]bool    // what is to be done
	losses  [deedCount]float32 // what tools lose by what they do, as shares
}

// A naming says that the query is, or mentions, what some tools are called.
type naming struct {
	term  []byte // with its class
	bonus float32
}

// cut returns the beginning of text, n bytes at most.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
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
func (r *ranker) parse(text string, sc *scratch) query {
	sc.composed = thens.Replace(letters.Compose(withKinds(text)))
	sc.split.split(sc.composed)
	_, winners := sc.tokens(&sc.split, r)
	r.meanings(sc.composed, sc)
	r.cutAtActions(sc)
	r.ruleOut(sc)
	tokens := sc.list
	q := query{langs: winners, tokens: tokens, slots: sc.slots[:0], low: sc.low[:0], unknown: sc.unknown[:0]}
	sc.alts, sc.terms, sc.expanded = sc.alts[:0], sc.terms[:0], 0
	sc.arena = nil
	sought := 0
	for _, t := range tokens {
		sl := r.resolve(t, winners, sc)
		switch {
		case len(sl.alts) > 0 && t.weight < r.w(kContentFloor):
			q.low = append(q.low, sl)
		case len(sl.alts) > 0:
			q.slots = append(q.slots, sl)
		case t.weight >= r.w(kContentFloor) && t.kind != joined && sought < maxUnknown && gramWord(sl.text):
			sought++
			if sl.alts = r.similar(sl.text, sc); len(sl.alts) > 0 {
				q.unknown = append(q.unknown, sl)
			}
		}
	}
	q.slots = r.closeUp(q.slots, sc)
	q.slots = r.addConcepts(q.slots, winners, sc)
	slices.SortStableFunc(q.slots, func(a, b slot) int { return cmp.Compare(a.clause, b.clause) })
	sc.slots, sc.low, sc.unknown = q.slots, q.low, q.unknown
	if len(q.slots) == 0 && len(q.unknown) == 0 {
		q.slots, q.low = promote(q.low), nil
	}
	q.names = namings(text)
	return q
}

// closeUp appends slots for neighbouring words that tools write as one, as in
// "web hook" or "data base".
func (r *ranker) closeUp(slots []slot, sc *scratch) []slot {
	words := sc.split.words
	for i := range max(0, min(len(words), maxSlots)-1) {
		a, b := words[i], words[i+1]
		if a.kind != whole || b.kind != whole || a.script != b.script || a.script.Unspaced() || a.script == digits {
			continue
		}
		sc.pair = append(append(sc.pair[:0], sc.split.plain(a)...), sc.split.plain(b)...)
		if len(sc.pair) < 5 || len(sc.split.plain(b)) == 1 || r.snap.df(sc.pair) == 0 { // "what's" is no WhatsApp
			continue
		}
		from, term := len(sc.alts), bytes.Clone(sc.pair)
		if n := r.exact(term, r.w(kClosed)*r.snap.idf(r.snap.df(term)), sc); n > 0 {
			slots = append(slots, slot{at: noPlace, clause: a.clause, text: term, weight: r.w(kClosed), alts: sc.alts[from:len(sc.alts):len(sc.alts)]})
		}
	}
	return slots
}

// promote makes the best of a request without any word of weight.
func promote(low []slot) []slot {
	return slices.DeleteFunc(low, func(s slot) bool { return !polite()[string(s.text)] })
}

// tokens returns the different words of a text that was split, with their
// weights, and the languages that its Latin words are likely in.
func (sc *scratch) tokens(sp *splitter, r *ranker) ([]token, langs) {
	b, w := &sc.ballot, r.snap.engine.Weights
	*b = ballot{}
	sc.list = sc.list[:0]
	for _, w := range sp.words {
		plain := sp.plain(w)
		if w.script == latin {
			b.add(stopWords()[string(plain)])
			b.odd = b.odd || len(sp.spelt(w)) != len(plain)
		}
		if len(sc.list) == maxSlots {
			break
		}
		if i := slices.IndexFunc(sc.list, func(t token) bool { return bytes.Equal(sp.plain(t.word), plain) }); i < 0 {
			sc.list = append(sc.list, token{word: w})
		} else if w.traits&^opening == 0 {
			sc.list[i].traits = 0
		}
	}
	winners := b.winners()
	for i := range sc.list {
		t := &sc.list[i]
		plain := sp.plain(t.word)
		t.stop = stopWords()[string(plain)]&stopIn(t.script, winners) != 0
		t.weight = weigh(t, plain, w)
		if t.kind == part && r.joinedKnown(sp, t) {
			t.weight *= w.v[kPart]
		}
	}
	return sc.list, winners
}

// joinedKnown reports whether tools contain the word whole of which t is a part.
func (r *ranker) joinedKnown(sp *splitter, t *token) bool {
	for _, w := range sp.words {
		if w.kind == joined && w.at == t.at {
			return r.snap.df(sp.plain(w)) > 0
		}
	}
	return false
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

func weigh(t *token, plain []byte, w *Weights) float32 {
	switch {
	case t.stop:
		return w.v[kStop]
	case t.traits&quoted != 0:
		return w.v[kQuoted]
	case softWords()[string(plain)]:
		return w.v[kSoft]
	case t.script == digits:
		return w.v[kNumber]
	case t.kind == single:
		if t.script == han {
			return w.v[kSingle]
		}
		return w.v[kStop]
	case len(plain) == 1:
		return w.v[kNumber]
	}
	return 1
}

// resolve finds the terms that a word stands for.
func (r *ranker) resolve(t token, winners langs, sc *scratch) slot {
	plain := sc.split.plain(t.word)
	from := len(sc.alts)
	most := r.exact(plain, 1, sc)
	word := t.kind == whole || t.kind == part
	if word {
		for all := stemmersFor(t.script, winners); all != 0; all &= all - 1 {
			stem := appendStem(nil, sc.split.spelt(t.word), all&-all)
			if len(stem) > 0 && !bytes.Equal(stem, plain) {
				most = max(most, r.exact(stem, r.w(kStem), sc))
			}
		}
	}
	there := uint32(0) // how many tools contain it, counted no further than need be
	for i := range sc.alts[from:] {
		a := &sc.alts[from+i]
		there = max(there, r.seen(a.term, rare+1))
		a.weight *= t.weight * r.snap.idf(most)
	}
	if word && there <= rare && t.weight >= r.w(kContentFloor) && t.script != digits && sc.expanded < maxUnknown {
		sc.expanded++
		r.expand(plain, t, there, sc)
	}
	return slot{at: t.at, clause: t.clause, text: plain, weight: t.weight, alts: sc.alts[from:len(sc.alts):len(sc.alts)]}
}

const (
	rare   = 1  // in how many tools a word may be that is still taken for a possible slip
	common = 20 // how many times as common the word must be that it is a slip for
)

// exact appends a term to the alternatives if any tool that may be found
// contains it. It returns how many tools do.
func (r *ranker) exact(term []byte, weight float32, sc *scratch) uint32 {
	if r.seen(term, 1) == 0 {
		return 0
	}
	sc.alts = append(sc.alts, alternative{term, weight})
	return r.snap.df(term)
}

// seen returns how many tools that may be found contain the term, and enough where they are more.
func (r *ranker) seen(term []byte, enough uint32) uint32 {
	n := uint32(0)
	if r.accept == nil {
		return min(r.snap.df(term), enough)
	}
	h := hashTerm(term)
	for i := range r.snap.views {
		v := &r.snap.views[i]
		id, ok := v.seg.find(term, h)
		if !ok {
			continue
		}
		docs, _ := v.seg.postings(id)
		for _, d := range docs {
			if n == enough {
				return n
			}
			if r.sees(v.base + int(d)) {
				n++
			}
		}
	}
	return n
}

// expand appends words that go on where q ends, and words that q may be a slip
// for, unless it stands for a concept. For a q that some tools do contain, they must be much more common.
func (r *ranker) expand(q []byte, t token, have uint32, sc *scratch) {
	if utf8.RuneCount(q) < 3 {
		return
	}
	s, list := r.snap, sc.expansions[:0]
	if have == 0 {
		for i := range s.views {
			list = s.views[i].withPrefix(q, list)
		}
		for i := range list {
			list[i].weight *= r.w(kPrefix)
		}
	}
	for i := range s.views {
		if !sc.isMeant(t.word) {
			list = s.views[i].fuzzy(sc, q, list)
		}
	}
	sc.expansions = list
	for _, e := range r.best(list) {
		if have > 0 && r.seen(e.term, common*have) < common*have {
			continue
		}
		sc.alts = append(sc.alts, alternative{e.term, e.weight * t.weight * s.idf(s.df(e.term))})
	}
}

// similar returns words that have n-grams in common with q.
func (r *ranker) similar(q []byte, sc *scratch) []alternative {
	s, list, from := r.snap, sc.expansions[:0], len(sc.alts)
	for i := range s.views {
		list = s.views[i].similar(&sc.counter, q, list)
	}
	sc.expansions = list
	for _, e := range r.best(list) {
		sc.alts = append(sc.alts, alternative{e.term, e.weight * s.idf(s.df(e.term))})
	}
	return sc.alts[from:len(sc.alts):len(sc.alts)]
}

// best sorts the expansions, drops doubles that came from several segments,
// and keeps the best that lead to tools that may be found.
func (r *ranker) best(list []expansion) []expansion {
	slices.SortFunc(list, func(a, b expansion) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), bytes.Compare(a.term, b.term))
	})
	out := list[:0]
	for _, e := range list {
		if len(out) == maxExpansions {
			break
		}
		double := slices.ContainsFunc(out, func(o expansion) bool { return bytes.Equal(o.term, e.term) })
		if !double && r.seen(e.term, 1) > 0 {
			out = append(out, e)
		}
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
func namings(text string) []naming {
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
