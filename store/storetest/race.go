package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/helve-ai/helve/store"
)

var counters = store.Bucket[int]("counters")

// increment adds one to a counter by reading and writing.
func increment(ctx context.Context, s store.Store, key string) (n int, err error) {
	err = s.Update(ctx, func(w store.Writer) error {
		n, err = counters.Get(w, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		n++
		return counters.Put(w, key, n)
	})
	return n, err
}

func wantCount(t *testing.T, s store.Store, key string, want int) {
	t.Helper()
	view(t, s, func(r store.Reader) error {
		got, err := counters.Get(r, key)
		if got != want {
			t.Errorf("counter is %d after %d increments", got, want)
		}
		return err
	})
}

// testCounter has 64 goroutines read and write one key.
func testCounter(t *testing.T, s store.Store) {
	const workers, each = 64, 4
	seen := make([][]int, workers)
	parallel(t, workers, func(i int) error {
		for range each {
			n, err := increment(t.Context(), s, "k")
			if err != nil {
				return err
			}
			seen[i] = append(seen[i], n)
		}
		return nil
	})
	wantCount(t, s, "k", workers*each)
	all := slices.Sorted(slices.Values(slices.Concat(seen...)))
	for i, n := range all {
		if n != i+1 {
			t.Fatalf("the %dth increment read %d: two read the same", i+1, n)
		}
	}
}

// testWriteSkew has two keys of which one must stay: each Update reads both
// and deletes one, so that the two write different keys.
func testWriteSkew(t *testing.T, s store.Store) {
	for round := range 20 {
		set(t, s, "x", "on duty", "y", "on duty")
		parallel(t, 2, func(i int) error {
			return s.Update(t.Context(), func(w store.Writer) error {
				if look(w, "x") == "-" || look(w, "y") == "-" {
					return nil
				}
				return w.Delete("b", []string{"x", "y"}[i])
			})
		})
		view(t, s, func(r store.Reader) error {
			if dump(r, "") == "" {
				t.Fatalf("round %d: both were deleted, each in view of the other", round)
			}
			return nil
		})
	}
}

// testPhantoms has each of many put a key of its own if there are fewer than
// ten.
func testPhantoms(t *testing.T, s store.Store) {
	size := func(r store.Reader) (n int) {
		for range r.Scan("b", "") {
			n++
		}
		return n
	}
	parallel(t, 32, func(i int) error {
		return s.Update(t.Context(), func(w store.Writer) error {
			if size(w) < 10 {
				return w.Put("b", fmt.Sprint(i), nil)
			}
			return nil
		})
	})
	view(t, s, func(r store.Reader) error {
		if n := size(r); n != 10 {
			t.Errorf("%d keys, where each saw fewer than 10 before its own", n)
		}
		return nil
	})
}
