package storetest

import (
	"fmt"
	"testing"

	"github.com/helve-ai/helve/store"
)

// Bench measures a store of 10,000 values of 500 bytes. Every call of open
// must give a new, empty store.
func Bench(b *testing.B, open func(b *testing.B) store.Store) {
	const keys = 10_000
	s := open(b)
	defer s.Close()
	key := func(i int) string { return fmt.Sprintf("key-%06d", i*7919%keys) }
	round := 0
	value := func() []byte { // never twice the same: to write what is there may cost nothing
		round++
		return fmt.Appendf(make([]byte, 0, 500), "%0500d", round)
	}
	err := s.Update(b.Context(), func(w store.Writer) error {
		for i := range keys {
			w.Put("b", key(i), value())
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, fn func(i int) error) {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := fn(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("View1Get", func(i int) error {
		return s.View(b.Context(), func(r store.Reader) error {
			_, err := r.Get("b", key(i))
			return err
		})
	})
	run("Update1Put", func(i int) error {
		return s.Update(b.Context(), func(w store.Writer) error { return w.Put("b", key(i), value()) })
	})
	run("UpdateGetPut", func(i int) error {
		return s.Update(b.Context(), func(w store.Writer) error {
			if _, err := w.Get("b", key(i)); err != nil {
				return err
			}
			return w.Put("b", key(i), value())
		})
	})
	run("Update100Puts", func(i int) error {
		return s.Update(b.Context(), func(w store.Writer) error {
			for j := range 100 {
				w.Put("b", key(i+j), value())
			}
			return nil
		})
	})
	run("Scan10Of10000", func(i int) error { return scanSome(b, s, 10) })
	run("Scan10000", func(i int) error { return scanSome(b, s, keys) })
}

func scanSome(b *testing.B, s store.Store, n int) error {
	return s.View(b.Context(), func(r store.Reader) error {
		i := 0
		for range r.Scan("b", "") {
			if i++; i == n {
				break
			}
		}
		return nil
	})
}
