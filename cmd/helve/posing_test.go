package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

// A server whose tools are named like meta-tools, built-ins or another
// server's gets none of their calls, and none of what they are granted.
func TestPosingGainsNothing(t *testing.T) {
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": child(t, "acting"), "pose": child(t, "posing")}, object{
		"modules": object{"filesystem": object{}, "mcp": object{}},
		"capabilities": object{
			"grant": []any{"filesystem.write", object{"module": "filesystem", "actions": []string{"edit"}}, "mcp.kid.create_thing", object{"module": "mcp.kid", "actions": []string{"write"}}},
			"deny":  []any{"filesystem.mkdir"},
		},
	}))
	d := serve(t, dir, "--app", "app.yaml")
	for at, s := range map[string]entry{"full": session(d.connect(t, "/mcp/full")), "discovery": session(d.connect(t, "/mcp/discovery")), "stdio": session(stdio(t, dir, "--app", "app.yaml"))} {
		t.Run(at, func(t *testing.T) { posesInVain(t, s) })
	}
	listed := names(t, d.connect(t, "/mcp/full"))
	for i, name := range listed {
		if slices.Contains(listed[:i], name) {
			t.Errorf("%s is listed twice", name)
		}
	}
	for _, name := range names(t, d.connect(t, "/mcp/discovery")) {
		if strings.Contains(name, "pose") {
			t.Errorf("%s is listed among the meta-tools", name)
		}
	}
	if exists(filepath.Join(dir, "made")) {
		t.Error("what is denied was made")
	}
	for _, l := range audited(t, dir, "--app", "app.yaml") {
		if strings.HasPrefix(l.Tool, "mcp.pose.") && l.Decision == "allow" {
			t.Errorf("%s was let run by %v: %s", l.Tool, l.Via, l.Reason)
		}
	}
}

func posesInVain(t *testing.T, try entry) {
	own := object{"path": "free.txt", "content": "x"}
	for _, c := range []struct {
		name string
		args object
		says string // what the rightful tool says
	}{
		{"search_tools", object{"query": "write a file"}, "filesystem.write"},
		{"get_tool", object{"name": "filesystem.write"}, "path.write"},
		{"execute_tool", object{"name": "filesystem.write", "params": own}, "free.txt"},
		{"run_parallel", object{"actions": []any{object{"name": "filesystem.write", "params": own}}}, "free.txt"},
		{"use_mcp_tool", object{"name": "mcp.kid.create_thing", "params": object{}}, "create_thing ran"},
		{"filesystem.write", own, "free.txt"}, {"filesystem__write", own, "free.txt"}, {"write_file", own, "free.txt"},
		{"mcp.kid.create_thing", object{}, "create_thing ran"}, {"mcp__kid__create_thing", object{}, "create_thing ran"},
	} {
		if r := try(t, c.name, c.args); r.IsError || strings.Contains(r.Text, "posing as") || !strings.Contains(r.Text, c.says) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	// Under their own names they are what nobody has granted.
	for _, name := range poses {
		if strings.HasPrefix(name, "search") || strings.HasPrefix(name, "get") {
			continue // they read, by their names
		}
		for way, w := range allWays() {
			if w.named { // may mean several
				continue
			}
			called, args := w.wrap("mcp.pose."+name, object{"name": "filesystem.mkdir", "params": object{"path": "made"}, "path": "made", "content": "x"})
			r := try(t, called, args)
			unknown := wire("mcp.pose."+name) != tool.Wire("mcp.pose."+name) // it has another wire form
			if got := w.refusal(t, r); got != "approval_denied" && !(w.loose && got == "validation_error") && !(unknown && got == "tool_not_found") {
				t.Errorf("mcp.pose.%s by %s: %q", name, way, got)
			}
		}
	}
	// Spellings that look like a name mean nothing, or a tool that nobody has granted.
	for _, name := range []string{"EXECUTE_TOOL", "filesystem.wr\u0456te", "\uff46ilesystem.write", "execute-tool", "execute_tool\u200b", "mcp.pose.mcp.kid.create_thing", "mcp__pose__mcp__kid__create_thing", "pose.filesystem.write", "kid__create_thing", "kid.create_thing"} {
		if r := try(t, name, object{"name": "filesystem.mkdir", "params": object{"path": "made"}}); !r.IsError {
			t.Errorf("%q: %+v", name, r)
		}
	}
}

// Setup steps act as the app: what agents may not call, and what is asked
// about, they may; what is denied, ignored or outside is so for them, too.
func TestSetupActsAsTheApp(t *testing.T) {
	type step struct {
		name string
		args object
		runs bool
	}
	steps := []step{
		{"filesystem.move", object{"from": "a.txt", "to": "made"}, true},                  // hidden
		{"filesystem.append", object{"path": "a.txt", "content": "made"}, true},           // among the blocked actions
		{"filesystem.edit", object{"path": "a.txt", "old": "hello", "new": "made"}, true}, // not among the allowed ones
		{"filesystem.stat", object{"path": "a.txt"}, true},                                // wants an approval
		{"filesystem.write", object{"path": "made", "content": "x"}, true},                // wants one by default
		{"filesystem.mkdir", object{"path": "made"}, false},                               // denied
		{"filesystem.write", object{"path": "free/closed/made", "content": "x"}, false},   // denied by its arguments
		{"filesystem.write", object{"path": "free/kept/made", "content": "x"}, false},     // protected
		{"filesystem.write", object{"path": "app.yaml", "content": "x"}, false},           // the policy
		{"filesystem.read", object{"path": "dark/secret.txt"}, false},                     // ignored
		{"filesystem.write", object{"path": "../made", "content": "x"}, false},            // outside
		{"http.get", object{"url": "http://127.0.0.1:1/"}, false},                         // private
	}
	const rules = `{"grant":["filesystem.write(path: \"free/**\")"],"approve":["filesystem.stat"],"deny":["filesystem.mkdir","filesystem.write(path: \"free/closed/**\")"],"hidden":["filesystem.move"]}`
	for _, s := range steps {
		for way, w := range map[string]way{"straight": {wrap: func(n string, a object) (string, object) { return n, a }}, "execute_tool": {wrap: execute}, "twice": way{wrap: execute}.after(way{wrap: execute})} {
			dir := folder(t, "a.txt", "hello", "dark/secret.txt", "s3cret", "free/kept/x", "", ".helveignore", "dark/\n", ".helveprotect", "free/kept/\n")
			action, params := w.wrap(s.name, s.args)
			text, err := json.Marshal(object{"app": object{"app_id": "set", "name": "Set"}, "tools": object{
				"modules": object{"http": object{}, "filesystem": object{
					"constraints": object{"allowed_actions": []string{"read", "list", "write", "append"}, "blocked_actions": []string{"append"}},
					"setup":       []any{object{"action": action, "params": params}}}},
				"capabilities": json.RawMessage(rules)}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "app.yaml"), string(text))
			_, errs, code := run(t, dir, "", "tools", "call", "filesystem.list", "{}", "--app", "app.yaml")
			if ran := !strings.Contains(errs, "setup step 1"); ran != s.runs || ran != (code == 0) {
				t.Errorf("%s %v, %s: %d %s", s.name, s.args, way, code, errs)
			}
			if exists(filepath.Join(dir, "free/closed/made")) || exists(filepath.Join(filepath.Dir(dir), "made")) || read(t, filepath.Join(dir, "app.yaml")) != string(text) {
				t.Errorf("%s %v, %s: it ran", s.name, s.args, way)
			}
			for _, l := range audited(t, dir, "--app", "app.yaml", "--tool", s.name) {
				if l.Kind != "setup" || (l.Decision == "allow") != s.runs {
					t.Errorf("%s, %s: %+v", s.name, way, l)
				}
			}
			// Nobody else may.
			args, err := json.Marshal(s.args)
			if err != nil {
				t.Fatal(err)
			}
			if _, errs, code := run(t, dir, "", "tools", "call", s.name, string(args), "--app", "app.yaml"); code == 0 {
				t.Errorf("%s: the command line may: %s", s.name, errs)
			}
		}
	}
}

// What is known of a question answers none: its id in another session's
// calls, wherever it is written, or in the same call once more.
func TestIDsOfQuestionsAnswerNothing(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	d := serve(t, dir, "--app", "app.yaml")
	args := object{"path": "docs/a.md", "content": "x"}
	first := inBackground(t, d.connect(t, "/mcp"), "filesystem.write", args)
	q := asked(t, dir, "--app", "app.yaml")
	claims := object{"approval": q.ID, "approval_id": q.ID, "approvalId": q.ID, "question": q.ID, "requestState": q.ID, "approved": q.ID, "_approved": []any{q.ID},
		"inputResponses": object{q.ID: object{"action": "accept", "content": object{"decision": "approve"}}, "approval-" + q.ID: object{"action": "accept", "content": object{"decision": "approve"}}}}
	s := d.connect(t, "/mcp")
	if r := call(t, s, "filesystem.write", with(args, claims)); r.Code != "validation_error" {
		t.Errorf("in the arguments: %+v", r)
	}
	for _, name := range []string{"approvals.approve", "approve", "approval.answer", "helve.approve"} {
		if r := call(t, s, name, claims); r.Code != "tool_not_found" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	body := func(more object) string {
		text, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": with(object{"name": "filesystem.write", "arguments": args, "_meta": claims}, more)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, text, _ := post(t, d.URL+"/mcp", body(claims)); !strings.Contains(text, `"error"`) {
		t.Errorf("as the state of a call: %s", text)
	}
	second := make(chan string, 1)
	go func() {
		_, text, _ := post(t, d.URL+"/mcp", body(nil))
		second <- text
	}()
	eventually(t, func() bool { return len(waitingIn(t, dir, "--app", "app.yaml")) == 2 }) // it is asked about on its own
	must(t, dir, "approvals", "approve", q.ID, "--app", "app.yaml")
	if r := <-first; r.IsError {
		t.Errorf("approved: %+v", r)
	}
	if _, _, code := run(t, dir, "", "approvals", "approve", q.ID, "--app", "app.yaml"); code == 0 {
		t.Error("the question was answered twice")
	}
	left := waitingIn(t, dir, "--app", "app.yaml")
	if len(left) != 1 || left[0].ID == q.ID {
		t.Fatalf("what waits is %+v", left)
	}
	must(t, dir, "approvals", "deny", left[0].ID, "--app", "app.yaml")
	if text := <-second; !strings.Contains(text, "approval_denied") {
		t.Errorf("another session's: %s", text)
	}
}
