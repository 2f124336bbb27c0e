package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

// What an agent's profile lacks is invisible, and refused at dispatch, on
// every way (SPEC T5).
func TestProfilesBindAtDispatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "app.yaml")
	text := `
app: {app_id: demo, name: Demo}
agents:
- {id: reader, brain: {backend: script}, profile: [read]}
- {id: editor, brain: {backend: script}, profile: [read, edit, "-filesystem.delete"]}
- {id: lister, brain: {backend: script}, profile: [web, "+filesystem.list"]}
- {id: narrow, brain: {backend: script}, modules: [{filesystem: [stat]}]}
- {id: free, brain: {backend: script}}
tools: {capabilities: {default_policy: auto, max_risk_level: high}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.Load(file, app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Config: cfg, File: file, Modules: std.Modules(), Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	args := map[string]string{
		"filesystem.list": `{}`, "filesystem.stat": `{"path":"."}`, "filesystem.mkdir": `{"path":"d"}`, "filesystem.delete": `{"path":"d"}`, "search_tools": `{"query":"x"}`,
	}
	for agent, allowed := range map[string][]string{
		"reader": {"filesystem.list", "filesystem.stat", "search_tools"},
		"editor": {"filesystem.list", "filesystem.stat", "filesystem.mkdir", "search_tools"},
		"lister": {"filesystem.list", "search_tools"},
		"narrow": {"filesystem.stat", "search_tools"},
		"free":   {"filesystem.list", "filesystem.stat", "filesystem.mkdir", "filesystem.delete", "search_tools"},
	} {
		may := map[string]bool{}
		for _, n := range allowed {
			may[n] = true
		}
		from := tool.Origin{Kind: tool.KindModel, Agent: agent}
		for name, raw := range args {
			wrapped, _ := json.Marshal(map[string]any{"name": name, "params": json.RawMessage(raw)})
			for _, c := range []*tool.Call{
				{Name: name, Args: json.RawMessage(raw), From: from},
				{Name: "execute_tool", Args: wrapped, From: from},
			} {
				x := a.Explain(t.Context(), c)
				if got := x.Decision == "allow"; got != may[name] {
					t.Errorf("%s calls %s by %s: %s by %s (%s)", agent, name, c.Name, x.Decision, x.Stage, x.Reason)
				}
			}
			if tl, _ := a.Tools().Lookup(name); a.Visible(from, tl) != may[name] {
				t.Errorf("%s: %s is visible: %v", agent, name, !may[name])
			}
		}
	}
}
