package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/provider"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

type teller = func(context.Context, tool.Origin) (module.Told, error)

// Conversations keeps what was said in the sessions of agents.
func (a *App) Conversations() *agent.Book {
	return &agent.Book{Store: store.Sub(a.Store, "agents"), Now: time.Now}
}

// Agent returns the agent of that id, ready to run, on behalf of a user; an
// empty id is that of runtime.entry_agent, or the first. What is said to it,
// and what comes of that, is kept in Conversations.
func (a *App) Agent(ctx context.Context, id, user string) (*agent.Agent, error) {
	d, err := a.declared(id)
	if err != nil {
		return nil, err
	}
	ag := &agent.Agent{
		From:    tool.Origin{App: a.Config.App.ID, Agent: d.ID, User: user, Kind: tool.KindModel},
		Prompt:  a.prompt,
		Recall:  a.recall,
		Show:    func(from tool.Origin, b *agent.Brain) []inject.Item { return a.shown(from, b).Items },
		Offered: a.offered,
		Do:      a.CallAll,
		Final:   module.FinalTool,
		Spent:   a.spent.take,
		Handed:  a.handed.take,
		Limits:  a.limits(),
		Context: contextOf(a.Config.Runtime.Context),
		Log:     a.log,
	}
	prices := map[string]*provider.Price{}
	for b := d.Brain; b != nil; b = b.Fallback {
		brain, price, err := a.openBrain(b)
		if err != nil {
			return nil, fmt.Errorf("agent %s: brain: %w", d.ID, err)
		}
		prices[brain.Name] = price
		ag.Brains = append(ag.Brains, brain)
	}
	if d.ID == a.Config.Runtime.EntryAgent {
		if ag.Output, err = a.Config.oneShot(a.Config.Runtime.Output); err != nil {
			return nil, fmt.Errorf("runtime.output: %w", err)
		}
	}
	ag.Price = func(b *agent.Brain, u llm.Usage) float64 { return prices[b.Name].Of(u) }
	if b := d.Brain; b != nil && b.Context != nil {
		ag.Context = contextOf(*b.Context)
	}
	ag.Used = func(from tool.Origin, b *agent.Brain, u llm.Usage, money float64) {
		a.counted.Model(from, b.Name, u.Input, u.Output, money)
		a.opts.Telemetry.Paid(context.Background(), b.Name, money)
	}
	if t := a.opts.Telemetry; t != nil {
		ag.Begin = func(ctx context.Context, from tool.Origin) (context.Context, func(*agent.Outcome)) {
			ctx, ended := t.Invoke(ctx, telemetry.Invocation{App: from.App, Agent: from.Agent, Session: from.Session})
			return ctx, func(out *agent.Outcome) {
				failure := string(out.Reason)
				if out.Reason == agent.Answered {
					failure = ""
				}
				ended(out.Usage, failure)
			}
		}
	}
	book := a.Conversations()
	ag.Save = func(ctx context.Context, c *agent.Conversation) error {
		return book.Save(ctx, c, agent.Kept{App: a.Config.App.ID, Agent: d.ID, User: user, Above: predecessors(ag.From),
			Active: a.active.of(c.ID, a.Config.Runtime.MaxActiveTools).Names()})
	}
	return ag, nil
}

// limits returns what bounds a run.
func (a *App) limits() agent.Limits {
	r := a.Config.Runtime
	return agent.Limits{Turns: r.MaxTurns, Time: time.Duration(r.Timeout) * time.Second, Tokens: r.Budget.Tokens, Money: r.Budget.Dollars}
}

// declared returns what the app file says of an agent.
func (a *App) declared(id string) (*Agent, error) {
	c := a.Config
	if id == "" {
		id = c.Runtime.EntryAgent
	}
	if id == "" && len(c.Agents) > 0 {
		id = c.Agents[0].ID
	}
	if d := c.agent(id); d != nil {
		return d, nil
	}
	if len(c.Agents) == 0 {
		return nil, fmt.Errorf("the app declares no agent; add one under agents: in the app file, as in the examples of helve run --help")
	}
	var ids []string
	for _, d := range c.Agents {
		ids = append(ids, d.ID)
	}
	return nil, fmt.Errorf("the app has no agent %q; it has %s", id, strings.Join(ids, ", "))
}

func contextOf(c Context) agent.Context {
	return agent.Context{Reserved: c.OutputReserved, Keep: c.KeepRecent, Trigger: c.CompressionTrigger, Truncate: c.Strategy == "truncate"}
}

// openBrain opens the model of a brain.
func (a *App) openBrain(b *Brain) (agent.Brain, *provider.Price, error) {
	config, err := expandJSON(b.Config, a.opts.Secret)
	if err != nil {
		return agent.Brain{}, nil, err
	}
	spec, err := a.brainSpec(b, config)
	if err != nil {
		return agent.Brain{}, nil, err
	}
	if spec.Key == "" {
		if spec.Key, err = a.credentialOf(b); err != nil {
			return agent.Brain{}, nil, err
		}
	}
	o, err := provider.Open(spec)
	if err != nil {
		return agent.Brain{}, nil, err
	}
	o.Model = a.opts.Telemetry.Model(o.Model, telemetry.About{Provider: o.Provider, Model: b.Model, URL: o.BaseURL})
	return thinking(o, b), o.Price, nil
}

// thinking returns a brain as an agent uses it.
func thinking(o *provider.Opened, b *Brain) agent.Brain {
	return agent.Brain{Name: o.Name, Model: o.Model, Format: o.Format, Reads: o.Reads, Window: o.Window,
		Settings: llm.Settings{Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.MaxTokens, Effort: o.Effort},
		Timeout:  time.Duration(b.Timeout) * time.Second}
}

// describeBrain is openBrain for those who do not ask the model: it needs no key.
func (a *App) describeBrain(b *Brain) (agent.Brain, error) {
	spec, err := a.brainSpec(b, b.Config)
	if err != nil {
		return agent.Brain{}, err
	}
	o, err := provider.Describe(spec)
	if err != nil {
		return agent.Brain{}, err
	}
	return thinking(o, b), nil
}

// secretOrEnv returns the secret of a name, or the environment's variable; ""
// if there is neither.
func (a *App) secretOrEnv(name string) string {
	if a.opts.Secret != nil {
		if v, err := a.opts.Secret(name); err == nil {
			return v
		}
	}
	return os.Getenv(name)
}

// brainSpec returns what a brain and its config say of its model.
func (a *App) brainSpec(b *Brain, config json.RawMessage) (provider.Spec, error) {
	spec := provider.Spec{Provider: b.Provider, Backend: b.Backend, Model: b.Model, Native: b.NativeToolUse, Env: a.secretOrEnv,
		Window: a.Config.Runtime.Context.MaxTokens, Config: config}
	if b.Context != nil && b.Context.MaxTokens > 0 {
		spec.Window = b.Context.MaxTokens
	}
	if a.opts.Credentials != nil {
		spec.Logins = a.opts.Credentials
	}
	var c struct {
		Key     string `json:"api_key"`
		BaseURL string `json:"base_url"`
		Format  string `json:"format"`
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &c); err != nil {
			return spec, fmt.Errorf("config: %w", err)
		}
	}
	spec.Key, spec.BaseURL, spec.Format = c.Key, c.BaseURL, c.Format
	return spec, nil
}

// credentialOf returns the secret that a brain names as its credential; "": it
// names none.
func (a *App) credentialOf(b *Brain) (string, error) {
	ref := credentialRef(b.Credential)
	if ref == "" {
		return "", nil
	}
	if a.opts.Secret == nil {
		return "", fmt.Errorf("credential %q: no secrets are at hand", ref)
	}
	key, err := a.opts.Secret(ref)
	if err != nil {
		return "", fmt.Errorf("credential: %w", err)
	}
	return key, nil
}

// credentialRef reads a name, or {ref, scope}.
func credentialRef(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name
	}
	var c struct {
		Ref string `json:"ref"`
	}
	_ = json.Unmarshal(raw, &c) // checked when the file was read
	return c.Ref
}

// shown returns what an agent sees of the tools this turn.
func (a *App) shown(from tool.Origin, b *agent.Brain) inject.View {
	o := a.presentation(from, "")
	if b != nil && b.Window > 0 {
		o.Window = b.Window
	}
	o.Active = a.active.of(from.Session, a.Config.Runtime.MaxActiveTools).Names()
	return a.present(viewKey{kind: from.Kind, agent: from.Agent, profile: from.Profile, window: o.Window, active: strings.Join(o.Active, " "), under: a.boundsOf(from)}, o)
}

// boundsOf says by what a caller is bound, so that callers whose views may
// differ are told apart.
func (a *App) boundsOf(from tool.Origin) string {
	var b strings.Builder
	skill, err := a.skillOf(from)
	fmt.Fprintf(&b, "%q %v;", skill, err)
	for u := from.Under; u != nil; u = u.By.Under {
		if up := a.opts.above; up != nil && u.By.App == up.app.Config.App.ID {
			return b.String() + up.app.boundsOf(tool.Origin{Under: u})
		}
		skill, err := a.skillOf(u.By)
		fmt.Fprintf(&b, "%q %v %q %q %q %q;", skill, err, u.By.Agent, u.By.Profile, u.By.Kind, u.Tools)
	}
	return b.String()
}

// offered returns the tools whose calls are read from an agent's text: all that
// it may know of (SPEC I7).
func (a *App) offered(from tool.Origin) *parse.Tools {
	return parse.FromSet(a.reg.Set(), func(t *tool.Tool) bool { return a.Visible(from, t) })
}

// CallAll runs the calls of one reply through the pipeline, and has the tools
// that were used shown from now on.
func (a *App) CallAll(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error) {
	for _, c := range calls {
		a.awaitTool(ctx, c.Name)
	}
	if len(calls) > 0 {
		defer a.opts.Sessions.Reply(calls[0].From)()
	}
	results, err := a.exec.DoAll(ctx, calls)
	for i, c := range calls {
		if results[i] != nil && results[i].Err == nil {
			a.used(c)
		}
	}
	return results, err
}

// used makes the tools active that a call used, or asked about.
func (a *App) used(c *tool.Call) {
	if c.Tool == nil || c.From.Session == "" {
		return
	}
	act := a.active.of(c.From.Session, a.Config.Runtime.MaxActiveTools)
	use := func(name string) {
		if t, err := a.reg.Set().Resolve(name, nil); err == nil && !t.Meta && a.Visible(c.From, t) {
			act.Use(t.Name)
		}
	}
	switch {
	case c.Tool.Name == "get_tool":
		var in struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(c.Args, &in) == nil {
			use(in.Name)
		}
	case c.Tool.Targets != nil:
		for _, target := range c.Tool.Targets(c.Args) {
			use(target.Name)
		}
	default:
		use(c.Tool.Name)
	}
}

// activations are the tools that sessions see in full beside those of the mode.
type activations struct {
	mu  sync.Mutex
	all map[string]*inject.Activation
}

func (s *activations) of(session string, most int) *inject.Activation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*inject.Activation{}
	}
	act := s.all[session]
	if act == nil {
		act = &inject.Activation{Max: most}
		s.all[session] = act
	}
	return act
}

func (s *activations) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, session)
}

// Prompt returns what an agent is told first, section by section.
func (a *App) Prompt(ctx context.Context, from tool.Origin, b *agent.Brain) (*agent.Prompt, error) {
	p, err := a.prompt(ctx, from, b)
	if err == nil {
		p.Memory, err = a.recall(ctx, from)
	}
	return p, err
}

// recall returns what the modules know for an agent.
func (a *App) recall(ctx context.Context, from tool.Origin) (string, error) {
	var all []string
	for _, recall := range a.recalls {
		text, err := recall(ctx, from)
		if err != nil {
			return "", err
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n\n"), nil
}

// prompt returns the prompt without the memory.
func (a *App) prompt(ctx context.Context, from tool.Origin, b *agent.Brain) (*agent.Prompt, error) {
	d, err := a.declared(from.Agent)
	if err != nil {
		return nil, err
	}
	v := a.shown(from, b)
	p := &agent.Prompt{Identity: a.identity(d), Tools: agent.HowTo(v.Mode), Hints: a.hints(), User: d.SystemPrompt}
	if b != nil && b.Format != nil {
		p.Tools += "\n\n" + agent.InText(b.Format, v.Items)
	}
	if d.PlanFirst {
		p.Hints += "\nBefore you act, say in a few lines how you will go about it."
	}
	for _, tell := range a.tellers {
		t, err := tell(ctx, from)
		if err != nil {
			return nil, err
		}
		for to, text := range map[*string]string{&p.Remembering: t.Remembering, &p.Hints: t.Hints,
			&p.Specialists: t.Specialists, &p.Skills: t.Skills, &p.Channels: t.Channels} {
			if text != "" {
				*to = strings.TrimSpace(*to + "\n\n" + text)
			}
		}
	}
	return p, nil
}

// PromptOf returns what an agent is told first in a new session of a user. An
// empty id is the entry agent's.
func (a *App) PromptOf(ctx context.Context, id, user string) (*agent.Prompt, error) {
	d, err := a.declared(id)
	if err != nil {
		return nil, err
	}
	var b *agent.Brain
	if d.Brain != nil {
		brain, err := a.describeBrain(d.Brain)
		if err != nil {
			return nil, fmt.Errorf("agent %s: brain: %w", d.ID, err)
		}
		b = &brain
	}
	return a.Prompt(ctx, tool.Origin{App: a.Config.App.ID, Agent: d.ID, User: user, Kind: tool.KindModel}, b)
}

// identity says who the agent is.
func (a *App) identity(d *Agent) string {
	text := "You are " + d.ID
	if app := a.Config.App; app.Name != "" {
		text += " of " + app.Name
		if app.Description != "" {
			text += ": " + strings.TrimSuffix(strings.TrimSpace(app.Description), ".")
		}
	}
	text += "."
	if d.Specialty != "" {
		text += " Your specialty: " + strings.TrimSuffix(d.Specialty, ".") + "."
	}
	switch d.Role {
	case "coordinator":
		text += " You coordinate: you split the work and give parts of it to specialists."
	case "specialist":
		text += " You are given parts of a larger work. Report what you did and found, shortly and completely."
	}
	return text
}

// hints tells what holds for all that the agent does. It must stay the same
// from turn to turn.
func (a *App) hints() string {
	return "Paths are relative to the workspace, which is the only folder that tools reach. When you are done, answer in words; what you do not say the user does not see."
}
