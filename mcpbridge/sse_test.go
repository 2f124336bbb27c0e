package mcpbridge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// serveOld serves over the older transport of HTTP.
func serveOld(t testing.TB, s *mcp.Server, path string) mcpbridge.Upstream {
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" || r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodPost && r.URL.RawQuery == "" {
			http.Error(w, "no posts here", http.StatusMethodNotAllowed)
			return
		}
		sse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return mcpbridge.Upstream{Name: "old", URL: web.URL + path, Headers: map[string]string{"X-Key": "k"}, CallTimeout: 20 * time.Second}
}

func TestOldTransport(t *testing.T) {
	for _, path := range []string{"/sse", "/", "/mcp"} {
		s := offering("old", func(s *mcp.Server) { nopTool(s, "get_a") })
		h, g := gateway(t, nil, serveOld(t, s, path))
		if st := g.status(t); st.Tools != 1 || st.Error != "" || st.Protocol != "2025-11-25" {
			t.Fatalf("%s: the server is %+v", path, st)
		}
		g.ok(t, "mcp.old.get_a", `{}`, "get_a")
		if got := uris(t, h.pipe(t, "", nil, "")); len(got) != 5 {
			t.Errorf("%s: listed %q", path, got)
		}
		nopTool(s, "get_b") // its news come over the stream
		g.until(t, func(set *tool.Set) bool { _, b := set.Lookup("mcp.old.get_b"); return b })
	}
}

func TestNewTransportAtAnOldAddress(t *testing.T) {
	s := sdkServer(func(s *mcp.Server) { nopTool(s, "get_a") })
	mux := http.NewServeMux()
	mux.Handle("/sse", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	g := open(t, mcpbridge.Upstream{Name: "new", URL: web.URL + "/sse"})
	g.ok(t, "mcp.new.get_a", `{}`, "get_a")
}

// TestOldTransportIsBounded has streams that do not begin, lead elsewhere, or
// never end a message.
func TestOldTransportIsBounded(t *testing.T) {
	rows := map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		want  string
	}{
		"silent": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "not ready within"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "event: endpoint\ndata: http://127.0.0.1:1/post\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "is not the server's address"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "event: endpoint\ndata: ")
			for part := strings.Repeat("x", 1<<20); r.Context().Err() == nil; {
				fmt.Fprint(w, part)
			}
		}, "endpoint"},
	}
	for name, row := range rows {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			row.serve(w, r)
		}))
		up := mcpbridge.Upstream{Name: "old", URL: web.URL + "/sse", StartTimeout: 20 * time.Second}
		if name == "silent" {
			up.StartTimeout = 200 * time.Millisecond
		}
		g := open(t, up)
		if st := g.status(t); st.State != mcpbridge.Failed || !strings.Contains(st.Error, row.want) {
			t.Errorf("%s: %s, %q; want …%s…", name, st.State, st.Error, row.want)
		}
		g.ups.Close()
		web.CloseClientConnections()
		web.Close()
	}
}
