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

// addBig adds a tool with a description and a schema of a usual size.
func addBig(s *mcp.Server, i int) {
	s.AddTool(&mcp.Tool{Name: fmt.Sprintf("list_items_%05d", i), Description: fmt.Sprintf("List the items of the collection %d, newest first, with the names of those who made them.", i),
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"owner":{"type":"string","description":"who owns collection %d"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"how many items are returned at most"},`+
			`"cursor":{"type":"string","description":"where to go on, as the last answer said"},`+
			`"state":{"type":"string","enum":["open","closed","all"],"description":"only those in this state"},`+
			`"labels":{"type":"array","items":{"type":"string"},"description":"only those with all of these labels"}},"required":["owner"]}`, i))}, nil)
}

// A farm is many servers over HTTP at one address, each with its own tools.
type farm struct {
	handlers map[string]http.Handler
	web      *httptest.Server
	ups      []mcpbridge.Upstream
	names    []string // of all tools
}

func newFarm(t testing.TB, servers, tools int, add func(s *mcp.Server, i int)) *farm {
	f := &farm{handlers: map[string]http.Handler{}}
	for i := range servers {
		name := fmt.Sprintf("s%02d", i)
		s := sdkServer(func(s *mcp.Server) {
			for j := range tools {
				add(s, i*tools+j)
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

// A field is a registry and a search index, as an app has them.
type field struct {
	reg tool.Registry
	ix  *search.Index
	ups *mcpbridge.Upstreams

	mu      sync.Mutex
	indexed *tool.Set
}

func (f *field) publish(owner string, tools ...*tool.Tool) error {
	if err := f.reg.Replace(owner, tools...); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if set := f.reg.Set(); set != f.indexed {
		f.ix.Sync(set)
		f.indexed = set
	}
	return nil
}

// open waits until the tools of all servers are known.
func (f *farm) open(t testing.TB, st store.Store) *field {
	fd := &field{ix: search.New(search.Options{})}
	fd.ups = mcpbridge.OpenUpstreams(t.Context(), f.ups, mcpbridge.UpstreamOptions{Store: st, Version: "test", Publish: fd.publish})
	fd.ups.Wait(t.Context())
	return fd
}

// BenchmarkStart measures the time until everything can be searched, of
// servers that must be asked (cold) and of those that are known (warm).
func BenchmarkStart(b *testing.B) {
	for _, size := range [][2]int{{1, 1000}, {1, 5000}, {50, 100}} {
		f := newFarm(b, size[0], size[1], addBig)
		for _, kind := range []string{"cold", "warm"} {
			b.Run(fmt.Sprintf("%s/%dx%d", kind, size[0], size[1]), func(b *testing.B) {
				st, err := sqlite.Open(b.Context(), b.TempDir()+"/x.db")
				if err != nil {
					b.Fatal(err)
				}
				defer st.Close()
				if kind == "warm" {
					f.open(b, st).ups.Close()
				}
				for b.Loop() {
					var from store.Store = st
					if kind == "cold" {
						from = new(mem.Store)
					}
					fd := f.open(b, from)
					hits, err := fd.ix.Search(b.Context(), search.Query{Text: "items of collection " + strings.TrimLeft(f.names[len(f.names)-1][len("mcp.s00.list_items_"):], "0")})
					if err != nil || len(hits) == 0 || fd.ix.Len() != len(f.names) {
						b.Fatalf("%d hits of %d tools, %v", len(hits), fd.ix.Len(), err)
					}
					b.StopTimer()
					fd.ups.Close()
					b.StartTimer()
				}
			})
		}
	}
}
