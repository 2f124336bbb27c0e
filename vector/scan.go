package vector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// block is how many rows are scanned between two looks at the context.
const block = 1024

// Search returns the k vectors whose dot products with the query are greatest,
// best first, equal ones in the order of their ids: exactly those that
// comparing all of them by Dot would give. Of ids that accept rejects none is
// returned; nil accepts all. It fails if the query is of another length or has
// a component beyond 1e15, or ctx is done.
func (ix *Index) Search(ctx context.Context, query []float32, k int, accept func(id string) bool) ([]Hit, error) {
	if err := check(query, ix.dims); err != nil {
		return nil, fmt.Errorf("the query %w", err)
	}
	if k <= 0 {
		return nil, ctx.Err()
	}
	s := scans.Get().(*scan)
	defer scans.Put(s)
	*s = scan{k: k, accept: accept, lower: s.lower[:0], found: s.found[:0]}
	p := newProbe(query)
	parts := ix.snap.Load().parts
	for i := range parts {
		if err := s.run(ctx, p, &parts[i]); err != nil {
			return nil, err
		}
	}
	return s.best(p), nil
}

var scans = sync.Pool{New: func() any { return &scan{} }}

// A candidate is a row that may be among the best.
type candidate struct {
	seg   *segment
	row   int
	upper float64 // its score is not greater
}

// A scan looks for the k best rows. What is among them has an upper bound that
// no k others have a lower bound above.
type scan struct {
	k      int
	accept func(string) bool
	lower  []float64 // a heap of the k greatest lower bounds, the least first
	found  []candidate
}

func (s *scan) run(ctx context.Context, p *probe, in *part) error {
	var dots [block]int32
	wide := len(p.ints)
	for from := 0; from < in.len(); from += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(block, in.len()-from)
		dotRows(dots[:n], p.ints, in.ints[from*wide:(from+n)*wide])
		s.weigh(p, in, from, dots[:n])
	}
	return nil
}

// weigh takes, of the rows from from on, those that may be among the best.
func (s *scan) weigh(p *probe, in *part, from int, dots []int32) {
	rows := in.rows[from : from+len(dots)]
	for i, dot := range dots {
		estimate, off := p.bound(dot, &rows[i])
		if len(s.lower) == s.k && estimate+off < s.lower[0] {
			continue
		}
		row := from + i
		if in.isGone(row) || s.accept != nil && !s.accept(in.ids[row]) {
			continue
		}
		s.found = append(s.found, candidate{in.segment, row, estimate + off})
		s.raise(estimate - off)
	}
}

// raise notes a lower bound.
func (s *scan) raise(bound float64) {
	switch {
	case len(s.lower) < s.k:
		if s.lower = append(s.lower, bound); len(s.lower) == s.k {
			slices.Sort(s.lower)
		}
	case bound > s.lower[0]:
		s.lower[0] = bound
		sink(s.lower)
	}
}

// sink restores the order of a heap whose first has changed.
func sink(h []float64) {
	for i := 0; ; {
		kid := 2*i + 1
		if kid >= len(h) {
			return
		}
		if kid+1 < len(h) && h[kid+1] < h[kid] {
			kid++
		}
		if h[i] <= h[kid] {
			return
		}
		h[i], h[kid] = h[kid], h[i]
		i = kid
	}
}

// best scores the candidates, those first that may be best, and ends where no
// other can be among the k.
func (s *scan) best(p *probe) []Hit {
	slices.SortFunc(s.found, func(a, b candidate) int { return cmp.Compare(b.upper, a.upper) })
	var top []Hit // in order
	for _, c := range s.found {
		if len(top) == s.k && c.upper < top[s.k-1].Score {
			break
		}
		h := Hit{c.seg.ids[c.row], Dot(p.vector, c.seg.vector(c.row))}
		at, _ := slices.BinarySearchFunc(top, h, compareHits)
		if at == s.k {
			continue
		}
		if len(top) == s.k {
			top = top[:s.k-1]
		}
		top = slices.Insert(top, at, h)
	}
	return top
}

func compareHits(a, b Hit) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}
