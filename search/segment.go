package search

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/helve-ai/helve/tool"
)

// maxDocs is the most documents of a segment: postings hold their place in 16 bits.
const maxDocs = 1 << 16

// A segment is an immutable index of some tools.
type segment struct {
	tools []*tool.Tool // by document, in the order of their names

	// The dictionary: terms in order, in one block of text.
	text  []byte
	ends  []uint32 // by term: where it ends in text
	table []uint32 // hash table of term+1, open addressing, zero is free

	// Postings of term i are those from first[i] up to first[i+1].
	first  []uint32
	docs   []uint16
	impact []uint8 // saturated weighted count: 255 is 1

	// The other way round: terms of document d are steps between ids, as
	// varints, from fwd[d] up to fwd[d+1] in steps.
	fwd   []uint32
	steps []byte

	grams gramIndex
	warm  *warm // what it was taken from; nil: it was made here
}

func (s *segment) terms() int { return len(s.ends) }

func (s *segment) term(i uint32) []byte {
	from := uint32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// seed differs from process to process, so that nobody can offer tools whose words all collide.
var seed = maphash.MakeSeed()

func hashTerm(term []byte) uint32 { return uint32(maphash.Bytes(seed, term)) }

// find returns the id of a term.
func (s *segment) find(term []byte, hash uint32) (uint32, bool) {
	mask := uint32(len(s.table) - 1)
	if len(s.table) == 0 {
		return 0, false
	}
	for i := hash & mask; s.table[i] != 0; i = (i + 1) & mask {
		if id := s.table[i] - 1; bytes.Equal(s.term(id), term) {
			return id, true
		}
	}
	return 0, false
}

// seek returns the first term that is not less than key.
func (s *segment) seek(key []byte) uint32 {
	lo, hi := 0, s.terms()
	for lo < hi {
		mid := (lo + hi) / 2
		if bytes.Compare(s.term(uint32(mid)), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return uint32(lo)
}

func (s *segment) postings(id uint32) ([]uint16, []uint8) {
	from, to := s.first[id], s.first[id+1]
	return s.docs[from:to], s.impact[from:to]
}

// impactOf returns the impact of a term in a document, zero where it is not.
func (s *segment) impactOf(id uint32, doc uint16) uint8 {
	docs, impact := s.postings(id)
	if i, ok := slices.BinarySearch(docs, doc); ok {
		return impact[i]
	}
	return 0
}

// eachTerm calls visit for the terms of a document, in order.
func (s *segment) eachTerm(doc uint16, visit func(id uint32)) {
	b := s.steps[s.fwd[doc]:s.fwd[doc+1]]
	id := uint32(0)
	for len(b) > 0 {
		step, n := uvarint(b)
		id += step
		b = b[n:]
		visit(id)
	}
}

func uvarint(b []byte) (v uint32, n int) {
	for shift := 0; ; shift += 7 {
		c := b[n]
		n++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, n
		}
	}
}

func appendUvarint(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// quantise packs a saturated weighted count into a byte; what is there at all is never zero.
func quantise(weight, saturation float32) uint8 {
	return uint8(max(1, math.Round(float64(255*weight/(weight+saturation)))))
}

// A triple is a posting on its way into a segment.
type triple struct {
	term   uint32
	doc    uint16
	impact uint8
}

// buildSegment indexes tools, maxDocs at most, in the order of their names. A
// processor reads shareSize of them at least.
func buildSegment(tools []*tool.Tool, e *engine) *segment {
	n := max(1, min(runtime.GOMAXPROCS(0), len(tools)/shareSize))
	parts := make([]share, n)
	together(n, func(i int) {
		from, to := i*len(tools)/n, (i+1)*len(tools)/n
		parts[i] = readShare(tools[from:to], from, e)
	})
	s := &segment{tools: slices.Clone(tools)}
	s.mergeShares(parts)
	var triples []triple
	for _, p := range parts {
		triples = append(slices.Grow(triples, len(p.triples)), p.triples...)
	}
	s.finish(triples)
	return s
}

const shareSize = 512

// A share is what one processor reads of the tools of a segment.
type share struct {
	terms   []string // in the order in which they were met
	order   []uint32 // places in terms, in the order of the terms
	triples []triple
}

// readShare reads tools, of which the first is the document base.
func readShare(tools []*tool.Tool, base int, e *engine) share {
	a := analyser{engine: e, vocab: newVocabulary(64 + 4*len(tools))}
	triples := make([]triple, 0, 96*len(tools))
	var list []posting
	for d, t := range tools {
		list = a.analyse(t, list[:0])
		for _, p := range list {
			triples = append(triples, triple{p.term, uint16(base + d), quantise(p.weight, e.v[kSaturation])})
		}
	}
	p := share{terms: a.vocab.terms, order: make([]uint32, len(a.vocab.terms)), triples: triples}
	for i := range p.order {
		p.order[i] = uint32(i)
	}
	slices.SortFunc(p.order, func(x, y uint32) int { return cmp.Compare(p.terms[x], p.terms[y]) })
	return p
}

// mergeShares makes one dictionary of those of parts, and has their triples
// name its terms.
func (s *segment) mergeShares(parts []share) {
	at := make([]int, len(parts))
	place := make([][]uint32, len(parts)) // by part: id → place
	for i, p := range parts {
		place[i] = make([]uint32, len(p.terms))
	}
	for {
		least, any := "", false
		for i, p := range parts {
			if at[i] < len(p.order) {
				if t := p.terms[p.order[at[i]]]; !any || t < least {
					least, any = t, true
				}
			}
		}
		if !any {
			break
		}
		for i, p := range parts {
			if at[i] < len(p.order) && p.terms[p.order[at[i]]] == least {
				place[i][p.order[at[i]]] = uint32(len(s.ends))
				at[i]++
			}
		}
		s.text = append(s.text, least...)
		s.ends = append(s.ends, uint32(len(s.text)))
	}
	together(len(parts), func(i int) {
		for j := range parts[i].triples {
			t := &parts[i].triples[j]
			t.term = place[i][t.term]
		}
	})
}

// together calls do for all numbers below n at once, and waits.
func together(n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// finish fills in all that follows from the tools, the dictionary and the
// triples, which are ordered by document.
func (s *segment) finish(triples []triple) {
	s.text, s.ends = slices.Clip(s.text), slices.Clip(s.ends)
	steps := []func(){
		func() { s.backward(triples) },
		func() { s.forward(triples) },
		s.hash,
		func() { s.grams = indexGrams(s) },
	}
	if len(s.tools) < shareSize {
		for _, step := range steps {
			step()
		}
		return
	}
	together(len(steps), func(i int) { steps[i]() })
}

// backward fills in the postings.
func (s *segment) backward(triples []triple) {
	s.first = make([]uint32, s.terms()+1)
	for _, t := range triples {
		s.first[t.term+1]++
	}
	for i := range s.terms() {
		s.first[i+1] += s.first[i]
	}
	next := slices.Clone(s.first)
	s.docs, s.impact = make([]uint16, len(triples)), make([]uint8, len(triples))
	for _, t := range triples {
		i := next[t.term]
		next[t.term]++
		s.docs[i], s.impact[i] = t.doc, t.impact
	}
}

func (s *segment) forward(triples []triple) {
	s.fwd = make([]uint32, len(s.tools)+1)
	s.steps = make([]byte, 0, 2*len(triples))
	var ids []uint32
	at := 0
	for d := range s.tools {
		ids = ids[:0]
		for ; at < len(triples) && int(triples[at].doc) == d; at++ {
			ids = append(ids, triples[at].term)
		}
		slices.Sort(ids)
		before := uint32(0)
		for _, id := range ids {
			s.steps = appendUvarint(s.steps, id-before)
			before = id
		}
		s.fwd[d+1] = uint32(len(s.steps))
	}
	s.steps = slices.Clone(s.steps)
}

func (s *segment) hash() {
	size := 4
	for size < 2*s.terms() {
		size *= 2
	}
	s.table = make([]uint32, size)
	mask := uint32(size - 1)
	for id := range uint32(s.terms()) {
		i := hashTerm(s.term(id)) & mask
		for s.table[i] != 0 {
			i = (i + 1) & mask
		}
		s.table[i] = id + 1
	}
}
