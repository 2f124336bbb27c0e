package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Hints are said over MCP of an upstream's tools, and not where the app file
// turns them off.
func TestHintsOverMCP(t *testing.T) {
	films := mcp.NewServer(&mcp.Implementation{Name: "films", Version: "1"}, nil)
	for name, schema := range map[string]string{
		"search_movies": `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`,
		"movie_credits": `{"type":"object","properties":{"movieId":{"type":"string"}},"required":["movieId"]}`,
	} {
		films.AddTool(&mcp.Tool{Name: name, Description: "Of movies: " + name + ".", InputSchema: json.RawMessage(schema)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
	}
	url := theirHTTP(t, films)
	for hints, want := range map[bool]int{true: 1, false: 0} {
		modules := object{"modules": object{"discovery": object{"config": object{"hints": hints}}}}
		dir := folder(t, "app.yaml", serversApp(t, object{"film": object{"url": url}}, modules))
		s := stdio(t, dir, "--app", "app.yaml")
		got := call(t, s, "search_tools", object{"query": "movie credits"})
		if got.IsError || !strings.Contains(got.Text, "mcp.film.movie_credits") ||
			strings.Count(got.Text, `"before":["mcp.film.search_movies"]`) != want || strings.Count(got.Text, `"after":["mcp.film.movie_credits"]`) != want {
			t.Errorf("hints: %v: %s", hints, got.Text)
		}
	}
}
