package lexicon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// A table says which senses the keys of words and phrases have. It is used in
// place, as it lies in the program.
//
// It is a hash table with open addressing whose slots hold 24 bits of the key,
// whether longer phrases begin with it, and where its senses stand. The place
// of a slot follows from other bits of the key, so of the lookups of words that
// are not there about one in ten million finds some.
type table struct {
	slots  []byte // slotSize bytes each; a mark of zero: free
	senses []byte // senseSize bytes each; the last of a list is marked
	count  uint64 // of slots
}

const senseSize = 6

// A sense is a concept that a key stands for in some languages.
type sense struct {
	concept ID
	langs   Langs
	weight  uint8 // 255 is 1
	last    bool
}

const (
	slotSize    = 6       // a mark and a reference, of three bytes each
	slotGoesOn  = 1 << 23 // longer phrases begin with this key
	slotRefMask = slotGoesOn - 1
)

func markOf(key uint64) uint32 { return max(1, uint32(key)&0xffffff) }

// slot returns what stands in a slot.
func (t *table) slot(i uint64) (mark, v uint32) {
	b := t.slots[i*slotSize:][:slotSize]
	low := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	return low, uint32(b[3]) | uint32(b[4])<<8 | uint32(b[5])<<16
}

// find returns where the senses of a key begin, counted from 1 (zero: it has
// none), and whether longer phrases begin with it.
func (t *table) find(key uint64) (ref uint32, goesOn bool) {
	if t.count == 0 {
		return 0, false
	}
	want := markOf(key)
	for i, _ := bits.Mul64(key, t.count); ; i++ {
		if i == t.count {
			i = 0
		}
		switch mark, v := t.slot(i); mark {
		case 0:
			return 0, false
		case want:
			return v & slotRefMask, v&slotGoesOn != 0
		}
	}
}

// sense returns the sense at ref.
func (t *table) sense(ref uint32) sense {
	b := t.senses[(ref-1)*senseSize:][:senseSize]
	return sense{ID(binary.LittleEndian.Uint16(b)), Langs(binary.LittleEndian.Uint16(b[2:])), b[4], b[5] != 0}
}

// maxConcepts is how many a table can tell apart.
const maxConcepts = math.MaxUint16

func appendSenses(dst []byte, list []sense) []byte {
	for i, s := range list {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.concept))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.langs))
		last := byte(0)
		if i == len(list)-1 {
			last = 1
		}
		dst = append(dst, s.weight, last)
	}
	return dst
}

// A keyed is what a builder knows of a key.
type keyed struct {
	senses []sense
	goesOn bool
}

// newTable lays out a table. The same keys give the same bytes.
func newTable(keys map[uint64]keyed) *table {
	order := make([]uint64, 0, len(keys))
	for k := range keys {
		order = append(order, k)
	}
	slices.Sort(order)
	t := &table{count: uint64(len(keys)*4/3 + 1)}
	t.slots = make([]byte, slotSize*t.count)
	known := map[string]uint32{}
	for _, k := range order {
		t.put(k, keys[k], known)
	}
	return t
}

func (t *table) put(key uint64, k keyed, known map[string]uint32) {
	v := uint32(0)
	if len(k.senses) > 0 {
		slices.SortFunc(k.senses, func(a, b sense) int {
			return cmp.Or(cmp.Compare(a.concept, b.concept), cmp.Compare(a.langs, b.langs), cmp.Compare(a.weight, b.weight))
		})
		list := appendSenses(nil, k.senses)
		if v = known[string(list)]; v == 0 {
			v = uint32(len(t.senses)/senseSize + 1)
			known[string(list)] = v
			t.senses = append(t.senses, list...)
		}
	}
	if k.goesOn {
		v |= slotGoesOn
	}
	i, _ := bits.Mul64(key, t.count)
	for {
		if mark, _ := t.slot(i); mark == 0 {
			break
		}
		i = (i + 1) % t.count
	}
	mark := markOf(key)
	copy(t.slots[i*slotSize:], []byte{byte(mark), byte(mark >> 8), byte(mark >> 16), byte(v), byte(v >> 8), byte(v >> 16)})
}

// The compiled form of a lexicon: magic, the lengths of its parts, the names
// of the concepts with their kinds, broader and (after a dash) related concepts as
// text, slots, senses.
var magic = []byte("helvelx3")

const headSize = 8 + 4*4

func (l *Lexicon) encode() []byte {
	t := l.tables[0]
	var names bytes.Buffer
	for i, n := range l.names {
		fmt.Fprintf(&names, "%s %d", n, l.kinds[i])
		for _, b := range l.broader[i] {
			fmt.Fprintf(&names, " %s", l.names[b])
		}
		for _, b := range l.near[i] {
			fmt.Fprintf(&names, " -%s", l.names[b])
		}
		names.WriteByte('\n')
	}
	out := bytes.Clone(magic)
	for _, n := range []int{len(l.names), names.Len(), int(t.count), len(t.senses)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = append(out, names.Bytes()...)
	out = append(out, t.slots...)
	return append(out, t.senses...)
}

// load reads what encode wrote. It refers to data ever after.
func load(data []byte) (*Lexicon, error) {
	if len(data) < headSize || !bytes.HasPrefix(data, magic) {
		return nil, errors.New("not a compiled lexicon")
	}
	at := func(i int) int { return int(binary.LittleEndian.Uint32(data[8+4*i:])) }
	concepts, names, count, senses := at(0), at(1), at(2), at(3)
	if len(data) != headSize+names+slotSize*count+senses {
		return nil, errors.New("it was cut off")
	}
	l := &Lexicon{names: make([]string, 0, concepts), kinds: make([]Kind, 0, concepts), byName: make(map[string]ID, concepts)}
	data = data[headSize:]
	l.readNames(string(data[:names]), concepts)
	data = data[names:]
	l.tables = []*table{{slots: data[:slotSize*count], senses: data[slotSize*count:], count: uint64(count)}}
	return l, nil
}

func (l *Lexicon) readNames(text string, n int) {
	l.broader, l.near = make([][]ID, n), make([][]ID, n)
	var above []string // by concept: names of the broader and related ones
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			continue
		}
		l.byName[name] = ID(len(l.names))
		l.names = append(l.names, name)
		l.kinds = append(l.kinds, Kind(rest[0]-'0'))
		above = append(above, rest[1:])
	}
	for i, names := range above {
		for name := range strings.FieldsSeq(names) {
			if related, ok := strings.CutPrefix(name, "-"); ok {
				l.near[i] = append(l.near[i], l.byName[related])
			} else {
				l.broader[i] = append(l.broader[i], l.byName[name])
			}
		}
	}
}
