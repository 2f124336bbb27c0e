package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Servers are reached by the proxy of the environment, but for those of this
// machine and those that it excepts.
func TestServersByProxy(t *testing.T) {
	theirs := func(said string) http.Handler {
		s := theirServer()
		addTool(s, "get_it", anything, func(context.Context, json.RawMessage) string { return said })
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	var asked atomic.Int32
	far := theirs("from far")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "tools.example" || r.Header.Get("X-Key") != "k" {
			http.Error(w, "not by this way: "+r.URL.String(), http.StatusBadGateway)
			return
		}
		asked.Add(1)
		r.Host = "localhost" // the library refuses other names on this address
		far.ServeHTTP(w, r)
	}))
	near := httptest.NewServer(theirs("from near"))
	t.Cleanup(func() {
		for _, web := range []*httptest.Server{proxy, near} {
			web.CloseClientConnections()
			web.Close()
		}
	})
	dir := folder(t, "app.yaml", serversApp(t, object{"far": object{"url": "http://tools.example/mcp", "headers": object{"X-Key": "k"}}, "near": object{"url": near.URL}},
		object{"capabilities": object{"grant": []any{"mcp.*"}}}))
	d := serveEnv(t, dir, []string{"HTTP_PROXY=" + proxy.URL}, "--app", "app.yaml")
	s := d.connect(t, "/mcp/full")
	for name, want := range map[string]string{"mcp.far.get_it": "from far", "mcp.near.get_it": "from near"} {
		for range 3 {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			if err != nil || res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, want) {
				t.Fatalf("%s: %v %+v", name, err, res)
			}
		}
	}
	if asked.Load() < 4 {
		t.Errorf("the proxy was asked %d times", asked.Load())
	}
}
