// Package storetest holds every kind of store to the one contract.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helve-ai/helve/store"
)

// Run runs the contract test. Every call of open must give a new, empty store,
// which the test closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"commit", testCommit},
		{"rollback", testRollback},
		{"panic", testPanic},
		{"exit", testExit},
		{"hidden failure", testHiddenFailure},
		{"own writes", testOwnWrites},
		{"snapshot", testSnapshot},
		{"view beside update", testViewBesideUpdate},
		{"order", testOrder},
		{"prefix", testPrefix},
		{"scan stopped", testScanStopped},
		{"scan nested", testScanNested},
		{"scan and write", testScanAndWrite},
		{"scan pulled", testScanPulled},
		{"scan big", testScanBig},
		{"empty", testEmpty},
		{"any bytes", testAnyBytes},
		{"values are owned", testOwned},
		{"big values", testBig},
		{"names refused", testNamesRefused},
		{"long names", testLongNames},
		{"counter", testCounter},
		{"write skew", testWriteSkew},
		{"phantoms", testPhantoms},
		{"cancelled", testCancelled},
		{"cancelled while waiting", testCancelledWaiting},
		{"leaked", testLeaked},
		{"close", testClose},
		{"close waits", testCloseWaits},
		{"model", testModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			c.test(t, s)
		})
	}
}

var errBoom = errors.New("boom")

// set commits values given as key, value, key, value, ... in bucket b.
func set(t *testing.T, s store.Store, pairs ...string) {
	t.Helper()
	update(t, s, func(w store.Writer) error {
		for p := range slices.Chunk(pairs, 2) {
			w.Put("b", p[0], []byte(p[1]))
		}
		return nil
	})
}

func update(t *testing.T, s store.Store, fn func(store.Writer) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, s store.Store, fn func(store.Reader) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// look is the value of a key of bucket b, "-" without one.
func look(r store.Reader, key string) string {
	v, err := r.Get("b", key)
	if errors.Is(err, store.ErrNotFound) {
		return "-"
	}
	if err != nil {
		return err.Error()
	}
	return string(v)
}

// dump is all of bucket b with the prefix: "k=v k=v".
func dump(r store.Reader, prefix string) string {
	var all []string
	for k, v := range r.Scan("b", prefix) {
		all = append(all, k+"="+string(v))
	}
	return strings.Join(all, " ")
}

func wantDump(t *testing.T, s store.Store, want string) {
	t.Helper()
	view(t, s, func(r store.Reader) error {
		if got := dump(r, ""); got != want {
			t.Errorf("bucket holds %q, want %q", got, want)
		}
		return nil
	})
}

// parallel runs fn n times at once and fails the test on an error.
func parallel(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := fn(i); err != nil {
				t.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func testCommit(t *testing.T, s store.Store) {
	set(t, s, "k", "1", "l", "2")
	set(t, s, "k", "3")
	wantDump(t, s, "k=3 l=2")
	update(t, s, func(w store.Writer) error {
		return errors.Join(w.Delete("b", "k"), w.Delete("b", "was never there"), w.Put("c", "k", []byte("other")))
	})
	wantDump(t, s, "l=2")
	view(t, s, func(r store.Reader) error {
		if v, err := r.Get("c", "k"); string(v) != "other" || err != nil {
			t.Errorf("the same key in another bucket: %q, %v", v, err)
		}
		v, err := r.Get("b", "k")
		if v != nil || !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), `bucket b: key "k"`) {
			t.Errorf("Get of a deleted key = %q, %v", v, err)
		}
		return nil
	})
	if err := s.View(t.Context(), func(store.Reader) error { return errBoom }); err != errBoom {
		t.Errorf("View returns %v for fn's error", err)
	}
	if err := s.Update(t.Context(), func(store.Writer) error { return nil }); err != nil {
		t.Errorf("Update without a write: %v", err)
	}
}

func testRollback(t *testing.T, s store.Store) {
	set(t, s, "a", "1", "b", "2")
	err := s.Update(t.Context(), func(w store.Writer) error {
		w.Put("b", "a", []byte("x"))
		w.Delete("b", "b")
		w.Put("b", "c", []byte("x"))
		dump(w, "")
		return errBoom
	})
	if err != errBoom {
		t.Errorf("Update = %v, want fn's error itself", err)
	}
	wantDump(t, s, "a=1 b=2")
}

func testPanic(t *testing.T, s store.Store) {
	set(t, s, "a", "1")
	caught := func(fn func()) (v any) {
		defer func() { v = recover() }()
		fn()
		return nil
	}
	for name, fn := range map[string]func(){
		"Update": func() {
			s.Update(t.Context(), func(w store.Writer) error {
				w.Put("b", "a", []byte("x"))
				panic(errBoom)
			})
		},
		"Update in Scan": func() {
			s.Update(t.Context(), func(w store.Writer) error {
				for k := range w.Scan("b", "") {
					w.Delete("b", k)
					panic(errBoom)
				}
				return nil
			})
		},
		"View": func() {
			s.View(t.Context(), func(r store.Reader) error {
				for range r.Scan("b", "") {
					panic(errBoom)
				}
				return nil
			})
		},
	} {
		for range 20 { // more often than there are connections
			if v := caught(fn); v != errBoom {
				t.Fatalf("%s: recovered %v, want what fn panicked with", name, v)
			}
		}
	}
	wantDump(t, s, "a=1")
	set(t, s, "a", "2")
	wantDump(t, s, "a=2")
}

func testExit(t *testing.T, s store.Store) {
	var gone sync.WaitGroup
	gone.Go(func() {
		s.Update(t.Context(), func(w store.Writer) error {
			w.Put("b", "a", []byte("x"))
			runtime.Goexit()
			return nil
		})
	})
	gone.Wait()
	wantDump(t, s, "")
	set(t, s, "a", "2")
}

func testHiddenFailure(t *testing.T, s store.Store) {
	const bad = "\x00"
	for name, fail := range map[string]func(store.Writer){
		"Get":    func(w store.Writer) { w.Get("b", bad) },
		"Put":    func(w store.Writer) { w.Put("b", bad, nil) },
		"Delete": func(w store.Writer) { w.Delete("b", bad) },
		"Scan": func(w store.Writer) {
			for range w.Scan("b", bad) {
				t.Error("a refused Scan yields")
			}
		},
		"Fail": func(w store.Writer) { w.Fail(errors.New("contains a NUL")); w.Fail(errBoom); w.Fail(nil) },
	} {
		for _, result := range []error{nil, errBoom} {
			err := s.Update(t.Context(), func(w store.Writer) error {
				w.Put("b", "k", []byte(name))
				fail(w)
				return result
			})
			if err == nil || !strings.Contains(err.Error(), "NUL") {
				t.Errorf("%s: Update = %v when fn hides a failure and returns %v", name, err, result)
			}
		}
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		r.Get("b", bad)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("View = %v when fn hides a failure", err)
	}
	wantDump(t, s, "")
}

func testOwnWrites(t *testing.T, s store.Store) {
	set(t, s, "a", "1", "b", "2")
	update(t, s, func(w store.Writer) error {
		w.Put("b", "c", []byte("3"))
		w.Put("b", "a", []byte("4"))
		w.Delete("b", "b")
		if got := look(w, "a") + look(w, "b") + look(w, "c"); got != "4-3" {
			t.Errorf("Get of own writes: %s", got)
		}
		if got := dump(w, ""); got != "a=4 c=3" {
			t.Errorf("Scan of own writes: %s", got)
		}
		w.Put("b", "b", []byte("5"))
		w.Delete("b", "c")
		if got := dump(w, ""); got != "a=4 b=5" {
			t.Errorf("Scan of own writes: %s", got)
		}
		return nil
	})
	wantDump(t, s, "a=4 b=5")
}

func testSnapshot(t *testing.T, s store.Store) {
	set(t, s, "a", "1", "b", "1")
	view(t, s, func(r store.Reader) error {
		look(r, "a") // the moment is fixed by now
		var other sync.WaitGroup
		other.Go(func() {
			update(t, s, func(w store.Writer) error {
				w.Put("b", "a", []byte("2"))
				w.Put("b", "b", []byte("2"))
				return w.Put("b", "c", []byte("2"))
			})
		})
		other.Wait()
		if got := look(r, "b"); got != "1" {
			t.Errorf("Get after another's commit: %s", got)
		}
		if got := dump(r, ""); got != "a=1 b=1" {
			t.Errorf("Scan after another's commit: %s", got)
		}
		return nil
	})
	wantDump(t, s, "a=2 b=2 c=2")
}

func testViewBesideUpdate(t *testing.T, s store.Store) {
	set(t, s, "a", "1")
	update(t, s, func(w store.Writer) error {
		w.Put("b", "a", []byte("2"))
		look(w, "a")
		parallel(t, 4, func(int) error {
			return s.View(t.Context(), func(r store.Reader) error {
				if got := dump(r, ""); got != "a=1" {
					return fmt.Errorf("a View beside an Update reads %s", got)
				}
				return nil
			})
		})
		return nil
	})
	wantDump(t, s, "a=2")
}

func testEmpty(t *testing.T, s store.Store) {
	update(t, s, func(w store.Writer) error {
		return errors.Join(w.Put("b", "empty", []byte{}), w.Put("b", "nil", nil), w.Put("b", "", []byte("no key")),
			w.Put("", "k", []byte("no bucket")))
	})
	check := func(r store.Reader) error {
		for _, key := range []string{"empty", "nil"} {
			if v, err := r.Get("b", key); v == nil || len(v) != 0 || err != nil {
				t.Errorf("Get(%s) = %#v, %v, want an empty value", key, v, err)
			}
		}
		for key, v := range r.Scan("b", "") {
			if v == nil {
				t.Errorf("Scan yields nil for %q", key)
			}
		}
		if got, want := dump(r, ""), "=no key empty= nil="; got != want {
			t.Errorf("bucket holds %q, want %q", got, want)
		}
		if v, err := r.Get("", "k"); string(v) != "no bucket" || err != nil {
			t.Errorf("Get in the bucket without a name = %q, %v", v, err)
		}
		for key := range r.Scan("nowhere", "") {
			t.Errorf("an empty bucket yields %q", key)
		}
		return nil
	}
	view(t, s, check)
	update(t, s, func(w store.Writer) error { return check(w) })
	update(t, s, func(w store.Writer) error { return w.Delete("b", "") })
	wantDump(t, s, "empty= nil=")
}

func testAnyBytes(t *testing.T, s store.Store) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, v := range [][]byte{every, {0}, {0xff, 0xfe}, []byte("'; DROP TABLE kv; --"), []byte(`\x00`)} {
		update(t, s, func(w store.Writer) error { return w.Put("b", "k", v) })
		view(t, s, func(r store.Reader) error {
			if got, err := r.Get("b", "k"); !bytes.Equal(got, v) || err != nil {
				t.Errorf("Get = %q, %v, want %q", got, err, v)
			}
			return nil
		})
	}
}

func testOwned(t *testing.T, s store.Store) {
	mine := []byte("mine")
	update(t, s, func(w store.Writer) error {
		w.Put("b", "k", mine)
		copy(mine, "YOUR")
		if got := look(w, "k"); got != "mine" {
			t.Errorf("Put keeps its argument: %s", got)
		}
		v, err := w.Get("b", "k")
		copy(v, "OURS")
		return err
	})
	view(t, s, func(r store.Reader) error {
		v, err := r.Get("b", "k")
		copy(v, "MINE")
		var kept [][]byte
		for _, v := range r.Scan("b", "") {
			copy(v, "ITS!")
			kept = append(kept, v)
		}
		if got := look(r, "k"); got != "mine" {
			t.Errorf("a reader's change is stored: %s", got)
		}
		if string(v) != "MINE" || string(kept[0]) != "ITS!" {
			t.Errorf("values changed after they were given away: %s %s", v, kept)
		}
		return err
	})
	wantDump(t, s, "k=mine")
}

func testBig(t *testing.T, s store.Store) {
	const size = 8 << 20
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i), 0, byte(i >> 8), 7}, size/4) }
	update(t, s, func(w store.Writer) error {
		for i := range 3 {
			w.Put("b", fmt.Sprint(i), value(i))
		}
		return nil
	})
	view(t, s, func(r store.Reader) error {
		n := 0
		for k, v := range r.Scan("b", "") {
			if k != fmt.Sprint(n) || !bytes.Equal(v, value(n)) {
				t.Errorf("big value %d is not what was put, at key %s", n, k)
			}
			n++
		}
		if n != 3 {
			t.Errorf("Scan yields %d big values", n)
		}
		v, err := r.Get("b", "1")
		if !bytes.Equal(v, value(1)) {
			t.Error("Get of a big value gives something else")
		}
		return err
	})
}

func testNamesRefused(t *testing.T, s store.Store) {
	long := strings.Repeat("x", store.MaxName+1)
	for bad, why := range map[string]string{
		"a\x00b": `"a\x00b" contains a NUL`,
		"a\xffb": `"a\xffb" is not valid UTF-8`,
		"é"[:1]:  `"\xc3" is not valid UTF-8`,
		long:     "at most 1024",
	} {
		for name, call := range map[string]func(w store.Writer, bucket, key string) error{
			"Get":    func(w store.Writer, bucket, key string) error { _, err := w.Get(bucket, key); return err },
			"Put":    func(w store.Writer, bucket, key string) error { return w.Put(bucket, key, nil) },
			"Delete": func(w store.Writer, bucket, key string) error { return w.Delete(bucket, key) },
			"Scan": func(w store.Writer, bucket, key string) error {
				for range w.Scan(bucket, key) {
					return errBoom
				}
				return nil
			},
		} {
			for where, names := range map[string][2]string{"name of bucket": {bad, "k"}, "bucket b: key": {"b", bad}} {
				var inner error
				err := s.Update(t.Context(), func(w store.Writer) error {
					inner = call(w, names[0], names[1])
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), where) {
					t.Errorf("%s: Update = %v, want %s: ...%s", name, err, where, why)
				}
				if name != "Scan" && inner != err {
					t.Errorf("%s = %v, Update = %v", name, inner, err)
				}
			}
		}
	}
}

func testLongNames(t *testing.T, s store.Store) {
	// Nothing that could be compressed: an index of PostgreSQL's would hold a
	// longer one then.
	var long strings.Builder
	for x := uint32(1); long.Len() < store.MaxName-4; x = x*1664525 + 1013904223 {
		long.WriteRune(rune(0x4e00 + x>>18))
	}
	name := long.String() + strings.Repeat("x", store.MaxName-long.Len())
	update(t, s, func(w store.Writer) error { return w.Put(name, name, []byte("v")) })
	view(t, s, func(r store.Reader) error {
		v, err := r.Get(name, name)
		if string(v) != "v" {
			t.Errorf("Get of the longest names = %q", v)
		}
		for k := range r.Scan(name, name) {
			if k != name {
				t.Errorf("Scan yields %q", k)
			}
		}
		return err
	})
}

func testCancelled(t *testing.T, s store.Store) {
	set(t, s, "a", "1", "b", "2")
	ctx, cancel := context.WithCancel(t.Context())
	var inside error
	err := s.Update(ctx, func(w store.Writer) error {
		w.Put("b", "a", []byte("x"))
		cancel()
		_, inside = w.Get("b", "a")
		return nil
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(inside, context.Canceled) {
		t.Errorf("Update = %v, Get = %v in a context that ended in fn", err, inside)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = s.Update(ctx, func(w store.Writer) error {
		defer cancel()
		return w.Put("b", "a", []byte("x"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update = %v in a context that ended as fn returned", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	var seen int
	err = s.View(ctx, func(r store.Reader) error {
		for range r.Scan("b", "") {
			seen++
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("View = %v after %d of 2, in a context that ended in Scan", err, seen)
	}
	for name, err := range map[string]error{
		"View":   s.View(ctx, func(store.Reader) error { return errBoom }),
		"Update": s.Update(ctx, func(store.Writer) error { return errBoom }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v in a context that has ended", name, err)
		}
	}
	wantDump(t, s, "a=1 b=2")
}

func testCancelledWaiting(t *testing.T, s store.Store) { testCancelledAcross(t, s, s) }

// testCancelledAcross ends the context of an Update by b that cannot go on
// because of one by a.
func testCancelledAcross(t *testing.T, a, b store.Store) {
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		testCancelledAfter(t, a, b, wait)
	}
}

func testCancelledAfter(t *testing.T, a, b store.Store, wait time.Duration) {
	update(t, a, func(w store.Writer) error {
		w.Put("b", "k", []byte("1"))
		look(w, "k")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error)
		go func() {
			done <- b.Update(ctx, func(w store.Writer) error { return w.Put("b", "k", []byte("2")) })
		}()
		if wait > 0 { // long enough for the Update to be waiting, as a rule
			<-time.After(wait)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Update = %v, waiting in a context that ended", err)
		}
		return nil
	})
	wantDump(t, b, "k=1")
}

func testLeaked(t *testing.T, s store.Store) {
	set(t, s, "k", "v")
	var r store.Reader
	var w store.Writer
	view(t, s, func(in store.Reader) error { r = in; return nil })
	update(t, s, func(in store.Writer) error { w = in; return nil })
	_, get := r.Get("b", "k")
	for name, err := range map[string]error{
		"Get": get, "Put": w.Put("b", "k", nil), "Delete": w.Delete("b", "k"),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after the end = %v, want ErrClosed", name, err)
		}
	}
	for k := range r.Scan("b", "") {
		t.Errorf("Scan after the end yields %q", k)
	}
	wantDump(t, s, "k=v")
}

func testClose(t *testing.T, s store.Store) {
	set(t, s, "k", "v")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	for name, err := range map[string]error{
		"View":   s.View(t.Context(), func(store.Reader) error { return errBoom }),
		"Update": s.Update(t.Context(), func(store.Writer) error { return errBoom }),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
}

func testCloseWaits(t *testing.T, s store.Store) {
	closed := make(chan error, 1)
	update(t, s, func(w store.Writer) error {
		go func() { closed <- s.Close() }()
		for s.View(t.Context(), func(store.Reader) error { return nil }) == nil {
			runtime.Gosched() // until Close has begun
		}
		select {
		case err := <-closed:
			t.Errorf("Close = %v during an Update", err)
		default:
		}
		return w.Put("b", "k", []byte("v"))
	})
	if err := <-closed; err != nil {
		t.Errorf("Close = %v", err)
	}
}
