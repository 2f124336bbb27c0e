package vector

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

func randomVector(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func unit(r *rand.Rand, dims int) []float32 {
	v := randomVector(r, dims)
	Normalize(v)
	return v
}

// bruteForce is what Search must equal.
func bruteForce(items []Item, query []float32, k int, accept func(string) bool) []Hit {
	var all []Hit
	for _, it := range items {
		if accept == nil || accept(it.ID) {
			all = append(all, Hit{it.ID, Dot(query, it.Vector)})
		}
	}
	slices.SortFunc(all, compareHits)
	return all[:min(k, len(all))]
}

func indexOf(t testing.TB, dims int, items []Item) *Index {
	t.Helper()
	ix := New(dims)
	if err := ix.Put(items...); err != nil {
		t.Fatal(err)
	}
	return ix
}

func search(t testing.TB, ix *Index, query []float32, k int, accept func(string) bool) []Hit {
	t.Helper()
	hits, err := ix.Search(context.Background(), query, k, accept)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// bothWays runs a test with the kernel of this machine and with the portable one.
func bothWays(t *testing.T, run func(t *testing.T)) {
	t.Run(Accelerated(), run)
	if accelerated {
		accelerated = false
		defer func() { accelerated = true }()
		t.Run("portable", run)
	}
}

// catalogues are sets of vectors on which a careless bound or rounding shows.
var catalogues = map[string]func(r *rand.Rand, dims, i int) []float32{
	"random directions": func(r *rand.Rand, dims, _ int) []float32 { return unit(r, dims) },
	"random lengths": func(r *rand.Rand, dims, _ int) []float32 {
		v := unit(r, dims)
		f := float32(math.Pow(10, r.Float64()*24-12))
		for i := range v {
			v[i] *= f
		}
		return v
	},
	"all but equal": func(r *rand.Rand, dims, i int) []float32 {
		v := make([]float32, dims)
		for j := range v {
			v[j] = 1 + float32(r.IntN(3))*1e-6
		}
		return v
	},
	"equal": func(_ *rand.Rand, dims, _ int) []float32 {
		v := make([]float32, dims)
		v[0] = .5
		return v
	},
	"one great component": func(r *rand.Rand, dims, _ int) []float32 {
		v := unit(r, dims)
		v[r.IntN(dims)] = float32(1000 * (r.IntN(2)*2 - 1))
		return v
	},
	"zeros": func(r *rand.Rand, dims, i int) []float32 {
		v := make([]float32, dims)
		if i%3 == 0 {
			v[i%dims] = math.SmallestNonzeroFloat32
		}
		return v
	},
	"greatest components": func(r *rand.Rand, dims, _ int) []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = maxComponent * float32(r.IntN(3)-1)
		}
		return v
	},
	"halves of a step": func(r *rand.Rand, dims, _ int) []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.IntN(255)-127) + .5
		}
		v[0] = 127
		return v
	},
}

func TestSearchEqualsBruteForce(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		for name, make := range catalogues {
			t.Run(name, func(t *testing.T) {
				r := seeded()
				for _, dims := range []int{1, 3, 32, 100, 384} {
					var items []Item
					for i := range 700 {
						items = append(items, Item{fmt.Sprintf("v%04d", i), make(r, dims, i)})
					}
					ix := indexOf(t, dims, items)
					queries := [][]float32{unit(r, dims), make(r, dims, 1), items[5].Vector, randomVector(r, dims)}
					for _, q := range queries {
						for _, k := range []int{1, 10, 64, 1000} {
							if got, want := search(t, ix, q, k, nil), bruteForce(items, q, k, nil); !slices.Equal(got, want) {
								t.Fatalf("%d components, the best %d: %v, want %v", dims, k, got, want)
							}
						}
					}
					odd := func(id string) bool { return strings.IndexByte("13579", id[len(id)-1]) >= 0 }
					if got, want := search(t, ix, queries[0], 10, odd), bruteForce(items, queries[0], 10, odd); !slices.Equal(got, want) {
						t.Fatalf("%d components, of the odd: %v, want %v", dims, got, want)
					}
				}
			})
		}
	})
}

// Vectors whose distance is far below a quantisation step are told apart.
func TestAdversarialNeighbours(t *testing.T) {
	r := seeded()
	q := unit(r, 384)
	var items []Item
	for i := range 5000 {
		v := slices.Clone(q)
		v[i%384] += float32(r.NormFloat64() * 1e-5)
		items = append(items, Item{fmt.Sprint(i), v})
	}
	ix := indexOf(t, 384, items)
	if got, want := search(t, ix, q, 10, nil), bruteForce(items, q, 10, nil); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// The bound holds for every pair: no score differs from its estimate by more.
func TestBoundHolds(t *testing.T) {
	for name, make := range catalogues {
		r := seeded()
		for _, dims := range []int{1, 7, 384, 1024} {
			var items []Item
			for i := range 40 {
				items = append(items, Item{fmt.Sprint(i), make(r, dims, i)})
			}
			seg := newSegment(dims, items)
			for _, q := range items {
				p := newProbe(q.Vector)
				dots := [40]int32{}
				dotRowsGo(dots[:], p.ints, seg.ints)
				for i := range items {
					estimate, off := p.bound(dots[i], &seg.rows[i])
					if true_ := Dot(q.Vector, items[i].Vector); math.Abs(true_-estimate) > off {
						t.Fatalf("%s, %d components: %v is estimated as %v ± %v", name, dims, true_, estimate, off)
					}
				}
			}
		}
	}
}

func TestKernelsAgree(t *testing.T) {
	if !accelerated {
		t.Skip("this machine has no kernel but the portable one")
	}
	r := seeded()
	for _, width := range []int{32, 64, 96, 384, 1024, MaxDims} {
		limit := int(queryLimit(width))
		for round := range 8 {
			query, rows := make([]int16, width), make([]int8, 5*width)
			for i := range query {
				query[i] = int16(r.IntN(2*limit+1) - limit)
			}
			for i := range rows {
				rows[i] = int8(r.IntN(255) - 127)
			}
			if round < 2 { // the greatest sums
				for i := range query {
					query[i] = int16(limit)
				}
				for i := range rows {
					rows[i] = int8(127 - 254*round)
				}
			}
			var got, want [5]int32
			dotRowsSIMD(&got[0], &query[0], &rows[0], 5, width)
			dotRowsGo(want[:], query, rows)
			if got != want {
				t.Fatalf("width %d: %v, portable %v", width, got, want)
			}
			for i := range 5 {
				var sum int64
				for j := range query {
					sum += int64(query[j]) * int64(rows[i*width+j])
				}
				if sum != int64(got[i]) {
					t.Fatalf("width %d: %d, in 64 bits %d", width, got[i], sum)
				}
			}
		}
	}
}

func TestChanges(t *testing.T) {
	r := seeded()
	ix := New(16)
	held := map[string][]float32{}
	for step := range 400 {
		var put []Item
		var remove []string
		for range r.IntN(30) {
			id := fmt.Sprint(r.IntN(500))
			put = append(put, Item{id, randomVector(r, 16)})
		}
		for range r.IntN(12) {
			remove = append(remove, fmt.Sprint(r.IntN(500)))
		}
		if err := ix.Change(put, remove); err != nil {
			t.Fatal(err)
		}
		for _, id := range remove {
			delete(held, id)
		}
		for _, it := range put {
			held[it.ID] = it.Vector
		}
		if ix.Len() != len(held) {
			t.Fatalf("step %d: %d vectors, want %d", step, ix.Len(), len(held))
		}
		var items []Item
		for id, v := range held {
			items = append(items, Item{id, v})
		}
		q := randomVector(r, 16)
		if got, want := search(t, ix, q, 7, nil), bruteForce(items, q, 7, nil); !slices.Equal(got, want) {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
	}
	if n := len(ix.snap.Load().parts); n > 10 {
		t.Errorf("%d parts after 400 changes of 500 vectors", n)
	}
}

func TestRefusals(t *testing.T) {
	ix := indexOf(t, 2, []Item{{"a", []float32{1, 2}}})
	for _, v := range [][]float32{{1}, {1, 2, 3}, {1, float32(math.NaN())}, {float32(math.Inf(1)), 0}, {2e15, 0}} {
		if err := ix.Put(Item{"b", []float32{3, 4}}, Item{"c", v}); err == nil {
			t.Errorf("%v was taken", v)
		}
		if _, err := ix.Search(t.Context(), v, 1, nil); err == nil {
			t.Errorf("%v was searched for", v)
		}
	}
	if ix.Vector("b") != nil || ix.Len() != 1 || !slices.Equal(ix.Vector("a"), []float32{1, 2}) {
		t.Error("something was put although another was refused")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ix.Search(ctx, []float32{1, 0}, 1, nil); err == nil {
		t.Error("a search ran although its context had ended")
	}
}

// Readers see whole changes only, while writers add, replace and remove.
func TestReadersSeeWholeChanges(t *testing.T) {
	ix := New(8)
	pair := func(n int) []Item {
		v := []float32{float32(n), 1, 0, 0, 0, 0, 0, 0}
		return []Item{{"left", v}, {"right", v}}
	}
	if err := ix.Put(pair(0)...); err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			q := []float32{1, 0, 0, 0, 0, 0, 0, 0}
			for {
				select {
				case <-done:
					return
				default:
				}
				hits := search(t, ix, q, 2, func(id string) bool { return id == "left" || id == "right" })
				if len(hits) != 2 || hits[0].Score != hits[1].Score {
					t.Errorf("half a change was seen: %v", hits)
					return
				}
			}
		})
	}
	writers.Go(func() {
		for n := range 500 {
			if err := ix.Put(pair(n)...); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() {
		r := seeded()
		for n := range 500 {
			id := fmt.Sprint(n % 40)
			if err := ix.Put(Item{id, randomVector(r, 8)}); err != nil {
				t.Error(err)
			}
			ix.Remove(fmt.Sprint(r.IntN(40)))
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
}

func TestWriteAndRead(t *testing.T) {
	r := seeded()
	ix := New(20)
	for i := range 300 {
		if err := ix.Put(Item{fmt.Sprint(i, "é"), randomVector(r, 20)}); err != nil {
			t.Fatal(err)
		}
	}
	ix.Remove("7é", "9é")
	var file bytes.Buffer
	n, err := ix.WriteTo(&file)
	if err != nil || n != int64(file.Len()) {
		t.Fatal(n, file.Len(), err)
	}
	data := file.Bytes()
	again, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	q := randomVector(r, 20)
	if got, want := search(t, again, q, 300, nil), search(t, ix, q, 300, nil); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, at := range []int{0, 9, 13, 20, len(data) / 2, len(data) - 1} {
		damaged := slices.Clone(data)
		damaged[at] ^= 4
		if _, err := Read(bytes.NewReader(damaged)); err == nil {
			t.Errorf("damage at byte %d was not noticed", at)
		}
		if _, err := Read(bytes.NewReader(data[:at])); err == nil {
			t.Errorf("the first %d bytes were taken for all", at)
		}
	}
}

func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	if _, err := indexOf(f, 3, []Item{{"a", []float32{1, 2, 3}}, {"b", []float32{4, 5, 6}}}).WriteTo(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		ix, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := ix.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%dx384", n), func(b *testing.B) {
			r := seeded()
			items := make([]Item, n)
			for i := range items {
				items[i] = Item{fmt.Sprint(i), unit(r, 384)}
			}
			ix := indexOf(b, 384, items)
			queries := make([][]float32, 64)
			for i := range queries {
				queries[i] = unit(r, 384)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				search(b, ix, queries[i%len(queries)], 10, nil)
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	r := seeded()
	items := make([]Item, 10_000)
	for i := range items {
		items[i] = Item{fmt.Sprint(i), unit(r, 384)}
	}
	ix := indexOf(b, 384, items)
	for b.Loop() {
		if err := ix.Put(items[500:550]...); err != nil {
			b.Fatal(err)
		}
	}
}
