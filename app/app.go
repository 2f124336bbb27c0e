// Package app turns an app's YAML into an open app: it is the one place that wires the rooms together.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/approval"
	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/search/habits"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

// Options say what to open and where.
type Options struct {
	Config   *Config                                                                          // nil: Default()
	File     string                                                                           // the app file, which no call may write; "": none
	Modules  []*module.Module                                                                 // those that there are
	Root     string                                                                           // the folder that calls may touch
	State    string                                                                           // the folder of what outlives the process; "": .helve in the root
	Store    string                                                                           // postgres://…, "memory", a file; "": helve.db in State
	Approver guard.Approver                                                                   // nil: what would be asked about is denied
	Asker    func(ctx context.Context, c *tool.Call, q module.Question) (module.Reply, error) // answers what tools ask; nil: only clients do that called
	Secret   func(string) (string, error)
	// Credentials keeps the logins to upstream servers; nil: nobody signs in.
	Credentials *credentials.Store
	Conceal     []string // texts that neither results nor the audit show
	Blocked     []string // further files and folders that calls may not touch
	Protected   []string // further files that no call may write: those of other apps
	Log         *slog.Logger
	Version     string
	Middleware  []*guard.MiddlewareKind // what the file may declare beside guard.MiddlewareKinds
	Watchdog    []string                // a command that does what mcpbridge.Watch says; none: see mcpbridge.UpstreamOptions

	// Sessions remember what sessions did; give the same to an app that takes
	// the place of another. Nil: the app has its own.
	Sessions *guard.Sessions

	// Confine is a command that does what sandbox.Help says. None: see sandbox.Options.
	Confine []string

	// Usage is told of every call: what it used, for metrics. It must return
	// at once and call nothing of the app. Nil: nobody is.
	Usage func(guard.Usage)

	// Heard is told what happens in the runs of agents that calls set to work,
	// by several of them at the same time. What it does not wait for they do
	// not either. Nil: nobody is.
	Heard func(Heard)

	// Telemetry is told of calls, of answers of models and of agents' runs. Nil:
	// nobody is.
	Telemetry *telemetry.Telemetry

	// Models is the folder of the sentence models that were fetched. "": none were.
	Models string

	above *above // the app that calls this one; nil: none does

	// Inspect opens the app only to be looked at: nothing is written, and
	// calls are refused.
	Inspect bool
}

// A Failure is a module that did not load, and why.
type Failure struct {
	Module string `json:"module"`
	Error  string `json:"error"`
}

// An App is an open app. It is safe for concurrent use.
type App struct {
	Config *Config
	Root   *root.Root
	Store  store.Store // the app's own part
	State  string      // the folder
	// Sandbox runs the programs that tools start.
	Sandbox *sandbox.Runner

	Checkpoints *checkpoint.Keeper
	Approvals   *approval.Table // the calls that wait for an approval

	whole store.Store
	reg   tool.Registry
	index *search.Index

	habits *habits.Book // nil: nothing is learnt from usage
	model  Model
	exec   *pipeline.Executor
	rules  *guard.Rules
	log    *slog.Logger
	opts   Options
	audit  *audit.Log
	ups    *mcpbridge.Upstreams

	redactor *guard.Redactor
	taint    *guard.Taint
	counted  *guard.Counter // nil: nothing is counted
	changes  *guard.Changes
	costs    map[string]Costing      // by tool
	judges   map[string]guard.Policy // the modules' own policies
	recalls  []func(context.Context, tool.Origin) (string, error)
	tellers  []teller                                      // what agents are told of the modules
	sees     map[string]func(tool.Origin, *tool.Tool) bool // who may know of a module's tools
	trees    *sync.Map                                     // of agents that set agents to work, by the outermost call
	called   calledApps
	confined sandbox.Options // of Sandbox
	spent    spending
	handed   handovers
	loaded   loadedSkills
	served   []*skill.Folder // that clients may read
	active   activations
	failures []Failure
	closers  []func() error

	profiles sync.Map // to which callers are bound, by their text: those of tokens are few

	publishing sync.Mutex // keeps the index in step with the registry
	indexed    *tool.Set
	warmth     *warmth     // nil: nothing is kept of the index
	manifests  store.Store // see manifestStore
	views      viewCache
}

// Open opens an app. Modules that do not load are left out and told by
// Failures; an error means that the app as a whole cannot be opened.
func Open(ctx context.Context, o Options) (_ *App, err error) {
	if o.Config == nil {
		o.Config = Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{Config: o.Config, opts: o, redactor: guard.NewRedactor(), log: o.Log, judges: map[string]guard.Policy{}, sees: map[string]func(tool.Origin, *tool.Tool) bool{}}
	a.redactor.Follow(func(name string) *tool.Tool {
		t, _ := a.reg.Set().Resolve(name, nil)
		return t
	})
	a.opts.Secret = a.learning(o.Secret)
	if a.opts.Sessions == nil {
		a.opts.Sessions = new(guard.Sessions)
	}
	a.trees = new(sync.Map)
	for _, text := range o.Conceal {
		a.redactor.Learn(text)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	own := []func(context.Context) error{a.openRoot, a.openStore, a.openCheckpoints, a.openApprovals, a.openAudit}
	if o.above != nil {
		a.share()
		own = nil
	}
	for _, step := range append(own, a.prepareCalled, a.openServed, a.openSearch, a.openHabits, a.primeIndex, a.openPipeline, a.openModules, a.openUpstreams) {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// learning returns secret as a function that makes the redactor know what it
// hands out, so that no result and no audit line shows it.
func (a *App) learning(secret func(string) (string, error)) func(string) (string, error) {
	return func(name string) (string, error) {
		if secret == nil {
			return "", fmt.Errorf("the secret %q is not known", name)
		}
		value, err := secret(name)
		if err == nil {
			a.redactor.Learn(value)
		}
		return value, err
	}
}

func (a *App) openRoot(context.Context) (err error) {
	dir := a.opts.Root
	if dir == "" {
		dir = "."
	}
	if a.Root, err = root.Open(dir); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Root.Close)
	a.State = a.opts.State
	if a.State == "" {
		a.State = filepath.Join(a.Root.Dir(), ".helve")
	}
	if a.State, err = filepath.Abs(a.State); err != nil {
		return err
	}
	a.Root.Block(a.State)
	for _, path := range append(slices.Clone(a.opts.Blocked), storeFiles(a.opts.Store)...) {
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		a.Root.Block(path)
	}
	confined := sandbox.Options{Mode: sandbox.Mode(a.Config.Security.Sandbox), Helper: a.opts.Confine, Hide: []string{a.State}}
	policy := append(a.Config.Files(), a.opts.Protected...)
	if a.opts.File != "" {
		policy = append(policy, a.opts.File)
	}
	for _, file := range policy {
		if file, err = filepath.Abs(file); err != nil {
			return err
		}
		if !slices.Contains(confined.Keep, file) {
			a.Root.Protect(file)
			confined.Keep = append(confined.Keep, file)
		}
	}
	a.Sandbox, a.confined = sandbox.New(confined), confined
	return nil
}

func (a *App) openAudit(context.Context) (err error) {
	if a.opts.Inspect {
		return nil
	}
	if a.audit, err = audit.Open(a.AuditDir(), audit.Options{}); err != nil {
		return err
	}
	a.closers = append(a.closers, a.audit.Close)
	return nil
}

// AuditDir returns the folder of the audit log.
func (a *App) AuditDir() string { return filepath.Join(a.State, "audit") }

func (a *App) openPipeline(context.Context) error {
	policy := egress.Policy{AllowHosts: a.Config.Security.AllowHosts}
	if err := policy.Validate(); err != nil {
		return fmt.Errorf("security.allow_hosts: %w", err)
	}
	rules, err := a.Config.rules(a.Root)
	if err != nil {
		return err
	}
	rules.Module = func(c *tool.Call) guard.Policy { return a.judges[c.Tool.ModuleName()] }
	a.rules = rules
	middleware, err := a.middlewares()
	if err != nil {
		return err
	}
	meter, err := a.meter()
	if err != nil {
		return err
	}
	policies, tainted := []guard.Policy{rules.Judge, a.judgeOnSkill}, a.quietly("taint")
	if up := a.opts.above; up != nil { // what its caller met may have led to what it does
		policies, tainted = append(policies, up.judge), up.app.quietly("taint")
	}
	a.taint = guard.NewTaint(guard.TaintMode(a.Config.Security.Taint), a.opts.Sessions, tainted)
	a.counted = a.counter()
	stages := append(guard.Standard(guard.Options{
		Tools: &a.reg, Visible: a.Visible, Suggest: a.suggest, Missing: a.missing, Root: a.Root, Egress: policy,
		Policies: policies, Approver: a.approver(),
		Spill: store.Sub(a.Store, "results"), Audit: a.audit, Redactor: a.redactor, Log: a.log,
		Taint: a.taint, Sessions: a.opts.Sessions, Repeats: a.Config.repeats(), Mistakes: a.Config.mistakes(),
		Limiter: a.limiter(), Middleware: middleware, Changes: a.changes,
		Meter: meter, Counter: a.counted,
		Checkpoints: a.Checkpoints,
	}), a.habitStages()...)
	if t := a.opts.Telemetry; t != nil {
		stages = slices.Insert(stages, 0, t.Stage(a.redactor.Call))
	}
	a.exec = pipeline.New(&a.reg, stages...)
	return nil
}

// host returns what the named module may touch.
func (a *App) host(name string) *module.Host {
	h := &module.Host{
		Log: a.log.With("module", name), Root: a.Root, Sandbox: a.Sandbox, App: a.Config.App.ID, Now: time.Now,
		HTTP:  egress.Client(egress.Policy{AllowHosts: a.Config.Security.AllowHosts}),
		Store: store.Sub(a.moduleStore(), name), Checkpoints: a.Checkpoints,
		Secret:  a.opts.Secret,
		Publish: func(tools ...*tool.Tool) error { return a.publish(name, tools...) },
		Call:    a.Call, Explain: a.Explain, Tools: a.reg.Set, Visible: a.Visible, Search: a.Search, Unanswered: a.Unanswered, Suspect: a.taint.Suspicion,
		Around: a.around, Ask: a.ask, Delegates: a.delegates, Delegate: a.delegate,
		Successors: a.successors, Switch: a.switchAgent,
		Apps: a.callable(), CallApp: a.callApp,
		Skills: a.Config.skills, UseSkill: a.useSkill, Capabilities: a.capabilities, Granted: a.granted, Served: a.served,
	}
	a.lendSkills(h)
	return h
}

// moduleStore returns the store of the modules. An app that is only looked at
// shows what its serving left, and writes nothing.
func (a *App) moduleStore() store.Store {
	if a.opts.Inspect {
		return a.manifestStore()
	}
	return a.Store
}

func (a *App) openModules(ctx context.Context) error {
	var setup []func()
	for _, m := range a.opts.Modules {
		block, declared := a.Config.Tools.Modules[m.Name]
		if !declared && !m.Always && a.Config.Tools.Modules != nil {
			continue
		}
		if err := a.openModule(ctx, m, block); err != nil {
			a.fail(m.Name, err)
			continue
		}
		setup = append(setup, func() { a.setup(ctx, m.Name, block.Setup) })
	}
	if a.opts.Inspect {
		return nil
	}
	for _, run := range setup {
		run()
	}
	return nil
}

func (a *App) openModule(ctx context.Context, m *module.Module, block ModuleBlock) error {
	config, err := a.Config.moduleConfig(block, a.opts.Secret)
	if err != nil {
		return err
	}
	ts, err := m.Open(ctx, a.host(m.Name), config)
	if err != nil {
		return err
	}
	if ts.Close != nil {
		a.closers = append(a.closers, ts.Close)
	}
	if ts.Judge != nil {
		a.judges[m.Name] = ts.Judge
	}
	if ts.Sees != nil {
		a.sees[m.Name] = ts.Sees
	}
	if ts.Recall != nil {
		a.recalls = append(a.recalls, ts.Recall)
	}
	if ts.Tell != nil {
		a.tellers = append(a.tellers, ts.Tell)
	}
	for _, t := range ts.Tools {
		t.HeedsContext = true // the modules that there are vouch for their tools
	}
	return a.publish(m.Name, ts.Tools...)
}

// setup runs a module's setup steps, as the app. A step that fails takes the
// module down with it: an app does not run half prepared.
func (a *App) setup(ctx context.Context, name string, steps []SetupStep) {
	for i, s := range steps {
		action := s.Action
		if _, ok := a.reg.Set().Lookup(action); !ok {
			action = name + "." + s.Action
		}
		params, err := expandJSON(s.Params, a.opts.Secret)
		if err != nil {
			a.withdraw(name, i, s.Action, err)
			return
		}
		res, err := a.Call(ctx, &tool.Call{Name: action, Args: params, From: tool.Origin{App: a.Config.App.ID, Session: "setup", Kind: tool.KindSetup}})
		if err == nil && res.Err != nil {
			err = res.Err
		}
		if err != nil {
			a.withdraw(name, i, s.Action, err)
			return
		}
	}
}

// withdraw takes a module down because a setup step failed.
func (a *App) withdraw(name string, step int, action string, err error) {
	a.fail(name, fmt.Errorf("setup step %d (%s): %w", step+1, action, err))
	a.publish(name)
}

func (a *App) fail(name string, err error) {
	a.failures = append(a.failures, Failure{name, err.Error()})
	a.log.Debug("a module did not load; the others serve", "module", name, "error", err)
}

// Failures lists the modules that did not load.
func (a *App) Failures() []Failure { return slices.Clone(a.failures) }

// openUpstreams begins to connect to the upstream servers, and opens the module mcp.
func (a *App) openUpstreams(ctx context.Context) error {
	servers := a.upstreams()
	o := a.opts.upstreamOptions()
	o.Publish, o.Root, o.Store, o.Learn = a.publish, a.Root.Dir(), store.Sub(a.manifestStore(), "mcp"), a.redactor.Learn
	o.Held = a.heldBack
	o.Redact = func(said json.RawMessage) json.RawMessage { return a.redactor.Args(said, nil) }
	a.ups = mcpbridge.OpenUpstreams(ctx, servers, o)
	a.closers = append(a.closers, a.ups.Close)
	a.keepIndex()
	if m := a.ups.Module(); a.Config.Tools.Modules == nil || len(servers) > 0 {
		if err := a.openModule(ctx, m, a.Config.Tools.Modules[m.Name]); err != nil {
			a.fail(m.Name, err)
		}
	}
	return nil
}

// publish puts tools in place of those that owner offered, in the registry and the index.
func (a *App) publish(owner string, tools ...*tool.Tool) error {
	if err := a.reg.Replace(owner, a.priced(tools)...); err != nil {
		return err
	}
	if a.warmth != nil {
		<-a.warmth.ready
	}
	if !a.indexesLate() {
		a.syncIndex()
	}
	return nil
}

// indexesLate reports whether tools are indexed when somebody searches: most
// commands never do. Many tools are indexed as they come.
func (a *App) indexesLate() bool {
	return len(a.Config.Tools.MCPServers) == 0 && a.model.source == nil
}

func (a *App) syncIndex() {
	a.publishing.Lock()
	defer a.publishing.Unlock()
	if set := a.reg.Set(); set != a.indexed { // of many who publish at once, one does it for all
		a.index.Sync(set)
		a.indexed = set
	}
}

// finder returns the index, with all tools in it.
func (a *App) finder() *search.Index {
	if a.indexesLate() {
		a.syncIndex()
	}
	return a.index
}

// Call runs a call through the pipeline.
func (a *App) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	if a.opts.Inspect {
		return tool.Fail(tool.Errorf(tool.CodePermission, "the app was opened to be looked at; nothing is run")), nil
	}
	a.awaitTool(ctx, c.Name)
	return a.exec.Do(ctx, c)
}

// Explain says what would become of a call, without running it.
func (a *App) Explain(ctx context.Context, c *tool.Call) pipeline.Explanation {
	a.awaitTool(ctx, c.Name)
	return a.exec.Explain(ctx, c)
}

// Said notes what the user said in the session of that origin: what stands in
// it is not another's doing (see guard.Taint), and its mistakes are counted anew.
func (a *App) Said(from tool.Origin, text string) {
	a.taint.Said(from, text)
	a.opts.Sessions.Anew(from)
}

// Tools returns the tools now on offer, whoever may see them.
func (a *App) Tools() *tool.Set { return a.reg.Set() }

// Visible reports whether a caller may know of a tool: the policy must show it,
// and the profile to which the caller is bound, and that of the agent that
// calls, if one does.
func (a *App) Visible(from tool.Origin, t *tool.Tool) bool {
	if !a.may(from, t) {
		return false
	}
	sees := a.sees[t.ModuleName()]
	return sees == nil || sees(from, t)
}

// may is Visible but for what modules say of their own tools, which concerns
// the caller alone and not those above it.
func (a *App) may(from tool.Origin, t *tool.Tool) bool {
	if !a.rules.Visible(from, t) || !a.allows(from.Profile, t) || !a.withinBounds(from, t) || !a.withinSkills(from, t) {
		return false
	}
	if from.Kind == tool.KindMCP || from.Kind == tool.KindCLI || from.Kind.Daemon() {
		return true // no agent of the app: what a client calls itself is its own affair
	}
	agent := a.Config.agent(from.Agent)
	return agent == nil || agent.grants(t)
}

// Search finds tools. While upstream servers are still being listed it waits
// for them a while; Unanswered tells for which in vain.
func (a *App) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	a.ups.WaitAwhile(ctx)
	return a.learningSearch(ctx, q)
}

// SearchKnown is Search among the tools that are known already.
func (a *App) SearchKnown(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return a.learningSearch(ctx, q)
}

func (a *App) suggest(ctx context.Context, from tool.Origin, name string) []string {
	return a.finder().Suggest(name, 5, func(t *tool.Tool) bool { return a.Visible(from, t) })
}

// Unanswered returns those upstream servers of which a caller may know that
// have not said yet which tools they have.
func (a *App) Unanswered(from tool.Origin) []string {
	return a.ups.Unanswered(func(server string) bool { return mcpbridge.Shown(a.Visible, from, server) })
}

// UpstreamPatience is how long who can do nothing without them waits for
// upstream servers that are still being listed.
const UpstreamPatience = 15 * time.Second

// WaitUpstreams waits until every upstream server has answered or failed
// once, but not for ever.
func (a *App) WaitUpstreams(ctx context.Context) {
	if a.ups == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, UpstreamPatience)
	defer cancel()
	a.ups.Wait(ctx)
}

// WaitTool waits as WaitUpstreams does if no tool of that name is known yet, but
// for its own server alone if the name says which that is.
func (a *App) WaitTool(ctx context.Context, name string) {
	if _, known := a.reg.Set().Lookup(name); known || a.ups == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, UpstreamPatience)
	defer cancel()
	a.ups.WaitFor(ctx, name)
}

// awaitTool waits as WaitTool does for a name that says whose tool it is, and
// for others no longer than lists do: most of them are nobody's.
func (a *App) awaitTool(ctx context.Context, name string) {
	if _, known := a.reg.Set().Lookup(name); known {
		return
	}
	if _, of := a.ups.Serving(name); of {
		a.WaitTool(ctx, name)
	} else {
		a.ups.WaitAwhile(ctx)
	}
}

// MCPServers returns the upstream servers.
func (a *App) MCPServers() *mcpbridge.Upstreams { return a.ups }

// Upstreams returns the state of the upstream servers.
func (a *App) Upstreams() []mcpbridge.ServerStatus { return a.ups.Status() }

// SessionsPerUser is how many sessions one user may have at once; 0: nobody said.
func (a *App) SessionsPerUser() int { return a.Config.Runtime.MaxSessionsPerUser }

// EndSession frees what was kept for a session: no call of it will come.
func (a *App) EndSession(ctx context.Context, from tool.Origin) error {
	a.active.forget(from.Session)
	if l, ok := a.whole.(*lazyStore); ok && !l.opened() {
		return nil // nothing was kept
	}
	return errors.Join(guard.Forget(ctx, store.Sub(a.Store, "results"), from), a.taint.Forget(ctx, from), a.Approvals.EndSession(ctx, approval.OwnerOf(from)))
}

// Record writes a call to the audit that does not go through the pipeline,
// with what came of it: the protocol's own requests that reach an upstream
// server. The result must be withheld if it fails.
func (a *App) Record(c *tool.Call, err error) error {
	return guard.Record(a.audit, a.redactor, time.Now, c, err)
}

// Close closes the app: upstream servers and modules first, the store last.
func (a *App) Close() error {
	var errs []error
	for _, c := range slices.Backward(a.closers) {
		errs = append(errs, c())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// A viewCache keeps the views of one set of tools.
type viewCache struct {
	mu    sync.Mutex
	set   *tool.Set
	views map[viewKey]inject.View
}

// A viewKey is what a view depends on, beside the set.
type viewKey struct {
	mode    inject.Mode
	kind    tool.Kind
	agent   string
	profile string
	window  int    // tokens; zero: the app's
	active  string // the tools that are shown in full beside
	under   string // those above, and what they let be used
}

// View returns what callers of this kind are shown, in a mode or, for "", in
// the one that is decided by size.
func (a *App) View(from tool.Origin, mode inject.Mode) inject.View {
	if mode != inject.Discovery {
		a.ups.WaitAwhile(context.Background())
	}
	return a.ViewKnown(from, mode)
}

// ViewKnown is View of the tools that are known already.
func (a *App) ViewKnown(from tool.Origin, mode inject.Mode) inject.View {
	return a.present(viewKey{mode: mode, kind: from.Kind, agent: from.Agent, profile: from.Profile}, a.presentation(from, mode))
}

// present returns the view that the key stands for, which options make.
func (a *App) present(key viewKey, o inject.Options) inject.View {
	set := a.reg.Set()
	a.views.mu.Lock()
	defer a.views.mu.Unlock()
	if a.views.set != set || len(a.views.views) >= maxViews {
		a.views.set, a.views.views = set, map[viewKey]inject.View{}
	}
	v, ok := a.views.views[key]
	if !ok {
		v = inject.Present(set, o)
		a.views.views[key] = v
	}
	return v
}

// maxViews bounds how many views are kept: agents' views differ by what they use.
const maxViews = 64

func (a *App) presentation(from tool.Origin, mode inject.Mode) inject.Options {
	o := inject.Options{
		Window: a.Config.Runtime.Context.MaxTokens, Force: mode, Modules: a.directModules(from),
		Visible: func(t *tool.Tool) bool { return a.Visible(from, t) },
	}
	if forced := a.Config.Runtime.ToolInjection; o.Force == "" && forced != nil {
		o.Force, _ = inject.ParseMode(*forced)
	}
	return o
}

// directModules returns the modules whose tools are shown in every mode. To
// agents those are shown as well that are of use only to whoever thinks of
// them (SPEC I4).
func (a *App) directModules(from tool.Origin) []string {
	direct := slices.Clone(a.Config.Runtime.DirectModules)
	if len(a.Config.called) > 0 {
		direct = append(direct, "apps")
	}
	if from.Kind == tool.KindModel {
		direct = append(direct, "memory")
	}
	return direct
}

// Changed returns a channel that is closed when the tools change.
func (a *App) Changed() <-chan struct{} { return a.reg.Set().Superseded() }

// Origin returns the origin of calls of one kind in one session of this app.
func (a *App) Origin(kind tool.Kind, session, user string) tool.Origin {
	return tool.Origin{App: a.Config.App.ID, Session: session, User: user, Kind: kind}
}

// moduleConfig returns a module's configuration with its own constraints in it
// and its secrets filled in.
func (c *Config) moduleConfig(block ModuleBlock, secret func(string) (string, error)) (json.RawMessage, error) {
	raw := block.Config
	if len(block.Constraints.Own) > 0 {
		all := map[string]json.RawMessage{}
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &all); err != nil {
				return nil, err
			}
		}
		own, err := json.Marshal(block.Constraints.Own)
		if err != nil {
			return nil, err
		}
		all["constraints"] = own
		if raw, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	return expandJSON(raw, secret)
}

// Known returns all modules that an app may use: those given, and that of the
// upstream MCP servers.
func Known(modules []*module.Module) []*module.Module {
	return append(slices.Clone(modules), mcpbridge.OpenUpstreams(context.Background(), nil, mcpbridge.UpstreamOptions{}).Module())
}
