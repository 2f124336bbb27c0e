package results_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/results"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

func TestCutResultsAreRecovered(t *testing.T) {
	var reg tool.Registry
	s := new(mem.Store)
	ts, err := results.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Store: s, Now: time.Now}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Repeat("0123456789", 3000) + "Needle é here" + strings.Repeat("x", 5000)
	long := tool.New(tool.Definition{Name: "x.long", Description: "x", Effect: tool.Reads}, func(context.Context, struct{}) (string, error) { return whole, nil })
	if err := reg.Add(append(ts.Tools, long)...); err != nil {
		t.Fatal(err)
	}
	rules := new(guard.Rules)
	ex := pipeline.New(&reg, guard.Standard(guard.Options{Tools: &reg, Policies: []guard.Policy{rules.Judge}, Spill: s})...)
	do := func(session, name string, args map[string]any) *tool.Result {
		t.Helper()
		raw, _ := json.Marshal(args)
		res, err := ex.Do(t.Context(), &tool.Call{Name: name, Args: raw, From: tool.Origin{Session: session}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	cut := do("a", "x.long", nil).JoinText()
	_, rest, found := strings.Cut(cut, `{"id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	if !found || id == "" {
		t.Fatalf("no id in %q", cut)
	}

	// All parts, one after the other, are the whole.
	var got strings.Builder
	for offset := 0; offset < len([]rune(whole)); offset += 9000 {
		part := do("a", "results.read", map[string]any{"id": id, "offset": offset}).JoinText()
		i := strings.LastIndex(part, "\n[characters ")
		if i < 0 {
			t.Fatalf("at %d: %q", offset, part)
		}
		got.WriteString(part[:i])
	}
	if got.String() != whole {
		t.Errorf("%d bytes came back of %d", got.Len(), len(whole))
	}
	if part := do("a", "results.read", map[string]any{"id": id, "search": "needle É"}).JoinText(); !strings.Contains(part, "[at character 30000]") || !strings.Contains(part, "1 places") {
		t.Errorf("search: %q", part)
	}
	for name, bad := range map[string]*tool.Result{
		"another session": do("b", "results.read", map[string]any{"id": id}),
		"unknown id":      do("a", "results.read", map[string]any{"id": "r_nope"}),
		"beyond the end":  do("a", "results.read", map[string]any{"id": id, "offset": 1_000_000}),
	} {
		if bad.Err == nil {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}
