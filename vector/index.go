package vector

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// An Index holds vectors of one length under ids. It is safe for concurrent
// use: searches go on with what was held when they began, and wait for nobody.
type Index struct {
	dims int
	snap atomic.Pointer[snapshot]

	mu    sync.Mutex // serialises changes
	where map[string]place
}

// A place is where a vector is: the parts are those of the snapshot.
type place struct {
	part int
	row  int
}

// A snapshot is what an index holds at one time. It never changes.
type snapshot struct{ parts []part }

// New returns an empty index of vectors of dims components. It panics unless
// dims lies between 1 and [MaxDims].
func New(dims int) *Index {
	if dims < 1 || dims > MaxDims {
		panic(fmt.Sprintf("vector: %d components; there are from 1 to %d", dims, MaxDims))
	}
	ix := &Index{dims: dims, where: map[string]place{}}
	ix.snap.Store(&snapshot{})
	return ix
}

// Dims returns the length of the index's vectors.
func (ix *Index) Dims() int { return ix.dims }

// Len returns how many vectors the index holds.
func (ix *Index) Len() int {
	n := 0
	for _, p := range ix.snap.Load().parts {
		n += p.live()
	}
	return n
}

// Put adds vectors, in place of those under the same ids; of several under one
// id the last counts. All of them are there at once, or, if one has another
// length or a component beyond 1e15, none. The vectors are copied.
func (ix *Index) Put(items ...Item) error { return ix.Change(items, nil) }

// Remove removes the vectors under ids. It is no error that there is none.
func (ix *Index) Remove(ids ...string) { ix.change(nil, ids) }

// Change removes vectors and adds others in one step, under the terms of Put
// and Remove. An id that is in both is there afterwards.
func (ix *Index) Change(put []Item, remove []string) error {
	for _, it := range put {
		if len(it.ID) > maxID {
			return fmt.Errorf("vector: an id of %d bytes; %d are the most", len(it.ID), maxID)
		}
		if err := check(it.Vector, ix.dims); err != nil {
			return fmt.Errorf("vector %q %w", it.ID, err)
		}
	}
	ix.change(put, remove)
	return nil
}

func (ix *Index) change(put []Item, remove []string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	put = lastOf(put)
	gone := map[int][]int{} // rows by part
	forget := func(id string) {
		if at, ok := ix.where[id]; ok {
			gone[at.part] = append(gone[at.part], at.row)
			delete(ix.where, id)
		}
	}
	for _, id := range remove {
		forget(id)
	}
	for _, it := range put {
		forget(it.ID)
	}
	if len(gone) == 0 && len(put) == 0 {
		return
	}
	parts := slices.Clone(ix.snap.Load().parts)
	for i, rows := range gone {
		parts[i] = parts[i].without(rows)
	}
	if len(put) > 0 {
		parts = append(parts, part{segment: newSegment(ix.dims, put)})
	}
	ix.store(parts)
}

// lastOf keeps the last item of each id.
func lastOf(items []Item) []Item {
	last := make(map[string]int, len(items))
	for i, it := range items {
		last[it.ID] = i
	}
	if len(last) == len(items) {
		return items
	}
	var out []Item
	for i, it := range items {
		if last[it.ID] == i {
			out = append(out, it)
		}
	}
	return out
}

// store makes parts the snapshot, few as they shall be. Only the places in
// parts that are new are written anew.
func (ix *Index) store(parts []part) {
	parts = compact(parts)
	before := ix.snap.Load().parts
	for i, p := range parts {
		if i < len(before) && before[i].segment == p.segment {
			continue
		}
		for row, id := range p.ids {
			if !p.isGone(row) {
				ix.where[id] = place{i, row}
			}
		}
	}
	ix.snap.Store(&snapshot{parts})
}

// compact joins parts until each has more than twice the rows of the next
// smaller one, and none more that are gone than a quarter. So there are few
// parts, and a vector is copied only every time its part doubles.
func compact(parts []part) []part {
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.live() == 0 })
	for i := range parts {
		if 4*parts[i].goner > parts[i].len() {
			parts[i] = part{segment: joined(parts[i : i+1])}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.live(), a.live()) })
	for i := len(parts) - 1; i > 0; i-- {
		rest := 0
		for _, p := range parts[i:] {
			rest += p.live()
		}
		if 2*rest > parts[i-1].live() {
			parts = append(parts[:i-1], part{segment: joined(parts[i-1:])})
		}
	}
	return parts
}

// Vector returns the vector under id, which must not be changed; nil if there
// is none.
func (ix *Index) Vector(id string) []float32 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	at, ok := ix.where[id]
	if !ok {
		return nil
	}
	return ix.snap.Load().parts[at.part].vector(at.row)
}
