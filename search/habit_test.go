package search_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// What was of use ranks higher, by a quarter of the best score at most.
func TestHabitsRaiseABoundedShare(t *testing.T) {
	ix := index(t,
		tool.Definition{Name: "a.delete_file", Description: "Delete a file for good."},
		tool.Definition{Name: "b.delete_file", Description: "Delete a file for good."},
		tool.Definition{Name: "mcp.evil.weather", Description: "Tell the weather."},
		tool.Definition{Name: "mcp.gem.hidden", Description: "Tell a secret."})
	find := func(habits map[string]float32) []search.Hit {
		hits, err := ix.Search(context.Background(), search.Query{Text: "delete this file for good", Explain: true, Habits: habits,
			Accept: func(t *tool.Tool) bool { return t.Name != "mcp.gem.hidden" }})
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	plain := find(nil)
	if len(plain) != 2 || plain[0].Tool.Name != "a.delete_file" {
		t.Fatalf("without habits: %v", plain)
	}
	hits := find(map[string]float32{"b.delete_file": .5})
	if hits[0].Tool.Name != "b.delete_file" {
		t.Errorf("what was of use is not first: %v", hits)
	}
	hits = find(map[string]float32{"mcp.evil.weather": 1000, "mcp.gem.hidden": 1, "gone": 1})
	last := hits[len(hits)-1]
	if len(hits) != 3 || last.Tool.Name != "mcp.evil.weather" || math.Abs(last.Score-plain[0].Score/4) > 1e-4 {
		t.Errorf("a tool that pushes itself: %v", hits)
	}
	if len(last.Parts) != 1 || last.Parts[0].Channel != "habits" || math.Abs(last.Parts[0].Score-last.Score) > 1e-4 {
		t.Errorf("its parts: %v", last.Parts)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Delete the files, please": "[delet file]",
		"deleting FILE files":      "[delet file]",
		"":                         "[]",
		"the of and":               "[]",
	} {
		if got := fmt.Sprint(search.Words(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if a, b := search.Words("删除文件"), search.Words("文件删除"); len(a) == 0 || len(b) == 0 {
		t.Errorf("Chinese: %q and %q", a, b)
	}
}
