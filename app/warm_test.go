package app

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// What search made of the tools is kept, and taken over by the next process;
// what is damaged is told of, and search works without.
func TestIndexIsKept(t *testing.T) {
	reg := new(tool.Registry)
	if err := reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather.", Effect: tool.Reads},
		func(context.Context, struct{}) (string, error) { return "", nil })); err != nil {
		t.Fatal(err)
	}
	kept := new(mem.Store)
	ix := search.New(search.Options{})
	ix.Sync(reg.Set())
	w := &warmth{store: store.Sub(kept, "mcp")}
	if err := w.keep(ix); err != nil {
		t.Fatal(err)
	}
	prime := func() (*App, string) {
		var log bytes.Buffer
		a := &App{Config: &Config{}, Store: kept, manifests: kept, index: search.New(search.Options{}), log: slog.New(slog.NewTextHandler(&log, nil))}
		a.Config.Tools.MCPServers = map[string]MCPServer{"x": {}}
		if err := a.primeIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-a.warmth.ready
		a.index.Sync(reg.Set())
		hits, err := a.index.Search(t.Context(), search.Query{Text: "weather"})
		if err != nil || len(hits) != 1 {
			t.Errorf("%d hits, error %v", len(hits), err)
		}
		return a, log.String()
	}
	a, log := prime()
	if log != "" || a.warmth.had != w.had {
		t.Errorf("what was kept is not what is taken over; log %q", log)
	}
	if err := store.Sub(kept, "mcp").Update(t.Context(), func(tx store.Writer) error { return tx.Put(warmBucket, warmKey, []byte("rubbish")) }); err != nil {
		t.Fatal(err)
	}
	if _, log = prime(); !strings.Contains(log, "cannot be used") {
		t.Errorf("nobody is told that what was kept is damaged: %q", log)
	}
}

// An app that is closed before its tools have rested keeps what search made of
// them, too: a gateway that a client starts for a moment helps the next start.
func TestIndexIsKeptByTheHasty(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "now", Description: "Tell the weather."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	cfg := Default()
	cfg.Tools.MCPServers = map[string]MCPServer{"sky": {URL: web.URL}}
	state := t.TempDir()
	open := func() *App {
		t.Helper()
		a, err := Open(t.Context(), Options{Config: cfg, Root: t.TempDir(), State: state})
		if err != nil {
			t.Fatal(err)
		}
		a.ups.Wait(t.Context())
		return a
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	a := open()
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-a.warmth.ready
	if a.warmth.had == [len(a.warmth.had)]byte{} {
		t.Error("the second start found nothing kept")
	}
}
