package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	var sessions []*mcp.ClientSession
	for range 2 {
		s, err := dialVersion(t, d.URL+"/mcp", "2025-11-25", nil)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	one, two := sessions[0], sessions[1]
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
	got = inBackground(t, two, "filesystem.write", object{"path": "docs/b.md", "content": "of another session"})
	q = asked(t, dir, "--app", "app.yaml")
	must(t, dir, "approvals", "deny", q.ID, "--app", "app.yaml")
	if r := <-got; r.Code != "approval_denied" {
		t.Errorf("another session: %+v", r)
	}
	shown := func() string { return must(t, dir, "approvals", "--app", "app.yaml") }
	if out := shown(); !strings.Contains(out, "Approved for a session") {
		t.Errorf("shown:\n%s", out)
	}
	one.Close()
	eventually(t, func() bool { return !strings.Contains(shown(), "Approved for a session") })
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

// answering is a client whose person answers every question alike.
func answering(r *mcp.ElicitResult, seen chan<- *mcp.ElicitParams) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		seen <- q.Params
		return r, nil
	}}
}

// The person at the client that made a call may approve it there, whatever
// revision the client speaks; what is no clear yes is a no.
func TestApprovalsByTheClient(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1), "docs/a.md", "old\n")
	d := serve(t, dir, "--app", "app.yaml")
	write := object{"path": "docs/a.md", "content": "new\n"}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for name, test := range map[string]struct {
			answer *mcp.ElicitResult
			text   string // of the denial; "": it is approved
		}{
			"approve":           {&mcp.ElicitResult{Action: "accept", Content: object{"decision": "approve"}}, ""},
			"deny":              {&mcp.ElicitResult{Action: "accept", Content: object{"decision": "deny", "feedback": "in French"}}, "in French"},
			"decline":           {&mcp.ElicitResult{Action: "decline"}, "declined"},
			"cancel":            {&mcp.ElicitResult{Action: "cancel"}, "did not answer"},
			"accept of nothing": {&mcp.ElicitResult{Action: "accept"}, "answer was"},
			"something else":    {&mcp.ElicitResult{Action: "accept", Content: object{"decision": "yes, all"}}, "not approved"},
		} {
			if version == "2026-07-28" && name == "something else" {
				continue // the library's client does not send it: see TestApprovalsInTurns
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				seen := make(chan *mcp.ElicitParams, 8)
				s, err := dialVersion(t, d.URL+"/mcp", version, answering(test.answer, seen))
				if err != nil {
					t.Fatal(err)
				}
				r := call(t, s, "filesystem.write", write)
				if test.text == "" && r.IsError || test.text != "" && (r.Code != "approval_denied" || !strings.Contains(r.Text, test.text)) {
					t.Errorf("replied %+v", r)
				}
				if q := <-seen; len(seen) != 0 || !strings.Contains(q.Message, "docs/a.md") || !strings.Contains(q.Message, "docs/**") {
					t.Errorf("asked %q, and %d times more", q.Message, len(seen))
				}
			})
		}
	}
	if lines := audited(t, dir, "--app", "app.yaml", "--tool", "filesystem.write"); len(lines) != 17 || !strings.Contains(lines[0].Approver, "through the MCP client tester") {
		t.Errorf("%d on record: %+v", len(lines), lines[0])
	}
}

// The person at a client with a session may approve what a rule asks about for
// that session, and for no other.
func TestApprovalsByTheClientForASession(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1))
	d := serve(t, dir, "--app", "app.yaml")
	session := func(decision string) (write func(path string) reply, asked func() []string) {
		t.Helper()
		seen := make(chan *mcp.ElicitParams, 8)
		s, err := dialVersion(t, d.URL+"/mcp", "2025-11-25", answering(&mcp.ElicitResult{Action: "accept", Content: object{"decision": decision}}, seen))
		if err != nil {
			t.Fatal(err)
		}
		return func(path string) reply { return call(t, s, "filesystem.write", object{"path": path, "content": "x"}) }, func() (all []string) {
			for len(seen) > 0 {
				all = append(all, (<-seen).Message)
			}
			return all
		}
	}
	write, asked := session("approve for this session")
	other, askedToo := session("deny")
	for _, path := range []string{"docs/a.md", "docs/b.md"} {
		if r := write(path); r.IsError {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if all := asked(); len(all) != 1 || !strings.Contains(all[0], "Approved for this session, every call of filesystem.write that the rule") {
		t.Errorf("asked %q", all)
	}
	if r := other("docs/c.md"); r.Code != "approval_denied" || len(askedToo()) != 1 {
		t.Errorf("another session: %+v", r)
	}
	// What the rule does not cover is asked about.
	if write("else.md"); len(asked()) != 1 || exists(filepath.Join(dir, "docs/c.md")) {
		t.Errorf("outside the rule nothing was asked, or what was denied has run")
	}
	if out := must(t, dir, "approvals", "--app", "app.yaml"); !strings.Contains(out, "docs/**") {
		t.Errorf("the approvals that hold: %s", out)
	}
}

// A raw is an answer to a call, as it is sent.
type raw struct {
	Result struct {
		Type     string         `json:"resultType"`
		State    string         `json:"requestState"`
		Requests map[string]any `json:"inputRequests"`
		IsError  bool           `json:"isError"`
		Content  []struct{ Text string }
	} `json:"result"`
	Error *struct{ Message string } `json:"error"`
}

// inTurns sends a call as a client of revision 2026-07-28 that can be asked.
func (d *daemon) inTurns(t testing.TB, client string, params object) (a raw) {
	t.Helper()
	caps := object{"elicitation": object{}}
	if client == "tasker" {
		caps["extensions"] = object{"io.modelcontextprotocol/tasks": object{}}
	}
	params["name"] = "filesystem.write"
	params["_meta"] = object{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": object{"name": client, "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": caps}
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := post(t, d.URL+"/mcp", string(body), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "filesystem.write")
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return a
}

// Answers of clients that call again count for the call that was asked about
// only, and only if they are clear; arguments never do.
func TestApprovalsInTurns(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1))
	d := serve(t, dir, "--app", "app.yaml")
	args := func() object { return object{"path": "docs/a.md", "content": "x"} }
	yes := object{"action": "accept", "content": object{"decision": "approve"}}
	begin := func() (state, id string) {
		t.Helper()
		a := d.inTurns(t, "tester", object{"arguments": args()})
		if a.Result.Type != "input_required" || a.Result.State == "" || len(a.Result.Requests) != 1 {
			t.Fatalf("asked %+v", a)
		}
		for id = range a.Result.Requests {
		}
		return a.Result.State, id
	}
	state, id := begin()
	for name, a := range map[string]raw{
		"another client":  d.inTurns(t, "stranger", object{"arguments": args(), "requestState": state, "inputResponses": object{id: yes}}),
		"other arguments": d.inTurns(t, "tester", object{"arguments": object{"path": "docs/b.md", "content": "x"}, "requestState": state, "inputResponses": object{id: yes}}),
		"another state":   d.inTurns(t, "tester", object{"arguments": args(), "requestState": state + "x", "inputResponses": object{id: yes}}),
	} {
		if a.Error == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	// Answers that come with the call itself, or within its arguments, answer nothing.
	early := d.inTurns(t, "tester", object{"arguments": args(), "inputResponses": object{id: yes, "question": yes}})
	if early.Result.Type != "input_required" {
		t.Errorf("answered in advance: %+v", early)
	}
	within := args()
	within["requestState"], within["inputResponses"] = state, object{id: yes}
	if a := d.inTurns(t, "tester", object{"arguments": within}); !a.Result.IsError {
		t.Errorf("answered by arguments: %+v", a)
	}
	if exists(filepath.Join(dir, "docs")) {
		t.Fatal("the call has run")
	}
	for name, answers := range map[string]object{
		"none":           {},
		"of another":     {"approval-other": yes},
		"a word":         {id: object{"action": "accept", "content": object{"decision": "yes, all"}}},
		"no content":     {id: object{"action": "accept"}},
		"not offered":    {id: object{"action": "accept", "content": object{"decision": "approve for this session"}}},
		"another action": {id: object{"action": "approve", "content": object{"decision": "approve"}}},
		"a decline":      {id: object{"action": "decline", "content": object{"decision": "approve"}}},
	} {
		mine := object{}
		for k, v := range answers {
			mine[k] = v
		}
		s, own := begin()
		if v, ok := mine[id]; ok {
			delete(mine, id)
			mine[own] = v
		}
		a := d.inTurns(t, "tester", object{"arguments": args(), "requestState": s, "inputResponses": mine})
		if a.Error == nil && (!a.Result.IsError || !strings.Contains(a.Result.Content[0].Text, "approval_denied")) || exists(filepath.Join(dir, "docs")) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	a := d.inTurns(t, "tester", object{"arguments": args(), "requestState": state, "inputResponses": object{id: yes}})
	if a.Result.IsError || a.Error != nil || !exists(filepath.Join(dir, "docs/a.md")) {
		t.Errorf("approved: %+v", a)
	}
	if a := d.inTurns(t, "tester", object{"arguments": args(), "requestState": state, "inputResponses": object{id: yes}}); a.Error == nil {
		t.Errorf("approved twice: %+v", a)
	}
}

// Clients that know tasks are asked alike.
func TestApprovalsByClientsThatKnowTasks(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1))
	d := serve(t, dir, "--app", "app.yaml")
	for _, decision := range []string{"deny", "sure", "approve"} {
		args := object{"path": "docs/a.md", "content": "x"}
		a := d.inTurns(t, "tasker", object{"arguments": args})
		if a.Result.Type != "input_required" || len(a.Result.Requests) != 1 {
			t.Fatalf("asked %+v", a)
		}
		answers := object{}
		for id := range a.Result.Requests {
			answers[id] = object{"action": "accept", "content": object{"decision": decision}}
		}
		a = d.inTurns(t, "tasker", object{"arguments": args, "requestState": a.Result.State, "inputResponses": answers})
		if yes := decision == "approve"; a.Error != nil || a.Result.IsError == yes || yes != exists(filepath.Join(dir, "docs/a.md")) {
			t.Errorf("%s: %+v", decision, a)
		}
	}
}

// Processes that share a database answer each other's questions, each once.
func TestApprovalsInPostgres(t *testing.T) {
	place := postgresPlace(t)
	dir, far := folder(t, "app.yaml", asking), folder(t, "app.yaml", asking)
	s := serve(t, dir, "--app", "app.yaml", "--store", place).connect(t, "/mcp")
	with := []string{"--app", "app.yaml", "--store", place}
	got := inBackground(t, s, "filesystem.write", object{"path": "docs/a.md", "content": "x"})
	q := asked(t, far, with...)
	var all sync.WaitGroup
	var won atomic.Int32
	for _, word := range []string{"approve", "deny", "approve", "deny"} {
		all.Go(func() {
			if command(t.Context(), far, append([]string{"approvals", word, q.ID}, with...)...).Run() == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if r := <-got; won.Load() != 1 || r.IsError == exists(filepath.Join(dir, "docs/a.md")) {
		t.Errorf("%d answers counted: %+v", won.Load(), r)
	}
}

// Without the app's leave clients approve nothing.
func TestApprovalsNotByTheClient(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1)+"security: {approve_by_client: false}\n")
	d := serve(t, dir, "--app", "app.yaml")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		seen := make(chan *mcp.ElicitParams, 8)
		s, err := dialVersion(t, d.URL+"/mcp", version, answering(&mcp.ElicitResult{Action: "accept", Content: object{"decision": "approve"}}, seen))
		if err != nil {
			t.Fatal(err)
		}
		r := call(t, s, "filesystem.write", object{"path": "docs/a.md", "content": "x"})
		if r.Code != "approval_denied" || !strings.Contains(r.Text, "approve_by_client") || len(seen) > 0 || exists(filepath.Join(dir, "docs")) {
			t.Errorf("%s: asked %d times, replied %+v", version, len(seen), r)
		}
	}
}

// While a client thinks about a question, another may answer it; the client
// learns the result, or what is asked next.
func TestTheFirstOfManyApprovers(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	d := serve(t, dir, "--app", "app.yaml")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			think, seen := make(chan struct{}), make(chan string, 8)
			s, err := dialVersion(t, d.URL+"/mcp", version, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				seen <- q.Params.Message
				select {
				case <-think:
				case <-ctx.Done():
				}
				return &mcp.ElicitResult{Action: "accept", Content: object{"decision": "deny"}}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			file := "docs/" + version
			got := inBackground(t, s, "run_parallel", object{"actions": []object{
				{"name": "filesystem.write", "params": object{"path": file + ".1", "content": "x"}},
				{"name": "filesystem.write", "params": object{"path": file + ".2", "content": "x"}},
			}})
			asked, yes, no := <-seen, file+".1", file+".2"
			if strings.Contains(asked, no) {
				yes, no = no, yes
			}
			var q waiting
			eventually(t, func() bool { // both wait
				all := waitingIn(t, dir, "--app", "app.yaml")
				for _, one := range all {
					if strings.Contains(string(one.Args), yes) {
						q = one
					}
				}
				return len(all) == 2
			})
			must(t, dir, "approvals", "approve", q.ID, "--app", "app.yaml")
			eventually(t, func() bool { return exists(filepath.Join(dir, yes)) })
			close(think)
			if r := <-got; !strings.Contains(r.Text, "approval_denied") || exists(filepath.Join(dir, no)) {
				t.Errorf("replied %+v", r)
			}
		})
	}
}

// send sends JSON with a token and returns the status and the body.
func send(t testing.TB, method, url, body, token string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestApprovalsOverTheAPI(t *testing.T) {
	dir := folder(t, "app.yaml", strings.Replace(asking, "always", "attached", 1), "docs/a.md", "old\n")
	const boss = "the-operators-own-token"
	d := serveEnv(t, dir, []string{"HELVE_TOKEN=" + boss}, "--app", "app.yaml")
	ci := token(t, dir, "--name", "ci", "--app", "app.yaml")
	at := d.URL + "/api/approvals"
	var s *mcp.ClientSession
	eventually(t, func() (ok bool) {
		var err error
		s, err = d.as(t, ci, "/mcp", "tester", "")
		return err == nil
	})
	// A listener counts as there.
	type list struct{ Questions []waiting }
	listened := make(chan list, 1)
	go func() {
		_, body := send(t, "GET", at+"?wait=60", "", boss)
		var l list
		if err := json.Unmarshal([]byte(body), &l); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		listened <- l
	}()
	write := object{"path": "docs/a.md", "content": "new\n"}
	var got <-chan reply
	eventually(t, func() bool { // until the listener is there
		got = inBackground(t, s, "filesystem.write", write)
		select {
		case <-got:
			return false
		case l := <-listened:
			listened <- l
			return true
		}
	})
	l := <-listened
	if len(l.Questions) != 1 || !strings.Contains(l.Questions[0].Diff, "+new") {
		t.Fatalf("listed %+v", l)
	}
	one := at + "/" + l.Questions[0].ID
	const yes = `{"answer":"approve"}`
	for name, test := range map[string]struct {
		method, url, body, token string
		header                   []string
		status                   int
	}{
		"no token":           {"POST", one, yes, "", nil, 401},
		"a wrong one":        {"POST", one, yes, "hlv_wrong", nil, 401},
		"a client's":         {"POST", one, yes, ci, nil, 403},
		"a client's list":    {"GET", at, "", ci, nil, 403},
		"a client's look":    {"GET", one, "", ci, nil, 403},
		"a foreign page":     {"POST", one, yes, boss, []string{"Origin", "https://example.com", "Sec-Fetch-Site", "cross-site"}, 403},
		"an image in a page": {"GET", at + "?wait=1", "", boss, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		"of another port":    {"GET", one, "", boss, []string{"Sec-Fetch-Site", "same-site"}, 403},
		"typed by somebody":  {"GET", one, "", boss, []string{"Sec-Fetch-Site", "none"}, 200},
		"a form":             {"POST", one, yes, boss, []string{"Content-Type", "text/plain"}, 415},
		"an unknown id":      {"POST", at + "/nothing", yes, boss, nil, 404},
		"an unknown answer":  {"POST", one, `{"answer":"yes"}`, boss, nil, 400},
		"an unknown field":   {"POST", one, `{"answer":"approve","force":true}`, boss, nil, 400},
		"no JSON":            {"POST", one, `approve`, boss, nil, 400},
		"two answers":        {"POST", one, yes + yes, boss, nil, 400},
		"bad arguments":      {"POST", one, `{"answer":"approve","args":[]}`, boss, nil, 400},
		"edits of a denial":  {"POST", one, `{"answer":"deny","args":{}}`, boss, nil, 400},
		"another method":     {"PUT", one, yes, boss, nil, 405},
		"the operator looks": {"GET", one, "", boss, nil, 200},
	} {
		if status, body := send(t, test.method, test.url, test.body, test.token, test.header...); status != test.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body := send(t, "POST", one, yes, boss); status != 200 || !strings.Contains(body, `"approved"`) {
		t.Errorf("answered: %d %s", status, body)
	}
	if r := <-got; r.IsError || read(t, filepath.Join(dir, "docs/a.md")) != "new\n" {
		t.Errorf("approved: %+v", r)
	}
	if status, body := send(t, "POST", one, `{"answer":"deny"}`, boss); status != 409 || !strings.Contains(body, "over the API") {
		t.Errorf("a second answer: %d %s", status, body)
	}
}

// Without tokens the API sees and denies, and no page does.
func TestApprovalsOverTheAPIWithoutTokens(t *testing.T) {
	dir := folder(t, "app.yaml", asking)
	d := serve(t, dir, "--app", "app.yaml")
	got := inBackground(t, d.connect(t, "/mcp"), "filesystem.write", object{"path": "docs/a.md", "content": "x"})
	q := asked(t, dir, "--app", "app.yaml")
	one := d.URL + "/api/approvals/" + q.ID
	for _, foreign := range [][]string{{"Origin", "https://example.com"}, {"Sec-Fetch-Site", "cross-site"}} {
		if status, body := send(t, "POST", one, `{"answer":"approve"}`, "", foreign...); status != 403 {
			t.Errorf("%v: %d %s", foreign, status, body)
		}
	}
	if status, body := send(t, "POST", one, `{"answer":"approve"}`, ""); status != 403 || !strings.Contains(body, "HELVE_TOKEN") {
		t.Errorf("approved without a token: %d %s", status, body)
	}
	if status, body := send(t, "POST", one, `{"answer":"deny","feedback":"not now"}`, ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if r := <-got; r.Code != "approval_denied" || !strings.Contains(r.Text, "not now") {
		t.Errorf("denied: %+v", r)
	}
}
