package search_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

var syllables = []string{"read", "write", "file", "mail", "send", "weather", "photo", "wheather", "lösche", "文件", "下载", "погода", "deleting", "deleted", "flies", "zorb"}

// anyTool draws a tool with a name out of few, so that tools come, go and change.
func anyTool(t *rapid.T) *tool.Tool {
	word := rapid.SampledFrom(syllables)
	words := func(label string, most int) string {
		var out string
		for _, w := range rapid.SliceOfN(word, 0, most).Draw(t, label) {
			out += w + " "
		}
		return out
	}
	return made(tool.Definition{
		Name:        fmt.Sprintf("m%d.t%d", rapid.IntRange(0, 3).Draw(t, "module"), rapid.IntRange(0, 15).Draw(t, "name")),
		Description: words("description", 6) + "x", Tags: []string{words("tags", 2)}, Title: words("title", 2),
	})
}

type answer struct {
	Name  string
	Score float64
	Why   string
}

func answers(t testing.TB, ix *search.Index, q search.Query) []answer {
	t.Helper()
	hits, err := ix.Search(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out []answer
	for _, h := range hits {
		out = append(out, answer{h.Tool.Name, h.Score, h.Why})
	}
	return out
}

// Whatever came before, an index answers like a new one of the same set.
func TestIncremental(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		old := search.New(search.Options{})
		now := map[string]*tool.Tool{}
		for range rapid.IntRange(1, 8).Draw(rt, "syncs") {
			for range rapid.IntRange(0, 12).Draw(rt, "changes") {
				x := anyTool(rt)
				if _, there := now[x.Name]; there && rapid.Bool().Draw(rt, "remove") {
					delete(now, x.Name)
				} else {
					now[x.Name] = x
				}
			}
			var tools []*tool.Tool
			for _, x := range now {
				tools = append(tools, x)
			}
			held := registered(t, tools...)
			old.Sync(held)
			fresh := search.New(search.Options{})
			fresh.Sync(held)
			if old.Len() != fresh.Len() || old.Len() != len(now) {
				rt.Fatalf("%d tools, want %d", old.Len(), fresh.Len())
			}
			for _, text := range []string{"read a file", "wether photo", "dele", "下载文件", "погоду", "m1.t3", "zorbing the flie", "fly"} {
				q := search.Query{Text: text, Limit: 100, Explain: true}
				if diff := cmp.Diff(answers(t, fresh, q), answers(t, old, q)); diff != "" {
					rt.Fatalf("%q (-fresh +incremental):\n%s", text, diff)
				}
			}
		}
	})
}

// Searches see the set before or the set after a Sync, never something between.
func TestSearchDuringSync(t *testing.T) {
	var sets [2]*tool.Set
	for i := range sets {
		var defs []tool.Definition
		for j := range 300 {
			defs = append(defs, tool.Definition{Name: fmt.Sprintf("m.t%d", j), Description: fmt.Sprintf("Spin the wheel of edition%d.", i)})
		}
		sets[i] = set(t, defs...)
	}
	ix := search.New(search.Options{})
	ix.Sync(sets[0])
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				hits, err := ix.Search(context.Background(), search.Query{Text: "spin the wheel", Limit: 1000})
				if err != nil || len(hits) != 300 {
					t.Errorf("%d hits, %v", len(hits), err)
					return
				}
				for _, h := range hits {
					if h.Tool.Description != hits[0].Tool.Description {
						t.Errorf("hits of both sets")
						return
					}
				}
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 20 {
				ix.Sync(sets[(i+w)%2])
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestSyncKeepsTheUnchanged(t *testing.T) {
	tools, _ := synthetic(2000)
	var reg tool.Registry
	if err := reg.Replace("all", tools...); err != nil {
		t.Fatal(err)
	}
	ix := search.New(search.Options{})
	ix.Sync(reg.Set())
	changed := *tools[0]
	changed.Description = "Teach a parrot to whistle."
	if err := reg.Replace("all", append([]*tool.Tool{&changed}, tools[1:]...)...); err != nil {
		t.Fatal(err)
	}
	whole := testing.AllocsPerRun(1, func() { search.New(search.Options{}).Sync(reg.Set()) })
	one := testing.AllocsPerRun(1, func() { ix.Sync(reg.Set()) })
	if one > whole/20 {
		t.Errorf("%v allocations for one changed tool, %v for all", one, whole)
	}
	if hits := find(t, ix, "parrot"); len(hits) != 1 || hits[0].Tool != &changed {
		t.Errorf("found %v", names(hits))
	}
	ix.Sync(&tool.Set{})
	if hits := find(t, ix, "parrot"); len(hits) != 0 || ix.Len() != 0 {
		t.Errorf("an emptied index finds %v", names(hits))
	}
}
