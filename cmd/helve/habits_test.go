package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const learningApp = `app: {app_id: %ID, name: n}
tools:
  search: {learn: true}
  capabilities: {default_policy: auto}
`

// An app learns from successful calls after searches, shows what that is worth,
// tells no other app, and forgets when it is told to.
func TestLearningFromUsage(t *testing.T) {
	const query = "look at the contents of something"
	dir := folder(t, "a.txt", "hello\n", "app.yaml", strings.ReplaceAll(learningApp, "%ID", "one"), "other.yaml", strings.ReplaceAll(learningApp, "%ID", "two"),
		"plain.yaml", strings.ReplaceAll(strings.ReplaceAll(learningApp, "%ID", "one"), "learn: true", "learn: false"))
	part := func(file string) map[string]float64 {
		out, errs, code := run(t, dir, "", "tools", "search", query, "--json", "--limit", "50", "--app", file)
		var rows []struct {
			Name  string
			Parts []struct {
				Channel string
				Score   float64
			}
		}
		if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 {
			t.Fatalf("tools search: %v %s", err, errs)
		}
		habits := map[string]float64{}
		for _, r := range rows {
			for _, p := range r.Parts {
				if p.Channel == "habits" {
					habits[r.Name] = p.Score
				}
			}
		}
		return habits
	}
	s := stdio(t, dir, "--app", "app.yaml")
	call(t, s, "filesystem.read", object{"path": "a.txt"}) // before any search
	var found struct{ Tools []struct{ Name string } }
	got := call(t, s, "search_tools", object{"query": query, "limit": 50})
	if err := json.Unmarshal([]byte(got.Text), &found); err != nil || !strings.Contains(got.Text, `"filesystem.read"`) || !strings.Contains(got.Text, `"filesystem.list"`) {
		t.Fatalf("search: %v %s", err, got.Text)
	}
	if got := part("app.yaml"); len(got) > 0 {
		t.Errorf("learnt before a call: %v", got)
	}
	call(t, s, "execute_tool", object{"name": "filesystem.read", "params": object{"path": "none.txt"}}) // fails
	if got := part("app.yaml"); len(got) > 0 {
		t.Errorf("learnt from a call that failed: %v", got)
	}
	call(t, s, "execute_tool", object{"name": "filesystem.read", "params": object{"path": "a.txt"}})
	if got := part("app.yaml"); len(got) != 1 || got["filesystem.read"] <= 0 || got["filesystem.read"] > .5 {
		t.Errorf("learnt: %v", got)
	}
	if out, _, _ := run(t, dir, "", "tools", "search", query, "--explain", "--app", "app.yaml"); !strings.Contains(out, "habits 0.") {
		t.Errorf("--explain: %s", out)
	}
	if got := part("other.yaml"); len(got) > 0 {
		t.Errorf("another app has it: %v", got)
	}
	if got := part("plain.yaml"); len(got) > 0 {
		t.Errorf("it counts where learning is off: %v", got)
	}
	if out, errs, code := run(t, dir, "", "tools", "forget", "--app", "app.yaml"); code != 0 || !strings.Contains(out, "Forgotten: 1") {
		t.Errorf("forget: %s %s", out, errs)
	}
	if got := part("app.yaml"); len(got) > 0 {
		t.Errorf("not forgotten: %v", got)
	}
}

// What was called one after the other, twice after searches, is said of the
// first with the second; a tool that is hidden since is not named.
func TestHintsFromUsage(t *testing.T) {
	app := strings.ReplaceAll(learningApp, "%ID", "one")
	dir := folder(t, "a.txt", "hello\n", "app.yaml", app, "hidden.yaml", strings.Replace(app, "auto}", "auto, hidden: [{module: filesystem, actions: [read]}]}", 1))
	s := stdio(t, dir, "--app", "app.yaml")
	search := object{"query": "list a folder and read a text file"}
	const hint = `"after":["filesystem.read"]`
	for range 2 {
		if got := call(t, s, "search_tools", search); strings.Contains(got.Text, hint) || !strings.Contains(got.Text, `"filesystem.list"`) {
			t.Errorf("before it is usual: %s", got.Text)
		}
		call(t, s, "filesystem.list", object{"path": "."})
		call(t, s, "filesystem.read", object{"path": "a.txt"})
	}
	if got := call(t, s, "search_tools", search); !strings.Contains(got.Text, hint) {
		t.Errorf("when it is usual: %s", got.Text)
	}
	hidden := stdio(t, dir, "--app", "hidden.yaml")
	if got := call(t, hidden, "search_tools", search); got.IsError || strings.Contains(got.Text, "filesystem.read") {
		t.Errorf("hidden: %s", got.Text)
	}
}
