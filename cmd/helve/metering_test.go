package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A service stands for one that sends bills.
type service struct {
	*httptest.Server
	bills atomic.Int32
	hold  chan struct{} // not nil: answers wait for its end
}

func newService(t testing.TB, hold chan struct{}) *service {
	s := &service{hold: hold}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		n := s.bills.Add(1)
		if s.hold != nil {
			select {
			case <-s.hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, "page %d of %s in %s", n, text, r.URL.Query().Get("quality"))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// paidApp is an app with a tool of an upstream server that costs money.
func paidApp(t testing.TB, s *service, budgets string) string {
	return strings.NewReplacer("UPSTREAM", filepath.ToSlash(lookPath(t, "upstream")), "SERVICE", s.URL, "BUDGETS", budgets).Replace(`
app: {app_id: studio, name: Studio}
tools:
  mcp_servers:
    studio:
      command: UPSTREAM
      args: ["paid=SERVICE"]
      overrides:
        render_page: {effect: reads, roles: {file: artifact}, cost_class: paid-cloud, price: 0.05 USD}
  modules:
    filesystem: {overrides: {stat: {cost_class: premium-cloud, price: 1 EUR}}}
  capabilities: {budgets: BUDGETS}
`)
}

const render = "mcp.studio.render_page"

func TestMeteringThroughEveryEntry(t *testing.T) {
	paid := newService(t, nil)
	dir := folder(t, "a.md", "text", "b.md", "more", "app.yaml", paidApp(t, paid, "{paid_cloud_per_day: 3}"))
	app := []string{"--app", "app.yaml"}
	in := func(args ...string) []string { return append(args, app...) }

	s := serve(t, dir, app...).connect(t, "/mcp")
	if got := call(t, s, render, object{"file": "a.md"}); got.Code != "permission_denied" || !strings.Contains(got.Text, "helve ledger review a.md") {
		t.Errorf("not reviewed: %+v", got)
	}
	if out := must(t, dir, in("ledger", "review", "a.md", "b.md", "--note", "read it")...); !strings.Contains(out, "a.md is reviewed as sha256:") {
		t.Errorf("helve ledger review: %s", out)
	}
	if out := must(t, dir, in("policy", "explain", render, `{"file":"a.md"}`)...); !strings.Contains(out, "allow") {
		t.Errorf("helve policy explain: %s", out)
	}
	for name, w := range allWays() {
		for _, r := range []refused{
			{name: render, args: object{"file": "a.md", "options": object{"x": []any{"127.0.0.1:80"}}}, code: "permission_denied"}, // an address
			{name: "filesystem.stat", args: object{"path": "a.md"}, code: "budget_exceeded"},                                       // a class without a budget
		} {
			called, args := w.wrap(r.name, r.args)
			if got := w.refusal(t, call(t, s, called, args)); !w.fits(r, got) {
				t.Errorf("%s by %s: %q", r.name, name, got)
			}
		}
	}
	if paid.bills.Load() != 0 {
		t.Fatalf("%d bills before anything was authorised", paid.bills.Load())
	}
	first := call(t, s, render, object{"file": "a.md", "quality": "high"})
	if first.IsError || first.Text != "page 1 of text in high" {
		t.Errorf("authorised: %+v", first)
	}
	for way, try := range by { // the same call is free, however it is made
		if code := try(t, s, render, object{"quality": "high", "file": "a.md"}); code != "" {
			t.Errorf("the same call by %s: %q", way, code)
		}
		if code := try(t, s, render, object{"file": "b.md"}); code != "budget_exceeded" {
			t.Errorf("another call of the task by %s: %q", way, code)
		}
	}
	local := stdio(t, dir, app...) // another task
	if got := call(t, local, "execute_tool", object{"name": render, "params": object{"file": "a.md", "quality": "high"}}); !strings.Contains(got.Text, "page 2 of text") {
		t.Errorf("another task: %+v", got)
	}
	if out := must(t, dir, in("tools", "call", render, `{"file":"b.md"}`)...); !strings.Contains(out, "page 3 of more") {
		t.Errorf("helve tools call: %s", out)
	}
	if out := must(t, dir, in("tools", "call", render, `{"file":"b.md"}`)...); !strings.Contains(out, "page 3 of more") {
		t.Errorf("helve tools call, again: %s", out)
	}
	_, errs, code := run(t, dir, "", in("tools", "call", render, `{"file":"a.md"}`)...)
	if code != 3 || !strings.Contains(errs, "budgets.paid_cloud_per_day") {
		t.Errorf("beyond the day: exit code %d, %s", code, errs)
	}
	if paid.bills.Load() != 3 {
		t.Errorf("%d bills", paid.bills.Load())
	}

	var costs []struct {
		Of             string
		Calls, Metered int
		Money          map[string]string
	}
	if err := json.Unmarshal([]byte(must(t, dir, in("cost", "--json")...)), &costs); err != nil || len(costs) == 0 || costs[0].Of != render || costs[0].Metered != 3 || costs[0].Money["USD"] != "0.15 USD" {
		t.Errorf("helve cost: %v %+v", err, costs)
	}
	if out := must(t, dir, in("cost", "--by", "session", "--since", "24h")...); !strings.Contains(out, "SESSION") || !strings.Contains(out, "cli") {
		t.Errorf("helve cost --by session: %s", out)
	}
	if out := must(t, dir, in("audit", "--tool", render, "--json")...); strings.Count(out, `"money": "0.05 USD"`) != 3 || !strings.Contains(out, `"tokens"`) {
		t.Errorf("the audit tells of other costs: %s", out)
	}
	write(t, filepath.Join(dir, "a.md"), "drifted")
	if out := must(t, dir, in("ledger", "list")...); !strings.Contains(out, "changed") || !strings.Contains(out, "read it") {
		t.Errorf("helve ledger list: %s", out)
	}
	must(t, dir, in("ledger", "revoke", "b.md")...)
	for _, args := range [][]string{{"ledger", "revoke", "b.md"}, {"ledger", "review", "none.md"}, {"ledger", "review", "../x"}, {"cost", "--by", "moon"}} {
		if out, errs, code := run(t, dir, "", in(args...)...); code != 64 {
			t.Errorf("helve %v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	verified(t, dir, app...)
}

// Two processes together spend no more than the day's budget.
func spendsExactly(t *testing.T, store string) {
	paid := newService(t, nil)
	dir := folder(t, "a.md", "text", "app.yaml", paidApp(t, paid, "{paid_cloud_per_day: 7, per_task: 100}"))
	app := []string{"--app", "app.yaml", "--store", store}
	must(t, dir, append([]string{"ledger", "review", "a.md"}, app...)...)
	var all sync.WaitGroup
	var ran, refused atomic.Int32
	for p := range 2 {
		s := serve(t, dir, app...).connect(t, "/mcp")
		for i := range 15 {
			all.Go(func() {
				switch got := call(t, s, render, object{"file": "a.md", "quality": fmt.Sprint(p*100 + i)}); got.Code {
				case "":
					ran.Add(1)
				case "budget_exceeded":
					refused.Add(1)
				default:
					t.Errorf("%+v", got)
				}
			})
		}
	}
	all.Wait()
	if ran.Load() != 7 || refused.Load() != 23 || paid.bills.Load() != 7 {
		t.Errorf("%d ran, %d were refused, %d bills", ran.Load(), refused.Load(), paid.bills.Load())
	}
}

func TestBudgetsOfTwoProcesses(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { spendsExactly(t, "") })
	t.Run("postgres", func(t *testing.T) { spendsExactly(t, postgresPlace(t)) })
}

// A process that is killed after a call was authorised has spent.
func TestKilledWhileSpending(t *testing.T) {
	hold := make(chan struct{})
	paid := newService(t, hold)
	dir := folder(t, "a.md", "text", "app.yaml", paidApp(t, paid, "{paid_cloud_per_day: 1}"))
	app := []string{"--app", "app.yaml"}
	must(t, dir, append([]string{"ledger", "review", "a.md"}, app...)...)
	d := serve(t, dir, app...)
	s := d.connect(t, "/mcp")
	var all sync.WaitGroup
	all.Go(func() {
		s.CallTool(t.Context(), &mcp.CallToolParams{Name: render, Arguments: object{"file": "a.md"}}) // nobody will answer
	})
	eventually(t, func() bool { return paid.bills.Load() == 1 })
	d.cmd.Process.Kill()
	d.wait()
	close(hold)
	all.Wait()
	for _, args := range []string{`{"file":"a.md"}`, `{"file":"a.md","quality":"high"}`} {
		_, errs, code := run(t, dir, "", append([]string{"tools", "call", render, args}, app...)...)
		if code != 3 || !strings.Contains(errs, "budget_exceeded") {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
	out := must(t, dir, append([]string{"cost", "--json"}, app...)...)
	if !strings.Contains(out, `"pending": 1`) || !strings.Contains(out, "0.05 USD") || paid.bills.Load() != 1 {
		t.Errorf("%d bills; helve cost: %s", paid.bills.Load(), out)
	}
}
