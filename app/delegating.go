package app

import (
	"context"
	"slices"
	"sync"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// maxAgentDepth is how deep agents may set agents to work (SPEC L4).
const maxAgentDepth = 3

// delegates returns the agents to whom a caller may give work: those that its
// delegate_to names; a coordinator that names none has all specialists.
func (a *App) delegates(from tool.Origin) []module.Delegate {
	d := a.Config.agent(from.Agent)
	if d == nil || depth(from) >= maxAgentDepth {
		return nil
	}
	var out []module.Delegate
	for _, other := range a.Config.Agents {
		named := slices.Contains(d.DelegateTo, other.ID)
		if named || len(d.DelegateTo) == 0 && d.Role == "coordinator" && other.Role == "specialist" && other.ID != d.ID {
			out = append(out, module.Delegate{ID: other.ID, Specialty: other.Specialty})
		}
	}
	return out
}

// depth is how many agents stand above a caller.
func depth(from tool.Origin) int {
	n := 0
	for u := from.Under; u != nil; u = u.By.Under {
		n++
	}
	return n
}

// Heard is an event in the run of an agent that a call has set to work.
type Heard struct {
	From    tool.Origin // the agent, in its own app and session; From.Under has the call
	Session string      // in which the outermost of those calls was made
	Depth   int         // how many agents stand above it that were set to work, and the one that speaks with the user
	Event   agent.Event
}

// heard tells what happens in the run of an agent that a call has set to work.
func (a *App) heard(from tool.Origin, e agent.Event) {
	if a.opts.Heard == nil {
		return
	}
	h := Heard{From: from, Session: from.Session, Event: e}
	for u := from.Under; u != nil; u = u.By.Under {
		if u.By.Session != h.Session || u.By.App != from.App { // else it had the session before
			h.Depth++
		}
		h.Session, from = u.By.Session, u.By
	}
	a.opts.Heard(h)
}

// A tree is what all agents that come of one call may use together. They get
// their shares in advance, and give back what is left.
type tree struct {
	mu    sync.Mutex
	turns int
}

// share takes turns for one of n: half of what there is is kept for those that
// these set to work in turn.
func (t *tree) share(n, wanted int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turns == 0 {
		return 0
	}
	got := max(t.turns/2/n, 1)
	if wanted > 0 {
		got = min(got, wanted)
	}
	t.turns -= got
	return got
}

func (t *tree) giveBack(turns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns += turns
}

// spending is what agents below used that is not yet counted above, by session.
type spending struct {
	mu sync.Mutex
	by map[string]agent.Spent
}

func (s *spending) add(session string, u llm.Usage, money float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]agent.Spent{}
	}
	now := s.by[session]
	now.Usage = now.Usage.Add(u)
	now.Money += money
	s.by[session] = now
}

func (s *spending) take(session string) agent.Spent {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.by[session]
	delete(s.by, session)
	return now
}

// delegate has agents work for the one that calls, at the same time, as many
// as its pool allows. Each may do what both may.
func (a *App) delegate(ctx context.Context, c *tool.Call, work []module.Work) ([]module.Done, error) {
	allowed := a.delegates(c.From)
	for _, w := range work {
		if !slices.ContainsFunc(allowed, func(d module.Delegate) bool { return d.ID == w.Agent }) {
			return nil, refuseDelegate(c.From, w.Agent, allowed)
		}
	}
	t, outermost := a.treeOf(c)
	if outermost {
		defer a.trees.Delete(treeKey(c))
	}
	at := make(chan struct{}, a.poolOf(c.From))
	done := make([]module.Done, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		wg.Go(func() {
			at <- struct{}{}
			defer func() { <-at }()
			done[i] = a.work(ctx, c, w, t, len(work))
		})
	}
	wg.Wait()
	return done, context.Cause(ctx)
}

func refuseDelegate(from tool.Origin, name string, allowed []module.Delegate) error {
	if depth(from) >= maxAgentDepth {
		return tool.Errorf(tool.CodePermission, "agents are set to work at most %d deep; do it yourself", maxAgentDepth)
	}
	var ids []string
	for _, d := range allowed {
		ids = append(ids, d.ID)
	}
	return tool.Errorf(tool.CodePermission, "work cannot be given to %q; it can be given to %q (delegate_to in the app file)", name, ids)
}

// treeOf returns the tree to which a call belongs, which begins with the
// outermost one.
func (a *App) treeOf(c *tool.Call) (_ *tree, outermost bool) {
	t, known := a.trees.LoadOrStore(treeKey(c), &tree{turns: a.Config.Runtime.MaxTurns})
	return t.(*tree), !known
}

// treeKey names the tree of a call. Ids of calls are good in their session only.
func treeKey(c *tool.Call) string {
	if u := c.From.Under; u != nil && u.Tree != "" {
		return u.Tree
	}
	return c.From.App + "/" + c.From.Session + "/" + c.ID
}

func (a *App) poolOf(from tool.Origin) int {
	if d := a.Config.agent(from.Agent); d != nil && d.Pool != nil && d.Pool.MaxWorkers > 0 {
		return d.Pool.MaxWorkers
	}
	return 3
}

// work has one agent do its work.
func (a *App) work(ctx context.Context, c *tool.Call, w module.Work, t *tree, of int) module.Done {
	done := module.Done{Agent: w.Agent, Outcome: string(agent.Failed)}
	turns := t.share(of, w.MaxTurns)
	if turns == 0 {
		done.Outcome, done.Detail = string(agent.OutOf), "the turns that agents may take together are used up (runtime.max_turns)"
		return done
	}
	ag, err := a.Agent(ctx, w.Agent, c.From.User)
	if err != nil {
		t.giveBack(turns)
		done.Detail = err.Error()
		return done
	}
	a.bind(ag, c, w, turns, of)
	session, out := a.follow(ctx, ag, c, w.Task)
	t.giveBack(max(turns-out.Turns, 0))
	a.spent.add(c.From.Session, out.Usage, out.Money)
	done.Session, done.Outcome, done.Detail, done.Text = session, string(out.Reason), out.Detail, out.Text
	done.Turns, done.Calls = out.Turns, out.Calls
	return done
}

// bind puts an agent under the one that calls it.
func (a *App) bind(ag *agent.Agent, c *tool.Call, w module.Work, turns, of int) {
	own := a.Config.Runtime.Budget
	budget := leastMoney(w.Budget, own.Dollars/float64(of))
	if u := c.From.Under; u != nil {
		budget = leastMoney(budget, u.Budget/float64(of))
	}
	ag.Output = nil // of the app's answer, not of a part of the work
	ag.From.Profile = c.From.Profile
	ag.From.Under = &tool.Bound{By: c.From, Call: c.ID, Tools: w.Tools, Tree: treeKey(c), Budget: budget}
	ag.Limits.Turns, ag.Limits.Money, ag.Limits.Tokens = turns, budget, own.Tokens/of
	if w.Mute {
		ag.Show, ag.Offered, ag.Do = nil, nil, refuseAll
	}
}

// leastMoney returns the smaller of two bounds; zero: there is none.
func leastMoney(a, b float64) float64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// refuseAll answers the calls of an agent that was only asked a question.
func refuseAll(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error) {
	out := make([]*tool.Result, len(calls))
	for i := range out {
		out[i] = tool.Fail(tool.Errorf(tool.CodePermission, "this is a question to be answered in words; tools are not at hand"))
	}
	return out, context.Cause(ctx)
}

// withinBounds reports whether those above a caller let it know of a tool: it
// may do nothing that they may not.
func (a *App) withinBounds(from tool.Origin, t *tool.Tool) bool {
	u := from.Under
	if u == nil {
		return true
	}
	if u.Tools != nil && !t.Meta && !a.named(u.Tools, t) {
		return false
	}
	if u.By.App != a.Config.App.ID {
		up := a.opts.above
		return up != nil && up.sees(u.By, t)
	}
	return a.may(u.By, t)
}

// named reports whether one of the names means a tool: its name in any form,
// its module, or module.*.
func (a *App) named(names []string, t *tool.Tool) bool {
	for _, n := range names {
		if n == t.ModuleName() || n == t.ModuleName()+".*" {
			return true
		}
		if named, err := a.reg.Set().Resolve(n, nil); err == nil && named.Name == t.Name {
			return true
		}
	}
	return false
}
