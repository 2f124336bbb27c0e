package app_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/modules/std"
)

func load(t *testing.T, file string) *app.Config {
	t.Helper()
	c, err := app.Load(file, options())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text string) *app.Config {
	t.Helper()
	c, err := app.Parse("test.yaml", []byte("app: {app_id: x, name: X}\n"+text), options())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestDefaults(t *testing.T) {
	c := app.Default()
	equal(t, "app", c.App, app.Info{ID: "default", Name: "Default", Version: "1.0"})
	equal(t, "runtime", c.Runtime, app.Runtime{Mode: "conversation", MaxTurns: 50, Timeout: 300, WorkdirMode: "auto", MaxActiveTools: 20, MaxMistakes: 3,
		Repetition:  app.Repetition{Callers: "agents", Window: 15, Limit: 3, Similarity: 0.5},
		Context:     app.Context{OutputReserved: 4096, Strategy: "summarize", KeepRecent: 10, CompressionTrigger: 0.75},
		Checkpoints: app.Checkpoints{MaxFile: 256 << 20, MaxCall: 1 << 30, OverLimit: "refuse", MaxSnapshot: 256 << 20, MaxTotal: 5 << 30, MaxAge: 30},
		LongCalls:   app.LongCalls{After: 10, Keep: 3600, Report: 5}})
	equal(t, "capabilities", c.Tools.Capabilities, app.Capabilities{DefaultPolicy: "approve", MaxRiskLevel: "medium", ApprovalTimeout: 300, ApprovalWait: "attached", Budgets: app.Budgets{PerTask: 1}})
	equal(t, "security", c.Security, app.Security{Sandbox: "require", Taint: "warn", Credentials: "auto"})
	if c.SchemaVersion != 2 || c.Tools.Modules != nil {
		t.Errorf("version %d, modules %v", c.SchemaVersion, c.Tools.Modules)
	}
}

func TestDefaultsOfWhatIsLeftOut(t *testing.T) {
	c := parse(t, `
runtime: {context: {keep_recent: 0}}
agents:
  - {id: a, brain: {provider: p, model: m, context: {}}}
  - {id: b, role: coordinator, brain: {provider: p, model: m}, pool: {}}
`)
	if got := c.Runtime.Context; got.KeepRecent != 0 || got.OutputReserved != 4096 {
		t.Errorf("context %+v: what is written must stay, the rest be set", got)
	}
	if c.Agents[0].Role != "worker" || c.Agents[1].Role != "coordinator" || c.Agents[1].Pool.MaxWorkers != 3 {
		t.Errorf("agents %s", asJSON(t, c.Agents))
	}
	if c.Agents[0].Brain.Context.KeepRecent != 10 || c.Agents[1].Brain.Context != nil {
		t.Errorf("brains %s", asJSON(t, c.Agents))
	}
	if c.Runtime.EntryAgent != "a" {
		t.Errorf("entry agent %q, want the first", c.Runtime.EntryAgent)
	}
}

func TestFull(t *testing.T) {
	c := load(t, "testdata/good/full.yaml")
	if c.App.Name != "Full, for ada" || *c.Runtime.ToolInjection != "discovery" || c.Runtime.EntryAgent != "lead" {
		t.Errorf("app %+v, runtime %+v", c.App, c.Runtime)
	}
	equal(t, "direct modules", c.Runtime.DirectModules, []string{"filesystem", "discovery", "tasks", "mcp.github"})
	equal(t, "uses", c.Agents[0].Modules, []app.ModuleUse{{Module: "filesystem"}, {Module: "shell", Actions: []string{"run"}},
		{Module: "discovery", Actions: []string{"search_tools"}}, {Module: "tasks", Actions: []string{"run_parallel"}}})
	equal(t, "grant", c.Tools.Capabilities.Grant, []app.Rule{{Module: "filesystem", Actions: []string{"read", "glob"}, Reason: "harmless"},
		{Pattern: `shell.run(command: "git status*")`}, {Pattern: `filesystem.write(path: "docs/**")`, Reason: "documents"}})
	equal(t, "hidden", c.Tools.Capabilities.Hidden, []app.Rule{{Module: "discovery", Actions: []string{"browse_category"}}})
	fs := c.Tools.Modules["filesystem"]
	equal(t, "constraints", fs.Constraints, app.Constraints{AllowedActions: []string{"read", "glob", "m*"}, BlockedActions: []string{"delete"},
		Own: map[string]json.RawMessage{"max_writes": json.RawMessage("3")}})
	if string(fs.Config) != `{"max_bytes":1000}` || fs.Setup[0].Action != "mkdir" || string(fs.Setup[0].Params) != `{"path":"out"}` {
		t.Errorf("filesystem %s", asJSON(t, fs))
	}
	equal(t, "an alias of an action", c.Tools.Modules["workspace"].Constraints.AllowedActions, []string{"read"})
	if _, ok := c.Tools.Modules["http"]; !ok {
		t.Error("a module under which nothing is written is not open")
	}
	gh := c.Tools.MCPServers["github"]
	equal(t, "args", gh.Args, []string{"-y", "server-github", "--port=8080"})
	equal(t, "env", gh.Env, map[string]string{"TOKEN": "{{secret.GITHUB}}", "HOST": "none"})
	if !strings.HasSuffix(filepath.ToSlash(c.Agents[0].SystemPrompt), "/srv/work at {{event.time}}.\n") {
		t.Errorf("system prompt %q", c.Agents[0].SystemPrompt)
	}
	equal(t, "variables", c.Dev.Variables, map[string]string{"region": "eu", "url": "https://eu.example.com"})
}

func TestSourceNames(t *testing.T) {
	c := load(t, "testdata/good/source-names.yaml")
	blocks := c.Tools.Modules
	if _, ok := blocks["context_builder"]; ok || len(blocks) != 3 {
		t.Errorf("modules %s", asJSON(t, blocks))
	}
	equal(t, "constraints of tasks", blocks["tasks"].Constraints.BlockedActions, []string{"run_parallel"})
	if b := blocks["discovery"].Constraints.BlockedActions; b != nil {
		t.Errorf("constraints of discovery %v", b)
	}
	equal(t, "deny", c.Tools.Capabilities.Deny, []app.Rule{{Module: "tasks", Actions: []string{"run_parallel"}}})
	equal(t, "hidden modules", c.Tools.Capabilities.HiddenModules, []string{"discovery", "tasks"})
}

func TestAllowedActionsOfAnAliasAllowNothingElsewhere(t *testing.T) {
	c := parse(t, "tools: {modules: {context_builder: {constraints: {allowed_actions: [search_tools]}}}}")
	if a := c.Tools.Modules["tasks"].Constraints.AllowedActions; a == nil || len(a) != 0 {
		t.Errorf("tasks allows %v, want nothing, which is not nil", a)
	}
}

func TestAnchors(t *testing.T) {
	s := load(t, "testdata/good/anchors.yaml").Tools.MCPServers
	equal(t, "own keys stand above merged ones", s["two"].Args, []string{"other"})
	if s["two"].Command != "npx" || s["three"].Cwd != "here" || s["three"].Env["LEVEL"] != "info" {
		t.Errorf("servers %s", asJSON(t, s))
	}
	equal(t, "an alias", s["four"], s["one"])
}

func TestTexts(t *testing.T) {
	c := load(t, "testdata/good/texts.yaml")
	equal(t, "tags", c.App.Tags, []string{"on", "off", "yes", "no", "2001-01-01", "0x", "1"})
	equal(t, "icon", c.App.Icon, "{{x}} {{x}} { { } }")
	equal(t, "variables", c.Dev.Variables, map[string]string{"multi": "a: [1]\nb: 2", "fallback": "a b", "quoted": "a}}b", "empty": ""})
	if c.App.Name != "yes" || c.App.Description != "Folded text" || c.Security.Sandbox != "off" {
		t.Errorf("%+v %+v", c.App, c.Security)
	}
}

func TestNumbers(t *testing.T) {
	r := load(t, "testdata/good/numbers.yaml").Runtime
	if r.MaxTurns != 1000 || r.Timeout != 16 || r.MaxActiveTools != 20 || r.Context.CompressionTrigger != 0.5 || r.Context.KeepRecent != 3 {
		t.Errorf("%+v", r)
	}
}

func TestInclude(t *testing.T) {
	c := load(t, "testdata/good/includes.yaml")
	var grants []string
	for _, r := range c.Tools.Capabilities.Grant {
		grants = append(grants, r.Pattern)
	}
	equal(t, "lists append", grants, []string{"shell.run", "filesystem.read", "http.get"})
	if len(c.Tools.Modules) != 2 || c.Runtime.Mode != "background" {
		t.Errorf("%s", asJSON(t, c))
	}
	file, line, _ := c.Place("runtime.mode")
	if filepath.ToSlash(file) != "testdata/good/parts/more.yaml" || line != 1 {
		t.Errorf("runtime.mode is at %s:%d", file, line)
	}
}

func TestIncludeFollowsNoLinkOut(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.yaml"), []byte("runtime: {max_turns: 3}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "x.yaml"), filepath.Join(inside, "x.yaml")); err != nil {
		t.Skip(err)
	}
	_, err := app.Parse(filepath.Join(inside, "app.yaml"), []byte("app: {app_id: x, name: X}\ndev: {include: [x.yaml]}\n"), options())
	if ps := app.ProblemsOf(err); len(ps) != 1 || ps[0].Path != "dev.include[0]" {
		t.Errorf("got %v, want one problem at dev.include[0]", err)
	}
}

func TestPlace(t *testing.T) {
	c := load(t, "testdata/good/full.yaml")
	for _, tt := range []struct {
		path      string
		line, col int
	}{
		{"", 2, 1},
		{"app.app_id", 4, 3},
		{"tools.modules.filesystem.setup[1]", 58, 11},
		{"tools.modules.filesystem.setup[1].nothing.there", 58, 11},
		{"agents[1].brain.config", 50, 5},
		{`tools.mcp_servers.github["a.b"]`, 78, 5},
	} {
		if _, line, col := c.Place(tt.path); line != tt.line || col != tt.col {
			t.Errorf("%s is at %d:%d, want %d:%d", tt.path, line, col, tt.line, tt.col)
		}
	}
	if _, line, _ := app.Default().Place("app"); line != 0 {
		t.Errorf("the default app stands on line %d of no file", line)
	}
}

// A rule on the module mcp is about the tools of its servers as well.
func TestRuleOnAllServers(t *testing.T) {
	c := parse(t, "tools: {mcp_servers: {s: {command: c}}, capabilities: {deny: [{module: mcp, actions: [\"delete_*\"]}, mcp.*.drop_*]}}")
	equal(t, "deny", c.Tools.Capabilities.Deny, []app.Rule{{Module: "mcp", Actions: []string{"delete_*"}}, {Pattern: "mcp.*.drop_*"}})
}

func TestVars(t *testing.T) {
	c := parse(t, `
runtime: {workdir: "{{given}}"}
dev: {variables: {given: from inside, own: "{{given}}/{{raw}}"}}
`)
	if c.Runtime.Workdir != "from outside" || c.Dev.Variables["own"] != "from outside/{{env.PORT}}" {
		t.Errorf("%q, %q: values from outside stand above, and are not filled again", c.Runtime.Workdir, c.Dev.Variables["own"])
	}
}

func TestWorkdirOfTheFile(t *testing.T) {
	o := options()
	o.Workdir = "."
	file := filepath.Join(t.TempDir(), "app.yaml")
	c, err := app.Parse(file, []byte("app: {app_id: x, name: X, description: \"{{workdir}}\"}\nruntime: {workdir: sub}\ntools: {mcp_servers: {s: {command: c, args: [\"${workspaceFolder}\"]}}}\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(filepath.Dir(file), "sub")
	equal(t, "workdir", c.App.Description, want)
	equal(t, "args", c.Tools.MCPServers["s"].Args, []string{want})
}

// A secret that is named by a variable stays a reference where it is used.
func TestSecretsStay(t *testing.T) {
	o := options()
	o.Secret = func(string) (string, error) { panic("asked") }
	c, err := app.Parse("x.yaml", []byte(`
app: {app_id: x, name: X}
tools: {mcp_servers: {s: {command: c, env: {T: "Bearer {{token}}"}}}}
dev: {variables: {token: "{{ secret.T }}"}}
`), o)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "env", c.Tools.MCPServers["s"].Env["T"], "Bearer {{ secret.T }}")
}

func TestErrorsDoNotShowTheEnvironment(t *testing.T) {
	_, err := app.Parse("x.yaml", []byte("app: {app_id: \"{{env.YAML}}\", name: X}\nsecurity: {sandbox: \"{{env.USER_NAME}}\"}\n"), options())
	if err == nil || strings.Contains(err.Error(), "ada") || strings.Contains(err.Error(), "[1]") {
		t.Errorf("got %v", err)
	}
}

func TestLoadWithoutAFile(t *testing.T) {
	_, err := app.Load(filepath.Join(t.TempDir(), "none.yaml"), options())
	if !errors.Is(err, fs.ErrNotExist) || app.ProblemsOf(err) != nil {
		t.Errorf("got %v", err)
	}
}

func TestTooLong(t *testing.T) {
	text := "app: {app_id: x, name: X}\n" + strings.Repeat("# a comment\n", 1<<17)
	_, err := app.Parse("x.yaml", []byte(text), options())
	if ps := app.ProblemsOf(err); len(ps) != 1 || !strings.Contains(ps[0].Message, "at most 1048576") {
		t.Errorf("got %v", err)
	}
}

func TestExamples(t *testing.T) {
	files, _ := filepath.Glob("../examples/*.yaml")
	if len(files) < 6 {
		t.Fatalf("%d examples", len(files))
	}
	for _, file := range files {
		o := options()
		o.Modules = app.Known(std.Modules())
		c, err := app.Load(file, o)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); c.App.ID != want {
			t.Errorf("%s: app_id %s, want %s", file, c.App.ID, want)
		}
	}
}

// The example of the defaults says all of them, and says them right.
func TestExampleOfDefaults(t *testing.T) {
	got := load(t, "../examples/default.yaml")
	ignore := cmpopts.IgnoreUnexported(app.Config{})
	if d := cmp.Diff(app.Default(), got, ignore, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("examples/default.yaml differs from Default() (-want +got):\n%s", d)
	}
	text, err := os.ReadFile("../examples/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range defaultKeys(reflect.TypeFor[app.Config]()) {
		if !strings.Contains(string(text), key+":") {
			t.Errorf("examples/default.yaml does not show %s", key)
		}
	}
}

// defaultKeys returns the keys that have a default, in the blocks that are
// always there.
func defaultKeys(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("default") != "" {
			out = append(out, name)
		}
		if f.Type.Kind() == reflect.Struct {
			out = append(out, defaultKeys(f.Type)...)
		}
	}
	return slices.Compact(out)
}
