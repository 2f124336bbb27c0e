package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// The suite is run against what helve serve serves. What it asks for comes
// from the server with which the SDK's authors test the SDK, an upstream
// server like any other: run as a process it speaks the newest revision, over
// HTTP with sessions an older one. So each row is a bridge from clients of one
// revision to a server of another.

// A bridge is a run of the suite.
type bridge struct {
	version string
	old     bool // the upstream server
	held    bool // to sessions, though it knows the newest revision
	// fails says why which checks cannot hold, by scenario and check. What is
	// listed and holds is an error, too.
	fails map[string]string
	// chance says which may hold or not, and why.
	chance map[string]string
}

const (
	cannotAskOld  = "the SDK's server asks clients of old revisions by a request; on a session of the newest it refuses to"
	withoutName   = "the SDK's server asks by requests in a session: without a name"
	oneRound      = "the SDK's server asks clients of old revisions for one round only"
	allAtOnce     = "the SDK's server asks all it may at once and gives up with the first refusal: which question comes first is chance"
	asItWasOpened = "a session says once what its client supports: the server is told what all may"
)

var bridges = []bridge{
	{version: "2026-07-28"},
	{version: "2025-11-25", fails: map[string]string{
		"tools-call-sampling/tools-call-sampling":                  cannotAskOld,
		"tools-call-elicitation/tools-call-elicitation":            cannotAskOld,
		"elicitation-sep1034-defaults/elicitation-sep1034-general": cannotAskOld,
		"elicitation-sep1330-enums/elicitation-sep1330-general":    cannotAskOld,
	}},
	{version: "2025-11-25", held: true},
	{version: "2025-11-25", old: true},
	{version: "2025-06-18", old: true},
	{version: "2026-07-28", old: true, fails: map[string]string{
		"input-required-result-basic-elicitation/sep-2322-elicitation-incomplete":     withoutName,
		"input-required-result-ignore-extra-params/sep-2322-ignore-unexpected-params": withoutName,
		"input-required-result-multi-round/sep-2322-multi-round-r2":                   oneRound,
		"server-stateless/sep-2575-server-rejects-undeclared-capability":              asItWasOpened,
		"server-stateless/sep-2575-missing-capability-http-400":                       asItWasOpened,
	}, chance: map[string]string{
		"input-required-result-capability-check/sep-2322-respect-client-capabilities": allAtOnce,
	}},
}

func (b bridge) name() string {
	switch {
	case b.old:
		return b.version + " to sessions"
	case b.held:
		return b.version + " to stateless, in sessions"
	}
	return b.version + " to stateless"
}

// more is what the app file says of the server beside.
func (b bridge) more() []string {
	if b.held {
		return []string{"sessions: true"}
	}
	return nil
}

func TestConformance(t *testing.T) {
	command := conformance24(t)
	everything := everythingServer(t)
	for _, b := range bridges {
		t.Run(b.name(), func(t *testing.T) {
			t.Parallel()
			b.run(t, command, serveApp(t, everything, b.old, b.more()...))
		})
	}
}

// everythingServer builds the SDK's test server.
func everythingServer(t *testing.T) string {
	t.Helper()
	everything := filepath.Join(t.TempDir(), "everything.exe")
	build := exec.Command("go", "build", "-o", everything, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return everything
}

// A check is what the suite found.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

func (b bridge) run(t *testing.T, command []string, url string) {
	dir := t.TempDir()
	args := append(command[1:], "server", "--url", url, "--suite", "all", "--spec-version", b.version, "-o", dir)
	out, _ := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput() // what failed is in the files
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d scenarios ran: %v\n%s", len(files), err, out)
	}
	holds := map[string]bool{}
	for _, file := range files {
		scenario := strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "server-")
		scenario, _, _ = strings.Cut(scenario, "-2026-") // the time, and maybe the revision, of the run
		var checks []check
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &checks)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			at := scenario + "/" + c.ID
			good := c.Status != "FAILURE" && c.Status != "WARNING"
			if b.fails[at] == "" && b.chance[at] == "" && !good {
				t.Errorf("%s: %s: %s", at, c.Status, c.ErrorMessage)
			}
			if before, seen := holds[at]; !seen || before {
				holds[at] = good
			}
		}
	}
	for at := range b.fails {
		if good, ran := holds[at]; good || !ran {
			t.Errorf("%s: listed as one that fails; it ran: %t, and holds: %t", at, ran, good)
		}
	}
}

// serveApp serves an app with the upstream server, as helve serve does, and
// returns the address of its full view. What more the app file says of the
// server, a line each, comes last.
func serveApp(t *testing.T, everything string, old bool, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	server := fmt.Sprintf("command: %q", everything)
	if old {
		server = fmt.Sprintf("url: %q", serveSessions(t, everything))
	}
	file := filepath.Join(dir, "app.yaml")
	for name, text := range map[string]string{"SKILL.md": "---\nname: forms\ndescription: Fills in forms.\n---\nSee [all](references/all.md).\n", "references/all.md": "# All\n"} {
		at := filepath.Join(dir, "skills", "forms", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf(`app: {app_id: conformance, name: Conformance}
dev: {skill_folders: [skills], serve_skills: ["*"]}
tools:
  modules: {conformance: {}, mcp: {}, skills: {}}
  mcp_servers:
    everything:
      %s
      trusted: true
      roots: client
      %s
  capabilities: {default_policy: auto, max_risk_level: high}
`, server, strings.Join(more, "\n      "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	modules := append(std.Modules(), exact())
	root := t.TempDir()
	live, err := app.OpenLive(t.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context) (*app.App, error) {
		cfg, err := app.Load(file, app.LoadOptions{Modules: modules, Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(context.WithoutCancel(ctx), app.Options{Config: cfg, File: file, Modules: modules, Root: root})
	})
	if err != nil {
		t.Fatal(err)
	}
	live.App().MCPServers().Wait(t.Context())
	d, err := daemon.Listen(daemon.Options{Apps: []*app.Live{live}, Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
		Version: "test", StreamLimit: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.URL() + "/mcp/full"
}

// serveSessions runs the server over HTTP with sessions.
func serveSessions(t *testing.T, command string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(command, "-http", addr, "-stateless=false")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for ctx := t.Context(); ctx.Err() == nil; {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr + "/"
		}
	}
	t.Fatal("the server does not listen")
	return ""
}

// exact is the module of the tools that the suite looks for in lists, where
// those of upstream servers have longer names.
func exact() *module.Module {
	return module.New("conformance", "Tools whose names must be exact.", struct{}{}, func(_ context.Context, h *module.Host, _ struct{}) (*module.Toolset, error) {
		theirs := func(name, input string) *tool.Tool {
			t := handled(name, tool.Reads, func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				return h.Call(ctx, c.Child("", "mcp.everything."+name, c.Args))
			})
			t.Input = schema.Must(input)
			return t
		}
		tools := []*tool.Tool{
			theirs("test_missing_capability", `{"type":"object"}`),
			theirs("json_schema_2020_12_tool", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",`+
				`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},`+
				`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},`+
				`"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],`+
				`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`),
		}
		// The SDK's server adds the same tool again, which changes no list.
		var changes atomic.Int32
		change := handled("test_trigger_tool_change", tool.Reads, nil)
		tools = append(tools, change)
		change.Handle = func(context.Context, *tool.Call) (*tool.Result, error) {
			more := handled(fmt.Sprintf("transient_%d", changes.Add(1)), tool.Reads, echo().Handle)
			return tool.Text("changed"), h.Publish(append(tools[:len(tools):len(tools)], more)...)
		}
		return &module.Toolset{Tools: tools}, nil
	})
}

func TestInspectorSeesOffers(t *testing.T) {
	npm(t, "mcp-inspector")
	h, _ := gateway(t, nil, mcpbridge.Upstream{Name: "all", Command: npm(t, "mcp-server-everything")})
	web := h.http(t, "").URL
	for _, row := range []struct{ args, want string }{
		{"resources/list", `"uri": "demo://resource/static`},
		{"resources/templates/list", `"uriTemplate": "demo://resource/dynamic/text/{`},
		{"prompts/list", `"name": "all__simple-prompt"`},
		{"prompts/get --prompt-name all__simple-prompt", `"role": "user"`},
		{"resources/read --uri demo://resource/dynamic/text/1", `"uri": "demo://resource/dynamic/text/1"`},
	} {
		out := inspect(t, append([]string{web, "--transport", "http", "--method"}, strings.Fields(row.args)...)...)
		if !strings.Contains(out, row.want) {
			t.Errorf("%s has no %s in\n%.2000s", row.args, row.want, out)
		}
	}
}
