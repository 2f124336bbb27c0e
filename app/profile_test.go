package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

// What a profile takes away by the name of a group, a module or a server, by a
// pattern, or by the name that clients are told, is gone; what names nothing is
// refused, since it would take nothing away.
func TestProfilesTakeAway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "app.yaml")
	text := `
app: {app_id: demo, name: Demo}
agents: [{id: shy, brain: {backend: script}, profile: ["-filesystem.*", -web, "-mcp.mail"]}]
tools: {capabilities: {default_policy: auto, max_risk_level: high}, mcp_servers: {mail: {command: none, disabled: true}, mail2: {command: none, disabled: true}}}
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
	all := slices.Collect(a.Tools().All())
	sees := func(profile, agent string) (out []string) {
		tools := slices.Clone(all)
		for _, name := range []string{"mcp.mail.get", "mcp.mail2.get", "mcp.mail.send"} { // as a server would offer them
			tools = append(tools, &tool.Tool{Definition: tool.Definition{Name: name, Module: name[:strings.LastIndex(name, ".")], Effect: tool.Reads}})
		}
		for _, tl := range tools {
			if a.Visible(tool.Origin{Kind: tool.KindModel, Agent: agent, Profile: profile}, tl) {
				out = append(out, tl.Name)
			}
		}
		return out
	}
	everything := sees("", "")
	for profile, gone := range map[string][]string{
		"-mcp.mail": {"mcp.mail."}, "-mcp.mail.*": {"mcp.mail."}, "-mcp__mail": {"mcp.mail."}, "-mcp__mail__*": {"mcp.mail."}, "-mcp__mail__get": {"mcp.mail.get"},
		"-mcp.*.get": {"mcp.mail.get", "mcp.mail2.get"}, "-mcp": {"mcp."}, "-filesystem": {"filesystem."}, "-filesystem.*": {"filesystem."}, "-filesystem.write": {"filesystem.write"},
		"-http,-filesystem__write": {"http.", "filesystem.write"}, "-mcp.mail,+mcp.mail2.get": {"all but", "mcp.mail2.get"}, "mcp,-mcp.mail,+mcp.mail.get": {"all but", "mcp.mail2.", "mcp.mail.get", "mcp.list_servers", "mcp.read_resource"},
		"+mcp.mail": {"all but", "mcp.mail."}, "+filesystem.read,-filesystem": {"all but", "filesystem.read"},
	} {
		got := sees(profile, "")
		for _, name := range everything {
			tl, _ := a.Tools().Lookup(name)
			if tl != nil && (tl.Meta || tl.GroupName() == "mcp" && gone[0] == "all but") {
				continue
			}
			hit := slices.ContainsFunc(gone, func(g string) bool { return g == name || strings.HasSuffix(g, ".") && strings.HasPrefix(name, g) })
			if want := hit == (gone[0] == "all but"); slices.Contains(got, name) != want {
				t.Errorf("%s: %s is seen: %v", profile, name, !want)
			}
		}
	}
	for _, name := range sees("", "shy") {
		tl, _ := a.Tools().Lookup(name)
		if strings.HasPrefix(name, "filesystem.") || strings.HasPrefix(name, "mcp.mail.") || tl != nil && tl.GroupName() == "web" {
			t.Errorf("the agent sees %s", name)
		}
	}
	for _, profile := range []string{"-filesytem.write", "-filesystem.wirte", "-mcp.mali", "-mcp.mali.*", "read,-nothing", "-mcp__mali__get", "+filesystem.raed", "-mail"} {
		if _, err := cfg.Profile(profile); err == nil || !strings.Contains(err.Error(), "names no tool, module or server of the app demo") {
			t.Errorf("%s: %v", profile, err)
		}
		if got := sees(profile, ""); len(got) > 0 {
			t.Errorf("%s lets %q be seen", profile, got)
		}
	}
	for _, tl := range all {
		for _, name := range []string{tl.Name, tool.Wire(tl.Name)} {
			if _, err := cfg.Profile("-" + name); err != nil {
				t.Error(err)
			}
		}
	}
}

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
