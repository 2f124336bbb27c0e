package app_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

func TestLongCalls(t *testing.T) {
	open := func(c *app.Config) mcpbridge.LongCalls {
		t.Helper()
		a, err := app.Open(t.Context(), app.Options{Config: c, Modules: std.Modules(), Root: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a.LongCalls()
	}
	l := open(app.Default())
	if l.After != 10*time.Second || l.Report != 5*time.Second || l.Keep != time.Hour || l.As != nil {
		t.Errorf("by default: %+v", l)
	}
	l = open(parse(t, `runtime: {long_calls: {after: 0, report: 0, keep: 60, at_once: [http.get, "workspace.*"]}}`))
	if l.After >= 0 || l.Report >= 0 || l.Keep != time.Minute {
		t.Errorf("turned off: %+v", l)
	}
	for _, row := range []struct {
		name, args string
		want       mcpbridge.AsTask
	}{
		{"http.get", `{}`, mcpbridge.AtOnce},
		{"http__get", `{}`, mcpbridge.AtOnce},
		{"workspace.read", `{}`, mcpbridge.AtOnce},
		{"filesystem.read", `{}`, mcpbridge.WhenLong},
		{"no.such", `{}`, mcpbridge.WhenLong},
		{"execute_tool", `{"name":"http.get","params":{}}`, mcpbridge.AtOnce},
		{"execute_tool", `{"name":"filesystem.read","params":{}}`, mcpbridge.WhenLong},
		{"run_parallel", `{"actions":[{"name":"filesystem.read"},{"name":"http.get"}]}`, mcpbridge.AtOnce},
		{"run_parallel", `not JSON`, mcpbridge.WhenLong},
	} {
		if got := l.As(&tool.Call{Name: row.name, Args: json.RawMessage(row.args)}); got != row.want {
			t.Errorf("%s %s: %d, want %d", row.name, row.args, got, row.want)
		}
	}
}
