package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const listRequest = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,` +
	`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}%s}}`

// listed returns the tools of a view as they were sent to one client, all pages.
func (d *daemon) listed(t *testing.T, path, version, client string) string {
	t.Helper()
	all := ""
	for cursor := ""; ; {
		more := ""
		if cursor != "" {
			more = fmt.Sprintf(`,"cursor":%q`, cursor)
		}
		status, text, _ := post(t, d.URL+path, fmt.Sprintf(listRequest, version, client, more), "Mcp-Protocol-Version", version, "Mcp-Method", "tools/list")
		page, next := toolsIn(t, text)
		if status != 200 {
			t.Fatalf("%s: %d %.300s", path, status, text)
		}
		all += page
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// listedByStdio returns what helve mcp lists in a view for a client.
func listedByStdio(t *testing.T, dir, view, client string, args ...string) string {
	t.Helper()
	all := ""
	for cursor := ""; ; {
		more := ""
		if cursor != "" {
			more = fmt.Sprintf(`,"cursor":%q`, cursor)
		}
		out, errs, code := run(t, dir, fmt.Sprintf(listRequest+"\n", "2026-07-28", client, more), append([]string{"mcp", "--present", view}, args...)...)
		if code != 0 {
			t.Fatalf("helve mcp: %d\n%s", code, errs)
		}
		answer := ""
		for line := range strings.Lines(out) {
			if strings.Contains(line, `"id":7`) {
				answer = line
			}
		}
		page, next := toolsIn(t, answer)
		all += page
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func toolsIn(t *testing.T, answer string) (tools, next string) {
	t.Helper()
	var msg struct {
		Result struct {
			Tools      json.RawMessage
			NextCursor string
		}
	}
	if err := json.Unmarshal([]byte(answer), &msg); err != nil || len(msg.Result.Tools) < 100 {
		t.Fatalf("tools/list: %v %.300s", err, answer)
	}
	return string(msg.Result.Tools), msg.Result.NextCursor
}

// While the tools are the same, each view is the same to the byte: for every
// client and revision, whatever was called before, when a server is in use, was
// lost and came back, or was stopped when idle, after a restart, cold or warm,
// over HTTP and over stdio. Else every change would make clients pay for their
// prompts again (SPEC I5, I9).
func TestListsStayTheSame(t *testing.T) {
	t.Parallel()
	const app = "app.yaml"
	g, lazy := newGate(t), child(t, "strange")
	lazy["idle_timeout"] = 1
	dir := folder(t, app, serversApp(t, object{"zed": child(t, "strange"), "falls": child(t, "crash"), "acts": child(t, "acting"),
		"lazy": lazy, "kid": child(t, "slow="+g.Addr().String())},
		object{"modules": object{"filesystem": object{}, "http": object{}}, "capabilities": object{"default_policy": "auto"}}))
	paths := map[string]string{"/mcp": "auto", "/mcp/full": "full", "/mcp/compact": "compact", "/mcp/discovery": "discovery"}
	want := map[string]string{}
	same := func(when string, list func(path string) string) {
		t.Helper()
		for path := range paths {
			if got := list(path); want[path] == "" {
				want[path] = got
			} else if got != want[path] {
				t.Errorf("%s: %s lists\n%.2000s\nnot\n%.2000s", when, path, got, want[path])
			}
		}
	}
	older := map[string]string{}
	as := func(d *daemon, client string) func(string) string {
		return func(path string) string {
			got := d.listed(t, path, "2025-06-18", client)
			if was := older[path]; was != "" && was != got {
				t.Errorf("for an older revision %s lists\n%.2000s\nnot\n%.2000s", path, got, was)
			}
			older[path] = got
			return d.listed(t, path, "2026-07-28", client)
		}
	}
	d := serve(t, dir, "--app", app)
	same("at first", as(d, "one"))
	if !strings.Contains(want["/mcp/full"], "mcp__zed__get_unknown") || !strings.Contains(want["/mcp/compact"], "mcp__falls__get_well") ||
		strings.Contains(want["/mcp/discovery"], "mcp__zed__get_unknown") || want["/mcp/full"] == want["/mcp/compact"] {
		t.Fatal("the views are not what they should be")
	}
	same("another client", as(d, "claude-code"))
	for path := range paths {
		for _, version := range []string{"2025-03-26", "2025-11-25"} { // with a session
			s := d.mustAs(t, "", path, version)
			names(t, s)
			call(t, s, "search_tools", object{"query": "get unknown"})
			call(t, s, "get_tool", object{"name": "mcp.zed.get_unknown"})
			call(t, s, "execute_tool", object{"name": "mcp.zed.get_oneof", "params": object{}})
		}
	}
	same("after searches and calls", as(d, "one"))
	if _, failed := d.rawCall(t, "/mcp/full", "mcp__falls__get_crash", "{}"); !failed {
		t.Fatal("a server that dies has answered")
	}
	same("while a server is gone", as(d, "one"))
	eventually(t, func() bool {
		text, failed := d.rawCall(t, "/mcp/full", "mcp__falls__get_well", "{}")
		return !failed && text == "well"
	})
	same("after it came back", as(d, "one"))
	done := slowly(t, d.connect(t, "/mcp"))
	answer := g.called(t)
	if got := d.states(t, dir)["kid"]; got != "in_use" {
		t.Errorf("a server that is being called is %s", got)
	}
	same("while a server is in use", as(d, "one"))
	answer("done")
	<-done
	eventually(t, func() bool { return d.states(t, dir)["lazy"] == "manifest_known" })
	same("while a server is stopped, not having been used", as(d, "one"))
	d.rawCall(t, "/mcp/full", "mcp__lazy__get_oneof", "{}")
	same("while it runs again", as(d, "one"))
	d.stop(t)
	same("after a restart", as(serve(t, dir, "--app", app), "one"))
	same("with another state", as(serve(t, dir, "--app", app, "--state", filepath.Join(t.TempDir(), "state")), "one"))
	for _, state := range []string{"cold", "cold"} { // the second time warm
		same("over stdio, "+state, func(path string) string {
			return listedByStdio(t, dir, paths[path], "one", "--app", app, "--state", state)
		})
	}
}
