package mcpbridge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/sqlite"
	"github.com/helve-ai/helve/tool"
)

// bigTool is a tool with a description and a schema of a usual size.
func bigTool(i int) *mcp.Tool {
	return &mcp.Tool{Name: fmt.Sprintf("list_items_%05d", i), Description: fmt.Sprintf("List the items of the collection %d, newest first, with the names of those who made them.", i),
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"owner":{"type":"string","description":"who owns collection %d"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"how many items are returned at most"},`+
			`"cursor":{"type":"string","description":"where to go on, as the last answer said"},`+
			`"state":{"type":"string","enum":["open","closed","all"],"description":"only those in this state"},`+
			`"labels":{"type":"array","items":{"type":"string"},"description":"only those with all of these labels"}},"required":["owner"]}`, i))}
}

// A farm is many servers over HTTP at one address, each with its own tools.
type farm struct {
	handlers map[string]http.Handler
	web      *httptest.Server
	ups      []mcpbridge.Upstream
	names    []string // of all tools
}

func newFarm(t testing.TB, servers, tools int) *farm {
	f := &farm{handlers: map[string]http.Handler{}}
	for i := range servers {
		name := fmt.Sprintf("s%02d", i)
		s := sdkServer(func(s *mcp.Server) {
			for j := range tools {
				s.AddTool(bigTool(i*tools+j), nil)
				f.names = append(f.names, fmt.Sprintf("mcp.%s.list_items_%05d", name, i*tools+j))
			}
		})
		f.handlers["/"+name] = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		f.ups = append(f.ups, mcpbridge.Upstream{Name: name})
	}
	f.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.handlers[r.URL.Path].ServeHTTP(w, r) }))
	t.Cleanup(func() {
		f.web.CloseClientConnections()
		f.web.Close()
	})
	for i := range f.ups {
		f.ups[i].URL = f.web.URL + "/" + f.ups[i].Name
	}
	return f
}

// index opens the servers before a search index, as an app does.
func (f *farm) index(t testing.TB, st store.Store) (*mcpbridge.Upstreams, *search.Index) {
	reg, ix := &tool.Registry{}, search.New(search.Options{})
	var indexed *tool.Set
	var mu sync.Mutex
	ups := mcpbridge.OpenUpstreams(t.Context(), f.ups, mcpbridge.UpstreamOptions{Store: st, Version: "test", Publish: func(owner string, tools ...*tool.Tool) error {
		if err := reg.Replace(owner, tools...); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if set := reg.Set(); set != indexed {
			ix.Sync(set)
			indexed = set
		}
		return nil
	}})
	ups.Wait(t.Context())
	return ups, ix
}

// BenchmarkStart measures the time until everything can be searched, of
// servers that must be asked (cold) and of those that are known (warm).
func BenchmarkStart(b *testing.B) {
	for _, size := range [][2]int{{1, 1000}, {1, 5000}, {50, 100}} {
		f := newFarm(b, size[0], size[1])
		for _, kind := range []string{"cold", "warm"} {
			b.Run(fmt.Sprintf("%s/%dx%d", kind, size[0], size[1]), func(b *testing.B) {
				st, err := sqlite.Open(b.Context(), b.TempDir()+"/x.db")
				if err != nil {
					b.Fatal(err)
				}
				defer st.Close()
				if kind == "warm" {
					ups, _ := f.index(b, st)
					ups.Close()
				}
				for b.Loop() {
					var from store.Store = st
					if kind == "cold" {
						from = new(mem.Store)
					}
					ups, ix := f.index(b, from)
					hits, err := ix.Search(b.Context(), search.Query{Text: "items of collection " + strings.TrimLeft(f.names[len(f.names)-1][len("mcp.s00.list_items_"):], "0")})
					if err != nil || len(hits) == 0 || ix.Len() != len(f.names) {
						b.Fatalf("%d hits of %d tools, %v", len(hits), ix.Len(), err)
					}
					b.StopTimer()
					ups.Close()
					b.StartTimer()
				}
			})
		}
	}
}
