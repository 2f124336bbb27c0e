package vector

import (
	"math"
)

// A segment holds vectors in the order in which they were added. It never
// changes.
type segment struct {
	dims   int
	ids    []string
	floats []float32   // row by row
	ints   []int8      // row by row, padded
	rows   []scaledRow // one for each id
}

func newSegment(dims int, items []Item) *segment {
	s := &segment{
		dims:   dims,
		ids:    make([]string, 0, len(items)),
		floats: make([]float32, 0, len(items)*dims),
		ints:   make([]int8, len(items)*padded(dims)),
		rows:   make([]scaledRow, len(items)),
	}
	for i, it := range items {
		s.ids = append(s.ids, it.ID)
		s.floats = append(s.floats, it.Vector...)
		s.rows[i] = scaledRow{
			scaled: quantise(it.Vector, s.ints[i*padded(dims):], most),
			length: math.Sqrt(Dot(it.Vector, it.Vector)),
		}
	}
	return s
}

func (s *segment) len() int { return len(s.ids) }

func (s *segment) vector(row int) []float32 { return s.floats[row*s.dims : (row+1)*s.dims] }

// A part is a segment and which of its rows are gone. It never changes.
type part struct {
	*segment
	gone  []uint64 // bits by row; nil: none
	goner int      // how many are gone
}

func (p *part) isGone(row int) bool { return p.gone != nil && p.gone[row>>6]&(1<<(row&63)) != 0 }

func (p *part) live() int { return p.len() - p.goner }

// without returns p with further rows gone.
func (p part) without(rows []int) part {
	gone := make([]uint64, (p.len()+63)/64)
	copy(gone, p.gone)
	for _, r := range rows {
		gone[r>>6] |= 1 << (r & 63)
	}
	return part{p.segment, gone, p.goner + len(rows)}
}

// joined returns one segment of what is left of some, without quantising again.
func joined(parts []part) *segment {
	n := 0
	for i := range parts {
		n += parts[i].live()
	}
	dims := parts[0].dims
	wide := padded(dims)
	s := &segment{
		dims:   dims,
		ids:    make([]string, 0, n),
		floats: make([]float32, 0, n*dims),
		ints:   make([]int8, 0, n*wide),
		rows:   make([]scaledRow, 0, n),
	}
	for i := range parts {
		p := &parts[i]
		for r := range p.len() {
			if p.isGone(r) {
				continue
			}
			s.ids = append(s.ids, p.ids[r])
			s.floats = append(s.floats, p.vector(r)...)
			s.ints = append(s.ints, p.ints[r*wide:(r+1)*wide]...)
			s.rows = append(s.rows, p.rows[r])
		}
	}
	return s
}
