package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
)

type task struct {
	Title string
	Done  bool
}

func Example() {
	ctx := context.Background()
	var s store.Store = new(mem.Store)
	tasks := store.Bucket[task]("tasks")
	err := s.Update(ctx, func(w store.Writer) error {
		return errors.Join(
			tasks.Put(w, "2", task{Title: "cut"}),
			tasks.Put(w, "1", task{Title: "measure", Done: true}),
		)
	})
	if err != nil {
		panic(err)
	}
	err = s.View(ctx, func(r store.Reader) error {
		for id, t := range tasks.All(r) {
			fmt.Println(id, t.Title, t.Done)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// 1 measure true
	// 2 cut false
}

func update(t *testing.T, s store.Store, fn func(store.Writer) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestBucket(t *testing.T) {
	s, b := new(mem.Store), store.Bucket[task]("tasks")
	update(t, s, func(w store.Writer) error {
		return errors.Join(b.Put(w, "a1", task{Title: "one"}), b.Put(w, "a2", task{Title: "two"}),
			b.Put(w, "b1", task{Done: true}), b.Delete(w, "none"), b.Delete(w, "a2"))
	})
	err := s.View(t.Context(), func(r store.Reader) error {
		if v, err := b.Get(r, "a1"); v.Title != "one" || err != nil {
			t.Errorf("Get = %v, %v", v, err)
		}
		if v, err := b.Get(r, "a2"); v != (task{}) || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get of a deleted key = %v, %v", v, err)
		}
		want := map[string]task{"a1": {Title: "one"}, "b1": {Done: true}}
		if got := maps.Collect(b.All(r)); !maps.Equal(got, want) {
			t.Errorf("All = %v, want %v", got, want)
		}
		delete(want, "b1")
		if got := maps.Collect(b.Scan(r, "a")); !maps.Equal(got, want) {
			t.Errorf("Scan = %v, want %v", got, want)
		}
		for range b.All(r) {
			break
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A value that does not fit the type is an error, also where there is no
// place for one.
func TestBucketMisfit(t *testing.T) {
	s, b := new(mem.Store), store.Bucket[task]("tasks")
	update(t, s, func(w store.Writer) error {
		return errors.Join(b.Put(w, "1", task{}), w.Put("tasks", "2", []byte(`{"Title": 5}`)), b.Put(w, "3", task{}))
	})
	const want = `bucket tasks: key "2": json: cannot unmarshal number`
	seen := 0
	err := s.View(t.Context(), func(r store.Reader) error {
		if _, err := b.Get(r, "2"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Get = %v, want %s", err, want)
		}
		for range b.All(r) {
			seen++
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), want) || seen != 1 {
		t.Errorf("View = %v after %d values, want %s after 1", err, seen, want)
	}
	err = s.Update(t.Context(), func(w store.Writer) error {
		return store.Bucket[func()]("f").Put(w, "k", nil)
	})
	if err == nil || !strings.Contains(err.Error(), `bucket f: key "k": json: unsupported type`) {
		t.Errorf("Put of a func = %v", err)
	}
}

func TestSub(t *testing.T) {
	s := new(mem.Store)
	parts := map[string]store.Store{
		"s/b": s, "a/b": store.Sub(s, "a"), "ab/b": store.Sub(s, "ab"), "a/c/b": store.Sub(store.Sub(s, "a"), "c"),
	}
	for name, p := range parts {
		update(t, p, func(w store.Writer) error { return w.Put("b", "k", []byte(name)) })
	}
	for name, p := range parts {
		err := p.View(t.Context(), func(r store.Reader) error {
			v, err := r.Get("b", "k")
			if string(v) != name {
				t.Errorf("part %s holds %s", name, v)
			}
			n := 0
			for range r.Scan("b", "") {
				n++
			}
			if n != 1 {
				t.Errorf("Scan in part %s yields %d", name, n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	part := parts["a/b"]
	update(t, part, func(w store.Writer) error { return w.Delete("b", "k") })
	err := s.View(t.Context(), func(r store.Reader) error {
		if _, err := r.Get("a/b", "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get = %v after a part deleted the key", err)
		}
		_, err := r.Get("a/c/b", "k")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	errBoom := errors.New("boom")
	err = part.Update(t.Context(), func(w store.Writer) error { w.Fail(errBoom); return nil })
	if err != errBoom {
		t.Errorf("Update of a part = %v after Fail", err)
	}
	if err := part.Close(); err != nil {
		t.Error(err)
	}
	update(t, s, func(store.Writer) error { return nil })
	s.Close()
	if err := part.View(t.Context(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View of a part of a closed store = %v", err)
	}
}
