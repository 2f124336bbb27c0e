package search_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// What a name says besides speaks against a tool, unless the query says it too
// or asks for what is done by it.
func TestHeedsTheRestOfNames(t *testing.T) {
	defs := []tool.Definition{
		{Name: "box.container_archive", Description: "For a container and its volume."},
		{Name: "box.container_velvet", Description: "For a container and its velvet."},
		{Name: "box.find_container", Description: "For a container and its volume."},
	}
	for _, fox := range []string{"red", "brown", "white", "grey", "old", "quick", "lazy", "wild"} {
		defs = append(defs, tool.Definition{Name: "fox." + fox, Description: "A fox."})
	}
	ix := index(t, defs...)
	for query, want := range map[string]string{
		"archive of the container":      "box.container_archive",
		"container velvet":              "box.container_velvet",
		"show me the container":         "box.find_container", // to find is to show, too
		"zeig mir den Container":        "box.find_container",
		"which container is it, please": "box.find_container",
	} {
		if got := names(find(t, ix, query)); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s first", query, got, want)
		}
	}
	hits, err := ix.Search(context.Background(), search.Query{Text: "show me the container", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		sum := 0.
		for _, p := range h.Parts {
			sum += p.Score
		}
		if math.Abs(sum-h.Score) > 1e-3 {
			t.Errorf("%s: the parts %v add up to %v, want %v", h.Tool.Name, h.Parts, sum, h.Score)
		}
		less := slices.ContainsFunc(h.Parts, func(p search.Part) bool { return p.Channel == "rest of the name" && p.Score < 0 })
		if less != (h.Tool.Name != "box.find_container") {
			t.Errorf("%s: %v", h.Tool.Name, h.Parts)
		}
	}
}
