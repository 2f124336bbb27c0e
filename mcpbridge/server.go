// Package mcpbridge speaks MCP both ways: it serves our tools, and brings in those of upstream servers.
package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

// ServerOptions say what a Server serves. View and Do are required.
type ServerOptions struct {
	Name, Version string // of the server, as clients see it; "": helve
	Instructions  string // what clients tell their models about the server; "": nothing

	// View returns what a mode shows ("": as decided). The same tools must
	// give the same view; it is called for every listing, so the caller keeps
	// it. A view that was returned must not be changed.
	View func(mode inject.Mode) inject.View
	// ViewKnown is View where that may wait for servers that have not said yet
	// which tools they have, without waiting; nil: View does not wait.
	ViewKnown func(mode inject.Mode) inject.View
	// Changed returns a channel that is closed when the tools change. Nil:
	// they never do.
	Changed func() <-chan struct{}
	// Do runs a call through the pipeline.
	Do func(context.Context, *tool.Call) (*tool.Result, error)
	// Resolve returns the tool that a caller means by name; nil: it is
	// unknown, or not for this caller. A nil Resolve knows none: no result is
	// sent structured.
	Resolve func(from tool.Origin, name string) *tool.Tool

	// Upstreams returns the servers whose resources and prompts are offered
	// too, to callers whom Resolve lets read them with mcp.read_resource and
	// mcp.get_prompt; reading and getting are calls of these tools. Nil: there
	// are none.
	//
	// Addresses stay as they are where one server only has them, else they are
	// helve:SERVER/ADDRESS, which is understood always. Prompts are named
	// SERVER__PROMPT; mcp.SERVER.PROMPT is understood too, and the server's own
	// name where it is the only one to have it.
	Upstreams func() *Upstreams
	// Shows reports whether a caller may see what a server offers. Nil: all may.
	Shows func(from tool.Origin, server string) bool

	// Skills returns the app's own skills that clients may read, those whom
	// Resolve lets call read_skill_file; reading is a call of that tool. Nil:
	// there are none.
	Skills func() []*skill.Folder

	// Tasks keeps the calls that outlive their requests; Close closes it. Nil:
	// none does.
	Tasks *task.Table
	// Long says what becomes of calls that take long. Nil: the defaults.
	Long func() LongCalls

	App      string       // on whose behalf calls are made
	Log      *slog.Logger // nil: nothing is logged
	PageSize int          // tools on a page of a listing; 0: DefaultPageSize

	// Caller says who makes an HTTP request. Nil: the user local.
	Caller func(*http.Request) Caller
	// Profile bounds what callers may use, whoever they are (see
	// tool.Origin); View must return what it leaves. "": nothing is taken away.
	Profile string
	// Limits bound the sessions over HTTP. Nil: the default ones.
	Limits *Limits
	// SessionsPerUser is how many sessions over HTTP one user may have now.
	// Nil, or 0: DefaultSessionsPerUser.
	SessionsPerUser func() int
	// Record writes down a request that reaches an upstream server and is no
	// call of a tool (completion, subscription, level of logs), with what came
	// of it. If it fails the client gets the error in place of the answer.
	// Nil: none is written down.
	Record func(*tool.Call, error) error
	// Ended is told when a session has ended, with the origin of its calls.
	// Nil: nobody is.
	Ended func(tool.Origin)
	// StreamLimit is how long a client of a session waits for an answer on the
	// connection of its request; then it is told to come back for the rest, on
	// a stream that lasts. It concerns clients of a revision that says how
	// (2025-11-25). 0: as long as it takes.
	StreamLimit time.Duration
	// Telemetry is told of every request. Nil: none is told of; the trace to
	// which a client's call belongs goes to upstream servers all the same.
	Telemetry *telemetry.Telemetry
}

// DefaultPageSize is how many tools one page of a listing holds. Many clients
// read only the first.
const DefaultPageSize = 1000

// A Server offers tools to MCP clients, over stdio and streamable HTTP. It
// speaks every revision of the protocol at once. It is safe for concurrent use.
type Server struct {
	opts ServerOptions

	life     context.Context // ends when calls are to be given up
	giveUp   context.CancelFunc
	stop     chan struct{} // closed by Close
	stopOnce sync.Once
	running  sync.WaitGroup
	workers  workers
	stdio    sync.WaitGroup // connections that end by themselves
	requests requests
	limits   *Limits
	inbox    inbox
	turns    turns
	parked   parked
	handles  handles
	events   events
	left     left
	unserved sync.Map // why skills of the app could not be served, as it was told, by their commands

	mu        sync.Mutex
	logs      mcp.LoggingLevel // from which on any client wants logs; "": none does
	endpoints map[inject.Mode]*endpoint
}

// NewServer returns a Server. Close ends it.
func NewServer(o ServerOptions) *Server {
	if o.View == nil || o.Do == nil {
		panic("mcpbridge: a server needs View and Do")
	}
	if o.Name == "" {
		o.Name = "helve"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.PageSize <= 0 {
		o.PageSize = DefaultPageSize
	}
	if o.Limits == nil {
		o.Limits = new(Limits)
	}
	s := &Server{opts: o, limits: o.Limits, stop: make(chan struct{}), endpoints: map[inject.Mode]*endpoint{}}
	s.life, s.giveUp = context.WithCancel(context.Background())
	if o.Changed != nil {
		s.running.Go(s.watch)
	}
	if o.Upstreams != nil {
		s.inbox.full = make(chan struct{}, 1)
		s.running.Go(s.relay)
	}
	return s
}

// Close takes no further requests, and ends every session after the calls in
// flight have been answered or ctx has ended, whichever is first; in the latter
// case the calls are cancelled and the error is ctx's.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stopOnce.Do(func() { close(s.stop) })
	s.mu.Unlock()
	done := make(chan struct{})
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		timer := time.AfterFunc(left-min(left/5, noteWithin), s.handles.interrupt)
		defer timer.Stop()
	}
	go func() {
		defer close(done)
		// The library drops the answers of calls that end after their session
		// was told to close.
		s.stdio.Wait()
		s.requests.wait(ctx)
		for _, e := range s.all() {
			for session := range e.server.Sessions() {
				session.Close()
			}
		}
		s.running.Wait()
		s.workers.all.Wait()
		if s.opts.Tasks != nil {
			if err := s.opts.Tasks.Close(ctx); err != nil {
				s.opts.Log.Error("the tasks cannot be closed", "error", err)
			}
		}
	}()
	defer s.giveUp()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin runs f beside the caller, and reports so, unless the server is
// stopping; Close waits for it.
func (s *Server) begin(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping() {
		return false
	}
	s.running.Add(1)
	s.workers.run(s.stop, func() {
		defer s.running.Done()
		f()
	})
	return true
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// An endpoint presents the tools in one mode.
type endpoint struct {
	s        *Server
	mode     inject.Mode
	server   *mcp.Server
	list     listings
	offers   listings // of resources, templates and prompts
	follows  follows
	sessions sessions
	about    *mcp.Implementation
	handle   mcp.MethodHandler // what the library's ways lead to, for calls of tools
	silent   silent
}

func (s *Server) endpoint(mode inject.Mode) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[mode]
	if e == nil {
		e = &endpoint{s: s, mode: mode}
		e.about = &mcp.Implementation{Name: s.opts.Name, Version: s.opts.Version}
		e.server = mcp.NewServer(e.about, &mcp.ServerOptions{
			Instructions:     s.opts.Instructions,
			Capabilities:     s.capabilities(),
			SubscribeHandler: e.subscribe, UnsubscribeHandler: e.unsubscribe,
			RootsListChangedHandler: e.rootsChanged,
		})
		if s.opts.Tasks != nil {
			addTaskMethods(e.server)
		}
		if s.opts.Upstreams != nil || s.opts.Skills != nil {
			addSkillMethods(e.server)
		}
		e.server.AddReceivingMiddleware(e.serve)
		e.handle = e.serve(func(_ context.Context, method string, _ mcp.Request) (mcp.Result, error) {
			return nil, fmt.Errorf("%s is for the library", method)
		})
		s.endpoints[mode] = e
	}
	return e
}

func (s *Server) all() []*endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*endpoint
	for _, e := range s.endpoints {
		all = append(all, e)
	}
	return all
}

// serve answers what concerns tools. The library's own registry of tools stays
// empty: any visible tool may be called in every mode, at a cost that does not
// depend on how many there are, and the lists are kept as bytes.
func (e *endpoint) serve(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		done := func(mcp.Result, error) {}
		defer func() { done(res, err) }()
		defer func() {
			if v := recover(); v != nil {
				e.s.opts.Log.Error("panic in a request", "method", method, "panic", v, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		ctx, done = e.told(traced(ctx, req), method, req)
		switch r := req.(type) {
		case *mcp.ServerRequest[*mcp.ListToolsParams]:
			return e.listTools(r)
		case *mcp.ServerRequest[*mcp.CallToolParamsRaw]:
			return e.callTool(ctx, r)
		case *mcp.ServerRequest[*taskParams]:
			return e.serveTasks(ctx, method, r)
		case *mcp.ServerRequest[*skillParams]:
			return e.serveSkills(ctx, method, r)
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			e.claim(r)
			defer func() { withoutTasks(res) }()
		}
		if e.s.opts.Upstreams != nil || e.s.opts.Skills != nil {
			return e.serveOffers(ctx, method, req, next)
		}
		return next(ctx, method, req)
	}
}

// firstStateless is the first revision of the protocol without sessions.
const firstStateless = "2026-07-28"

// complete is the type that the results of stateless revisions must name.
func complete(version string) string {
	if version >= firstStateless {
		return "complete"
	}
	return ""
}

// settle is how long the tools must stay unchanged before clients are told.
const settle = 100 * time.Millisecond

// watch tells the clients of each endpoint when what it shows has changed.
func (s *Server) watch() {
	for {
		changed := s.opts.Changed() // before looking, lest a change slip through
		for _, e := range s.all() {
			e.announce()
		}
		select {
		case <-changed:
		case <-s.stop:
			return
		}
		select {
		case <-time.After(settle):
		case <-s.stop:
			return
		}
	}
}

// announce notifies the sessions if the listing differs from what was announced last.
func (e *endpoint) announce() {
	if !e.list.known() {
		return // nobody has listed anything: there is no need to make the list
	}
	l, err := e.listing()
	if err != nil {
		e.s.opts.Log.Error("the tools cannot be listed", "mode", string(e.mode), "error", err)
		return
	}
	if !e.list.news(l.digest) {
		return
	}
	// The library notifies the sessions of every revision when a tool is
	// added; this one is never listed nor called.
	e.server.AddTool(&mcp.Tool{Name: "changed", InputSchema: emptyObject},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("not a tool")
		})
}

// request returns the HTTP request with which a message came, nil if it is
// over, and whether it came over HTTP at all.
func (e *endpoint) request(req mcp.Request) (r *request, http bool) {
	extra := req.GetExtra()
	if extra == nil || extra.Header.Get(requestHeader) == "" {
		return nil, false
	}
	return e.s.requests.get(extra.Header.Get(requestHeader)), true
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
