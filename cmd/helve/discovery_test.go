package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

func tokensOf(t testing.TB, text string) int {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		t.Fatal(err)
	}
	ids, _, err := codec.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

// What the discovery view costs over MCP, as it stands on the wire (SPEC I8).
func TestDiscoveryCostsLittleOverMCP(t *testing.T) {
	d := serve(t, folder(t))
	_, text, _ := post(t, d.URL+"/mcp/discovery", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var list struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Result.Tools) < 6 {
		t.Fatalf("tools/list: %v %s", err, text)
	}
	if n := tokensOf(t, text); n >= 700 {
		t.Errorf("the listing of %d tools costs %d tokens: %s", len(list.Result.Tools), n, text)
	} else {
		t.Logf("the listing of %d tools costs %d tokens", len(list.Result.Tools), n)
		told := fmt.Sprintf("about %d tokens", (n+5)/10*10)
		for _, page := range []string{"../../README.md", "../../docs/performance.md"} {
			if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), told) {
				t.Errorf("%s does not say that the discovery view costs %s (error %v)", page, told, err)
			}
		}
	}
	s, before := d.connect(t, "/mcp/discovery"), 0
	for _, by := range []string{"name", "summary", "schema"} {
		got := call(t, s, "search_tools", object{"query": "read a text file", "detail": by})
		n := tokensOf(t, got.Text)
		if got.IsError || !strings.Contains(got.Text, "filesystem.read") || n <= before || by == "summary" && n >= 1000 {
			t.Errorf("by %s, %d tokens: %s", by, n, got.Text)
		}
		before = n
	}
}
