package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// answerAs answers a request of Anthropic's API with one block of content.
func answerAs(w http.ResponseWriter, block object) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, members object) {
		members["type"] = kind
		data, _ := json.Marshal(members)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	start, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}, "end_turn"
	if block["type"] == "tool_use" {
		input, _ := json.Marshal(block["input"])
		start, delta, stop = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}, object{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	event("message_start", object{"message": object{"id": "m", "type": "message", "role": "assistant", "model": "scripted-1", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
	event("content_block_start", object{"index": 0, "content_block": start})
	event("content_block_delta", object{"index": 0, "delta": delta})
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}})
	event("message_stop", object{})
}

// Claude Code, whose servers helve import has taken over, with a scripted
// server in place of its model, uses one of them through Helve, and is refused.
func TestClaudeCodeUsesHelve(t *testing.T) {
	t.Parallel()
	claude := npmCommand(t, "../@anthropic-ai/claude-code-linux-x64/claude", "@anthropic-ai/claude-code@2.1.197")
	dir := folder(t, "notes.txt", "remember the milk\n")
	home := folder(t, "conf/.claude.json", encode(t, object{"mcpServers": object{"kid": object{"command": lookPath(t, "upstream"), "args": []string{"crash"}}}}))

	calls := func(id, tool string, input object) object {
		return object{"type": "tool_use", "id": "toolu_" + id, "name": "mcp__helve__" + tool, "input": input}
	}
	turns := []object{
		calls("1", "mcp__kid__get_well", object{}),
		calls("2", "filesystem__read", object{"path": "notes.txt"}),
		calls("3", "filesystem__read", object{"path": "../outside.txt"}),
		calls("4", "filesystem__write", object{"path": "notes.txt", "content": "forget it"}),
		{"type": "text", "text": "There is milk to be bought."},
	}
	var mu sync.Mutex
	var asked []string
	waited := 0
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method != http.MethodPost: // it looks whether there is a server
		case !strings.Contains(string(body), `"tools":[{`):
			answerAs(w, object{"type": "text", "text": "Milk"}) // a title, say
		case !strings.Contains(string(body), turns[0]["name"].(string)) && waited < 60: // it does not wait for its MCP servers
			waited++
			answerAs(w, object{"type": "tool_use", "id": fmt.Sprintf("toolu_wait%d", waited), "name": "Bash", "input": object{"command": "sleep 1"}})
		case len(asked) < len(turns):
			asked = append(asked, string(body))
			answerAs(w, turns[len(asked)-1])
		default:
			t.Errorf("a request too many: %s", body)
			http.Error(w, "{}", http.StatusBadRequest)
		}
	}))
	t.Cleanup(model.Close)
	env := []string{"HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(home, "conf"), "ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=sk-ant-none", "MCP_TIMEOUT=120000",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"}
	other(t, dir, env, lookPath(t, "helve"), "import", "--install", "claude-code", "--replace", "--root", dir)
	if left := contents(t, home)["conf/.claude.json"]; strings.Contains(left, `"kid"`) || !strings.Contains(left, `"helve"`) {
		t.Errorf("Claude Code's file is\n%s", left)
	}
	if list := other(t, dir, env, claude, "mcp", "list"); !strings.Contains(list, "helve: ") || !strings.Contains(list, "Connected") {
		t.Errorf("claude mcp list:\n%s", list)
	}
	out := other(t, dir, env, claude, "-p", "What is to be bought?", "--allowedTools", "mcp__helve,Bash(sleep 1)", "--output-format", "json")
	var result struct{ Result string }
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Result != turns[4]["text"] {
		t.Errorf("Claude Code ends with\n%s", out)
	}
	if len(asked) != len(turns) {
		t.Fatalf("%d requests to the model, and %d to wait", len(asked), waited)
	}
	for i, says := range []string{"mcp__helve__search_tools", `"text":"well"`, "remember the milk", "permission_denied", "approval_denied"} {
		if !strings.Contains(asked[i], says) {
			t.Errorf("request %d to the model lacks %q:\n%s", i+1, says, asked[i])
		}
	}
	if got := contents(t, dir)["notes.txt"]; got != "remember the milk\n" {
		t.Errorf("the file now holds %q", got)
	}
}
