package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/skill"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

// Views are the paths of the MCP endpoint and the view that each shows.
func Views() map[string]inject.Mode {
	return map[string]inject.Mode{
		"/mcp": "", "/mcp/full": inject.Direct, "/mcp/compact": inject.Compact, "/mcp/discovery": inject.Discovery,
	}
}

// A host is an app with its MCP servers: one for each profile to which tokens
// that have come are bound.
type host struct {
	id   string
	live *app.Live
	o    MCPOptions

	mu      sync.Mutex
	closed  bool
	servers map[string]*served
}

type served struct {
	server   *mcpbridge.Server
	handlers map[inject.Mode]http.Handler
}

// handler returns what serves callers that are bound to a profile; nil: the
// daemon ends.
func (h *host) handler(profile string, mode inject.Mode) http.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	s := h.servers[profile]
	if s == nil {
		o := h.o
		o.Profile = profile
		s = &served{MCP(h.live, o), map[inject.Mode]http.Handler{}}
		if h.servers == nil {
			h.servers = map[string]*served{}
		}
		h.servers[profile] = s
	}
	if s.handlers[mode] == nil {
		s.handlers[mode] = s.server.Handler(mode)
	}
	return s.handlers[mode]
}

func (h *host) all() []*mcpbridge.Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*mcpbridge.Server
	for _, s := range h.servers {
		all = append(all, s.server)
	}
	return all
}

// close lets no more servers be made, and returns those that there are.
func (h *host) close() []*mcpbridge.Server {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	return h.all()
}

// mcp serves the app and the view that the path names, as far as the caller's
// token reaches: /mcp, /mcp/VIEW, /mcp/apps/APP and /mcp/apps/APP/VIEW.
func (d *Daemon) mcp(w http.ResponseWriter, r *http.Request) {
	who := whoOf(r.Context())
	h, view, ok := d.named(r.URL.Path, who)
	if !ok {
		http.Error(w, "there is no such app or view here", http.StatusNotFound)
		return
	}
	mode, known := Views()["/mcp"+view]
	if !known {
		http.Error(w, "there is no such app or view here", http.StatusNotFound)
		return
	}
	if who.View != "" {
		bound, err := inject.ParseMode(who.View)
		switch {
		case err != nil:
			http.Error(w, "the token is bound to a view that there is not: "+err.Error(), http.StatusForbidden)
			return
		case view != "" && mode != bound:
			http.Error(w, fmt.Sprintf("the token is bound to the view %s", who.View), http.StatusForbidden)
			return
		}
		mode = bound
	}
	if who.Profile != "" {
		if _, err := h.live.App().Config.Profile(who.Profile); err != nil {
			http.Error(w, "the token's "+err.Error(), http.StatusForbidden)
			return
		}
	}
	handler := h.handler(who.Profile, mode)
	if handler == nil {
		http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
		return
	}
	handler.ServeHTTP(w, r)
}

// named returns the app that a path means to a caller, and what the path says
// after it. To a caller that is bound to an app there is no other.
func (d *Daemon) named(path string, who *who) (h *host, view string, ok bool) {
	rest := strings.TrimPrefix(path, "/mcp")
	id := who.App
	if named, found := strings.CutPrefix(rest, "/apps/"); found {
		name, after, deeper := strings.Cut(named, "/")
		if id != "" && id != name {
			return nil, "", false
		}
		if id, rest = name, ""; deeper {
			rest = "/" + after
		}
	}
	for _, h := range d.hosts {
		if h.id == id || id == "" {
			return h, rest, true
		}
	}
	return nil, "", false
}

// MCPOptions say how an app is served as an MCP server.
type MCPOptions struct {
	Profile string            // to which all callers are bound; "": to none
	Limits  *mcpbridge.Limits // of sessions over HTTP; nil: the default ones
	Caller  func(*http.Request) mcpbridge.Caller
	Log     *slog.Logger
	Version string

	StreamLimit time.Duration // see mcpbridge.ServerOptions

	Telemetry *telemetry.Telemetry // nil: nobody is told of requests
}

// MCP returns the app as an MCP server.
func MCP(l *app.Live, o MCPOptions) *mcpbridge.Server {
	a := l.App() // its id stays, whatever else its file changes
	from := a.Origin(tool.KindMCP, "", "")
	from.Profile = o.Profile
	return mcpbridge.NewServer(mcpbridge.ServerOptions{
		Name: "helve", Version: o.Version, App: a.Config.App.ID, Profile: o.Profile, Log: o.Log,
		Instructions:    "Call a listed tool by its name. One that is not listed is found with search_tools, shown with get_tool and run with execute_tool.",
		View:            func(m inject.Mode) inject.View { return l.View(from, m) },
		ViewKnown:       func(m inject.Mode) inject.View { return l.ViewKnown(from, m) },
		Changed:         l.Changed,
		Do:              l.Call,
		Tasks:           task.New(store.Sub(l.Store(), "tasks"), task.Options{Log: o.Log}),
		Long:            func() mcpbridge.LongCalls { return l.App().LongCalls() },
		Upstreams:       func() *mcpbridge.Upstreams { return l.App().MCPServers() },
		Skills:          func() []*skill.Folder { return l.App().ServedSkills() },
		Shows:           func(from tool.Origin, server string) bool { return mcpbridge.Shown(l.App().Visible, from, server) },
		Caller:          o.Caller,
		Limits:          o.Limits,
		StreamLimit:     o.StreamLimit,
		Telemetry:       o.Telemetry,
		SessionsPerUser: func() int { return l.App().SessionsPerUser() },
		Record:          func(c *tool.Call, err error) error { return l.App().Record(c, err) },
		Ended: func(from tool.Origin) {
			ctx, cancel := context.WithTimeout(context.Background(), drain)
			defer cancel()
			if err := l.App().EndSession(ctx, from); err != nil {
				o.Log.Warn("what a session kept could not be freed; it goes when it is old", "session", from.Session, "error", err)
			}
		},
		Resolve: func(from tool.Origin, name string) *tool.Tool {
			a := l.App()
			t, err := a.Tools().Resolve(name, func(t *tool.Tool) bool { return a.Visible(from, t) })
			if err != nil || !a.Visible(from, t) {
				return nil
			}
			return t
		},
	})
}
