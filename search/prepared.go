package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"github.com/helve-ai/helve/tool"
)

// ErrStale is returned by Prime for what was exported by another version, or
// with other weights or another lexicon. It is to be exported anew.
var ErrStale = errors.New("the prepared index is of another version")

// analysis is the version of what is indexed of a tool. It changes whenever
// the same tool would be indexed differently.
const analysis = 5

const packMagic = "helve-index\x00"

// A digest identifies a tool by all that is indexed of it.
type digest [16]byte

// digestOf returns the digest of a tool. It does not look into the schema.
func digestOf(t *tool.Tool) digest {
	h := sha256.New()
	var size [4]byte
	add := func(s []byte) {
		binary.LittleEndian.PutUint32(size[:], uint32(len(s)))
		h.Write(size[:])
		h.Write(s)
	}
	list := func(list []string) {
		add([]byte{byte(len(list)), byte(len(list) >> 8)})
		for _, s := range list {
			add([]byte(s))
		}
	}
	for _, s := range [...]string{t.Name, t.Module, t.Title, string(t.Category), t.Description, t.Help} {
		add([]byte(s))
	}
	list(t.Tags)
	list(t.Aliases)
	list(t.SideEffects)
	for _, e := range t.Examples {
		add(e)
	}
	if t.Input != nil {
		add(t.Input.Raw())
	}
	return digest(h.Sum(nil)[:16])
}

// A pack is a segment whose tools are known by their digests.
type pack struct {
	seg     *segment // without tools
	digests []digest // by document
}

// key is what a pack must have in common with the index that takes it.
func (e *engine) key() []byte {
	b := binary.LittleEndian.AppendUint32(nil, analysis)
	b = binary.LittleEndian.AppendUint64(b, e.digest())
	return binary.LittleEndian.AppendUint64(b, e.lex.Digest())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode writes a pack: magic, key, counts, arrays, and a checksum of it all.
func (p *pack) encode(key []byte) []byte {
	s := p.seg
	size := len(packMagic) + len(key) + 64 + len(s.text) + 4*(len(s.ends)+len(s.first)+len(s.fwd)+len(s.grams.first)+len(s.grams.terms)) + 3*len(s.docs) + len(s.steps) + 16*len(p.digests)
	b := append(append(make([]byte, 0, size), packMagic...), key...)
	for _, n := range [...]int{len(p.digests), len(s.text), len(s.ends), len(s.docs), len(s.steps), len(s.grams.first), len(s.grams.terms)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for _, d := range p.digests {
		b = append(b, d[:]...)
	}
	for _, list := range [...][]uint32{s.ends, s.first, s.fwd, s.grams.first, s.grams.terms} {
		for _, x := range list {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
	}
	for _, x := range s.docs {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	b = append(append(append(b, s.impact...), s.text...), s.steps...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var errDamaged = errors.New("the prepared index is damaged")

// A packReader takes a pack apart. Once something is missing, it gives nothing.
type packReader struct {
	rest []byte
	bad  bool
}

func (r *packReader) bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *packReader) uint32s(n int) []uint32 {
	b := r.bytes(4 * n)
	if r.bad {
		return nil
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

// decode reads a pack, of which it keeps parts. What it returns without an
// error is sound: searching it does not panic, whatever the bytes were.
func decode(data, key []byte) (*pack, error) {
	r := packReader{rest: data}
	if string(r.bytes(len(packMagic))) != packMagic {
		return nil, errDamaged
	}
	if !bytes.Equal(r.bytes(len(key)), key) {
		return nil, ErrStale
	}
	if len(r.rest) < 4 || crc32.Checksum(data[:len(data)-4], castagnoli) != binary.LittleEndian.Uint32(data[len(data)-4:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", errDamaged)
	}
	r.rest = r.rest[:len(r.rest)-4]
	n := r.uint32s(7)
	if r.bad || n[0] > maxDocs {
		return nil, errDamaged
	}
	for _, x := range n {
		if int64(x) > int64(len(data)) {
			return nil, errDamaged
		}
	}
	tools, terms, postings := int(n[0]), int(n[2]), int(n[3])
	p := &pack{seg: &segment{tools: make([]*tool.Tool, tools)}, digests: make([]digest, tools)}
	for i := range p.digests {
		copy(p.digests[i][:], r.bytes(len(digest{})))
	}
	s := p.seg
	s.ends, s.first, s.fwd = r.uint32s(terms), r.uint32s(terms+1), r.uint32s(tools+1)
	s.grams.first, s.grams.terms = r.uint32s(int(n[5])), r.uint32s(int(n[6]))
	docs := r.bytes(2 * postings)
	s.impact, s.text, s.steps = r.bytes(postings), r.bytes(int(n[1])), r.bytes(int(n[4]))
	if r.bad || len(r.rest) > 0 {
		return nil, errDamaged
	}
	s.docs = make([]uint16, postings)
	for i := range s.docs {
		s.docs[i] = binary.LittleEndian.Uint16(docs[2*i:])
	}
	if !s.sound() {
		return nil, errDamaged
	}
	s.hash()
	return p, nil
}

// sound reports whether all that a segment's arrays lead to is there.
func (s *segment) sound() bool {
	return ascends(s.ends, len(s.text), false) && ascends(s.first, len(s.docs), true) && ascends(s.fwd, len(s.steps), true) &&
		s.soundTerms() && s.soundPostings() && s.soundSteps() && s.grams.sound(s.terms())
}

// ascends reports whether list goes up to end: from zero, if it has to begin so.
func ascends(list []uint32, end int, fromZero bool) bool {
	var before uint32
	for i, x := range list {
		if x < before || i == 0 && fromZero && x != 0 {
			return false
		}
		before = x
	}
	return int(before) == end
}

func (s *segment) soundTerms() bool {
	for i := 1; i < s.terms(); i++ {
		if bytes.Compare(s.term(uint32(i-1)), s.term(uint32(i))) >= 0 {
			return false
		}
	}
	return true
}

func (s *segment) soundPostings() bool {
	for id := range uint32(s.terms()) {
		docs, _ := s.postings(id)
		for j, d := range docs {
			if int(d) >= len(s.tools) || j > 0 && d <= docs[j-1] {
				return false
			}
		}
	}
	return true
}

// soundSteps checks that the steps of each document are whole numbers that
// lead from term to term.
func (s *segment) soundSteps() bool {
	for d := range s.tools {
		b := s.steps[s.fwd[d]:s.fwd[d+1]]
		id := uint64(0)
		for i := 0; i < len(b); i++ {
			step, shift := uint64(0), 0
			for ; i < len(b) && b[i] >= utf8.RuneSelf; i++ {
				step |= uint64(b[i]&0x7f) << shift
				if shift += 7; shift > 28 {
					return false
				}
			}
			if i == len(b) {
				return false
			}
			if id += step | uint64(b[i])<<shift; id >= uint64(s.terms()) {
				return false
			}
		}
	}
	return true
}

// sound reports whether the index has a number of buckets that masks can
// pick from, and leads to terms only.
func (g *gramIndex) sound(terms int) bool {
	buckets := len(g.first) - 1
	if buckets < 1 || buckets&(buckets-1) != 0 || !ascends(g.first, len(g.terms), true) {
		return false
	}
	for _, id := range g.terms {
		if int(id) >= terms {
			return false
		}
	}
	return true
}
