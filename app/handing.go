package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/tool"
)

// handovers are the agents to whom sessions were handed over, until their runs
// go on with them.
type handovers struct {
	mu   sync.Mutex
	next map[string]*agent.Agent // by session
}

// put notes an agent. It reports false where there is one already.
func (h *handovers) put(session string, ag *agent.Agent) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next[session] != nil {
		return false
	}
	if h.next == nil {
		h.next = map[string]*agent.Agent{}
	}
	h.next[session] = ag
	return true
}

func (h *handovers) take(session string) *agent.Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	ag := h.next[session]
	delete(h.next, session)
	return ag
}

// speaks reports whether a caller speaks with a user, and was not set to work
// by an agent: those above it, if any, had its session before.
func speaks(from tool.Origin) bool {
	if from.Kind != tool.KindModel {
		return false
	}
	for u := from.Under; u != nil; u = u.By.Under {
		if u.By.Session != from.Session || u.By.App != from.App {
			return false
		}
	}
	return true
}

// predecessors names the agents that had a caller's session before and bind
// it, the first one first.
func predecessors(from tool.Origin) []string {
	var out []string
	for u := from.Under; u != nil; u = u.By.Under {
		out = append(out, u.By.Agent)
	}
	slices.Reverse(out)
	return out
}

// successors returns the agents to whom a caller may hand its session over:
// those that its delegate_to names. Who had it before may have it back however
// many had it since.
func (a *App) successors(from tool.Origin) []module.Delegate {
	d := a.Config.agent(from.Agent)
	if d == nil || !speaks(from) {
		return nil
	}
	before, full := predecessors(from), depth(from) >= maxAgentDepth
	var out []module.Delegate
	for _, other := range a.Config.Agents {
		if other.ID != d.ID && slices.Contains(d.DelegateTo, other.ID) && (!full || slices.Contains(before, other.ID)) {
			out = append(out, module.Delegate{ID: other.ID, Specialty: other.Specialty})
		}
	}
	return out
}

// switchAgent hands the session of a call over to another agent (SPEC L4). The
// other may do what both may; who had the session before has it back as it was.
func (a *App) switchAgent(ctx context.Context, c *tool.Call, id string) error {
	allowed := a.successors(c.From)
	if !slices.ContainsFunc(allowed, func(d module.Delegate) bool { return d.ID == id }) {
		var ids []string
		for _, d := range allowed {
			ids = append(ids, d.ID)
		}
		return tool.Errorf(tool.CodePermission, "the conversation cannot be handed over to %q; it can go to %s (delegate_to in the app file)", id, strings.Join(ids, ", "))
	}
	if c.From.Session == "" {
		return tool.Errorf(tool.CodePermission, "there is no conversation that could be handed over")
	}
	ag, err := a.Agent(ctx, id, c.From.User)
	if err != nil {
		return tool.Errorf(tool.CodeExternal, "%s cannot take over: %v", id, err)
	}
	by := c.From
	by.Parent, by.Via = "", nil
	ag.From.Profile, ag.From.Under = by.Profile, &tool.Bound{By: by, Call: c.ID}
	for u := by.Under; u != nil; u = u.By.Under {
		if u.By.Agent == id {
			ag.From.Under = u.By.Under
		}
	}
	if !a.handed.put(c.From.Session, ag) {
		return tool.Errorf(tool.CodeValidation, "the conversation is being handed over already; one agent can have it")
	}
	return nil
}

// TakeUp returns a conversation that was kept, which the beginning of its id
// may name, and the agent that is to go on with it: the one of the id that is
// given, or, bound as it was then, the one that had it last. The tools that
// were in sight are in sight again.
func (a *App) TakeUp(ctx context.Context, session, id string, mine func(agent.Kept) bool) (*agent.Agent, *agent.Conversation, error) {
	conv, kept, err := a.Conversations().Load(ctx, session, mine)
	if err != nil {
		return nil, nil, err
	}
	act := a.active.of(conv.ID, a.Config.Runtime.MaxActiveTools)
	for _, name := range kept.Active {
		act.Use(name)
	}
	var ag *agent.Agent
	if id == "" {
		ag, err = a.resume(ctx, kept)
	} else {
		ag, err = a.Agent(ctx, id, kept.User)
	}
	return ag, conv, err
}

// resume returns the agent that had a conversation last, ready to go on with
// it, bound as it was then.
func (a *App) resume(ctx context.Context, k agent.Kept) (*agent.Agent, error) {
	ag, err := a.Agent(ctx, k.Agent, k.User)
	if err != nil {
		return nil, err
	}
	line := append(slices.Clone(k.Above), k.Agent)
	for i, id := range k.Above {
		if d := a.Config.agent(id); d == nil || !slices.Contains(d.DelegateTo, line[i+1]) {
			return nil, fmt.Errorf("%s handed the session over to %s, which the app does not allow any more (delegate_to); --agent says who is to go on with it", id, line[i+1])
		}
		by := ag.From
		by.Agent, by.Session = id, k.ID
		ag.From.Under = &tool.Bound{By: by}
	}
	return ag, nil
}
