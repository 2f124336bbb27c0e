package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an argument's role declares secret gets to the tool, and is written and
// shown nowhere.
func TestDeclaredSecretsAreKeptNowhere(t *testing.T) {
	const secret = "plum velvet nine"
	c := newCollector(t)
	call := object{"tool": "mcp.kid.open_door", "args": object{"word": secret}}
	server := child(t, "door")
	server["overrides"] = object{"open_door": object{"roles": object{"word": "secret"}}}
	var app object
	if err := json.Unmarshal([]byte(serversApp(t, object{"kid": server}, object{"capabilities": object{"approval_wait": "always"}, "modules": object{"filesystem": object{}, "tasks": object{}}})), &app); err != nil {
		t.Fatal(err)
	}
	app["schema_version"] = 2
	app["runtime"] = object{"max_mistakes": 0, "repetition": object{"callers": "none"}}
	app["agents"] = []any{object{"id": "boss", "brain": object{"backend": "script", "config": object{"turns": []any{
		object{"calls": []any{call,
			object{"tool": "execute_tool", "args": object{"name": call["tool"], "params": call["args"]}},
			object{"tool": "execute_tool", "args": object{"name": "mcp__kid__open_door", "params": object{"Word": secret}}},
			object{"tool": "execute_tool", "args": object{"name": "open_door", "arguments": object{"Word": secret}}},
			object{"tool": "execute_tool", "args": object{"name": "execute_tool", "params": object{"name": "OPEN_DOOR", "params": call["args"]}}},
			object{"tool": "run_parallel", "args": object{"actions": []any{object{"name": call["tool"], "params": call["args"]}}}},
			object{"tool": "run_parallel", "args": object{"actions": []any{object{"name": call["tool"], "params": encode(t, call["args"])}}}},
			object{"tool": "no_such_tool", "args": object{"name": call["tool"], "params": call["args"]}},
		}},
		object{"say": "It was opened."}}}}}}
	dir := folder(t, "app.yaml", encode(t, app))
	with := []string{"--app", "app.yaml"}

	// Asked about, and answered.
	s := stdio(t, dir, with...)
	got := inBackground(t, s, "mcp.kid.open_door", call["args"])
	q := asked(t, dir, with...)
	seen := map[string]string{"the question": string(q.Args) + strings.Join(q.Reasons, " ") + q.Scope.Shown,
		"approvals show": must(t, dir, append([]string{"approvals", "show", q.ID}, with...)...)}
	must(t, dir, append([]string{"approvals", "approve", q.ID}, with...)...)
	if r := <-got; r.IsError || r.Text != "a word of 16 letters" {
		t.Fatalf("the tool was not given it: %+v", r)
	}
	got = inBackground(t, s, "mcp.kid.open_door", call["args"])
	must(t, dir, append([]string{"approvals", "deny", asked(t, dir, with...).ID}, with...)...)
	<-got
	s.Close()

	// Called by an agent, and told of.
	env := append(c.env(), "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	if out, errs, code := runWith(t, dir, env, "run", "app.yaml", "Open it", "--yes"); code != 0 || !strings.Contains(out, "It was opened.") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	seen["audit"] = must(t, dir, append([]string{"audit", "--json", "--limit", "0"}, with...)...)
	if n := strings.Count(seen["audit"], `"tool": "mcp.kid.open_door"`); n < 4 {
		t.Errorf("%d calls on record", n)
	}
	seen["approvals"] = must(t, dir, append([]string{"approvals", "--all", "--json"}, with...)...)
	seen["sessions"] = must(t, dir, append([]string{"sessions", "--json"}, with...)...)
	seen["checkpoints"] = must(t, dir, append([]string{"checkpoints", "--json"}, with...)...)
	seen["explained"] = must(t, dir, append([]string{"policy", "explain", "mcp.kid.open_door", encode(t, call["args"])}, with...)...)
	c.mu.Lock()
	seen["telemetry"] = c.all.String()
	c.mu.Unlock()
	if !strings.Contains(seen["telemetry"], "open_door") {
		t.Error("the calls were not told to the collector")
	}
	for where, text := range seen {
		if strings.Contains(text, secret) {
			t.Errorf("%s: %s", where, text)
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, ".helve", "audit"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
