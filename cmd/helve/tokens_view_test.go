package main

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"
)

// The discovery view, as an MCP client of the binary is sent it, costs less
// than 700 tokens (SPEC I8).
func TestDiscoveryViewIsSmall(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	d := serve(t, t.TempDir())
	list, err := d.mustAs(t, "", "/mcp/discovery", "2025-11-25").ListTools(t.Context(), &mcp.ListToolsParams{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(list.Tools)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(string(data))
	if err != nil || n >= 700 || len(list.Tools) < 5 {
		t.Errorf("%d tools cost %d tokens (error %v), want fewer than 700", len(list.Tools), n, err)
	}
	t.Logf("%d tools, %d tokens, %d bytes", len(list.Tools), n, len(data))
}
