package search_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

// Tools that are alike but for what they do are in the order of what was asked.
func TestFindsWhatDoesAsAsked(t *testing.T) {
	defs := []tool.Definition{
		{Name: "a.create_meeting", Description: "A meeting of the calendar."},
		{Name: "b.red_meeting", Description: "A meeting of the calendar."},
		{Name: "c.find_meeting", Description: "A meeting of the calendar."},
	}
	for i := range 20 {
		defs = append(defs, tool.Definition{Name: fmt.Sprintf("d.brown_fox%d", i), Description: "A fox."})
	}
	ix := index(t, defs...)
	byName := []string{"a.create_meeting", "b.red_meeting", "c.find_meeting"}
	toKnow := []string{"c.find_meeting", "b.red_meeting", "a.create_meeting"}
	for query, want := range map[string][]string{
		"meeting":                byName,
		"delete the meeting":     {"b.red_meeting", "a.create_meeting", "c.find_meeting"},
		"what meeting do I have": toKnow,
		"quel meeting demain":    toKnow,
		"welches Meeting ist es": toKnow,
		"我今天有什么meeting":          toKnow,
		"meeting は何時":            toKnow,
	} {
		if got := names(find(t, ix, query)); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
}

func TestExplainsWhatDoesOtherwise(t *testing.T) {
	ix := index(t,
		tool.Definition{Name: "a.create_meeting", Description: "A meeting."},
		tool.Definition{Name: "b.delete_meeting", Description: "A meeting."},
		tool.Definition{Name: "c.brown_fox", Description: "A fox."},
	)
	hits, err := ix.Search(context.Background(), search.Query{Text: "delete the meeting", Explain: true})
	if err != nil || len(hits) != 2 {
		t.Fatal(hits, err)
	}
	for _, h := range hits {
		less := slices.ContainsFunc(h.Parts, func(p search.Part) bool { return p.Channel == "does otherwise" && p.Score < 0 })
		if less != (h.Tool.Name == "a.create_meeting") {
			t.Errorf("%s: %v", h.Tool.Name, h.Parts)
		}
	}
}
