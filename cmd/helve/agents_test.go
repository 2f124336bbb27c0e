package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is of use to agents of the app alone is neither listed to MCP clients
// nor run for them, on whichever way they ask.
func TestClientsDoNotSeeToolsOfAgents(t *testing.T) {
	dir := folder(t, "k/SKILL.md", "---\nname: k\ndescription: A skill.\n---\nDo it.\n", "app.yaml", `{"app":{"app_id":"t","name":"T"},
		"dev":{"skills":[{"command":"k","path":"k"}]},
		"agents":[{"id":"a","delegate_to":["b"],"brain":{"backend":"script","config":{"turns":[{"say":"x"}]}}},
			{"id":"b","brain":{"backend":"script","config":{"turns":[{"say":"x"}]}}}]}`)
	own := map[string]object{
		"agents.spawn":   {"tasks": []any{object{"agent": "b", "task": "x"}}},
		"agents.consult": {"agent": "b", "question": "x"}, "switch_agent": {"agent": "b"}, "agents.plan": {"items": []any{}},
		"attempt_completion": {"result": "x"}, "use_skill": {"name": "k"}, "skills.k": {},
	}
	for _, view := range []string{"discovery", "full"} {
		s := stdio(t, dir, "--app", "app.yaml", "--present", view)
		list, err := s.ListTools(t.Context(), &mcp.ListToolsParams{})
		if err != nil || len(list.Tools) < 7 {
			t.Fatalf("%s: %v, %v", view, list, err)
		}
		for _, tl := range list.Tools {
			if _, theirs := own[strings.ReplaceAll(tl.Name, "__", ".")]; theirs {
				t.Errorf("%s: %s is listed", view, tl.Name)
			}
		}
		for name, args := range own {
			for _, w := range allWays() {
				if w.loose || w.named {
					continue
				}
				through, params := w.wrap(name, args)
				if code := w.refusal(t, call(t, s, through, params)); code != "not_visible" {
					t.Errorf("%s by %s: %q", name, through, code)
				}
			}
		}
	}
}

// Apps are called by MCP clients as by agents: listed in every view, by the
// schema of what they are given, and within what the client's token may do.
func TestAppsAreCalledOverMCP(t *testing.T) {
	dir := folder(t, "a.txt", "hello",
		"sum.yaml", `{"app":{"app_id":"sum","name":"S"},
			"runtime":{"mode":"one_shot","input":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},"output":{"type":"object","required":["sum"]}},
			"agents":[{"id":"s","brain":{"backend":"script","config":{"turns":[{"calls":[{"tool":"filesystem.write","args":{"path":"out.txt","content":"x"}}]},{"say":"{\"sum\": 3}"}]}}}],
			"tools":{"capabilities":{"default_policy":"auto"}}}`,
		"app.yaml", `{"app":{"app_id":"t","name":"T"},"tools":{"modules":{"filesystem":{}},"capabilities":{"default_policy":"auto"},"apps":{"sum":{"file":"sum.yaml","description":"adds"}}}}`,
		"narrow.yaml", `{"app":{"app_id":"n","name":"N"},"tools":{"modules":{},"apps":{"sum":{"file":"sum.yaml"}}}}`)
	s := stdio(t, dir, "--app", "app.yaml", "--present", "discovery")
	list, err := s.ListTools(t.Context(), &mcp.ListToolsParams{})
	if err != nil || !slices.ContainsFunc(list.Tools, func(tl *mcp.Tool) bool {
		return tl.Name == "call_app" && strings.Contains(tl.Description, "- sum: adds")
	}) {
		t.Errorf("call_app is not listed with its apps: %v", err)
	}
	for _, w := range allWays() {
		if w.loose || w.named {
			continue
		}
		through, params := w.wrap("call_app", object{"app": "sum", "input": object{"a": 1}})
		if res := call(t, s, through, params); res.IsError || !strings.Contains(res.Text, "sum") {
			t.Errorf("by %s: %s", through, res.Text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out.txt")); err != nil {
		t.Error(err)
	}
	os.Remove(filepath.Join(dir, "out.txt"))
	res := call(t, s, "call_app", object{"app": "sum", "input": object{}})
	if !res.IsError || !strings.Contains(res.Text, "validation_error") {
		t.Errorf("an input that does not fit: %s", res.Text)
	}
	// Where the client cannot write, the app that it calls cannot for it.
	s = stdio(t, dir, "--app", "narrow.yaml")
	call(t, s, "call_app", object{"app": "sum", "input": object{"a": 1}})
	if _, err := os.Stat(filepath.Join(dir, "out.txt")); err == nil {
		t.Error("the app wrote for a client that has no tool to write")
	}
}

// Whoever cancels the call ends the app, however long its model would go on.
func TestCancellingEndsTheCalledApp(t *testing.T) {
	dir := folder(t, "slow.yaml", `{"app":{"app_id":"slow","name":"S"},"runtime":{"mode":"one_shot","timeout":3600},
			"agents":[{"id":"s","delegate_to":["sub"],"brain":{"backend":"script","config":{"turns":[
					{"calls":[{"tool":"filesystem.write","args":{"path":"begun.txt","content":"x"}}]},
					{"calls":[{"tool":"agents.spawn","args":{"tasks":[{"agent":"sub","task":"Go"}]}}]}]}}},
				{"id":"sub","brain":{"backend":"script","config":{"pause":600000,"turns":[{"say":"very slow"}]}}}],
			"tools":{"capabilities":{"default_policy":"auto"}}}`,
		"app.yaml", `{"app":{"app_id":"t","name":"T"},"tools":{"capabilities":{"default_policy":"auto"},"apps":{"slow":{"file":"slow.yaml"}}}}`)
	s := stdio(t, dir, "--app", "app.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "call_app", Arguments: object{"app": "slow", "input": "Go"}})
		ended <- err
	}()
	eventually(t, func() bool { return exists(filepath.Join(dir, "begun.txt")) })
	cancel()
	if err := <-ended; err == nil {
		t.Error("a call that was cancelled gave a result")
	}
	eventually(t, func() bool { // its line is written when it has ended
		out, _, _ := run(t, dir, "", "audit", "--app", "app.yaml", "--tool", "call_app", "--json")
		return strings.Contains(out, `"error": "cancelled"`)
	})
}

// A server of a called app is not the caller's server of that name: what it
// changes, the operator must have lent.
func TestServersOfCalledAppsAreTheirOwn(t *testing.T) {
	servers := func() object {
		server := child(t, "describe=text")
		server["overrides"] = object{"get_it": object{"effect": "writes"}}
		return object{"s": server}
	}
	auto := object{"default_policy": "auto"}
	callee := encode(t, object{"app": object{"app_id": "callee", "name": "C"}, "runtime": object{"mode": "one_shot"},
		"agents": []any{object{"id": "a", "brain": object{"backend": "script", "config": object{"turns": []any{
			object{"calls": []any{object{"tool": "mcp.s.get_it"}}}, object{"say": "[[last]]"}}}}}},
		"tools": object{"mcp_servers": servers(), "capabilities": auto}})
	caller := func(id string, may ...string) string {
		return encode(t, object{"app": object{"app_id": id, "name": "C"}, "tools": object{"mcp_servers": servers(), "capabilities": auto,
			"apps": object{"callee": object{"file": "callee.yaml", "may": may}}}})
	}
	dir := folder(t, "text", "Get it.", "callee.yaml", callee, "plain.yaml", caller("plain"), "lends.yaml", caller("lends", "mcp.s.get_it"))
	for file, want := range map[string]string{"plain.yaml": "not_visible", "lends.yaml": "got it"} {
		out, errs, code := run(t, dir, "", "tools", "call", "--app", file, "call_app", `{"app": "callee", "input": "Go"}`)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", file, code, want, out, errs)
		}
		if out, _, _ := run(t, dir, "", "tools", "call", "--app", file, "mcp.s.get_it", `{}`); !strings.Contains(out, "got it") {
			t.Errorf("%s: the caller's own server: %s", file, out)
		}
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Whoever is set to work with some tools is told of the memory, and reads and
// changes it, as far as those go.
func TestSpawnedAgentsHaveNoMoreMemoryThanGiven(t *testing.T) {
	const fact = "The safe opens with 4711."
	s := newScripted(t,
		callsTool("c1", "memory__remember", encode(t, object{"text": fact})),
		callsTool("c2", "agents__spawn", `{"tasks":[{"agent":"kid","task":"Look","tools":["filesystem.read"]}]}`),
		callsTool("k1", "execute_tool", `{"name":"memory.recall","params":{"query":"safe"}}`),
		callsTool("k2", "run_parallel", `{"actions":[{"name":"memory.remember","params":{"text":"Planted."}},{"name":"memory.forget","params":{"ids":["1"]}}]}`),
		callsTool("k3", "memory__tasks", `{"add":["planted"]}`),
		says("I saw nothing."),
		callsTool("c3", "agents__spawn", `{"tasks":[{"agent":"kid","task":"Look","tools":["memory.recall"]}]}`),
		says("I was told."),
		callsTool("c4", "memory__recall", `{}`),
		says("Done."))
	var app object
	if err := json.Unmarshal([]byte(s.app(`,"schema_version":2,"runtime":{"tool_injection":"direct","max_mistakes":0},"tools":{"modules":{"filesystem":{},"memory":{}}}`)), &app); err != nil {
		t.Fatal(err)
	}
	boss := app["agents"].([]any)[0].(object)
	boss["role"], boss["delegate_to"] = "coordinator", []string{"kid"}
	app["agents"] = []any{boss, object{"id": "kid", "role": "specialist", "brain": boss["brain"]}}
	dir := folder(t, "app.yaml", encode(t, app))
	if out, errs, code := run(t, dir, "", "run", "app.yaml", "Go", "--yes"); code != 0 || !strings.Contains(out, "Done.") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	asked := s.requests()
	for i := 2; i <= 5; i++ {
		if strings.Contains(asked[i], "opens with 4711") {
			t.Errorf("request %d of an agent without memory: %s", i+1, asked[i])
		}
	}
	if got := strings.Count(asked[5], "not_visible"); got < 3 {
		t.Errorf("%d refusals in %s", got, asked[5])
	}
	if !strings.Contains(asked[7], fact) {
		t.Errorf("an agent that may recall is not told: %s", asked[7])
	}
	if last := asked[9]; strings.Contains(strings.ToLower(last), "planted") || !strings.Contains(last, "1 (") {
		t.Errorf("the memory afterwards: %s", last)
	}
}
