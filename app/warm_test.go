package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

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
	if err := w.keep(t.Context(), ix); err != nil {
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
