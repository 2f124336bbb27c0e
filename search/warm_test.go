package search_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// copies returns the same tools under new pointers, as another process has them.
func copies(tools []*tool.Tool) []*tool.Tool {
	var out []*tool.Tool
	for _, t := range tools {
		c := *t
		out = append(out, &c)
	}
	return out
}

var asked = []string{"where is the shipment in hooli", "get rid of a payment", "wether photo", "supprimer un contrat", "m7.spin", "mcp.acme.add_order", "删除照片", "qwxyz"}

func same(t *testing.T, want, got *search.Index) {
	t.Helper()
	if want.Len() != got.Len() {
		t.Fatalf("%d tools, want %d", got.Len(), want.Len())
	}
	for _, text := range asked {
		q := search.Query{Text: text, Limit: 30, Explain: true}
		if diff := cmp.Diff(answers(t, want, q), answers(t, got, q)); diff != "" {
			t.Fatalf("%q (-analysed +primed):\n%s", text, diff)
		}
	}
}

// An index that takes over what another has exported answers as if it had
// analysed the tools itself, however they come, and whatever has changed.
func TestPrime(t *testing.T) {
	tools, _ := synthetic(600)
	first := search.New(search.Options{})
	first.Sync(registered(t, tools...))
	data := first.Export()

	changed := *tools[5]
	changed.Description = "Spin a wheel."
	added := made(tool.Definition{Name: "m7.spin", Description: "Turn round."})
	for name, steps := range map[string][][]*tool.Tool{
		"the same":        {copies(tools)},
		"in parts":        {copies(tools[:50]), copies(tools[:300]), copies(tools)},
		"fewer":           {copies(tools[200:])},
		"changed":         {append(append(copies(tools[:5]), &changed, added), copies(tools[7:])...)},
		"gone and back":   {copies(tools), copies(tools[:100]), copies(tools)},
		"none of them":    {{added}},
		"others at first": {{added}, append(copies(tools), added)},
	} {
		t.Run(name, func(t *testing.T) {
			primed := search.New(search.Options{})
			if err := primed.Prime(data); err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				set := registered(t, step...)
				fresh := search.New(search.Options{})
				fresh.Sync(set)
				primed.Sync(set)
				same(t, fresh, primed)
			}
			before := answers(t, primed, search.Query{Text: asked[0], Limit: 30})
			primed.Settle()
			if diff := cmp.Diff(before, answers(t, primed, search.Query{Text: asked[0], Limit: 30})); diff != "" {
				t.Errorf("Settle changes answers:\n%s", diff)
			}
			again := search.New(search.Options{})
			if err := again.Prime(primed.Export()); err != nil {
				t.Fatal(err)
			}
			again.Sync(registered(t, steps[len(steps)-1]...))
			same(t, primed, again)
		})
	}
}

func TestPrimeRefuses(t *testing.T) {
	first := index(t, house()...)
	data := first.Export()
	var w search.Weights
	if err := w.Set("field.name", 9); err != nil {
		t.Fatal(err)
	}
	if err := search.New(search.Options{Weights: &w}).Prime(data); !errors.Is(err, search.ErrStale) {
		t.Errorf("other weights: %v", err)
	}
	if err := w.Set("field.name", 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Set("word.soft", .9); err != nil {
		t.Fatal(err)
	}
	if err := search.New(search.Options{Weights: &w}).Prime(data); err != nil {
		t.Errorf("weights that change nothing of what is indexed: %v", err)
	}
	for n := range len(data) {
		if err := search.New(search.Options{}).Prime(data[:n]); err == nil {
			t.Fatalf("the first %d bytes of %d are taken", n, len(data))
		}
	}
	if got := search.New(search.Options{}).Export(); got != nil {
		t.Errorf("an empty index exports %d bytes", len(got))
	}
}

// Bytes that were changed are refused, or if their checksum was made to fit,
// do no harm.
func TestPrimeDamaged(t *testing.T) {
	held := set(t, house()...)
	first := search.New(search.Options{})
	first.Sync(held)
	data := first.Export()
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for i := range 3000 {
		bad := append([]byte(nil), data...)
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(bad) - 4)
			if i%2 == 0 {
				at = min(at, 40+rng.IntN(400))
			}
			bad[at] = byte(rng.IntN(256))
		}
		if string(bad) == string(data) {
			continue
		}
		if err := search.New(search.Options{}).Prime(bad); err == nil {
			t.Fatal("bytes with a wrong checksum are taken")
		}
		sum := crc32.Checksum(bad[:len(bad)-4], crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(bad[len(bad)-4:], sum)
		ix := search.New(search.Options{})
		if ix.Prime(bad) != nil {
			continue
		}
		taken++
		ix.Sync(held)
		for _, text := range asked {
			find(t, ix, text)
		}
		ix.Settle()
		find(t, ix, "wheather")
	}
	if taken == 0 {
		t.Error("none of them came so far as to be searched")
	}
}

func BenchmarkPrime5000(b *testing.B) {
	eachCatalogue(b, 5000, func(b *testing.B, tools []*tool.Tool, _ []string) {
		first := search.New(search.Options{})
		first.Sync(registered(b, tools...))
		data := first.Export()
		set := registered(b, copies(tools)...)
		b.ReportMetric(float64(len(data))/float64(len(tools)), "B/tool")
		for b.Loop() {
			ix := search.New(search.Options{})
			if err := ix.Prime(data); err != nil {
				b.Fatal(err)
			}
			ix.Sync(set)
			if ix.Len() != len(tools) {
				b.Fatal(fmt.Sprint(ix.Len(), " tools"))
			}
		}
	})
}
