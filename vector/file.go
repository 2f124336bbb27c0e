package vector

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

// The form of a written index: the magic, the number of components, the number
// of vectors; for each the length of its id, the id, the components; then a
// CRC-32C of all of it. Numbers are little-endian. What is quantised is made
// again on reading.
const magic = "HLVVEC1\n"

const (
	maxID    = 1 << 20
	perBatch = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// WriteTo writes what the index holds now, for [Read].
func (ix *Index) WriteTo(w io.Writer) (int64, error) {
	buf := bufio.NewWriterSize(w, 1<<16)
	out := &summed{w: buf, sum: crc32.New(castagnoli)}
	parts := ix.snap.Load().parts
	total := 0
	for i := range parts {
		total += parts[i].live()
	}
	out.bytes([]byte(magic))
	out.number(uint32(ix.dims))
	out.number(uint32(total))
	for i := range parts {
		out.part(&parts[i])
	}
	out.number(out.sum.Sum32())
	if out.err == nil {
		out.err = buf.Flush()
	}
	return out.n, out.err
}

// A summed writer keeps the first error.
type summed struct {
	w   io.Writer
	sum hash.Hash32
	n   int64
	err error
}

func (s *summed) bytes(b []byte) {
	if s.err != nil {
		return
	}
	s.sum.Write(b)
	n, err := s.w.Write(b)
	s.n, s.err = s.n+int64(n), err
}

func (s *summed) number(n uint32) { s.bytes(binary.LittleEndian.AppendUint32(nil, n)) }

func (s *summed) part(p *part) {
	row := make([]byte, 0, 4*p.dims)
	for i, id := range p.ids {
		if p.isGone(i) {
			continue
		}
		s.number(uint32(len(id)))
		s.bytes([]byte(id))
		row = row[:0]
		for _, x := range p.vector(i) {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
		}
		s.bytes(row)
	}
}

// Read reads an index that WriteTo wrote. It fails on anything else, damaged
// data included.
func Read(r io.Reader) (*Index, error) {
	in := &reader{r: bufio.NewReaderSize(r, 1<<16), sum: crc32.New(castagnoli)}
	if head := string(in.bytes(len(magic))); in.err == nil && head != magic {
		return nil, errors.New("vector: this is not an index of vectors")
	}
	dims, total := int(in.number()), int(in.number())
	if in.err == nil && (dims < 1 || dims > MaxDims) {
		return nil, fmt.Errorf("vector: an index of %d components; there are from 1 to %d", dims, MaxDims)
	}
	if in.err != nil {
		return nil, fmt.Errorf("vector: %w", in.err)
	}
	ix := New(dims)
	for total > 0 && in.err == nil {
		n := min(total, perBatch)
		if items := in.items(n, dims); in.err == nil {
			in.err = ix.Put(items...)
		}
		total -= n
	}
	want := in.sum.Sum32()
	if got := in.number(); in.err == nil && got != want {
		in.err = errors.New("the checksum does not fit: the data is damaged")
	}
	if in.err != nil {
		return nil, fmt.Errorf("vector: %w", in.err)
	}
	return ix, nil
}

// A reader keeps the first error.
type reader struct {
	r   io.Reader
	sum hash.Hash32
	err error
}

func (r *reader) bytes(n int) []byte {
	b := make([]byte, n)
	if r.err != nil {
		return b
	}
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.err = fmt.Errorf("the data ends early: %w", err)
	}
	r.sum.Write(b)
	return b
}

func (r *reader) number() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }

func (r *reader) items(n, dims int) []Item {
	out := make([]Item, 0, n)
	for range n {
		size := int(r.number())
		if r.err == nil && size > maxID {
			r.err = fmt.Errorf("an id of %d bytes: the data is damaged", size)
		}
		if r.err != nil {
			return nil
		}
		it := Item{ID: string(r.bytes(size)), Vector: make([]float32, dims)}
		row := r.bytes(4 * dims)
		for i := range it.Vector {
			it.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
		}
		out = append(out, it)
	}
	return out
}
