package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

func step(name, doc, in, out string) *tool.Tool {
	t := &tool.Tool{Definition: tool.Definition{Name: name, Description: doc, Effect: tool.Reads, Input: schema.Must(in)},
		Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text("{}"), nil }}
	if out != "" {
		t.Output = schema.Must(out)
	}
	return t
}

func needing(params ...string) string {
	var props []string
	for _, p := range params {
		props = append(props, fmt.Sprintf("%q:{}", p))
	}
	required, _ := json.Marshal(params)
	return `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":` + string(required) + `}`
}

// films is a module whose tools follow on each other.
func films() []*tool.Tool {
	return []*tool.Tool{
		step("mcp.film.search_movies", "Search movies by title.", needing("title"), ""),
		step("mcp.film.movie_credits", "Credits: who acts in a movie.", needing("movieId"),
			`{"type":"object","properties":{"cast":{"type":"array","items":{"type":"object","properties":{"person_id":{"type":"integer"}}}},"movie_id":{}}}`),
		step("mcp.film.biography", "Tell the life of an actor.", needing("person_id"), ""),
		step("mcp.film.share", "Share a link.", `{"type":"object","properties":{"movie_id":{}}}`, ""), // it may do without
		step("mcp.other.list_movies", "List the movies of another service.", needing(), ""),
		step("gem.search_movies", "Search movies secretly.", needing("title"), ""),
	}
}

type hinted struct {
	Tools []struct {
		Name          string
		Before, After []string
	}
}

func lookFor(t *testing.T, h *house, args string) (hinted, string) {
	t.Helper()
	res := h.do(t, "search_tools", args)
	var a hinted
	if err := json.Unmarshal([]byte(res.JoinText()), &a); err != nil {
		t.Fatalf("%s: %v", res.JoinText(), err)
	}
	return a, res.JoinText()
}

// A hit names the tools of its module that give what it needs, and those that
// need what it gives.
func TestBeforeAndAfter(t *testing.T) {
	h := build(t, hiding(), films()...)
	a, text := lookFor(t, h, `{"query":"movie credits"}`)
	want := "{mcp.film.movie_credits [mcp.film.search_movies] [mcp.film.biography]}"
	if len(a.Tools) == 0 || fmt.Sprint(a.Tools[0]) != want {
		t.Errorf("%s, want first %s", text, want)
	}
	if strings.Contains(text, "gem.") {
		t.Errorf("a hidden tool is named: %s", text)
	}
	for _, tl := range a.Tools {
		if tl.Name == "mcp.film.share" && len(tl.Before) > 0 {
			t.Errorf("what is not required: %v", tl)
		}
	}
	hidden := &guard.Rules{Hidden: []*guard.Rule{{Pattern: "mcp.film.search_movies"}, {Pattern: "mcp.film.biography"}}}
	if _, text := lookFor(t, build(t, hidden, films()...), `{"query":"movie credits"}`); strings.Contains(text, "film.search_movies") || strings.Contains(text, "biography") {
		t.Errorf("hidden tools are named: %s", text)
	}
	if _, text := lookFor(t, h, `{"query":"movie credits","detail":"summary"}`); !strings.Contains(text, `"before"`) {
		t.Errorf("by summary: %s", text)
	}
}

// Hints cost at most 60 tokens an answer.
func TestHintsAreBounded(t *testing.T) {
	var tools []*tool.Tool
	for i := range 12 {
		noun := fmt.Sprintf("calendar_attachment_%c", 'a'+i)
		tools = append(tools,
			step("mcp.cal.search_"+noun, "Search.", needing("text"), ""),
			step("mcp.cal.find_"+noun, "Find.", needing("text"), ""),
			step(fmt.Sprintf("mcp.cal.delete_%c", 'a'+i), "Delete an attachment of the calendar.", needing(noun+"_id"), ""))
	}
	h := build(t, &guard.Rules{}, tools...)
	a, text := lookFor(t, h, `{"query":"delete an attachment of the calendar"}`)
	var without struct {
		Tools []map[string]any `json:"tools"`
		Hint  string           `json:"hint"`
	}
	if err := json.Unmarshal([]byte(text), &without); err != nil {
		t.Fatal(err)
	}
	for _, tl := range without.Tools {
		delete(tl, "before")
		delete(tl, "after")
	}
	plain, err := tool.Encode(without)
	if err != nil {
		t.Fatal(err)
	}
	cost := tokensOf(t, text) - tokensOf(t, string(plain))
	if len(a.Tools[0].Before) == 0 || cost > 60 {
		t.Errorf("hints cost %d tokens: %s", cost, text)
	}
	t.Logf("hints cost %d tokens", cost)
}
