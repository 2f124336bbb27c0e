package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// An above is the app that has opened another to call it. Whoever works in the
// other does so for somebody in this one, and within what that one may do.
type above struct {
	app  *App
	name string       // under tools.apps
	may  *guard.Rules // what the called app may do although its caller may not
}

// calledApps are the apps that were called, and are kept open for the next call.
type calledApps struct {
	mu     sync.Mutex
	open   map[string]*App
	closed bool
}

// callable lists the apps that may be called.
func (a *App) callable() []module.Callable {
	var out []module.Callable
	for _, name := range slices.Sorted(maps.Keys(a.Config.called)) {
		c := a.Config.called[name].config
		k := module.Callable{Name: name, Description: a.Config.Tools.Apps[name].Description}
		if k.Description == "" {
			k.Description = c.App.Description
		}
		k.Input, _ = c.input() // checked when the file was read
		k.Output, _ = c.oneShot(c.Runtime.Output)
		out = append(out, k)
	}
	return out
}

// callApp has another app answer an input, on behalf of a call (SPEC R7).
func (a *App) callApp(ctx context.Context, c *tool.Call, name string, input json.RawMessage) (*tool.Result, error) {
	if depth(c.From) >= maxAgentDepth {
		return nil, tool.Errorf(tool.CodePermission, "apps and agents set others to work at most %d deep; do it yourself", maxAgentDepth)
	}
	d, known := a.Config.Tools.Apps[name]
	if !known {
		return nil, tool.Errorf(tool.CodeValidation, "there is no app %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(a.Config.called)), ", "))
	}
	text, err := a.Config.called[name].config.given(input)
	if err != nil {
		return nil, tool.Errorf(tool.CodeValidation, "/input: %v", err)
	}
	if strings.TrimSpace(text) == "" {
		return nil, tool.Errorf(tool.CodeValidation, "/input: is empty; say what the app %s is to do", name)
	}
	to, err := a.openCalled(ctx, name)
	if err != nil {
		return nil, tool.Errorf(tool.CodeExternal, "the app %s cannot be opened: %v", name, err)
	}
	t, outermost := a.treeOf(c)
	if outermost {
		defer a.trees.Delete(treeKey(c))
	}
	turns := t.share(1, least(d.MaxTurns, to.Config.Runtime.MaxTurns))
	if turns == 0 {
		return nil, tool.Errorf(tool.CodeBudget, "the turns that agents may take together are used up (runtime.max_turns)")
	}
	ag, err := to.Agent(ctx, "", c.From.User)
	if err != nil {
		t.giveBack(turns)
		return nil, tool.Errorf(tool.CodeExternal, "the app %s: %v", name, err)
	}
	form := ag.Output
	to.bind(ag, c, module.Work{Budget: leastMoney(d.Budget, a.Config.Runtime.Budget.Dollars)}, turns, 1)
	ag.Output = form
	ag.Limits.Tokens = least(ag.Limits.Tokens, a.Config.Runtime.Budget.Tokens)
	if limit := time.Duration(d.Timeout) * time.Second; limit > 0 && limit < ag.Limits.Time {
		ag.Limits.Time = limit
	}
	conv, out := to.follow(ctx, ag, c, text)
	t.giveBack(max(turns-out.Turns, 0))
	if a.Config.agent(c.From.Agent) != nil && c.From.Kind != tool.KindMCP && c.From.Kind != tool.KindCLI {
		a.spent.add(c.From.Session, out.Usage, out.Money) // of whoever called; clients keep no account
	}
	return answerOfApp(name, conv, out)
}

// follow has an agent of this app work for a call, to the end.
func (a *App) follow(ctx context.Context, ag *agent.Agent, c *tool.Call, task string) (session string, out agent.Outcome) {
	book := a.Conversations()
	conv := &agent.Conversation{ID: book.NewID()}
	id := ag.From.Agent
	ag.Save = func(ctx context.Context, conv *agent.Conversation) error {
		return book.Save(ctx, conv, agent.Kept{App: a.Config.App.ID, Agent: id, User: c.From.User, Parent: c.From.Session})
	}
	from := ag.From
	from.Session = conv.ID
	for e := range ag.Run(ctx, conv, llm.Said(llm.User, task)) {
		a.heard(from, e)
		if e.Done != nil {
			out = *e.Done
		}
	}
	return conv.ID, out
}

func answerOfApp(name, session string, out agent.Outcome) (*tool.Result, error) {
	if out.Reason == agent.Answered {
		res := tool.Text(out.Text)
		if raw := bytes.TrimSpace(out.Output); len(raw) > 0 {
			res = tool.Text(string(raw))
			if raw[0] == '{' { // what is no object cannot be told as structure over MCP
				res.Structured = out.Output
			}
		}
		return res, nil
	}
	code := tool.CodeExternal
	switch out.Reason {
	case agent.Cancelled:
		code = tool.CodeCancelled
	case agent.OutOf:
		code = tool.CodeBudget
	}
	text := fmt.Sprintf("the app %s gave no answer: %s: %s (session %s)", name, out.Reason, out.Detail, session)
	if out.Text != "" {
		text += "\nIt said last: " + out.Text
	}
	return nil, tool.Errorf(code, "%s", text)
}

// least returns the smallest of numbers that are set.
func least(all ...int) int {
	n := 0
	for _, m := range all {
		if m > 0 && (n == 0 || m < n) {
			n = m
		}
	}
	return n
}

// openCalled returns an app that may be called, open. It stays open until this
// one is closed.
func (a *App) openCalled(ctx context.Context, name string) (*App, error) {
	a.called.mu.Lock()
	defer a.called.mu.Unlock()
	switch {
	case a.called.closed:
		return nil, errors.New("the calling app is being closed")
	case a.called.open[name] != nil:
		return a.called.open[name], nil
	}
	o, err := a.calledOptions(name)
	if err != nil {
		return nil, err
	}
	to, err := Open(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	for _, f := range to.Failures() {
		a.log.Warn("a module of a called app did not load", "app", name, "module", f.Module, "error", f.Error)
	}
	if a.called.open == nil {
		a.called.open = map[string]*App{}
	}
	a.called.open[name] = to
	return to, nil
}

// prepareCalled has the apps that were called closed with this one, before what
// they share with it.
func (a *App) prepareCalled(context.Context) error {
	a.closers = append(a.closers, func() error {
		a.called.mu.Lock()
		defer a.called.mu.Unlock()
		a.called.closed = true
		var errs []error
		for _, to := range a.called.open {
			errs = append(errs, to.Close())
		}
		a.called.open = nil
		return errors.Join(errs...)
	})
	return nil
}

// calledOptions returns how an app is opened that is called: in the folder of
// its caller, with its caller's store, audit and approvals, and confined no
// less than its caller.
func (a *App) calledOptions(name string) (Options, error) {
	o := a.opts
	c := *a.Config.called[name].config
	if dir := c.Runtime.Workdir; dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(c.file), dir)
		}
		if realFile(dir) != a.Root.Dir() {
			return o, fmt.Errorf("it works in a folder of its own (runtime.workdir: %s), and an app that is called works in that of its caller", c.Runtime.Workdir)
		}
	}
	c.Security.AllowHosts = slices.DeleteFunc(slices.Clone(c.Security.AllowHosts), func(h string) bool {
		return !slices.Contains(a.Config.Security.AllowHosts, h)
	})
	c.Security.Sandbox = stricter(c.Security.Sandbox, a.Config.Security.Sandbox, string(sandbox.Off), string(sandbox.Prefer), string(sandbox.Require))
	c.Security.Taint = stricter(c.Security.Taint, a.Config.Security.Taint, string(guard.TaintOff), string(guard.TaintWarn), string(guard.TaintEnforce))
	up := &above{app: a, name: name, may: &guard.Rules{Default: guard.Block, MaxRisk: tool.High}}
	for i, r := range a.Config.Tools.Apps[name].May {
		g, err := r.compile(a.Root)
		if err != nil {
			return o, fmt.Errorf("tools.apps.%s.may[%d]: %w", name, i, err)
		}
		up.may.Grant = append(up.may.Grant, g)
	}
	o.Config, o.File, o.above = &c, c.file, up
	o.Approver, o.Asker = up.approve, up.ask
	return o, nil
}

// stricter returns that of two words which stands later in a list.
func stricter(a, b string, from ...string) string {
	if slices.Index(from, a) > slices.Index(from, b) {
		return a
	}
	return b
}

// caller returns who, in the app above, somebody in this one works for; nil:
// nobody that is known.
func (a *App) caller(from tool.Origin) *tool.Bound {
	for u := from.Under; u != nil; u = u.By.Under {
		if u.By.App != a.Config.App.ID {
			return u
		}
	}
	return nil
}

// approve puts a question about a call in the called app to those who are asked
// about calls of its caller.
func (up *above) approve(ctx context.Context, q guard.Question) (guard.Answer, error) {
	ask := up.app.approver()
	own, err := up.callOf(q.Call)
	if ask == nil || err != nil {
		return guard.Answer{}, errors.Join(err, errors.New("nobody can be asked"))
	}
	q.Call, q.Reasons = own, slices.Clone(q.Reasons)
	for i, r := range q.Reasons {
		q.Reasons[i] = fmt.Sprintf("the app %s wants it, and %s", up.name, r)
	}
	return ask(ctx, q)
}

// ask puts what the called app asks to the user of its caller.
func (up *above) ask(ctx context.Context, c *tool.Call, q module.Question) (module.Reply, error) {
	own, err := up.callOf(c)
	if err != nil {
		return module.Reply{}, module.ErrNobody
	}
	return up.app.ask(ctx, own, q)
}

// callOf returns a call in the called app as if its caller made it.
func (up *above) callOf(c *tool.Call) (*tool.Call, error) {
	for u := c.From.Under; u != nil; u = u.By.Under {
		if u.By.App == up.app.Config.App.ID {
			own := *c
			own.From = u.By
			return &own, nil
		}
	}
	return nil, errors.New("it is not known for whom the app works")
}

// sees reports whether a called app's agents may know of a tool for a caller:
// one that reads unless the caller's app denies it, and one that does more if
// the caller may use it as well, or the app file says that it may (may).
func (up *above) sees(by tool.Origin, t *tool.Tool) bool {
	if t.Meta {
		return true
	}
	x := up.app
	own, has := up.same(t)
	if !x.rules.Visible(by, own) {
		return false
	}
	if !harmless(t) && !slices.ContainsFunc(up.may.Grant, func(r *guard.Rule) bool { return r.Names(t) }) {
		return has && x.Visible(by, own)
	}
	if x.opts.above == nil {
		return true
	}
	u := x.caller(by)
	return u != nil && x.opts.above.sees(u.By, t)
}

// same returns the tool of the calling app that is the same as one of the called
// app, by which the caller's rights are told; else that of the called app. Under
// one name two apps may have declared two servers: their tools are never the same.
func (up *above) same(t *tool.Tool) (*tool.Tool, bool) {
	if own, has := up.app.reg.Set().Lookup(t.Name); has && !strings.HasPrefix(t.Name, "mcp.") {
		return own, true
	}
	return t, false
}

// judge is the Policy of a called app that holds its calls to what its caller
// may do: see sees. What the caller would be asked about is asked about.
func (up *above) judge(ctx context.Context, c *tool.Call) (tool.Verdict, string) {
	x := up.app
	if c.From.Kind.Daemon() { // its setup: what is denied is denied to all
		return max(tool.Silent, denial(x.rules, ctx, c)), "the calling app denies it"
	}
	own, err := up.callOf(c)
	if err != nil {
		return tool.Deny, err.Error()
	}
	trail := *c.Trail
	own.Trail = &trail
	theirs, has := up.same(c.Tool)
	own.Tool = theirs
	verdict, why := tool.Silent, ""
	switch {
	case denial(x.rules, ctx, own) == tool.Deny:
		return tool.Deny, "the app that calls " + up.name + " denies it"
	case harmless(c.Tool):
	case up.lends(ctx, c):
	case !has || !x.Visible(own.From, theirs):
		return tool.Deny, fmt.Sprintf("whoever called the app %s may not do it either; to let the app do it all the same, the operator adds it to tools.apps.%s.may", up.name, up.name)
	default:
		verdict, why = x.rules.Judge(ctx, own)
	}
	if x.opts.above != nil {
		if v, because := x.opts.above.judge(ctx, own); v > verdict {
			return v, because
		}
	}
	return verdict, why
}

// lends reports whether the app file lets the called app make a call although
// its caller may not.
func (up *above) lends(ctx context.Context, c *tool.Call) bool {
	v, _ := up.may.Judge(ctx, c)
	return v == tool.Allow
}

// denial is what the denials of rules alone say of a call: Deny, or nothing.
func denial(r *guard.Rules, ctx context.Context, c *tool.Call) tool.Verdict {
	only := guard.Rules{Default: guard.Auto, MaxRisk: tool.High, Deny: r.Deny, Hidden: r.Hidden}
	if v, _ := only.Judge(ctx, c); v == tool.Deny {
		return v
	}
	return tool.Silent
}

// harmless reports whether a tool changes nothing and costs nothing.
func harmless(t *tool.Tool) bool {
	return t.Meta || t.IsRead() && (t.CostClass == "" || t.CostClass == tool.FreeLocal)
}

// share has an app that is called use what its caller has opened.
func (a *App) share() {
	x := a.opts.above.app
	a.Root, a.State, a.Sandbox = x.Root, x.State, x.Sandbox
	if mode := sandbox.Mode(a.Config.Security.Sandbox); mode != x.Sandbox.Mode() {
		confined := x.confined
		confined.Mode = mode
		a.Sandbox = sandbox.New(confined)
	}
	a.whole, a.Store = x.whole, store.Sub(x.whole, "apps/"+a.Config.App.ID)
	a.Checkpoints, a.Approvals, a.audit, a.trees = x.Checkpoints, x.Approvals, x.audit, x.trees
}
