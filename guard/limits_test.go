package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// A bench is the standard pipeline over tools whose answers the test decides.
type workshop struct {
	*pipeline.Executor
	reg    tool.Registry
	mu     sync.Mutex
	ran    []string // name and arguments of what ran
	answer func(c *tool.Call) (*tool.Result, error)
}

func newWorkshop(t testing.TB, edit func(*guard.Options)) *workshop {
	t.Helper()
	w := &workshop{}
	open := `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"number"},"n":{"type":"number"},"s":{"type":"string"},"o":{"type":"object"},"path":{"type":"string"}},"additionalProperties":false}`
	add := func(name string, e tool.Effect, more func(*tool.Definition)) {
		d := tool.Definition{Name: name, Description: "For tests.", Effect: e, Input: schema.Must(open), HeedsContext: true}
		if more != nil {
			more(&d)
		}
		if err := w.reg.Add(&tool.Tool{Definition: d, Handle: w.handle}); err != nil {
			t.Fatal(err)
		}
	}
	add("a.read", tool.Reads, nil)
	add("a.write", tool.Writes, nil)
	add("b.read", tool.Reads, nil)
	add("b.job_status", tool.Reads, nil)
	add("b.find", tool.Reads, func(d *tool.Definition) { d.SearchLike = true })
	if err := w.reg.Add(w.wrapper()); err != nil {
		t.Fatal(err)
	}
	rules := &guard.Rules{Default: guard.Auto}
	o := guard.Options{Tools: &w.reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge}}
	if edit != nil {
		edit(&o)
	}
	w.Executor = pipeline.New(&w.reg, guard.Standard(o)...)
	return w
}

// wrapper makes the calls that its arguments list.
func (w *workshop) wrapper() *tool.Tool {
	targets := func(args json.RawMessage) []tool.Target {
		var in struct{ Calls []tool.Target }
		_ = json.Unmarshal(args, &in)
		return in.Calls
	}
	return &tool.Tool{
		Definition: tool.Definition{Name: "wrap", Description: "Call others.", Effect: tool.Reads, Meta: true, HeedsContext: true,
			Input: schema.Must(`{"type":"object","properties":{"calls":{"type":"array"}},"required":["calls"],"additionalProperties":false}`)},
		Targets: targets,
		Handle: func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			res := &tool.Result{}
			for _, target := range targets(c.Args) {
				r, err := w.Do(ctx, c.Child("", target.Name, target.Args))
				if err != nil {
					return nil, err
				}
				if r.Err != nil {
					res.Err = r.Err
				}
				res.Content = append(res.Content, r.Content...)
			}
			return res, nil
		},
	}
}

func (w *workshop) handle(_ context.Context, c *tool.Call) (*tool.Result, error) {
	w.mu.Lock()
	w.ran = append(w.ran, c.Tool.Name+" "+string(c.Args))
	answer := w.answer
	w.mu.Unlock()
	if answer == nil {
		return tool.Text("the same"), nil
	}
	return answer(c)
}

func (w *workshop) answers(fn func(c *tool.Call) (*tool.Result, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = fn
}

func (w *workshop) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ran)
}

func (w *workshop) as(t testing.TB, from tool.Origin, name, args string) *tool.Result {
	t.Helper()
	res, err := w.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args), From: from})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w *workshop) do(t testing.TB, name, args string) *tool.Result {
	t.Helper()
	return w.as(t, tool.Origin{App: "app", Session: "s", Kind: tool.KindModel}, name, args)
}

// Steps are calls, each with the code that it must have.
type step struct {
	name, args string
	want       tool.Code
}

func (w *workshop) steps(t *testing.T, all ...step) {
	t.Helper()
	for i, s := range all {
		if res := w.do(t, s.name, s.args); code(res) != s.want {
			t.Errorf("call %d, %s %s: %+v, want code %q", i+1, s.name, s.args, res.Err, s.want)
		}
	}
}

func TestRepetition(t *testing.T) {
	const again = tool.CodeRepetition
	failing := func(*tool.Call) (*tool.Result, error) {
		return nil, tool.Errorf(tool.CodeExternal, "down")
	}
	n := 0
	changing := func(*tool.Call) (*tool.Result, error) { n++; return tool.Text(fmt.Sprint("result ", n)), nil }
	for name, test := range map[string]struct {
		answer func(*tool.Call) (*tool.Result, error)
		steps  []step
	}{
		"the third is refused, and stays so": {nil, []step{{"a.read", `{"n":1}`, ""}, {"a.read", `{"n":1}`, ""}, {"a.read", `{"n":1}`, again}, {"a.read", `{"n":1}`, again}, {"a.read", `{"n":2}`, ""}}},
		"key order, blanks, escapes and numbers": {nil, []step{{"a.read", `{"n":1,"s":"é","o":{"x":[1,2],"y":null}}`, ""},
			{"a.read", `{ "o":{"y":null,"x":[1.0,2e0]}, "s":"\u00e9", "n":10e-1 }`, ""}, {"a__read", `{"s":"é","n":1.00,"o":{"x":[1,2],"y":null}}`, again}}},
		"values that differ": {nil, []step{{"a.read", `{"s":"a"}`, ""}, {"a.read", `{"s":"b"}`, ""}, {"a.read", `{"o":{"s":"a"}}`, ""}, {"a.read", `{"n":-1}`, ""}, {"a.read", `{"n":1}`, ""},
			{"a.read", `{"n":10}`, ""}, {"a.read", `{"n":0.1}`, ""}, {"a.read", `{"o":{"x":[1,2]}}`, ""}, {"a.read", `{"o":{"x":[2,1]}}`, ""}, {"b.read", `{"s":"a"}`, ""}}},
		"failures count":         {failing, []step{{"a.read", `{}`, tool.CodeExternal}, {"a.read", `{}`, tool.CodeExternal}, {"a.read", `{}`, again}}},
		"writes count":           {nil, []step{{"a.write", `{}`, ""}, {"a.write", `{}`, ""}, {"a.write", `{}`, again}}},
		"a changed result":       {changing, []step{{"a.read", `{}`, ""}, {"a.read", `{}`, ""}, {"a.read", `{}`, ""}, {"a.read", `{}`, ""}}},
		"a state may be asked":   {nil, []step{{"b.job_status", `{}`, ""}, {"b.job_status", `{}`, ""}, {"b.job_status", `{}`, ""}, {"b.job_status", `{}`, ""}}},
		"after a change of ours": {nil, []step{{"a.read", `{}`, ""}, {"a.write", `{"n":1}`, ""}, {"a.read", `{}`, ""}, {"a.write", `{"n":2}`, ""}, {"a.read", `{}`, ""}}},
		"two in turn": {nil, []step{{"a.write", `{"n":1}`, ""}, {"a.write", `{"n":2}`, ""}, {"a.write", `{"n":1}`, ""}, {"a.write", `{"n":2}`, ""},
			{"a.write", `{"n":1}`, ""}, {"a.write", `{"n":2}`, again}, {"a.write", `{"n":1}`, again}}},
		"searches alike": {changing, []step{{"b.find", `{"query":"delete old log files"}`, ""}, {"b.find", `{"query":"Delete the old log files!"}`, ""},
			{"b.find", `{"query":"old log files delete now"}`, again}, {"b.find", `{"query":"send a mail"}`, ""}, {"b.find", `{"query":"old log files","limit":3}`, ""}}},
		"wrapped": {nil, []step{{"a.read", `{"n":1}`, ""}, {"wrap", `{"calls":[{"name":"a.read","params":{"n":1}}]}`, ""},
			{"wrap", `{"calls":[{"name":"wrap","params":{"calls":[{"name":"a.read","params":{"n":1}}]}}]}`, again}, {"a.read", `{"n":1}`, again}}},
		"wrappers are not counted": {nil, []step{{"wrap", `{"calls":[]}`, ""}, {"wrap", `{"calls":[]}`, ""}, {"wrap", `{"calls":[]}`, ""}, {"wrap", `{"calls":[{"name":"a.read"}]}`, ""}, {"wrap", `{"calls":[{"name":"a.read"}]}`, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, nil)
			w.answers(test.answer)
			w.steps(t, test.steps...)
		})
	}
}

func TestRepetitionSlides(t *testing.T) {
	w := newWorkshop(t, nil)
	w.do(t, "a.read", `{}`)
	w.do(t, "a.read", `{}`)
	for i := range 14 {
		w.do(t, "b.read", fmt.Sprintf(`{"n":%d}`, i))
	}
	// One of the two is among the last 15.
	w.steps(t, step{"a.read", `{}`, ""}, step{"a.read", `{}`, ""}, step{"a.read", `{}`, tool.CodeRepetition})
	res := w.do(t, "a.read", `{}`)
	if !strings.Contains(res.Err.Message, "a.read was called 2 times among the last 15 calls with the same arguments") || !strings.Contains(res.Err.Message, "another tool") || res.Err.Retryable {
		t.Errorf("the refusal reads %+v", res.Err)
	}
	for _, from := range []tool.Origin{{App: "app", Session: "t"}, {App: "app", Session: "s", User: "u"}, {App: "other", Session: "s"}, {App: "app", Session: "s", Agent: "b"}} {
		if res := w.as(t, from, "a.read", `{}`); res.Err != nil {
			t.Errorf("%+v pays for another's calls: %v", from, res.Err)
		}
	}
}

func TestRepetitionWatchesWhom(t *testing.T) {
	for callers, kinds := range map[guard.Callers][]tool.Kind{
		"":               {"", tool.KindModel, tool.KindBackground, tool.KindScript},
		guard.AllCallers: {"", tool.KindModel, tool.KindBackground, tool.KindScript, tool.KindMCP, tool.KindHTTP, tool.KindCLI},
		guard.NoCallers:  {},
	} {
		w := newWorkshop(t, func(o *guard.Options) { o.Repeats.Callers = callers })
		for _, kind := range []tool.Kind{"", tool.KindModel, tool.KindBackground, tool.KindScript, tool.KindMCP, tool.KindHTTP, tool.KindCLI, tool.KindSetup, tool.KindHook, tool.KindChannel, tool.KindWatcher, tool.KindSchedule} {
			from := tool.Origin{Session: "of " + string(kind), Kind: kind}
			w.as(t, from, "a.read", `{}`)
			w.as(t, from, "a.read", `{}`)
			if refused := w.as(t, from, "a.read", `{}`).Err != nil; refused != slices.Contains(kinds, kind) {
				t.Errorf("callers %q: kind %q refused: %v", callers, kind, refused)
			}
		}
	}
}

func TestRepetitionAtOnce(t *testing.T) {
	w := newWorkshop(t, nil)
	hold := make(chan struct{})
	w.answers(func(*tool.Call) (*tool.Result, error) { <-hold; return tool.Text("x"), nil })
	var refused atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if res := w.do(t, "a.read", `{}`); code(res) == tool.CodeRepetition {
				if refused.Add(1) == 18 {
					close(hold)
				}
			}
		})
	}
	all.Wait()
	if w.count() != 2 || refused.Load() != 18 {
		t.Errorf("%d ran, %d were refused", w.count(), refused.Load())
	}
}

func TestMistakes(t *testing.T) {
	bad := func(*tool.Call) (*tool.Result, error) { return nil, errors.New("it broke") }
	down := func(*tool.Call) (*tool.Result, error) { return nil, tool.Errorf(tool.CodeExternal, "down") }
	w := newWorkshop(t, nil)
	check := func(what string, res *tool.Result, want int, stop bool) {
		t.Helper()
		got := guard.MistakesOf(res)
		if got.InARow != want || got.Stop != stop || want > 0 && got.Limit != 3 {
			t.Errorf("%s: %+v, want %d, stop %v (%+v)", what, got, want, stop, res.Err)
		}
	}
	check("not found", w.do(t, "a.raed", `{}`), 1, false)
	check("invalid", w.do(t, "a.read", `{"nonsense":1}`), 2, false)
	w.answers(bad)
	res := w.do(t, "a.read", `{"n":1}`)
	check("failed", res, 3, true)
	if !strings.Contains(res.Err.Message, "3 calls in a row have failed") || !strings.Contains(res.Err.Message, "it broke") {
		t.Errorf("the message is %q", res.Err.Message)
	}
	check("failed again", w.do(t, "a.read", `{"n":2}`), 4, true)
	w.answers(down)
	check("an outage", w.do(t, "a.read", `{"n":3}`), 0, false)
	w.answers(bad)
	check("it did not change the count", w.do(t, "a.read", `{"n":4}`), 5, true)
	w.answers(nil)
	check("a success", w.do(t, "a.read", `{"n":5}`), 0, false)
	w.answers(bad)
	check("wrapped, it counts once", w.do(t, "wrap", `{"calls":[{"name":"a.read","params":{"n":6}}]}`), 1, false)
	check("several of one call", w.do(t, "wrap", `{"calls":[{"name":"a.read","params":{"n":7}},{"name":"b.read","params":{"n":7}},{"name":"none","params":{"n":8}}]}`), 2, false)
	check("the wrapper itself is called wrongly", w.do(t, "wrap", `{"nonsense":1}`), 3, true)
	if got := w.as(t, tool.Origin{Session: "other"}, "none", `{}`); guard.MistakesOf(got).InARow != 1 {
		t.Errorf("another session: %+v", got.Err)
	}
	var details struct{ Suggestions, Candidates []string }
	res = w.do(t, "a.raed", `{}`)
	if err := json.Unmarshal(res.Err.Details, &details); err != nil || len(details.Suggestions) == 0 {
		t.Errorf("the other details are lost: %s", res.Err.Details)
	}
	off := newWorkshop(t, func(o *guard.Options) { o.Mistakes = -1 })
	if m := guard.MistakesOf(off.do(t, "none", `{}`)); m.InARow != 0 {
		t.Errorf("without a limit: %+v", m)
	}
}

func TestSessionsAreForgotten(t *testing.T) {
	w := newWorkshop(t, nil)
	w.do(t, "a.read", `{}`)
	w.do(t, "a.read", `{}`)
	for i := range 2000 {
		w.as(t, tool.Origin{Session: fmt.Sprint(i)}, "a.read", `{}`)
	}
	w.steps(t, step{"a.read", `{}`, ""})
}

// limited returns a workshop with limits, in the process or in a store.
func limited(t testing.TB, shared store.Store, now func() time.Time, limits ...guard.Limit) *workshop {
	return newWorkshop(t, func(o *guard.Options) {
		o.Limiter = guard.NewLimiter(limits, shared, now)
		o.Repeats.Callers = guard.NoCallers
	})
}

func TestRateLimits(t *testing.T) {
	for name, shared := range map[string]store.Store{"in the process": nil, "in a store": new(mem.Store)} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			w := limited(t, shared, func() time.Time { return now },
				guard.Limit{Tools: "a.read", Calls: 2}, guard.Limit{Tools: "b", Calls: 3, Window: time.Hour, PerSession: true}, guard.Limit{Tools: "*", Calls: 6, Window: 24 * time.Hour})
			w.steps(t, step{"a.read", `{}`, ""})
			now = now.Add(20 * time.Second)
			w.steps(t, step{"a.read", `{"bad":1}`, tool.CodeValidation}, step{"a.read", `{}`, ""}, step{"a.write", `{}`, ""})
			res := w.do(t, "a.read", `{}`)
			var d struct {
				Wait float64 `json:"wait_seconds"`
			}
			if json.Unmarshal(res.Err.Details, &d); code(res) != tool.CodeRateLimited || !res.Err.Retryable || d.Wait != 40 || !strings.Contains(res.Err.Message, "a.read may be called 2 times in 1m0s; wait 40 seconds") {
				t.Errorf("refused with %+v %s", res.Err, res.Err.Details)
			}
			now = now.Add(39999 * time.Millisecond)
			w.steps(t, step{"a.read", `{}`, tool.CodeRateLimited})
			now = now.Add(time.Millisecond)
			w.steps(t, step{"a.read", `{}`, ""}, step{"a.read", `{}`, tool.CodeRateLimited}, step{"b.read", `{}`, ""}, step{"b.find", `{}`, ""})
			// Six calls of the app have run: the wider limit tells the longer wait.
			if res := w.do(t, "b.read", `{}`); !strings.Contains(res.Err.Message, `(by the limit for "*") may be called 6 times in 24h0m0s`) {
				t.Errorf("refused with %+v", res.Err)
			}
			now = now.Add(24 * time.Hour)
			other := tool.Origin{App: "app", Session: "t", Kind: tool.KindModel}
			w.steps(t, step{"b.read", `{}`, ""}, step{"b.read", `{}`, ""}, step{"b.find", `{}`, ""}, step{"b.find", `{}`, tool.CodeRateLimited})
			if res := w.as(t, other, "b.find", `{}`); res.Err != nil {
				t.Errorf("another session: %+v", res.Err)
			}
			if res := w.as(t, tool.Origin{App: "app", Session: "s", Kind: tool.KindSetup}, "b.find", `{}`); res.Err != nil {
				t.Errorf("the app itself: %+v", res.Err)
			}
		})
	}
}

// A call that a later stage refused gives its place back, at the time at which
// it took it; a question that was put to the operator does not.
func TestRefusedCallsDoNotCount(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := newWorkshop(t, func(o *guard.Options) {
		o.Limiter = guard.NewLimiter([]guard.Limit{{Tools: "a.read", Calls: 3}, {Tools: "a.write", Calls: 2}}, nil, func() time.Time { return now })
		o.Policies = []guard.Policy{func(_ context.Context, c *tool.Call) (tool.Verdict, string) {
			if c.Tool.IsRead() {
				return tool.Allow, "a read"
			}
			return tool.Ask, "a write"
		}}
	})
	w.steps(t, step{"a.read", `{}`, ""}, step{"a.read", `{}`, ""}, step{"a.read", `{}`, tool.CodeRepetition}, step{"a.read", `{}`, tool.CodeRepetition},
		step{"a.read", `{"n":1}`, ""}, step{"a.read", `{"n":2}`, tool.CodeRateLimited},
		step{"a.write", `{}`, tool.CodeDenied}, step{"a.write", `{}`, tool.CodeDenied}, step{"a.write", `{"n":1}`, tool.CodeRateLimited})
}

// However calls come, no stretch as long as the window holds more than the limit.
func TestNoStretchHoldsMore(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const limit, window = 300, 10 * time.Second
	w := limited(t, nil, func() time.Time { return now }, guard.Limit{Tools: "*", Calls: limit, Window: window})
	var ran []time.Time
	for i := range 6000 {
		if w.do(t, "a.read", `{}`).Err == nil {
			ran = append(ran, now)
		}
		now = now.Add(time.Duration(1+(i*i)%17) * time.Millisecond)
	}
	if len(ran) < 4*limit {
		t.Errorf("only %d calls ran", len(ran))
	}
	for i := range ran {
		if j := i + limit; j < len(ran) && ran[j].Sub(ran[i]) < window {
			t.Fatalf("%d calls ran within %v", limit+1, ran[j].Sub(ran[i]))
		}
	}
}

func TestRateLimitsAtOnce(t *testing.T) {
	for name, shared := range map[string]store.Store{"in the process": nil, "in a store": new(mem.Store)} {
		t.Run(name, func(t *testing.T) {
			w := limited(t, shared, nil, guard.Limit{Tools: "a", Calls: 7, Window: time.Hour})
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() { w.as(t, tool.Origin{Session: fmt.Sprint(i)}, "a.read", `{}`) })
			}
			all.Wait()
			if w.count() != 7 {
				t.Errorf("%d calls ran", w.count())
			}
		})
	}
}

// A lockedStore is one that another process holds.
type lockedStore struct{ store.Store }

func (lockedStore) Update(ctx context.Context, _ func(store.Writer) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRateLimitThatCannotBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(t, lockedStore{}, nil, guard.Limit{Tools: "a", Calls: 7})
		w.steps(t, step{"a.read", `{}`, tool.CodeRateLimited}, step{"b.read", `{}`, ""})
	})
}

// build makes middleware of its settings.
func middleware(t testing.TB, name, settings string, host guard.MiddlewareHost) guard.Middleware {
	t.Helper()
	for _, k := range guard.MiddlewareKinds() {
		if k.Name == name {
			m, err := k.Build(json.RawMessage(settings), host)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("there is no middleware %s", name)
	panic("unreachable")
}

func withMiddleware(t testing.TB, all ...guard.Middleware) *workshop {
	return newWorkshop(t, func(o *guard.Options) { o.Middleware, o.Repeats.Callers = all, guard.NoCallers })
}

// What a middleware does to the call that it is shown changes nothing.
func TestMiddlewareCannotReachTheCall(t *testing.T) {
	spoil := func(c *tool.Call) {
		for i := range c.Args {
			c.Args[i] = 'x'
		}
		c.Args = json.RawMessage(`{"s":"evil"}`)
		c.Name, c.Tool.Name, c.Tool.Effect, c.From = "a.write", "a.write", tool.Reads, tool.Origin{Session: "root", Kind: tool.KindSetup}
		c.Trail.Decision, c.Trail.Asked, c.Trail.Judged = tool.Allow, nil, c.Args
		c.Tool.Handle = nil
	}
	var held json.RawMessage
	var seen tool.Origin
	sneaky := guard.Middleware{Name: "sneaky",
		Rewrite: func(_ context.Context, c *tool.Call) (json.RawMessage, error) {
			held = slices.Clone(c.Args)
			spoil(c)
			return held, nil
		},
		Pre: func(_ context.Context, c *tool.Call) error {
			spoil(c)
			for i := range held {
				held[i] = 'y' // what it returned from Rewrite, behind the judges' back
			}
			return nil
		},
		Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
			spoil(c)
			return run(ctx), nil
		},
		Post: func(_ context.Context, c *tool.Call, res *tool.Result) (*tool.Result, error) {
			spoil(c)
			return nil, nil
		},
	}
	witness := guard.Middleware{Name: "witness", Pre: func(_ context.Context, c *tool.Call) error { seen = c.From; return nil }}
	w := withMiddleware(t, sneaky, witness)
	if res := w.do(t, "a.read", `{"s":"good"}`); res.Err != nil || !slices.Equal(w.ran, []string{`a.read {"s":"good"}`}) {
		t.Errorf("ran %q: %+v", w.ran, res.Err)
	}
	if seen.Session != "s" || seen.Kind != tool.KindModel {
		t.Errorf("the next middleware sees %+v", seen)
	}
}

// A middleware cannot let run what the policy denies, nor have run what it
// did not judge.
func TestMiddlewareCannotGrant(t *testing.T) {
	var judged []string
	w := newWorkshop(t, func(o *guard.Options) {
		o.Policies = []guard.Policy{func(_ context.Context, c *tool.Call) (tool.Verdict, string) {
			judged = append(judged, string(c.Args))
			if strings.Contains(string(c.Args), "evil") {
				return tool.Deny, "it is evil"
			}
			return tool.Allow, "it is not"
		}}
		o.Middleware = []guard.Middleware{{Name: "rewriter", Module: "a",
			Rewrite: func(_ context.Context, c *tool.Call) (json.RawMessage, error) {
				switch {
				case strings.Contains(string(c.Args), "swap"):
					return json.RawMessage(`{"s":"evil"}`), nil
				case strings.Contains(string(c.Args), "trim"):
					return json.RawMessage(`{"s":"trimmed"}`), nil
				case strings.Contains(string(c.Args), "break"):
					return json.RawMessage(`{"nonsense":1}`), nil
				case strings.Contains(string(c.Args), "stop"):
					return nil, errors.New("not in this house")
				}
				return c.Args, nil
			}}}
	})
	w.steps(t, step{"a.read", `{"s":"swap"}`, tool.CodePermission}, step{"a.read", `{"s":"break"}`, tool.CodeValidation}, step{"a.read", `{"s":"trim me"}`, ""}, step{"b.read", `{"s":"trim me"}`, ""})
	if res := w.do(t, "a.read", `{"s":"stop"}`); code(res) != tool.CodePermission || !strings.Contains(res.Err.Message, "rewriter: not in this house") {
		t.Errorf("refused with %+v", res.Err)
	}
	if want := []string{`a.read {"s":"trimmed"}`, `b.read {"s":"trim me"}`}; !slices.Equal(w.ran, want) {
		t.Errorf("ran %q, want %q", w.ran, want)
	}
	if want := []string{`{"s":"evil"}`, `{"s":"trimmed"}`, `{"s":"trim me"}`}; !slices.Equal(judged, want) {
		t.Errorf("judged %q, want %q", judged, want)
	}
	if x := w.Explain(t.Context(), &tool.Call{Name: "a.read", Args: json.RawMessage(`{"s":"swap"}`)}); x.Decision != "deny" || x.Stage != "policy" {
		t.Errorf("explained as %+v", x)
	}
}

func TestMiddlewareThatFails(t *testing.T) {
	boom := func(when string) guard.Middleware {
		m := guard.Middleware{Name: when}
		switch when {
		case "rewrite":
			m.Rewrite = func(context.Context, *tool.Call) (json.RawMessage, error) { panic("boom") }
		case "pre":
			m.Pre = func(context.Context, *tool.Call) error { panic("boom") }
		case "pre says no":
			m.Pre = func(context.Context, *tool.Call) error { return errors.New("closed on Sundays") }
		case "around":
			m.Around = func(context.Context, *tool.Call, func(context.Context) *tool.Result) (*tool.Result, error) {
				panic("boom")
			}
		case "around returns nothing":
			m.Around = func(context.Context, *tool.Call, func(context.Context) *tool.Result) (*tool.Result, error) {
				return nil, nil
			}
		case "post":
			m.Post = func(_ context.Context, _ *tool.Call, res *tool.Result) (*tool.Result, error) {
				res.Content[0].Text = "spoilt"
				panic("boom")
			}
		case "post says no":
			m.Post = func(_ context.Context, _ *tool.Call, res *tool.Result) (*tool.Result, error) {
				res.Content[0].Text, res.Notes = "spoilt", append(res.Notes, "spoilt")
				return res, errors.New("no")
			}
		}
		return m
	}
	for when, want := range map[string]tool.Code{"rewrite": tool.CodeRuntime, "pre": tool.CodeRuntime, "pre says no": tool.CodePermission, "around": tool.CodeRuntime, "around returns nothing": tool.CodeRuntime, "post": "", "post says no": ""} {
		w := withMiddleware(t, boom(when))
		res := w.do(t, "a.read", `{}`)
		if code(res) != want || want == "" && (res.JoinText() != "the same" || len(res.Notes) > 0) {
			t.Errorf("%s: %+v %+v", when, res, res.Err)
		}
		if ran := w.count() == 1; ran != (want == "") {
			t.Errorf("%s: the tool ran: %v", when, ran)
		}
	}
}

func TestMiddlewareOrder(t *testing.T) {
	var trace []string
	note := func(name string) guard.Middleware {
		return guard.Middleware{Name: name,
			Pre: func(context.Context, *tool.Call) error { trace = append(trace, name+" pre"); return nil },
			Post: func(_ context.Context, _ *tool.Call, res *tool.Result) (*tool.Result, error) {
				trace = append(trace, name+" post")
				res.Content[0].Text += " " + name
				return res, nil
			}}
	}
	other := note("other")
	other.Module = "b"
	w := withMiddleware(t, note("one"), other, note("two"))
	if res := w.do(t, "wrap", `{"calls":[{"name":"a.read"}]}`); res.JoinText() != "the same two one" {
		t.Errorf("the result is %q", res.JoinText())
	}
	if want := []string{"one pre", "two pre", "two post", "one post"}; !slices.Equal(trace, want) {
		t.Errorf("%q, want %q", trace, want)
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withMiddleware(t, middleware(t, "retry", `{"attempts":3,"idempotent":["write"]}`, guard.MiddlewareHost{Module: "a"}))
		fails := 0
		var with error
		w.answers(func(*tool.Call) (*tool.Result, error) {
			if fails--; fails >= 0 {
				return nil, with
			}
			return tool.Text("done"), nil
		})
		try := func(name string, n int, err error, wantRuns int, want tool.Code) {
			t.Helper()
			before := w.count()
			fails, with = n, err
			if res := w.do(t, name, `{}`); code(res) != want || w.count()-before != wantRuns {
				t.Errorf("%s with %d failures (%v): %d runs, %+v", name, n, err, w.count()-before, res.Err)
			}
		}
		passing := tool.Errorf(tool.CodeExternal, "down").Retry()
		try("a.read", 2, passing, 3, "")
		try("a.read", 9, passing, 3, tool.CodeExternal)
		try("a.read", 9, tool.Errorf(tool.CodeExternal, "gone"), 1, tool.CodeExternal)
		try("a.read", 9, errors.New("wrong"), 1, tool.CodeRuntime)
		try("a.write", 1, passing, 2, "") // the operator says so
		try("b.read", 9, passing, 1, tool.CodeExternal)
		fails, with = 1, passing
		if res := w.do(t, "a.read", `{}`); len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "attempt 2") {
			t.Errorf("notes %q", res.Notes)
		}
		plain := withMiddleware(t, middleware(t, "retry", ``, guard.MiddlewareHost{}))
		plain.answers(func(*tool.Call) (*tool.Result, error) { return nil, passing })
		plain.do(t, "a.write", `{}`)
		plain.do(t, "wrap", `{"calls":[{"name":"a.write"}]}`)
		if plain.count() != 2 {
			t.Errorf("a write was repeated: %q", plain.ran)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := plain.Do(ctx, &tool.Call{Name: "a.read"}); !errors.Is(err, context.DeadlineExceeded) || plain.count() != 3 {
			t.Errorf("a caller that left was not heard: %v, %d runs", err, plain.count())
		}
	})
}

func TestTimeoutMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withMiddleware(t, middleware(t, "timeout", `{"seconds":2}`, guard.MiddlewareHost{}), middleware(t, "retry", `{"attempts":10,"backoff":1}`, guard.MiddlewareHost{}))
		w.answers(func(*tool.Call) (*tool.Result, error) { return nil, tool.Errorf(tool.CodeExternal, "down").Retry() })
		start := time.Now()
		res := w.do(t, "a.read", `{}`)
		if code(res) != tool.CodeTimeout || time.Since(start) > 2*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), res.Err)
		}
	})
}

func TestCache(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := new(guard.Changes)
	denied := false
	host := guard.MiddlewareHost{Module: "a", Now: func() time.Time { return now }, Changes: changes}
	w := newWorkshop(t, func(o *guard.Options) {
		o.Middleware, o.Changes, o.Repeats.Callers = []guard.Middleware{middleware(t, "cache", `{"ttl":10,"entries":3}`, host)}, changes, guard.NoCallers
		o.Policies = []guard.Policy{func(context.Context, *tool.Call) (tool.Verdict, string) {
			if denied {
				return tool.Deny, "no longer"
			}
			return tool.Allow, "yes"
		}}
	})
	n := 0
	w.answers(func(*tool.Call) (*tool.Result, error) { n++; return tool.Text(fmt.Sprint("answer ", n)), nil })
	expect := func(what string, res *tool.Result, want string) {
		t.Helper()
		if res.JoinText() != want {
			t.Errorf("%s: %q, want %q", what, res.JoinText(), want)
		}
	}
	expect("first", w.do(t, "a.read", `{"n":1,"s":"x"}`), "answer 1")
	res := w.do(t, "a.read", `{"s":"x","n":1.0}`)
	expect("the same", res, "answer 1")
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "cache") {
		t.Errorf("notes %q", res.Notes)
	}
	res.Content[0].Text = "spoilt"
	expect("kept unspoilt", w.do(t, "a.read", `{"s":"x","n":1.0}`), "answer 1")
	expect("other arguments", w.do(t, "a.read", `{"n":2}`), "answer 2")
	expect("another user", w.as(t, tool.Origin{App: "app", User: "u"}, "a.read", `{"n":1,"s":"x"}`), "answer 3")
	expect("another app", w.as(t, tool.Origin{App: "other"}, "a.read", `{"n":1,"s":"x"}`), "answer 4")
	expect("pushed out", w.do(t, "a.read", `{"n":1,"s":"x"}`), "answer 5")
	expect("a write", w.do(t, "a.write", `{}`), "answer 6")
	expect("a write is not kept", w.do(t, "a.write", `{}`), "answer 7")
	expect("after a write", w.do(t, "a.read", `{"n":1,"s":"x"}`), "answer 8")
	expect("another module", w.do(t, "b.read", `{}`), "answer 9")
	expect("is not kept", w.do(t, "b.read", `{}`), "answer 10")
	expect("still kept", w.do(t, "a.read", `{"n":1,"s":"x"}`), "answer 8")
	denied = true
	if res := w.do(t, "a.read", `{"n":1,"s":"x"}`); code(res) != tool.CodePermission {
		t.Errorf("what is no longer allowed: %+v", res)
	}
	denied = false
	now = now.Add(10 * time.Second)
	expect("too old", w.do(t, "a.read", `{"n":1,"s":"x"}`), "answer 11")
	w.answers(func(*tool.Call) (*tool.Result, error) { n++; return nil, errors.New("no") })
	w.do(t, "a.read", `{"n":9}`)
	w.answers(nil)
	expect("failures are not kept", w.do(t, "a.read", `{"n":9}`), "the same")
}

func TestCircuitBreaker(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := withMiddleware(t, middleware(t, "circuit_breaker", `{"failures":2,"cooldown":10}`, guard.MiddlewareHost{Now: func() time.Time { return now }}))
	down := func(*tool.Call) (*tool.Result, error) { return nil, tool.Errorf(tool.CodeExternal, "down") }
	w.answers(down)
	w.steps(t, step{"a.read", `{}`, tool.CodeExternal}, step{"a.read", `{}`, tool.CodeExternal})
	res := w.do(t, "a.write", `{}`)
	if code(res) != tool.CodeExternal || !res.Err.Retryable || !strings.Contains(res.Err.Message, "wait 10 seconds") || w.count() != 2 {
		t.Errorf("an open circuit: %+v, %d runs", res.Err, w.count())
	}
	w.steps(t, step{"b.read", `{}`, tool.CodeExternal}) // another module runs, and fails on its own
	now = now.Add(10 * time.Second)
	w.do(t, "a.read", `{}`) // one is tried
	if w.do(t, "a.read", `{}`); w.count() != 4 {
		t.Errorf("%d runs", w.count())
	}
	now = now.Add(10 * time.Second)
	w.answers(nil)
	w.steps(t, step{"a.read", `{}`, ""}, step{"a.read", `{}`, ""})
}

func TestRedactMiddleware(t *testing.T) {
	r := guard.NewRedactor()
	dir := t.TempDir()
	h := build(t, func(o *guard.Options, rules *guard.Rules) {
		rules.Default, o.Redactor = guard.Auto, r
		o.Middleware = []guard.Middleware{
			middleware(t, "redact", `{"patterns":["PID-[0-9]+"]}`, guard.MiddlewareHost{Module: "file", Redactor: r}),
			middleware(t, "audit", `{"file":"extra/calls.jsonl"}`, guard.MiddlewareHost{Redactor: r, Folder: dir}),
		}
	})
	res := h.do(t, "file.write", `{"path":"a","text":"PID-4711 and more"}`)
	if res.JoinText() != "[redacted] and more" {
		t.Errorf("the result is %q", res.JoinText())
	}
	if r := h.last(t); strings.Contains(string(r.Args), "PID-4711") || !strings.Contains(string(r.Args), "and more") {
		t.Errorf("audited %s", r.Args)
	}
	if res := h.do(t, "shell.run", `{"cmd":"echo PID-4711"}`); res.Err != nil || !strings.Contains(string(h.last(t).Args), "4711") {
		t.Errorf("another module: %+v %s", res.Err, h.last(t).Args)
	}
	h.do(t, "file.read", `{"path":"../x"}`)
	data, err := os.ReadFile(filepath.Join(dir, "extra", "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 2 || strings.Contains(lines[0], "PID-4711") || !strings.Contains(lines[0], `"tool":"file.write"`) || !strings.Contains(lines[0], "and more") || !strings.Contains(lines[1], `"tool":"shell.run"`) {
		t.Errorf("the audit middleware wrote %s", data)
	}
	r.Hide("", regexp.MustCompile("content"))
	if res := h.do(t, "file.read", `{"path":"a"}`); res.JoinText() != "[redacted]" {
		t.Errorf("a pattern for all: %q", res.JoinText())
	}
}

func BenchmarkWatched(b *testing.B) {
	w := newWorkshop(b, nil)
	calls := make([]*tool.Call, 32)
	for i := range calls {
		calls[i] = &tool.Call{Name: "a.read", ID: "c", Args: json.RawMessage(fmt.Sprintf(`{"n":%d,"s":"some text","o":{"a":[1,2,3],"b":true}}`, i)),
			From: tool.Origin{App: "a", Session: "s", Kind: tool.KindModel}}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if res, err := w.Do(b.Context(), calls[i%len(calls)]); err != nil || res.Err != nil {
			b.Fatal(res, err)
		}
	}
}
