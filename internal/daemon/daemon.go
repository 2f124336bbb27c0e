// Package daemon serves an app over HTTP: its MCP endpoints, and whether it is well.
package daemon

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// DefaultAddr is where the daemon listens if it is not told otherwise.
const DefaultAddr = "127.0.0.1:7777"

// drain is how long calls under way may take to finish when the daemon ends.
const drain = 10 * time.Second

// FollowEvery is how often the app file is looked at for changes.
const FollowEvery = time.Second

// Options say how to serve.
type Options struct {
	App     *app.Live
	Addr    string // "": DefaultAddr
	Token   string // what clients must present; "": none is needed, on loopback only
	Log     *slog.Logger
	Version string
}

// Views are the paths of the MCP endpoint and the view that each shows.
func Views() map[string]inject.Mode {
	return map[string]inject.Mode{
		"/mcp": "", "/mcp/full": inject.Direct, "/mcp/compact": inject.Compact, "/mcp/discovery": inject.Discovery,
	}
}

// A Daemon listens for clients of one app.
type Daemon struct {
	o        Options
	listener net.Listener
	mcp      *mcpbridge.Server
	server   *http.Server
}

// Listen opens the daemon's address. Addresses other than loopback need a token.
func Listen(o Options) (*Daemon, error) {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if err := checkAddr(o.Addr, o.Token); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with --addr (port 0 takes a free one)", err)
	}
	d := &Daemon{o: o, listener: l, mcp: MCP(o.App, o.Log, o.Version)}
	d.server = &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	return d, nil
}

// ErrAddr is wrapped by errors of addresses that may not be listened on.
var ErrAddr = errors.New("bad address")

func checkAddr(addr, token string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w %q: want HOST:PORT, such as %s", ErrAddr, addr, DefaultAddr)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && token == "" {
		return fmt.Errorf("%w: %s is not loopback: others could reach it; set a token with --token or HELVE_TOKEN", ErrAddr, addr)
	}
	return nil
}

// MCP returns the app as an MCP server.
func MCP(l *app.Live, log *slog.Logger, version string) *mcpbridge.Server {
	a := l.App() // its id stays, whatever else its file changes
	from := a.Origin(tool.KindMCP, "", "")
	return mcpbridge.NewServer(mcpbridge.ServerOptions{
		Name: "helve", Version: version, App: a.Config.App.ID, Log: log,
		Instructions: "Tools are found with search_tools, shown with get_tool and run with execute_tool. Any tool may also be called by its own name.",
		View:         func(m inject.Mode) inject.View { return l.View(from, m) },
		Changed:      l.Changed,
		Do:           l.Call,
		Upstreams:    func() *mcpbridge.Upstreams { return l.App().MCPServers() },
		Shows:        func(from tool.Origin, server string) bool { return mcpbridge.Shown(l.App().Visible, from, server) },
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

// URL returns the daemon's address as a client would write it.
func (d *Daemon) URL() string { return "http://" + d.listener.Addr().String() }

// Serve serves until ctx ends, then lets the calls under way finish.
func (d *Daemon) Serve(ctx context.Context) error {
	following := make(chan struct{})
	go func() {
		defer close(following)
		d.o.App.Follow(ctx, FollowEvery)
	}()
	defer func() { <-following }()
	ended := make(chan error, 1)
	go func() { ended <- d.server.Serve(d.listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := d.mcp.Close(end)
	err = errors.Join(err, d.server.Shutdown(end))
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	for path, mode := range Views() {
		h := d.authorised(d.mcp.Handler(mode))
		mux.Handle(path, h)
		mux.Handle("/mcp/apps/"+d.o.App.App().Config.App.ID+strings.TrimPrefix(path, "/mcp"), h)
	}
	mux.HandleFunc("GET /healthz", d.health)
	mux.HandleFunc("GET /{$}", d.index)
	return mux
}

// authorised lets only clients with the token pass, if there is one.
func (d *Daemon) authorised(next http.Handler) http.Handler {
	if d.o.Token == "" {
		return next
	}
	want := []byte("Bearer " + d.o.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed: send it as Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (d *Daemon) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"status": "ok", "version": d.o.Version, "tools": d.o.App.App().Tools().Len()})
}

func (d *Daemon) index(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "Helve %s serves %d tools over MCP at %s/mcp\n", d.o.Version, d.o.App.App().Tools().Len(), d.URL())
}
