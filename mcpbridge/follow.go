package mcpbridge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

const (
	maxNews  = 256              // that wait to be passed on: what a server logs beyond that is dropped
	newsTime = 10 * time.Second // for a server to hear which news are wanted
)

// An inbox holds what upstream servers told until it is passed on.
type inbox struct {
	mu        sync.Mutex
	full      chan struct{} // something is in it
	resources bool          // lists have changed
	prompts   bool
	updated   map[place]bool
	logs      []event
}

// A place is a resource of a server.
type place struct {
	server *upstream
	uri    string
}

// put never blocks.
func (b *inbox) put(ev event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ev.log != nil:
		if len(b.logs) < maxNews {
			b.logs = append(b.logs, ev)
		}
	case ev.kind == prompts:
		b.prompts = true
	case ev.kind != nil:
		b.resources = true
	default:
		if b.updated == nil {
			b.updated = map[place]bool{}
		}
		b.updated[place{ev.server, ev.uri}] = true
	}
	select {
	case b.full <- struct{}{}:
	default:
	}
}

// empty returns what is in the inbox, which is then empty.
func (b *inbox) empty() *inbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := &inbox{resources: b.resources, prompts: b.prompts, updated: b.updated, logs: b.logs}
	b.resources, b.prompts, b.updated, b.logs = false, false, nil, nil
	return got
}

// relay passes the upstream servers' news on to our clients, until the server stops.
func (s *Server) relay() {
	var now *Upstreams
	stop := func() {}
	defer func() { stop() }()
	for {
		var changed <-chan struct{}
		if s.opts.Changed != nil {
			changed = s.opts.Changed() // before looking, lest a change slip through
		}
		if ups := s.opts.Upstreams(); ups != now {
			stop()
			stop = func() {}
			if now = ups; ups != nil {
				stop = ups.news.follow(s.inbox.put)
			}
			s.inbox.put(event{kind: resources})
			s.inbox.put(event{kind: prompts})
			if level := s.level(""); level != "" && ups != nil {
				s.begin(func() { s.want(ups, level) })
			}
		}
		select {
		case <-changed:
		case <-s.inbox.full:
			s.pass(s.inbox.empty())
		case <-s.stop:
			return
		}
	}
}

// pass passes news on to the clients of all endpoints.
func (s *Server) pass(b *inbox) {
	for _, e := range s.all() {
		// The library notifies the sessions of every revision when something
		// is added; these are never listed, read nor got.
		if b.resources {
			e.server.AddResource(&mcp.Resource{Name: "changed", URI: ourScheme + "changed"},
				func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return nil, errors.New("not a resource")
				})
		}
		if b.prompts {
			e.server.AddPrompt(&mcp.Prompt{Name: "changed"},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return nil, errors.New("not a prompt")
				})
		}
		for at := range b.updated {
			for _, uri := range e.follows.names(at) {
				_ = e.server.ResourceUpdated(s.life, &mcp.ResourceUpdatedNotificationParams{URI: uri}) // it logs itself
			}
		}
		for _, ev := range b.logs {
			e.log(ev)
		}
	}
}

// log passes on what a server logs, to those sessions that may see the server
// and asked for logs of that level.
func (e *endpoint) log(ev event) {
	p := *ev.log
	p.Meta = nil
	p.Logger = ev.server.Name
	if ev.log.Logger != "" {
		p.Logger += "/" + printable(ev.log.Logger)
	}
	for session := range e.server.Sessions() {
		from := e.originOf(session)
		if e.s.opts.Shows == nil || e.s.opts.Shows(from, ev.server.Name) {
			_ = session.Log(e.s.life, &p) // a client that is gone misses nothing
		}
	}
}

// originOf says on whose behalf a session is told something.
func (e *endpoint) originOf(session *mcp.ServerSession) tool.Origin {
	if h := e.sessions.get(session.ID()); h != nil {
		return h.from
	}
	return tool.Origin{App: e.s.opts.App, Session: session.ID(), User: localUser, Profile: e.s.opts.Profile, Kind: tool.KindMCP}
}

// level notes from which level on clients want logs ("": nothing new), and
// returns the lowest that any ever wanted.
func (s *Server) level(level mcp.LoggingLevel) mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if chattier(level, s.logs) {
		s.logs = level
	}
	return s.logs
}

// setLevel asks the upstream servers for the logs that a client wants.
func (e *endpoint) setLevel(level mcp.LoggingLevel) {
	wanted := e.s.level(level)
	if u := e.s.opts.Upstreams(); u != nil && wanted != "" {
		e.s.want(u, wanted)
	}
}

func (s *Server) want(u *Upstreams, level mcp.LoggingLevel) {
	ctx, cancel := context.WithTimeout(s.life, newsTime)
	defer cancel()
	u.want(ctx, level)
}

// follows are the resources that clients follow.
type follows struct {
	mu   sync.Mutex
	all  map[followed]place
	ends map[*mcp.ServerSession]bool // whose end is waited for
}

// A followed is a resource as a client knows it.
type followed struct {
	session *mcp.ServerSession
	uri     string
}

// names returns the addresses under which clients follow a resource.
func (f *follows) names(at place) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[string]bool{}
	var all []string
	for who, p := range f.all {
		if p == at && !names[who.uri] {
			names[who.uri] = true
			all = append(all, who.uri)
		}
	}
	return all
}

type listenerKey struct{}

// listening remembers who asks, on the only way that leads through the library
// from a request to listen to the subscriptions that it makes.
func (e *endpoint) listening(ctx context.Context, req *mcp.SubscriptionsListenRequest) context.Context {
	return context.WithValue(ctx, listenerKey{}, originOf(e, req))
}

// subscribe follows a resource for a client.
func (e *endpoint) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	from, ok := ctx.Value(listenerKey{}).(tool.Origin)
	if !ok {
		from = originOf(e, req)
	}
	err := e.follow(ctx, from, req)
	told := e.note(from, "resources/subscribe", watching{req.Params.URI}, err)
	if err == nil && told != nil { // it could not be written down
		e.unfollow(req.Session, req.Params.URI)
	}
	return told
}

func (e *endpoint) follow(ctx context.Context, from tool.Origin, req *mcp.SubscribeRequest) error {
	s, own, err := e.survey(ctx, from).find(req.Params.URI)
	if err != nil {
		return unfound{err}
	}
	if err := s.watch(ctx, own); err != nil {
		return onWire(tool.AsError(err))
	}
	who, at := followed{req.Session, req.Params.URI}, place{s, own}
	f := &e.follows
	f.mu.Lock()
	old, twice := f.all[who]
	if f.all == nil {
		f.all, f.ends = map[followed]place{}, map[*mcp.ServerSession]bool{}
	}
	f.all[who] = at
	first := !f.ends[req.Session]
	f.ends[req.Session] = true
	f.mu.Unlock()
	if twice {
		e.unwatch(old)
	}
	if first {
		e.s.begin(func() {
			_ = req.Session.Wait() // why it ended is the library's to log
			e.forget(req.Session)
		})
	}
	return nil
}

// unsubscribe ends what subscribe began.
func (e *endpoint) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	from, ok := ctx.Value(listenerKey{}).(tool.Origin)
	if !ok {
		from = originOf(e, req)
	}
	e.unfollow(req.Session, req.Params.URI)
	return e.note(from, "resources/unsubscribe", watching{req.Params.URI}, nil)
}

func (e *endpoint) unfollow(session *mcp.ServerSession, uri string) {
	f := &e.follows
	f.mu.Lock()
	who := followed{session, uri}
	at, known := f.all[who]
	delete(f.all, who)
	f.mu.Unlock()
	if known {
		e.unwatch(at)
	}
}

// forget ends all that a session follows.
func (e *endpoint) forget(session *mcp.ServerSession) {
	f := &e.follows
	f.mu.Lock()
	var ended []place
	for who, at := range f.all {
		if who.session == session {
			ended = append(ended, at)
			delete(f.all, who)
		}
	}
	delete(f.ends, session)
	f.mu.Unlock()
	for _, at := range ended {
		e.unwatch(at)
	}
}

func (e *endpoint) unwatch(at place) {
	ctx, cancel := context.WithTimeout(e.s.life, newsTime)
	defer cancel()
	at.server.unwatch(ctx, at.uri)
}

// capabilities are what clients are told that they may ask for.
func (s *Server) capabilities() *mcp.ServerCapabilities {
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: s.opts.Changed != nil}}
	if s.opts.Skills != nil {
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: s.opts.Upstreams != nil}
	}
	if s.opts.Upstreams != nil {
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
		caps.Completions = &mcp.CompletionCapabilities{}
		caps.Logging = &mcp.LoggingCapabilities{}
	}
	if s.opts.Tasks != nil {
		caps.AddExtension(tasksExtension, nil)
	}
	return caps
}

// honest leaves out of an answer the capabilities that nothing stands behind:
// without upstream servers there are neither prompts nor resources, but for
// skills of the app. Servers that have yet to say what they offer count as if
// they had both. Skills are added where there are any that the client may see.
func (e *endpoint) honest(req mcp.Request, res mcp.Result) {
	var caps *mcp.ServerCapabilities
	switch r := res.(type) {
	case *mcp.InitializeResult:
		caps = r.Capabilities
	case *mcp.DiscoverResult:
		caps = r.Capabilities
	}
	if caps == nil {
		return
	}
	has, directories := false, false
	switch r := req.(type) {
	case *mcp.ServerRequest[*mcp.InitializeParams]:
		has, directories = e.hasSkills(originOf(e, r))
	case *mcp.ServerRequest[*mcp.DiscoverParams]:
		has, directories = e.hasSkills(originOf(e, r))
	}
	var ups *Upstreams
	if e.s.opts.Upstreams != nil {
		ups = e.s.opts.Upstreams()
	}
	if ups == nil || len(ups.servers) == 0 {
		if caps.Prompts, caps.Completions, caps.Logging = nil, nil, nil; has && caps.Resources != nil {
			caps.Resources = &mcp.ResourceCapabilities{ListChanged: caps.Resources.ListChanged}
		} else {
			caps.Resources, has = nil, false
		}
	}
	if has {
		caps.AddExtension(skillsExtension, skillSettings(directories))
	}
}
