package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

// An Upstream is an MCP server whose tools become ours.
type Upstream struct {
	Name string // letters, digits, _ and -; its tools are mcp.NAME.TOOL

	Command string // a server that is run, and spoken to over its stdin and stdout
	Args    []string
	Env     map[string]string // beside the short list that every server inherits
	Cwd     string            // "": UpstreamOptions.Root

	URL     string // a server that is reached over streamable HTTP
	Headers map[string]string
	OAuth   OAuth // unless Headers has an Authorization

	// Hidden are secrets that stand in Args or URL: no error, log or status
	// shows them.
	Hidden []string

	// Trusted servers are believed what their annotations say. Those of
	// others can only make a tool riskier than its name tells.
	Trusted   bool
	Overrides map[string]Override // by the server's own names for its tools
	Only      []string            // the tools that are offered, by the same names; nil: all
	Ruled     []string            // of which a policy speaks: those that there are not are logged
	Disabled  bool
	// Fill returns the server with the values to which its description only
	// refers: then Args and URL have [Redacted] in their place, Env and Headers
	// names only, and OAuth and Hidden are empty. It is called before the server
	// is started, and may take its time. While it fails, the server [NeedsSetup].
	// Nil: the description is whole.
	Fill func() (Upstream, error)
	// Partial descriptions lack more than values: what a server of that name
	// listed is believed to be of this one.
	Partial   bool
	Skills    bool     // agents may load its skills (see [Upstreams.LoadSkill])
	Asks      Asks     // what it may ask the clients that call it
	Roots     Roots    // which folders it is told
	Sessions  bool     // it is spoken to in sessions, though it may know a revision without
	OnChange  OnChange // of definitions that were accepted
	OnFlagged OnFlagged
	// Eager servers are started at once and kept running. Others are started
	// to learn their tools, if those are not known, and when they are called.
	Eager        bool
	StartTimeout time.Duration // to connect and list; 0: DefaultStartTimeout
	CallTimeout  time.Duration // of one call; 0: DefaultCallTimeout
	IdleTimeout  time.Duration // without calls, until it is stopped; 0: DefaultIdleTimeout
	ListsWait    time.Duration // of lists, from the start of all servers, while nothing is known of it; 0: a few seconds
}

// The timeouts of an Upstream that states none.
const (
	DefaultStartTimeout = 30 * time.Second
	DefaultCallTimeout  = 60 * time.Second
	DefaultIdleTimeout  = 10 * time.Minute
)

// An Override is the operator's word about one tool. Zero fields say nothing.
type Override struct {
	Effect tool.Effect
	// Risk may lie below what the effect implies if Effect says nothing: the
	// effect is then the one that implies it.
	Risk   tool.Risk
	Roles  map[string]schema.Role // by property, or pointer into the arguments
	Hidden bool                   // it is not offered at all
}

// UpstreamOptions are what all upstream servers share.
type UpstreamOptions struct {
	Log *slog.Logger // nil: nothing is logged
	// Publish offers a server's tools in place of those that owner offered before.
	Publish func(owner string, tools ...*tool.Tool) error
	Root    string // the folder in which servers are run
	Version string // of Helve, as servers are told

	// Store keeps what each server listed last, so that its tools are known
	// before it is started; nil: every server is started to be asked. Of the
	// configuration it keeps a digest only, and of environments and headers
	// the names only.
	Store store.Store

	// Held is told of each tool that is held back from now on, and why; nil:
	// nobody is. What is held is seen by [Reviews].
	Held func(name, why string)

	// Credentials keeps the logins to servers; nil: nobody can sign in.
	Credentials *credentials.Store
	// LoginCommand is what signs in to a server whose name follows; "": helve login.
	LoginCommand string
	AllowHosts   []string // host:port of private services that logins may use
	// Learn is told of every token, lest it be shown; nil: nobody is told.
	Learn func(secret string)
	// Redact takes secrets out of what servers log, which is JSON; nil: nobody does.
	Redact func(json.RawMessage) json.RawMessage

	// Watchdog is a command that runs [Watch] on its input. While servers run,
	// so does it, and if this process ends without Close, whatever the reason,
	// it ends their process groups, and on Linux also what has left them, if it
	// still has the environment that it inherited. None: that is left to what
	// the kernel does for children, which on Linux ends the servers, but not
	// their children, and on other kinds of Unix nothing. Windows needs none.
	Watchdog []string

	// Telemetry is told of every request. Nil: none is told of.
	Telemetry *telemetry.Telemetry
}

// Upstreams are connections to MCP servers. A server whose tools are known is
// started by the first call of one of them, and stopped when it is not used
// for long; its tools stay listed. One that fails is started again, after
// pauses that grow, and calls fail meanwhile. A nil *Upstreams has no servers.
// It is safe for concurrent use.
type Upstreams struct {
	servers []*upstream
	keeper  *keeper
	news    news
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// OpenUpstreams offers the tools that are known from the store, begins to
// connect to the servers whose tools are not, all at once, and returns. Close
// ends what it began; so does the end of ctx, but Close must be called.
func OpenUpstreams(ctx context.Context, ups []Upstream, o UpstreamOptions) *Upstreams {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	u := &Upstreams{cancel: cancel, keeper: &keeper{command: o.Watchdog, log: o.Log}}
	var sound []*upstream
	together := &opening{began: time.Now()}
	taken := map[string]bool{}
	for _, up := range ups {
		s := newUpstream(up, o)
		s.keeper, s.running, s.relay.news, s.opening = u.keeper, &u.running, &u.news, together
		u.servers = append(u.servers, s)
		err := up.check()
		if err == nil && taken[up.Name] {
			err = fmt.Errorf("another MCP server has the name %s", up.Name)
		}
		switch taken[up.Name] = true; {
		case err != nil:
			s.refuse(err)
		case up.Disabled:
			s.refuse(nil)
		default:
			sound = append(sound, s)
		}
	}
	recall(ctx, o, sound)
	for _, s := range sound {
		u.running.Go(func() { s.run(ctx) })
		u.running.Go(func() { s.heedSilence(ctx) })
	}
	if o.Store != nil && len(sound) > 0 {
		u.running.Go(func() { u.followReviews(ctx, o.Store) })
	}
	return u
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (up *Upstream) check() error {
	switch {
	case !serverName.MatchString(up.Name):
		return fmt.Errorf("MCP server %.60q: the name may have letters, digits, _ and -, 64 at most", up.Name)
	case up.Fill != nil:
		return nil // once it is filled in
	case up.Command == "" && up.URL == "":
		return fmt.Errorf("MCP server %s: has neither a command nor a URL", up.Name)
	case up.Command != "" && up.URL != "":
		return fmt.Errorf("MCP server %s: has both a command and a URL", up.Name)
	case up.URL != "" && !strings.HasPrefix(up.URL, "http://") && !strings.HasPrefix(up.URL, "https://"):
		return fmt.Errorf("MCP server %s: the URL %q is not one of http or https", up.Name, up.URL)
	case up.OAuth.PrivateKey != "":
		if _, err := readSigner(up.OAuth.PrivateKey, ""); err != nil {
			return fmt.Errorf("MCP server %s: oauth.private_key: %w", up.Name, err)
		}
	}
	return nil
}

// Wait waits until the tools of every server are known or it has failed once.
// It is false if ctx ends before that.
func (u *Upstreams) Wait(ctx context.Context) bool {
	if u == nil {
		return true
	}
	for _, s := range u.servers {
		select {
		case <-s.first:
			continue
		default:
		}
		select {
		case <-s.first:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// WaitFor waits as Wait does, but for the server alone whose tool has that
// name, if there is one.
func (u *Upstreams) WaitFor(ctx context.Context, name string) {
	if u == nil {
		return
	}
	s := u.named(name)
	if s == nil {
		u.Wait(ctx)
		return
	}
	select {
	case <-s.first:
	case <-ctx.Done():
	}
}

// Close disconnects from every server, and ends those that were run with all
// their children. Calls in flight fail.
func (u *Upstreams) Close() error {
	if u == nil {
		return nil
	}
	u.cancel()
	u.running.Wait()
	for _, s := range u.servers {
		s.full().account.close()
	}
	u.keeper.close()
	return nil
}

// A State is how far a server has come.
type State string

// The states.
const (
	Configured State = "configured"     // its tools are not known yet
	Known      State = "manifest_known" // its tools are; it is started when one of them is called
	Started    State = "started"
	InUse      State = "in_use"      // calls are in flight
	NeedsLogin State = "needs_login" // somebody has to sign in
	NeedsSetup State = "needs_setup" // what its description refers to, such as a secret, is not there
	Failed     State = "failed"      // to start, or after that; it is tried again
	Stopped    State = "stopped"     // for good
)

// String returns the state in words.
func (s State) String() string { return strings.ReplaceAll(string(s), "_", " ") }

// A ServerStatus is how a server is doing.
type ServerStatus struct {
	Name      string    `json:"name"`
	Transport string    `json:"transport"` // stdio or http
	State     State     `json:"state"`
	Since     time.Time `json:"since"`                // of the state
	Tools     int       `json:"tools"`                // that it offers
	LeftOut   []string  `json:"left_out"`             // tools that cannot be used, and why
	Held      []string  `json:"held"`                 // tools that wait for an operator's review, and why
	Flagged   []string  `json:"flagged,omitempty"`    // what was found in tools that are offered all the same
	Error     string    `json:"error,omitempty"`      // what went wrong last
	Skills    int       `json:"skills,omitempty"`     // that it listed last
	BadSkills []string  `json:"bad_skills,omitempty"` // skills that cannot be used, and why; a hundred at most
	Server    string    `json:"server,omitempty"`     // what it calls itself
	Version   string    `json:"version,omitempty"`    // as it says
	Protocol  string    `json:"protocol,omitempty"`
}

// Status returns how the servers are doing, in the order of their names.
func (u *Upstreams) Status() []ServerStatus {
	all := []ServerStatus{}
	if u == nil {
		return all
	}
	for _, s := range u.servers {
		all = append(all, s.now())
	}
	slices.SortStableFunc(all, func(a, b ServerStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// find returns the named server, if shows accepts it.
func (u *Upstreams) find(name string, shows func(string) bool) (*upstream, error) {
	var names []string
	if u != nil {
		for _, s := range u.servers {
			if !shows(s.Name) {
				continue
			}
			if s.Name == name {
				return s, nil
			}
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return nil, tool.Errorf(tool.CodeNotFound, "there is no MCP server %q: none is configured", name)
	}
	slices.Sort(names)
	return nil, tool.Errorf(tool.CodeNotFound, "there is no MCP server %q; there are: %s", name, strings.Join(names, ", "))
}
