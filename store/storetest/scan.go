package storetest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/helve-ai/helve/store"
)

func testOrder(t *testing.T, s store.Store) {
	keys := []string{"", "\x01", " ", "!", "-", "10", "9", "B", "B-", "Z", "_", "a", "a b", "aa", "ab", "a\u007f",
		"b", "ß", "ä", "é", "e\u0301", "ﬀ", "日本", "日", "\uffff", "😀", "\U0010ffff"}
	update(t, s, func(w store.Writer) error {
		for _, k := range slices.Backward(keys) {
			w.Put("b", k, []byte("v"))
		}
		return nil
	})
	slices.Sort(keys)
	view(t, s, func(r store.Reader) error {
		got := slices.Collect(first(r.Scan("b", "")))
		if !slices.Equal(got, keys) {
			t.Errorf("order is %q, want %q", got, keys)
		}
		return nil
	})
}

func first[K, V any](seq iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range seq {
			if !yield(k) {
				return
			}
		}
	}
}

func testPrefix(t *testing.T, s store.Store) {
	keys := []string{"", "%", "%a", "_", "_a", "a", "a%", "a%b", "a_", "a_b", "aXb", "A", "Ab", `\`, `\%`, `\a`, "*", "a*b",
		"a?b", "[a]", "a\u007f", "a\u007fz", "a\u0080", "\u00bf", "\u00bfx", "\u00c0", "é", "éa", "ê", "\U0010ffff", "\U0010ffffz"}
	update(t, s, func(w store.Writer) error {
		for _, k := range keys {
			w.Put("b", k, []byte("v"))
			w.Put("b2", k+"!", []byte("v"))
			w.Put("a", k+"!", []byte("v"))
		}
		return nil
	})
	slices.Sort(keys)
	view(t, s, func(r store.Reader) error {
		for _, prefix := range append([]string{"nothing has this", "a%bc"}, keys...) {
			var want []string
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			if got := slices.Collect(first(r.Scan("b", prefix))); !slices.Equal(got, want) {
				t.Errorf("Scan(%q) yields %q, want %q", prefix, got, want)
			}
		}
		return nil
	})
}

// fill puts n values, key 0000 to n-1, more than are read ahead.
func fill(t *testing.T, s store.Store, n int) {
	update(t, s, func(w store.Writer) error {
		for i := range n {
			w.Put("b", fmt.Sprintf("%04d", i), []byte(strconv.Itoa(i)))
		}
		return nil
	})
}

func testScanStopped(t *testing.T, s store.Store) {
	fill(t, s, 100)
	stop := func(r store.Reader) error {
		for range 50 { // more often than there are connections
			for k := range r.Scan("b", "") {
				if k == "0020" {
					break
				}
			}
		}
		if got := look(r, "0050"); got != "50" {
			t.Errorf("Get after a stopped Scan: %s", got)
		}
		again, n := r.Scan("b", ""), 0
		for range 2 {
			for range again {
				n++
			}
		}
		if n != 200 {
			t.Errorf("an iterator ranged over twice yields %d, want 2 times 100", n)
		}
		return nil
	}
	view(t, s, stop)
	update(t, s, func(w store.Writer) error { return stop(w) })
}

func testScanNested(t *testing.T, s store.Store) {
	fill(t, s, 40)
	nest := func(r store.Reader) error {
		n := 0
		for k, v := range r.Scan("b", "") {
			for k2 := range r.Scan("b", k[:3]) {
				n++
				if k2[3] == '7' {
					break
				}
			}
			if look(r, k) != string(v) {
				t.Errorf("Get of %s in Scan: %s", k, look(r, k))
			}
		}
		if n != 40*8 {
			t.Errorf("nested Scans yield %d, want %d", n, 40*8)
		}
		return nil
	}
	view(t, s, nest)
	update(t, s, func(w store.Writer) error { return nest(w) })
}

func testScanAndWrite(t *testing.T, s store.Store) {
	const n = 2500
	fill(t, s, n)
	update(t, s, func(w store.Writer) error {
		i := 0
		for k, v := range w.Scan("b", "") {
			if k != fmt.Sprintf("%04d", i) || string(v) != strconv.Itoa(i) {
				t.Fatalf("%dth of a Scan with writes is %s=%s", i, k, v)
			}
			switch i {
			case 3: // ahead, near and far: not seen by this loop
				w.Put("b", "0004", []byte("new"))
				w.Put("b", "0004a", []byte("new"))
				w.Delete("b", "0006")
				w.Put("b", "2400", []byte("new"))
				w.Put("b", "2400a", []byte("new"))
				w.Delete("b", "2450")
				w.Put("b", "9999", []byte("new"))
				if got := dump(w, "2400"); got != "2400=new 2400a=new" {
					t.Errorf("another Scan inside the loop sees %s", got)
				}
			case 10: // behind
				w.Put("b", "0000", []byte("new"))
				w.Delete("b", "0001")
			default:
				if i > 10 {
					w.Delete("b", k)
					w.Put("b", k+"+", v)
				}
			}
			i++
		}
		if i != n {
			t.Errorf("Scan with writes yields %d, want %d", i, n)
		}
		return nil
	})
	view(t, s, func(r store.Reader) error {
		if got, want := dump(r, "00000")+dump(r, "000"), "0000=new 0002=2 0003=3 0004=new 0004a=new 0005=5"; !strings.HasPrefix(got, want) {
			t.Errorf("after it: %.80s, want %s", got, want)
		}
		if got, want := dump(r, "24")[:40]+" "+dump(r, "9"), "2400+=2400 2400a=new 2401+=2401 2402+=24 9999=new"; got != want {
			t.Errorf("after it: %s, want %s", got, want)
		}
		return nil
	})
}

// testScanPulled steps two scans in turn, and ends them in the order they
// began, which loops cannot.
func testScanPulled(t *testing.T, s store.Store) {
	fill(t, s, 100)
	update(t, s, func(w store.Writer) error {
		next1, stop1 := iter.Pull2(w.Scan("b", ""))
		next2, stop2 := iter.Pull2(w.Scan("b", "00"))
		defer stop2()
		next1()
		next2()
		stop1()
		w.Delete("b", "0090")
		n := 1
		for _, _, ok := next2(); ok; _, _, ok = next2() {
			n++
		}
		if n != 100 {
			t.Errorf("the second of two Scans yields %d, want 100", n)
		}
		return nil
	})
}

func testScanBig(t *testing.T, s store.Store) {
	const n, size = 300, 20_000 // some pages of bytes
	update(t, s, func(w store.Writer) error {
		for i := range n {
			w.Put("b", fmt.Sprintf("%04d", i), []byte(strings.Repeat(string(rune('a'+i%26)), size)))
		}
		return nil
	})
	view(t, s, func(r store.Reader) error {
		i := 0
		for k, v := range r.Scan("b", "") {
			if k != fmt.Sprintf("%04d", i) || len(v) != size || v[size-1] != byte('a'+i%26) {
				t.Fatalf("%dth is %s with %d bytes", i, k, len(v))
			}
			i++
		}
		if i != n {
			t.Errorf("Scan yields %d, want %d", i, n)
		}
		return nil
	})
}

// testModel compares the store with a map, over random transactions.
func testModel(t *testing.T, s store.Store) {
	key := rapid.StringMatching(`[ab%é]{0,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		committed := map[string]string{}
		update(t, s, func(w store.Writer) error {
			for k := range w.Scan("b", "") {
				w.Delete("b", k)
			}
			return nil
		})
		for range rapid.IntRange(1, 4).Draw(rt, "transactions") {
			model := maps.Clone(committed)
			var result error
			err := s.Update(t.Context(), func(w store.Writer) error {
				model = maps.Clone(committed)
				for range rapid.IntRange(0, 8).Draw(rt, "steps") {
					step(rt, w, model, key)
				}
				if rapid.Bool().Draw(rt, "fails") {
					result = errBoom
				}
				return result
			})
			if err != result {
				rt.Fatalf("Update = %v, want %v", err, result)
			}
			if result == nil {
				committed = model
			}
			s.View(t.Context(), func(r store.Reader) error {
				compare(rt, r, committed, "")
				return nil
			})
		}
	})
}

// step does one random thing to the store and the model.
func step(t *rapid.T, w store.Writer, model map[string]string, key *rapid.Generator[string]) {
	change := func(label string) {
		k := key.Draw(t, label)
		if rapid.Bool().Draw(t, "delete") {
			w.Delete("b", k)
			delete(model, k)
			return
		}
		v := rapid.StringMatching(`[x-z]{0,2}`).Draw(t, "value")
		w.Put("b", k, []byte(v))
		model[k] = v
	}
	switch rapid.IntRange(0, 3).Draw(t, "step") {
	case 0, 1:
		change("key")
	case 2:
		compare(t, w, model, key.Draw(t, "prefix"))
	case 3: // a scan with changes in its loop sees the model of before
		prefix, before := key.Draw(t, "prefix"), maps.Clone(model)
		got := map[string]string{}
		for k, v := range w.Scan("b", prefix) {
			got[k] = string(v)
			change("key in scan")
		}
		maps.DeleteFunc(before, func(k, _ string) bool { return !strings.HasPrefix(k, prefix) })
		if !maps.Equal(got, before) {
			t.Fatalf("Scan(%q) with writes yields %q, want %q", prefix, got, before)
		}
	}
}

func compare(t *rapid.T, r store.Reader, model map[string]string, prefix string) {
	var want []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if strings.HasPrefix(k, prefix) {
			want = append(want, k+"="+model[k])
			if got := look(r, k); got != model[k] {
				t.Fatalf("Get(%q) = %q, want %q", k, got, model[k])
			}
		}
	}
	if got := dump(r, prefix); got != strings.Join(want, " ") {
		t.Fatalf("Scan(%q) yields %q, want %q", prefix, got, want)
	}
}
