package filesystem_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/filesystem"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// Behind all the standard stages, the tools' effects decide what runs unasked,
// and the module's constraints win over a grant.
func TestStandardStages(t *testing.T) {
	r, err := root.Open(open(t, "", map[string]string{"docs/a": "A", "src/a": "A"}).dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ts, err := filesystem.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Root: r}, json.RawMessage(`{"constraints": {"paths": ["docs/**"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	grant := &guard.Rule{Module: "filesystem", Actions: []string{"append", "read"}}
	rules := &guard.Rules{Grant: []*guard.Rule{grant}, Module: func(*tool.Call) guard.Policy { return ts.Judge }}
	ex := pipeline.New(&reg, guard.Standard(guard.Options{Log: slog.New(slog.DiscardHandler), Tools: &reg, Root: r, Policies: []guard.Policy{rules.Judge}})...)
	for _, test := range []struct {
		name, args string
		code       tool.Code
		decision   string
	}{
		{"filesystem.list", `{"path":"docs"}`, "", "allow"},
		{"filesystem.append", `{"path":"docs/log","content":"x"}`, "", "allow"},
		{"filesystem.write", `{"path":"docs/b","content":""}`, tool.CodeDenied, "ask"},
		{"filesystem.append", `{"path":"src/log","content":"x"}`, tool.CodePermission, "deny"},
		{"filesystem.read", `{"path":"src/a"}`, tool.CodePermission, "deny"},
		{"filesystem.read", `{"path":"../src/a"}`, tool.CodePermission, "deny"},
	} {
		call := &tool.Call{Name: test.name, Args: json.RawMessage(test.args)}
		if x := ex.Explain(context.Background(), call); x.Decision != test.decision {
			t.Errorf("%s %s: explained as %s (%s), want %s", test.name, test.args, x.Decision, x.Reason, test.decision)
		}
		res, err := ex.Do(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if test.code == "" && res.Err != nil || test.code != "" && (res.Err == nil || res.Err.Code != test.code) {
			t.Errorf("%s %s: %v, want code %q", test.name, test.args, res.Err, test.code)
		}
		if test.decision == "deny" && strings.HasPrefix(test.args, `{"path":"src`) && !strings.Contains(res.Err.Message, "docs/**") {
			t.Errorf("%s %s: %v does not say what may be used", test.name, test.args, res.Err)
		}
	}
}
