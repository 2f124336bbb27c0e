package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// A till is a workshop with tools that cost money, and the meter for them.
type till struct {
	*workshop
	meter *guard.Meter
	dir   string
	now   time.Time
	mu    sync.Mutex
}

func newTill(t testing.TB, edit func(*guard.Options, *guard.Meter)) *till {
	t.Helper()
	dir := t.TempDir()
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	five, two := 5, 2
	k := &till{dir: dir, now: time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)}
	k.meter = &guard.Meter{App: "app", Budgets: guard.Budgets{PaidPerDay: &five, PremiumPerDay: &two, PerTask: 2}, Store: new(mem.Store), Root: r,
		Prices: map[string]guard.Money{"paid.render": {Micros: 50_000, Currency: "USD"}}, Now: k.clock}
	k.workshop = newWorkshop(t, func(o *guard.Options) {
		o.Meter, o.Root, o.Repeats.Callers = k.meter, r, guard.NoCallers
		if edit != nil {
			edit(o, k.meter)
		}
	})
	for name, class := range map[string]tool.CostClass{"paid.render": tool.PaidCloud, "paid.deluxe": tool.PremiumCloud, "paid.odd": "gold-cloud"} {
		if err := k.reg.Add(&tool.Tool{Handle: k.handle, Definition: tool.Definition{Name: name, Description: "Render.", Effect: tool.Reads, CostClass: class, HeedsContext: true,
			Input: schema.Must(`{"type":"object","properties":{"file":{"type":"string","x-helve-role":"artifact"}}}`)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.md", "b.md", "draft.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if k.meter.Store != nil && k.meter.Root != nil {
		k.review(t, "a.md", "b.md")
	}
	return k
}

func (k *till) clock() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *till) review(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		in, err := guard.DigestOf(k.meter.Root, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard.SignOff(t.Context(), k.meter.Store, "app", guard.Review{Path: in.Path, Digest: in.Digest}); err != nil {
			t.Fatal(err)
		}
	}
}

func (k *till) spends(t testing.TB) (states []string) {
	t.Helper()
	all, err := guard.Spends(t.Context(), k.meter.Store, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		states = append(states, s.Tool+" "+s.State)
	}
	slices.Sort(states)
	return states
}

func TestMeteredCallsFailClosed(t *testing.T) {
	plain := func(*guard.Options, *guard.Meter) {}
	for name, test := range map[string]struct {
		edit       func(*guard.Options, *guard.Meter)
		tool, args string
		want       tool.Code
		says       string
	}{
		"it may":               {plain, "paid.render", `{"file":"a.md","quality":"high","size":3}`, "", ""},
		"no authoriser":        {func(o *guard.Options, _ *guard.Meter) { o.Meter = nil }, "paid.render", `{}`, tool.CodeBudget, "nobody is there to authorise"},
		"no ledger":            {func(_ *guard.Options, m *guard.Meter) { m.Store = nil }, "paid.render", `{}`, tool.CodeBudget, "nobody is there to authorise"},
		"no budget":            {func(_ *guard.Options, m *guard.Meter) { m.Budgets.PaidPerDay = nil }, "paid.render", `{}`, tool.CodeBudget, "budgets.paid_cloud_per_day"},
		"no premium budget":    {func(_ *guard.Options, m *guard.Meter) { m.Budgets.PremiumPerDay = nil }, "paid.deluxe", `{}`, tool.CodeBudget, "budgets.premium_cloud_per_day"},
		"an empty budget":      {func(_ *guard.Options, m *guard.Meter) { m.Budgets.PaidPerDay = new(int) }, "paid.render", `{}`, tool.CodeBudget, "the 0 such calls"},
		"an unknown class":     {plain, "paid.odd", `{}`, tool.CodeBudget, "gold-cloud"},
		"not reviewed":         {plain, "paid.render", `{"file":"draft.md"}`, tool.CodePermission, "helve ledger review draft.md"},
		"no such file":         {plain, "paid.render", `{"file":"none.md"}`, tool.CodePermission, "none.md"},
		"out of the root":      {plain, "paid.render", `{"file":"../a.md"}`, tool.CodePermission, "/file"},
		"no root":              {func(_ *guard.Options, m *guard.Meter) { m.Root = nil }, "paid.render", `{"file":"a.md"}`, tool.CodePermission, "/file"},
		"a URL":                {plain, "paid.render", `{"file":"a.md","style":"https://evil.example/x"}`, tool.CodePermission, "/style: it holds a URL"},
		"a URL as a reference": {plain, "paid.render", `{"file":"http://x/a.md"}`, tool.CodePermission, "/file: it holds a URL"},
		"a body":               {plain, "paid.render", `{"options":{"deep":[{"body":"x"}]}}`, tool.CodePermission, "/options/deep/0/body"},
		"a long text":          {plain, "paid.render", `{"prompt":"` + strings.Repeat("words ", 100) + `"}`, tool.CodePermission, "give long texts as an artifact"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTill(t, test.edit)
			res := k.do(t, test.tool, test.args)
			if code(res) != test.want || test.want != "" && !strings.Contains(res.Err.Message, test.says) {
				t.Errorf("%+v, want %s that says %q", res.Err, test.want, test.says)
			}
			if ran := k.count() > 0; ran != (test.want == "") {
				t.Errorf("it ran: %v", ran)
			}
			if test.edit == nil {
				return
			}
			if x := k.Explain(t.Context(), &tool.Call{Name: test.tool, Args: json.RawMessage(test.args)}); test.want != "" && x.Decision != "deny" && name != "an empty budget" {
				t.Errorf("explained as %+v", x)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	k := newTill(t, nil)
	k.answers(func(c *tool.Call) (*tool.Result, error) { return tool.Text("rendered " + string(c.Args)), nil })
	session := func(s string) tool.Origin { return tool.Origin{App: "app", Session: s, Kind: tool.KindMCP} }
	expect := func(s, name, args string, want tool.Code, says string) *tool.Result {
		t.Helper()
		res := k.as(t, session(s), name, args)
		if code(res) != want || want != "" && !strings.Contains(res.Err.Message, says) {
			t.Errorf("%s %s %s: %+v, want %q %q", s, name, args, res.Err, want, says)
		}
		return res
	}
	expect("1", "paid.render", `{"file":"a.md","n":1}`, "", "")
	again := expect("1", "paid.render", `{"n":1.0,"file":"a.md"}`, "", "")
	if k.count() != 1 || again.JoinText() != `rendered {"file":"a.md","n":1}` || len(again.Notes) != 1 {
		t.Errorf("the same call: %d runs, %+v", k.count(), again)
	}
	expect("1", "paid.deluxe", `{"file":"a.md"}`, "", "")
	expect("1", "paid.render", `{"file":"b.md"}`, tool.CodeBudget, "this task has made the 2 such calls")
	expect("1", "paid.render", `{"file":"a.md","n":1}`, "", "") // still free
	expect("2", "paid.render", `{"file":"a.md","n":1}`, "", "") // another task pays anew
	expect("3", "paid.deluxe", `{"file":"a.md"}`, "", "")
	res := expect("4", "paid.deluxe", `{"file":"b.md"}`, tool.CodeBudget, "(budgets.premium_cloud_per_day); the next day begins at midnight UTC, in 1h0m0s")
	if !strings.Contains(string(res.Err.Details), `"wait_seconds":3600`) {
		t.Errorf("details %s", res.Err.Details)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "a.md"), []byte("drifted"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("1", "paid.render", `{"file":"a.md","n":1}`, tool.CodePermission, "has changed since it was reviewed")
	k.review(t, "a.md")
	k.now = k.now.Add(time.Hour) // the next day, and the next task
	expect("4", "paid.deluxe", `{"file":"b.md"}`, "", "")
	expect("1", "paid.render", `{"file":"a.md","n":1}`, "", "")
	if k.count() != 6 {
		t.Errorf("%d runs", k.count())
	}
}

// What was refused before it ran is given back; what ran is not, however it ended.
func TestWhatCountsAsSpent(t *testing.T) {
	var approve bool
	k := newTill(t, func(o *guard.Options, m *guard.Meter) {
		m.Budgets.PerTask = 1
		o.Policies = []guard.Policy{func(context.Context, *tool.Call) (tool.Verdict, string) { return tool.Ask, "money" }}
		o.Approver = func(context.Context, guard.Question) (guard.Answer, error) {
			return guard.Answer{Approved: approve}, nil
		}
		o.Middleware = []guard.Middleware{{Name: "twice", Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
			if res := run(ctx); res.Err == nil {
				return res, nil
			}
			return run(ctx), nil
		}}}
	})
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); code(res) != tool.CodeDenied || len(k.spends(t)) != 0 {
		t.Errorf("not approved: %+v, on record %v", res.Err, k.spends(t))
	}
	approve = true
	k.answers(func(*tool.Call) (*tool.Result, error) { return nil, tool.Errorf(tool.CodeExternal, "down").Retry() })
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); code(res) != tool.CodeBudget || k.count() != 1 || !slices.Equal(k.spends(t), []string{"paid.render failed"}) {
		t.Errorf("failed, and run again by middleware: %+v, %d runs, on record %v", res.Err, k.count(), k.spends(t))
	}
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); code(res) != tool.CodeBudget || k.count() != 1 {
		t.Errorf("after a failure: %+v, %d runs", res.Err, k.count())
	}
}

// A file that changes while the operator thinks is not paid for.
func TestInputsThatChangeMeanwhile(t *testing.T) {
	var k *till
	k = newTill(t, func(o *guard.Options, _ *guard.Meter) {
		o.Policies = []guard.Policy{func(context.Context, *tool.Call) (tool.Verdict, string) { return tool.Ask, "money" }}
		o.Approver = func(context.Context, guard.Question) (guard.Answer, error) {
			return guard.Answer{Approved: true}, os.WriteFile(filepath.Join(k.dir, "a.md"), []byte("drifted"), 0o600)
		}
	})
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); code(res) != tool.CodePermission || k.count() != 0 || len(k.spends(t)) != 0 {
		t.Errorf("%+v, %d runs, on record %v", res.Err, k.count(), k.spends(t))
	}
}

func TestMeteringAtOnce(t *testing.T) {
	k := newTill(t, nil)
	hold := make(chan struct{})
	k.answers(func(*tool.Call) (*tool.Result, error) { <-hold; return tool.Text("done"), nil })
	var all sync.WaitGroup
	results := make(chan tool.Code, 60)
	for i := range 40 { // other tasks: five a day
		all.Go(func() {
			results <- code(k.as(t, tool.Origin{App: "app", Session: fmt.Sprint(i)}, "paid.render", `{"file":"a.md"}`))
		})
	}
	for range 35 {
		if c := <-results; c != tool.CodeBudget {
			t.Errorf("refused with %q", c)
		}
	}
	close(hold)
	all.Wait()
	if k.count() != 5 {
		t.Errorf("%d ran", k.count())
	}
}

// The same call at the same time is not paid for twice.
func TestTheSameCallAtOnce(t *testing.T) {
	k := newTill(t, nil)
	running, hold := make(chan struct{}), make(chan struct{})
	k.answers(func(*tool.Call) (*tool.Result, error) { close(running); <-hold; return tool.Text("done"), nil })
	var all sync.WaitGroup
	all.Go(func() { k.do(t, "paid.render", `{"file":"a.md"}`) })
	<-running
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); code(res) != tool.CodeBudget || !res.Err.Retryable {
		t.Errorf("meanwhile: %+v", res.Err)
	}
	close(hold)
	all.Wait()
	if res := k.do(t, "paid.render", `{"file":"a.md"}`); res.Err != nil || k.count() != 1 {
		t.Errorf("afterwards: %+v, %d runs", res.Err, k.count())
	}
}

func TestLedgerThatCannotBeLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTill(t, func(_ *guard.Options, m *guard.Meter) { m.Store = lockedUpdates{m.Store} })
		k.meter.Store = lockedUpdates{new(mem.Store)}
		if res := k.do(t, "paid.render", `{}`); code(res) != tool.CodeBudget || !strings.Contains(res.Err.Message, "ledger cannot be written") || k.count() != 0 {
			t.Errorf("%+v, %d runs", res.Err, k.count())
		}
	})
}

// lockedUpdates is a store that others write without end, once it is reviewed.
type lockedUpdates struct{ store.Store }

func (s lockedUpdates) Update(ctx context.Context, fn func(store.Writer) error) error {
	if s.Store == nil {
		return lockedStore{}.Update(ctx, fn)
	}
	if _, ok := ctx.Deadline(); !ok {
		return s.Store.Update(ctx, fn) // of the test itself
	}
	return lockedStore{}.Update(ctx, fn)
}

func TestAddressesInOptions(t *testing.T) {
	for _, s := range []string{
		"http://x", "HTTPS://EXAMPLE.com/a", "see http://x.y now", "//evil.com/a", `\\host\share`, `\/\/evil.com`, "data:text/html,x", "javascript:alert(1)", "file:/etc/passwd", "mailto:a@b",
		"hxxp://evil.com", "ftp:\\\\x", "evil.com", "EVIL.COM.", "a.evil.co.uk", "me@evil.com", "evil.com/path", "evil.com?x=1", "localhost", "localhost:80", "db:5432", "metadata.google.internal", "printer.local",
		"http%3A%2F%2Fevil.com", "http%253A%252F%252Fevil.com", "evil%2ecom", "%65vil.com", "&#104;ttp://x", "http&colon;//evil", "ｈｔｔｐ：／／evil", "evil。com", "evil．com", "evil｡com", "ev\u200bil.com", "ht\u00adtp://x", "evil\u2024com",
		`\u0068ttp://x`, "aHR0cHM6Ly9ldmlsLmNvbS94", "aHR0cDovL2V2aWwuY29t", "68747470733a2f2f6576696c", "пример.рф", "xn--e1afmkfd.xn--p1ai", "①②⑦.⓪.⓪.①",
		"127.0.0.1", "127.1", "10.1", "192.168.1", "0x7f.1", "0177.0.0.1", "0x7f000001", "2130706433", "[::1]", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "[::1]:80", "8.8.8.8", "1.2.3.4:99", "169.254.169.254",
		`{"x":{"url":"a"}}`, `[{"endpoint":"a"}]`,
	} {
		k := newTill(t, nil)
		args, _ := json.Marshal(map[string]any{"options": []any{map[string]any{"style": s}}})
		if res := k.do(t, "paid.render", string(args)); code(res) != tool.CodePermission || k.count() != 0 {
			t.Errorf("%q passes", s)
		}
	}
	for _, s := range []string{"", "high", "16:9", "1920x1080", "1.5", "v2.1", "2.0.1", "gpt-4.1-mini", "node.js", "U.S. style, e.g. red", "a/b", "50%", "100% wool", "q&a", "#ff00ff", "rgb(1, 2, 3)",
		"12:30", "ratio: 3", "Ärger & Öl", "日本語の説明", "C:", "note: keep it short", "x=1;y=2", "portrait-of-a-lady", "2026-01-31", "1 + 1 = 2", "photo.png", "abcdefghijklmnop", "\\d+"} {
		k := newTill(t, nil)
		args, _ := json.Marshal(map[string]any{"style": s})
		if res := k.do(t, "paid.render", string(args)); res.Err != nil {
			t.Errorf("%q is refused: %v", s, res.Err)
		}
	}
	for key, refused := range map[string]bool{"url": true, "imageUrl": true, "image_url": true, "baseURL": true, "URI": true, "endpoint": true, "apiEndpoint": true, "webhook": true, "callback": true, "host": true, "proxy": true,
		"body": true, "u\u200brl": true, "ｕｒｌ": true, "u%72l": true, "evil.com": true, "quality": false, "curly": false, "curl_depth": false, "ghost": false, "color": false, "supported": false, "linkage": false, "transport": false} {
		k := newTill(t, nil)
		args, _ := json.Marshal(map[string]any{"o": map[string]any{key: 1}})
		if res := k.do(t, "paid.render", string(args)); (code(res) == tool.CodePermission) != refused {
			t.Errorf("the key %q: %+v, want refused: %v", key, res.Err, refused)
		}
	}
}

func TestMoney(t *testing.T) {
	for text, want := range map[string]string{"0.05 USD": "0.05 USD", "12 EUR": "12 EUR", "0.000001 CHF": "0.000001 CHF", "1.50 USD": "1.5 USD", "0 USD": ""} {
		if m, err := guard.ParseMoney(text); err != nil || m.String() != want {
			t.Errorf("%q is read as %q, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "5", "$5", "-1 USD", "1,5 USD", "1 usd", "0.0000001 USD"} {
		if m, err := guard.ParseMoney(text); err == nil {
			t.Errorf("%q is read as %v", text, m)
		}
	}
}

func TestCosts(t *testing.T) {
	s := new(mem.Store)
	var told int
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	counter := guard.NewCounter(s, nil, func() time.Time { return now }, func(guard.Usage) { told++ })
	k := newTill(t, func(o *guard.Options, _ *guard.Meter) { o.Counter = counter })
	k.answers(func(*tool.Call) (*tool.Result, error) { return tool.Text(strings.Repeat("x", 400)), nil })
	k.do(t, "a.read", `{"n":1}`)
	k.do(t, "wrap", `{"calls":[{"name":"a.read","params":{"n":2}}]}`)
	k.do(t, "paid.render", `{"file":"a.md"}`)
	k.do(t, "paid.render", `{"file":"a.md"}`)
	now = now.AddDate(0, 0, 1)
	k.as(t, tool.Origin{App: "app", Session: "t"}, "a.read", `{"bad":1}`)
	if err := counter.Close(); err != nil {
		t.Fatal(err)
	}
	costs := func(by string, since time.Time) (out []string) {
		all, err := guard.Costs(t.Context(), s, k.meter.Store, by, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			out = append(out, fmt.Sprintf("%s: %d calls, %d errors, %d tokens out, %d paid, %s", c.Of, c.Calls, c.Errors, min(c.TokensOut, 300), c.Metered, c.Money["USD"]))
		}
		return out
	}
	if got := costs("tool", time.Time{}); len(got) != 2 || got[0] != "paid.render: 2 calls, 0 errors, 200 tokens out, 1 paid, 0.05 USD" || !strings.HasPrefix(got[1], "a.read: 3 calls, 1 errors") {
		t.Errorf("by tool: %q", got)
	}
	if got := costs("session", time.Time{}); len(got) != 2 || !strings.HasPrefix(got[0], "s: 4 calls, 0 errors, 300 tokens out, 1 paid") {
		t.Errorf("by session: %q", got)
	}
	if got := costs("day", now); len(got) != 1 || !strings.HasPrefix(got[0], "2026-03-02: 1 calls, 1 errors") {
		t.Errorf("by day, since the second: %q", got)
	}
	if told != 5 {
		t.Errorf("the hook was told of %d calls", told)
	}
}
