package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npmCommand returns a command that npm has installed, or skips the test.
func npmCommand(t *testing.T, command, pkg string) string {
	t.Helper()
	dir := os.Getenv("HELVE_TEST_NPM")
	path := filepath.Join(dir, "node_modules", ".bin", command)
	if dir == "" || !exists(path) {
		why := "needs another program: npm install --prefix DIR --no-save --ignore-scripts " + pkg + ", then set HELVE_TEST_NPM=DIR"
		if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "npm") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return path
}

// other runs a program of other people's in dir, and returns what it printed.
func other(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, environ(env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(program), args, err, &out, &errs)
	}
	return out.String()
}

// The Inspector lists, calls, and is refused, as any client.
func TestInspectorUsesHelve(t *testing.T) {
	t.Parallel()
	inspector := npmCommand(t, "mcp-inspector", "@modelcontextprotocol/inspector@0.15.0")
	dir := folder(t, "notes.txt", "remember the milk\n")
	var conf struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(must(t, dir, "mcp", "--print-config", "--json", "--root", dir)), &conf); err != nil {
		t.Fatal(err)
	}
	server := conf.Servers["helve"]
	inspect := func(args ...string) string {
		t.Helper()
		return other(t, dir, []string{"HOME=" + dir}, inspector, slices.Concat([]string{"--cli", server.Command}, server.Args, args)...)
	}
	if list := inspect("--method", "tools/list"); !strings.Contains(list, `"name": "search_tools"`) || !strings.Contains(list, `"name": "execute_tool"`) {
		t.Errorf("the list:\n%s", list)
	}
	call := func(path string) string {
		t.Helper()
		return inspect("--method", "tools/call", "--tool-name", "execute_tool", "--tool-arg", "name=filesystem.read", "--tool-arg", `params={"path":"`+path+`"}`)
	}
	if got := call("notes.txt"); !strings.Contains(got, "remember the milk") || strings.Contains(got, `"isError": true`) {
		t.Errorf("the file is\n%s", got)
	}
	if got := call("../outside.txt"); !strings.Contains(got, `"isError": true`) || !strings.Contains(got, `"code": "permission_denied"`) {
		t.Errorf("a path that leads out gives\n%s", got)
	}
	lines := audited(t, dir)
	if len(lines) != 4 || lines[0].Kind != "mcp" || lines[2].Decision != "deny" || lines[2].Stage != "paths" {
		t.Errorf("the audit: %+v", lines)
	}
}

// respond answers with a response of OpenAI's API that has one item.
func respond(item object) http.HandlerFunc {
	event := func(kind string, members object) string {
		members["type"] = kind
		data, _ := json.Marshal(members)
		return string(data)
	}
	usage := object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	return chunks(event("response.created", object{"response": object{"id": "r"}}),
		event("response.output_item.done", object{"output_index": 0, "item": item}),
		event("response.completed", object{"response": object{"id": "r", "output": []any{}, "usage": usage}}))
}

// callsHelve answers with a call of one of Helve's tools, as Codex names them.
func callsHelve(id, tool string, args object) http.HandlerFunc {
	raw, _ := json.Marshal(args)
	return respond(object{"type": "function_call", "id": "f" + id, "call_id": id, "namespace": "mcp__helve", "name": tool, "arguments": string(raw)})
}

// Codex, with Helve put into its configuration by helve import and a scripted
// server in place of its model, finds a tool, uses it, and is refused.
func TestCodexUsesHelve(t *testing.T) {
	t.Parallel()
	codex := npmCommand(t, "codex", "@openai/codex@0.169.0")
	read := func(path string) object { return object{"name": "filesystem.read", "params": object{"path": path}} }
	model := newScripted(t,
		callsHelve("1", "search_tools", object{"query": "read a file"}),
		callsHelve("2", "execute_tool", read("notes.txt")),
		callsHelve("3", "execute_tool", read("../outside.txt")),
		callsHelve("4", "execute_tool", object{"name": "filesystem.write", "params": object{"path": "notes.txt", "content": "forget it"}}),
		respond(object{"type": "message", "role": "assistant", "id": "m", "content": []any{object{"type": "output_text", "text": "There is milk to be bought."}}}))
	home := folder(t, "config.toml", fmt.Sprintf(`model = "scripted-1"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "Scripted"
base_url = %q
wire_api = "responses"
`, model.URL+"/v1"))
	dir := folder(t, "notes.txt", "remember the milk\n")
	env := []string{"HOME=" + home, "CODEX_HOME=" + home}
	if said := other(t, dir, env, lookPath(t, "helve"), "import", "--install", "codex", "--root", dir); !strings.Contains(said, `default_tools_approval_mode = "approve"`) {
		t.Errorf("helve import does not tell how calls are not asked about twice:\n%s", said)
	}
	out := other(t, dir, env, codex, "exec", "--skip-git-repo-check", "--json", "-c", `mcp_servers.helve.default_tools_approval_mode="approve"`,
		"-c", "mcp_servers.helve.required=true", "-c", "mcp_servers.helve.startup_timeout_sec=60", // else it does not wait for the server
		"What is to be bought?")

	var heard []string
	for line := range strings.Lines(out) {
		var e struct {
			Type string
			Item struct{ Type, Server, Tool, Status, Text string }
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "item.completed" && e.Item.Type != "error" {
			heard = append(heard, strings.Join([]string{e.Item.Type, e.Item.Server, e.Item.Tool, e.Item.Status + e.Item.Text}, " "))
		}
	}
	want := []string{"mcp_tool_call helve search_tools completed", "mcp_tool_call helve execute_tool completed", "mcp_tool_call helve execute_tool failed",
		"mcp_tool_call helve execute_tool failed", "agent_message   There is milk to be bought."}
	if !slices.Equal(heard, want) {
		t.Errorf("Codex tells %q, want %q\n%s", heard, want, out)
	}
	asked := model.requests()
	if len(asked) != 5 {
		t.Fatalf("%d requests to the model", len(asked))
	}
	for i, says := range []string{"search_tools", "filesystem.read", "remember the milk", "permission_denied", "approval_"} {
		if !strings.Contains(asked[i], says) {
			t.Errorf("request %d to the model lacks %q:\n%s", i+1, says, asked[i])
		}
	}
	var decisions []string
	for _, l := range audited(t, dir) {
		decisions = append(decisions, strings.TrimSpace(strings.Join([]string{l.Kind, l.Tool, l.Decision, l.Error}, " ")))
	}
	for _, want := range []string{"mcp filesystem.read allow", "mcp filesystem.read deny permission_denied"} {
		if !slices.Contains(decisions, want) {
			t.Errorf("the audit %q lacks %q", decisions, want)
		}
	}
	if got := contents(t, dir)["notes.txt"]; got != "remember the milk\n" {
		t.Errorf("the file now holds %q", got)
	}
}
