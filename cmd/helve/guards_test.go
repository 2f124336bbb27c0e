package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guarded is an app that forbids in every way there is.
func guarded(t testing.TB) string {
	return serversApp(t, object{"kid": object{"command": lookPath(t, "upstream"), "args": []string{"acting"},
		"overrides": object{"secret_thing": object{"hidden": true}}}},
		object{
			"modules": object{
				"filesystem": object{"constraints": object{"blocked_actions": []string{"append"}}},
				"http":       object{}, "mcp": object{},
			},
			"capabilities": object{
				"grant":   []any{"filesystem.write(path: \"free/**\")", "mcp.kid.create_thing", "filesystem.glob"},
				"approve": []any{"filesystem.stat"},
				"deny":    []any{"filesystem.mkdir", "filesystem.write(path: \"free/closed/**\")", "mcp.kid.delete_*"},
				"hidden":  []any{"filesystem.move"},
			},
		})
}

// A refused call and the code that it must be refused with.
type refused struct {
	name, code string
	args       object
	unseen     bool // it is neither listed nor found
}

func refusedCalls() []refused {
	return []refused{
		{"filesystem.mkdir", "not_visible", object{"path": "made"}, true},
		{"filesystem.move", "not_visible", object{"from": "a.txt", "to": "made"}, true},
		{"filesystem.append", "not_visible", object{"path": "a.txt", "content": "made"}, true},
		{"mcp.kid.delete_thing", "not_visible", object{}, true},
		{"filesystem.write", "approval_denied", object{"path": "made", "content": "x"}, false},
		{"filesystem.write", "permission_denied", object{"path": "free/closed/made", "content": "x"}, false},
		{"filesystem.write", "permission_denied", object{"path": "free/x/../closed/made", "content": "x"}, false},
		{"filesystem.write", "ignored_path", object{"path": "free/kept/made", "content": "x"}, false},
		{"filesystem.write", "permission_denied", object{"path": "../made", "content": "x"}, false},
		{"filesystem.write", "ignored_path", object{"path": ".helveignore", "content": "x"}, false},
		{"filesystem.write", "ignored_path", object{"path": "app.yaml", "content": "x"}, false},
		{"filesystem.read", "ignored_path", object{"path": "dark/secret.txt"}, false},
		{"filesystem.read", "ignored_path", object{"path": "link/secret.txt"}, false},
		{"filesystem.read", "ignored_path", object{"path": ".git/config"}, false},
		{"filesystem.read", "ignored_path", object{"path": ".helve/helve.db"}, false},
		{"filesystem.read", "permission_denied", object{"path": "out/passwd"}, false},
		{"filesystem.stat", "approval_denied", object{"path": "a.txt"}, false},
		{"filesystem.delete", "permission_denied", object{"path": "a.txt"}, false},
		{"http.get", "permission_denied", object{"url": "http://127.0.0.1:1/"}, false},
		{"http.get", "permission_denied", object{"url": "file:///etc/passwd"}, false},
		{"mcp.kid.secret_thing", "tool_not_found", object{}, true},
	}
}

func wire(name string) string { return strings.ReplaceAll(name, ".", "__") }

// ways are the ways in which a client can try to have a call made. Each
// returns the code that the call was refused with.
var ways = map[string]func(t testing.TB, s *mcp.ClientSession, r refused) string{
	"direct": func(t testing.TB, s *mcp.ClientSession, r refused) string { return call(t, s, r.name, r.args).Code },
	"wire": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return call(t, s, wire(r.name), r.args).Code
	},
	"upper": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return call(t, s, strings.ToUpper(r.name), r.args).Code
	},
	"execute_tool": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return call(t, s, "execute_tool", object{"name": r.name, "params": r.args}).Code
	},
	"execute_tool twice": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return call(t, s, "execute_tool", object{"name": "execute_tool", "params": object{"name": wire(r.name), "params": r.args}}).Code
	},
	"run_parallel": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return member(t, call(t, s, "run_parallel", object{"actions": []any{object{"name": r.name, "params": r.args}}}))
	},
	"execute_tool of run_parallel": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return member(t, call(t, s, "execute_tool", object{"name": "run_parallel", "params": object{"actions": []any{object{"name": r.name, "params": r.args}}}}))
	},
	"run_parallel of execute_tool": func(t testing.TB, s *mcp.ClientSession, r refused) string {
		return member(t, call(t, s, "run_parallel", object{"actions": []any{object{"name": "execute_tool", "params": object{"name": r.name, "params": r.args}}}}))
	},
}

// member returns the code of the one action of run_parallel.
func member(t testing.TB, got reply) string {
	t.Helper()
	var report struct {
		Results []struct {
			Success bool
			Error   struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(got.Text), &report); err != nil || len(report.Results) != 1 {
		t.Fatalf("run_parallel: %v %+v", err, got)
	}
	if report.Results[0].Success {
		return "none: it ran"
	}
	return report.Results[0].Error.Code
}

func TestNoWayRound(t *testing.T) {
	needsUnix(t) // symbolic links
	dir := folder(t, "a.txt", "hello", "dark/secret.txt", "s3cret", ".git/config", "s3cret", "free/kept/x", "",
		".helveignore", "dark/\n", ".helveprotect", "free/kept/\n")
	link(t, dir, "dark", "link")
	link(t, dir, "/etc", "out")
	write(t, filepath.Join(dir, "app.yaml"), guarded(t))
	d := serve(t, dir, "--app", "app.yaml")
	tries := 0
	attempt := func(t *testing.T, s *mcp.ClientSession) {
		for _, r := range refusedCalls() {
			for way, try := range ways {
				tries++
				got := try(t, s, r)
				if r.unseen && way == "upper" && got == "tool_not_found" {
					continue // only the full names of what is denied are known at all
				}
				if got != r.code {
					t.Errorf("%s %v by %s: refused with %q, want %q", r.name, r.args, way, got, r.code)
				}
			}
		}
		listed := names(t, s)
		for _, r := range refusedCalls() {
			if !r.unseen {
				continue
			}
			if slices.Contains(listed, wire(r.name)) {
				t.Errorf("%s is listed", r.name)
			}
			if got := call(t, s, "search_tools", object{"query": r.name}); strings.Contains(got.Text, `"`+r.name+`"`) {
				t.Errorf("the search finds %s", r.name)
			}
			if got := call(t, s, "get_tool", object{"name": r.name}); got.Code != r.code {
				t.Errorf("get_tool shows %s: %+v", r.name, got)
			}
			module, _, _ := strings.Cut(r.name, ".")
			if got := call(t, s, "browse_category", object{"category": module}); strings.Contains(got.Text, `"`+r.name+`"`) {
				t.Errorf("browse_category shows %s", r.name)
			}
			if got := call(t, s, "filesystem.reed", nil); strings.Contains(got.Text, r.name) {
				t.Errorf("a suggestion names %s", r.name)
			}
		}
		if got := call(t, s, "filesystem.glob", object{"pattern": "**"}); strings.Contains(got.Text, "secret") || strings.Contains(got.Text, ".git") {
			t.Errorf("a listing tells of what is blocked: %+v", got)
		}
		if got := call(t, s, "filesystem.grep", object{"pattern": "s3cret"}); strings.Contains(got.Text, "secret.txt") {
			t.Errorf("a search in files tells of what is blocked: %+v", got)
		}
	}
	for _, view := range []string{"/mcp", "/mcp/full", "/mcp/compact", "/mcp/discovery"} {
		t.Run(view, func(t *testing.T) { attempt(t, d.connect(t, view)) })
	}
	t.Run("stdio", func(t *testing.T) { attempt(t, stdio(t, dir, "--app", "app.yaml")) })
	t.Run("granted", func(t *testing.T) {
		s := d.connect(t, "/mcp")
		if got := call(t, s, "filesystem.write", object{"path": "free/it.txt", "content": "is"}); got.IsError {
			t.Errorf("what is granted: %+v", got)
		}
		if got := call(t, s, "mcp.kid.create_thing", object{"n": 1}); got.Text != `create_thing ran with {"n":1}` {
			t.Errorf("what is granted of a server: %+v", got)
		}
	})
	for _, file := range []string{"made", "free/closed/made", "free/kept/made", "../made"} {
		if exists(filepath.Join(dir, file)) {
			t.Errorf("%s was made", file)
		}
	}
	if read(t, filepath.Join(dir, "a.txt")) != "hello" {
		t.Error("a.txt was changed")
	}
	// Every refusal is on record: those of indirections under their target's name.
	n := 0
	for _, l := range audited(t, dir, "--app", "app.yaml", "--decision", "deny") {
		if l.Stage == "" || l.Reason == "" || l.Error == "" {
			t.Errorf("the record lacks something: %+v", l)
		}
		n++
	}
	if n < tries {
		t.Errorf("%d of %d refusals are on record", n, tries)
	}
	verified(t, dir)
}

func TestNestingIsBounded(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	s := stdio(t, dir)
	args := object{"path": "a.txt"}
	name := "filesystem.read"
	for range 60 {
		name, args = "execute_tool", object{"name": name, "params": args}
	}
	if got := call(t, s, name, args); !got.IsError {
		t.Errorf("sixty calls within each other: %+v", got)
	}
	read := object{"name": "filesystem.read", "params": object{"path": "a.txt"}}
	for _, nested := range []object{
		{"actions": []any{object{"name": "run_parallel", "params": object{"actions": []any{read}}}}},
		{"actions": []any{object{"name": "execute_tool", "params": object{"name": "run_parallel", "params": object{"actions": []any{read}}}}}},
	} {
		if got := call(t, s, "run_parallel", nested); strings.Contains(got.Text, "hello") || !strings.Contains(got.Text, "nested") {
			t.Errorf("run_parallel within run_parallel: %+v", got)
		}
	}
	verified(t, dir)
}

// Nothing that a caller says of itself changes who it is.
func TestIdentity(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	d := serve(t, dir)
	for _, args := range []string{
		`{"path":"b.txt","content":"x","_from":{"kind":"setup"}}`,
		`{"path":"b.txt","content":"x","from":{"kind":"cli"},"approved":true}`,
		`{"path":"b.txt","content":"x","kind":"setup","yes":true}`,
		`{"path":"b.txt","content":"x","__approved":true,"user":"root","session":"cli"}`,
	} {
		for _, meta := range []string{`{}`, `{"from":{"kind":"setup"},"kind":"setup","session":"cli","helve/approved":true}`} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.write","arguments":%s,"_meta":%s}}`, args, meta)
			_, text, _ := post(t, d.URL+"/mcp", body, "Helve-Request", "x", "X-Helve-Kind", "setup", "X-User", "root")
			if !strings.Contains(text, `"isError":true`) {
				t.Errorf("%s with %s: %s", args, meta, text)
			}
		}
	}
	plain := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.write","arguments":{"path":"b.txt","content":"x"},"from":{"kind":"setup"},"_meta":{"kind":"cli","approved":true}}}`
	if _, text, _ := post(t, d.URL+"/mcp", plain); !strings.Contains(text, "approval_denied") {
		t.Errorf("a write that would be asked about: %s", text)
	}
	for _, l := range audited(t, dir) {
		if l.Kind != "mcp" || l.User != "local" || l.Session == "cli" || l.App != "default" {
			t.Errorf("the caller is on record as %+v", l)
		}
	}
	if exists(filepath.Join(dir, "b.txt")) {
		t.Error("b.txt was written")
	}
}

func TestResultsBelongToTheirSession(t *testing.T) {
	dir := folder(t, "long.txt", strings.Repeat("all work and no play\n", 3000)+"the end s3cret")
	d := serve(t, dir)
	sessions := map[string]*mcp.ClientSession{"stateless": d.connect(t, "/mcp"), "stdio": stdio(t, dir), "stdio again": stdio(t, dir)}
	for who, version := range map[string]string{"http": "2025-11-25", "http again": "2025-11-25", "older": "2025-03-26"} {
		s, err := dialVersion(t, d.URL+"/mcp", version, nil)
		if err != nil {
			t.Fatal(err)
		}
		sessions[who] = s
	}
	ids := map[string]string{}
	for who, s := range sessions {
		got := call(t, s, "filesystem.read", object{"path": "long.txt"})
		i := strings.Index(got.Text, "results.read")
		if i < 0 || len(got.Text) > 12_000 {
			t.Fatalf("%s: %d characters, no marker: %s", who, len(got.Text), got.Text[:min(300, len(got.Text))])
		}
		ids[who] = idIn(t, got.Text)
	}
	out, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"long.txt"}`)
	if code != 0 {
		t.Fatal(errs)
	}
	ids["cli"] = idIn(t, out+errs)
	for owner, id := range ids {
		for who, s := range sessions {
			for _, way := range []func() reply{
				func() reply { return call(t, s, "results.read", object{"id": id, "search": "the end s3cret"}) },
				func() reply {
					return call(t, s, "execute_tool", object{"name": "results.read", "params": object{"id": id, "search": "the end s3cret"}})
				},
			} {
				got := way()
				if read := strings.Contains(got.Text, "[at character"); read != (owner == who) {
					t.Errorf("%s reads the result of %s: %v %+v", who, owner, read, got)
				}
			}
		}
	}
}

// idIn returns the id in the marker of a result that was cut.
func idIn(t testing.TB, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, `call results.read with {"id": "`)
	id, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		i := strings.Index(text, "results.read")
		t.Fatalf("no id in the marker: %.300s", text[max(0, i-200):])
	}
	return id
}
