package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asking is an app that asks about writes, and waits for answers.
const asking = `app: {app_id: demo, name: Demo}
tools:
  modules: {filesystem: {}, shell: {}, http: {}, checkpoint: {}, workspace: {}, tasks: {}}
  capabilities:
    approval_wait: always
    grant: [filesystem.mkdir]
    approve: ['filesystem.write(path: "docs/**")']
    deny: ['filesystem.write(path: "closed/**")']
`

// A waiting is what the tests read of helve approvals --json.
type waiting struct {
	ID, Tool, Diff, State string
	Args                  json.RawMessage
	Reasons               []string
	Scope                 struct{ Shown string }
}

func waitingIn(t testing.TB, dir string, args ...string) []waiting {
	t.Helper()
	out := must(t, dir, append([]string{"approvals", "--json"}, args...)...)
	var all struct{ Questions []waiting }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("helve approvals --json: %v\n%s", err, out)
	}
	return all.Questions
}

// asked waits until a call waits for an approval.
func asked(t testing.TB, dir string, args ...string) (q waiting) {
	t.Helper()
	eventually(t, func() bool {
		all := waitingIn(t, dir, args...)
		if len(all) > 0 {
			q = all[0]
		}
		return len(all) > 0
	})
	return q
}

// inBackground calls a tool, and returns what it will reply.
func inBackground(t testing.TB, s *mcp.ClientSession, name string, args any) <-chan reply {
	got := make(chan reply, 1)
	go func() {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			got <- reply{Text: err.Error(), Code: "protocol"}
			return
		}
		got <- replyOf(res)
	}()
	return got
}

// Calls that wait in helve mcp are answered by another process.
func TestApprovals(t *testing.T) {
	dir := folder(t, "app.yaml", asking, "docs/old.md", "old\n")
	app := []string{"--app", "app.yaml"}
	s := stdio(t, dir, app...)
	with := func(args ...string) []string { return append(args, app...) }

	got := inBackground(t, s, "filesystem.write", object{"path": "docs/old.md", "content": "new\n"})
	q := asked(t, dir, app...)
	if q.Tool != "filesystem.write" || !strings.Contains(q.Diff, "-old\n+new") || len(q.Reasons) != 1 || !strings.Contains(q.Reasons[0], "docs/**") {
		t.Errorf("asked: %+v", q)
	}
	if out := must(t, dir, with("approvals", "show", q.ID)...); !strings.Contains(out, "+new") || !strings.Contains(out, "docs/**") {
		t.Errorf("shown:\n%s", out)
	}
	must(t, dir, with("approvals", "approve", q.ID[:8])...)
	if r := <-got; r.IsError || read(t, filepath.Join(dir, "docs/old.md")) != "new\n" {
		t.Errorf("approved: %+v", r)
	}
	if _, errs, code := run(t, dir, "", with("approvals", "deny", q.ID)...); code != 3 || !strings.Contains(errs, "in the terminal") {
		t.Errorf("a second answer: %d %s", code, errs)
	}

	got = inBackground(t, s, "filesystem.write", object{"path": "docs/b.md", "content": "x"})
	q = asked(t, dir, app...)
	must(t, dir, with("approvals", "deny", q.ID, "--feedback", "write it in French")...)
	if r := <-got; r.Code != "approval_denied" || !strings.Contains(r.Text, "write it in French") || exists(filepath.Join(dir, "docs/b.md")) {
		t.Errorf("denied: %+v", r)
	}

	got = inBackground(t, s, "filesystem.write", object{"path": "docs/b.md", "content": "x"})
	q = asked(t, dir, app...)
	if out, errs, code := run(t, dir, `{"path":"docs/c.md","content":"edited"}`, with("approvals", "approve", q.ID, "--edit", "-")...); code != 0 {
		t.Fatal(out, errs)
	}
	if r := <-got; r.IsError || !strings.Contains(r.Text, "the operator changed the arguments") || exists(filepath.Join(dir, "docs/b.md")) || read(t, filepath.Join(dir, "docs/c.md")) != "edited" {
		t.Errorf("edited: %+v", r)
	}
	for _, edit := range []struct{ args, code string }{
		{`{"path":"closed/c.md","content":"edited"}`, "permission_denied"},
		{`{"path":"../c.md","content":"edited"}`, "permission_denied"},
		{`{"path":"app.yaml","content":"edited"}`, "ignored_path"},
		{`{"path":".helve/x","content":"edited"}`, "ignored_path"},
		{`{"content":"edited"}`, "validation_error"},
		{`{"path":"docs/d.md","content":"x","_approved":true}`, "validation_error"},
	} {
		got = inBackground(t, s, "filesystem.write", object{"path": "docs/d.md", "content": "x"})
		q = asked(t, dir, app...)
		if out, errs, code := run(t, dir, edit.args, with("approvals", "approve", q.ID, "--edit", "-")...); code != 0 {
			t.Fatal(out, errs)
		}
		if r := <-got; r.Code != edit.code || exists(filepath.Join(dir, "docs/d.md")) || exists(filepath.Join(dir, "closed")) {
			t.Errorf("edited to %s: %+v", edit.args, r)
		}
	}
	var who []string
	for _, l := range audited(t, dir, with("--tool", "filesystem.write")...) {
		who = append(who, l.Approver)
	}
	if len(who) != 9 || !strings.Contains(who[0], "(in the terminal)") || !strings.Contains(who[1], "(in the terminal)") || !strings.Contains(who[2], "with other arguments") {
		t.Errorf("on record as approvers: %q", who)
	}
	verified(t, dir)
}

// An approval for the session covers what it says, for the session.
func TestApprovalsForTheSession(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	d := serve(t, dir, "--app", "app.yaml")
	one, two := d.connect(t, "/mcp"), d.connect(t, "/mcp")
	_ = two
	got := inBackground(t, one, "filesystem.write", object{"path": "docs/a.md", "content": "x"})
	q := asked(t, dir, "--app", "app.yaml")
	if !strings.Contains(q.Scope.Shown, `filesystem.write(path: "docs/**")`) {
		t.Errorf("it would cover %q", q.Scope.Shown)
	}
	must(t, dir, "approvals", "approve", q.ID, "--for-session", "--app", "app.yaml")
	if r := <-got; r.IsError {
		t.Errorf("approved: %+v", r)
	}
	if r := call(t, one, "filesystem.write", object{"path": "docs/b.md", "content": "x"}); r.IsError {
		t.Errorf("covered: %+v", r)
	}
	for _, out := range []object{
		{"path": "elsewhere.md", "content": "x"},
		{"path": "docs/../elsewhere.md", "content": "x"},
	} {
		got = inBackground(t, one, "filesystem.write", out)
		q = asked(t, dir, "--app", "app.yaml")
		must(t, dir, "approvals", "deny", q.ID, "--app", "app.yaml")
		if r := <-got; r.Code != "approval_denied" {
			t.Errorf("%v: %+v", out, r)
		}
	}
	if out := must(t, dir, "approvals", "--app", "app.yaml"); !strings.Contains(out, "Approved for a session") {
		t.Errorf("shown:\n%s", out)
	}
}

// Whoever is not there cannot be waited for.
func TestNobodyToApprove(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "approval_wait: always", "approval_wait: attached", 1))
	s := stdio(t, dir, "--app", "app.yaml")
	write := object{"path": "docs/a.md", "content": "x"}
	if r := call(t, s, "filesystem.write", write); r.Code != "approval_denied" || !strings.Contains(r.Text, "helve approvals watch") {
		t.Errorf("without anybody: %+v", r)
	}
	watch := command(t.Context(), dir, "approvals", "watch", "--json", "--app", "app.yaml")
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(buffer)
	watch.Stderr = errs
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { watch.Process.Kill(); watch.Wait() }()
	eventually(t, func() bool { return strings.Contains(errs.String(), "Watching") })
	got := inBackground(t, s, "filesystem.write", write)
	lines := json.NewDecoder(out)
	var q waiting
	if err := lines.Decode(&q); err != nil || q.State != "waiting" {
		t.Fatalf("watched: %+v, %v", q, err)
	}
	must(t, dir, "approvals", "approve", q.ID, "--app", "app.yaml")
	if r := <-got; r.IsError {
		t.Errorf("approved: %+v", r)
	}
	if err := lines.Decode(&q); err != nil || q.State != "approved" {
		t.Errorf("watched: %+v, %v", q, err)
	}
}

// Calls within calls wait on their own, as do flags in arguments change nothing.
func TestApprovalsWithinCalls(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	s := stdio(t, dir, "--app", "app.yaml")
	inner := object{"name": "filesystem.write", "params": object{"path": "docs/a.md", "content": "x"}}
	got := inBackground(t, s, "execute_tool", inner)
	q := asked(t, dir, "--app", "app.yaml")
	must(t, dir, "approvals", "approve", q.ID, "--app", "app.yaml")
	if r := <-got; r.IsError || !exists(filepath.Join(dir, "docs/a.md")) {
		t.Errorf("execute_tool: %+v", r)
	}
	got = inBackground(t, s, "run_parallel", object{"actions": []object{
		{"name": "filesystem.mkdir", "params": object{"path": "made"}},
		{"name": "filesystem.write", "params": object{"path": "docs/b.md", "content": "x"}},
	}})
	q = asked(t, dir, "--app", "app.yaml")
	must(t, dir, "approvals", "deny", q.ID, "--app", "app.yaml")
	if r := <-got; !strings.Contains(r.Text, "approval_denied") || !exists(filepath.Join(dir, "made")) || exists(filepath.Join(dir, "docs/b.md")) {
		t.Errorf("run_parallel: %+v", r)
	}
	for _, flag := range []string{"_approved", "approved", "_meta", "approver", "decision", "requestState"} {
		r := call(t, s, "filesystem.write", object{"path": "docs/c.md", "content": "x", flag: true})
		if r.Code != "validation_error" || exists(filepath.Join(dir, "docs/c.md")) {
			t.Errorf("with %s: %+v", flag, r)
		}
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "filesystem.write", Meta: mcp.Meta{"helve/approved": true, "approved": true},
		Arguments: object{"path": "closed/c.md", "content": "x"}})
	if err != nil || replyOf(res).Code != "permission_denied" {
		t.Errorf("with _meta: %+v, %v", res, err)
	}
}

// A question does not survive the process that waits for it.
func TestApprovalsAfterAKill(t *testing.T) {
	t.Parallel() // it takes a while until a daemon counts as killed
	dir := folder(t, "app.yaml", asking)
	d := serve(t, dir, "--app", "app.yaml")
	inBackground(t, d.connect(t, "/mcp"), "filesystem.write", object{"path": "docs/a.md", "content": "x"})
	q := asked(t, dir, "--app", "app.yaml")
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait()
	serve(t, dir, "--app", "app.yaml")
	eventually(t, func() bool {
		all := waitingIn(t, dir, "--all", "--app", "app.yaml")
		return len(all) == 1 && all[0].ID == q.ID && all[0].State == "denied-by-restart"
	})
	if _, errs, code := run(t, dir, "", "approvals", "approve", q.ID, "--app", "app.yaml"); code != 3 || !strings.Contains(errs, "denied-by-restart") {
		t.Errorf("approved after the restart: %d %s", code, errs)
	}
	if exists(filepath.Join(dir, "docs")) {
		t.Error("the call has run")
	}
}

// Of two processes that answer at once one counts.
func TestTwoApprovers(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	s := stdio(t, dir, "--app", "app.yaml")
	got := inBackground(t, s, "filesystem.write", object{"path": "docs/a.md", "content": "x"})
	q := asked(t, dir, "--app", "app.yaml")
	approve := command(t.Context(), dir, "approvals", "approve", q.ID, "--app", "app.yaml")
	deny := command(t.Context(), dir, "approvals", "deny", q.ID, "--app", "app.yaml")
	for _, c := range []*exec.Cmd{approve, deny} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	approve.Wait()
	deny.Wait()
	yes, no := approve.ProcessState.ExitCode() == 0, deny.ProcessState.ExitCode() == 0
	if r := <-got; yes == no || yes == r.IsError || yes != exists(filepath.Join(dir, "docs/a.md")) {
		t.Errorf("approved %v, denied %v: %+v", yes, no, r)
	}
}
