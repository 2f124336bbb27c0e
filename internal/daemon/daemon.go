// Package daemon serves apps over HTTP: their MCP endpoints, to clients that may reach them, and whether it is well.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/internal/tokens"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/telemetry"
)

// DefaultAddr is where the daemon listens if it is not told otherwise.
const DefaultAddr = "127.0.0.1:7777"

const (
	drain      = 10 * time.Second // how long calls under way may take to finish when the daemon ends
	headerTime = 10 * time.Second // in which a request's headers must have come
	writeTime  = time.Minute      // in which a client must have taken what it is sent
	quietTime  = 2 * time.Minute  // after which a connection without requests is closed
)

// FollowEvery is how often the app file is looked at for changes.
const FollowEvery = time.Second

// Options say what to serve, and to whom.
type Options struct {
	Apps    []*app.Live  // at least one; /mcp is the first's. Their ids must differ
	Addr    string       // "": DefaultAddr
	Token   string       // the operator's, which reaches everything; "": there is none
	Tokens  *tokens.Book // the clients'; nil: there are none
	Log     *slog.Logger
	Version string

	MaxSessions int           // at one time; 0: mcpbridge.DefaultMaxSessions
	SessionIdle time.Duration // after which an unused session ends; 0: mcpbridge.DefaultSessionIdle
	StreamLimit time.Duration // see mcpbridge.ServerOptions

	Telemetry *telemetry.Telemetry // nil: nobody is told of requests
}

// A Daemon listens for clients of apps.
type Daemon struct {
	o        Options
	listener net.Listener
	gate     *gate
	hosts    []*host
	server   *http.Server
	ending   chan struct{} // closed when no more is waited for
}

// Listen opens the daemon's address. Addresses other than loopback need a
// token: the operator's, or at least one client's.
func Listen(o Options) (*Daemon, error) {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	d := &Daemon{o: o, ending: make(chan struct{})}
	limits := &mcpbridge.Limits{Most: o.MaxSessions, Idle: o.SessionIdle}
	seen := map[string]bool{}
	for _, l := range o.Apps {
		id := l.App().Config.App.ID // it stays, whatever else the file changes
		if seen[id] {
			return nil, fmt.Errorf("two apps have the app_id %q; give one of them another", id)
		}
		seen[id] = true
		d.hosts = append(d.hosts, &host{id: id, live: l, o: MCPOptions{Limits: limits, StreamLimit: o.StreamLimit, Telemetry: o.Telemetry, Log: o.Log, Version: o.Version, Caller: callerOf}})
	}
	open, err := isLoopback(o.Addr)
	if err != nil {
		return nil, err
	}
	d.gate = &gate{operator: o.Token, book: o.Tokens, open: open, log: o.Log, end: d.endSessions}
	if !open && o.Token == "" {
		if any, err := d.gate.any(context.Background()); err != nil || !any {
			return nil, errors.Join(err, fmt.Errorf("%w: %s is not loopback: others could reach it; set a token with --token or HELVE_TOKEN, or make one with helve tokens create", ErrAddr, o.Addr))
		}
	}
	if d.listener, err = net.Listen("tcp", o.Addr); err != nil {
		return nil, fmt.Errorf("%w; choose another address with --addr (port 0 takes a free one)", err)
	}
	for _, h := range d.hosts { // so that the lists are ready when they are asked for
		for _, mode := range Views() {
			h.handler("", mode)
		}
	}
	d.server = &http.Server{Handler: d.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: quietTime, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	return d, nil
}

// ErrAddr is wrapped by errors of addresses that may not be listened on.
var ErrAddr = errors.New("bad address")

func isLoopback(addr string) (bool, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("%w %q: want HOST:PORT, such as %s", ErrAddr, addr, DefaultAddr)
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// URL returns the daemon's address as a client would write it.
func (d *Daemon) URL() string { return "http://" + d.listener.Addr().String() }

// NeedsToken reports whether clients must present a token now.
func (d *Daemon) NeedsToken(ctx context.Context) bool {
	needs, err := d.gate.needs(ctx)
	return needs || err != nil
}

// Serve serves until ctx ends, then lets the calls under way finish.
func (d *Daemon) Serve(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { d.gate.watch(ctx) })
	for _, h := range d.hosts {
		beside.Go(func() { h.live.Follow(ctx, FollowEvery) })
	}
	defer beside.Wait()
	ended := make(chan error, 1)
	go func() { ended <- d.server.Serve(d.listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	close(d.ending)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := d.closeServers(end)
	err = errors.Join(err, d.server.Shutdown(end))
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (d *Daemon) closeServers(ctx context.Context) error {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, h := range d.hosts {
		for _, s := range h.close() {
			all.Go(func() {
				err := s.Close(ctx)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// endSessions ends what a caller that is not let in any more has begun.
func (d *Daemon) endSessions(key string) {
	for _, h := range d.hosts {
		for _, s := range h.all() {
			s.End(key)
		}
	}
}

// handler is the daemon's whole way in: whatever the path, pages of other
// origins are refused first, then those who lack a token.
func (d *Daemon) handler() http.Handler {
	known := http.NewServeMux()
	known.HandleFunc("GET /{$}", d.index)
	known.HandleFunc("/mcp", d.mcp)
	known.HandleFunc("/mcp/", d.mcp)
	known.HandleFunc("GET /healthz", d.health)
	known.HandleFunc("GET /api/approvals", d.approvals)
	known.HandleFunc("GET /api/approvals/{id}", d.approval)
	known.HandleFunc("POST /api/approvals/{id}", d.approve)
	known.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { d.elsewhere(w, r, known) })
	guarded := d.gate.admit(known)
	return mcpbridge.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(&patient{ResponseWriter: w, conn: http.NewResponseController(w)}, r)
	}))
}

// health says that the daemon runs, and more to those who may know.
func (d *Daemon) health(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"status": "ok"}
	if who := whoOf(r.Context()); who != nil && who.Profile == "" {
		apps, n := map[string]int{}, 0
		for _, h := range d.hosts {
			if who.App == "" || who.App == h.id {
				apps[h.id] = h.live.App().Tools().Len()
				n += apps[h.id]
			}
		}
		answer["version"], answer["tools"], answer["apps"] = d.o.Version, n, apps
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer)
}

// elsewhere says where MCP is to clients that look for it at another address,
// or by a method that is not among the known ones of an address.
func (d *Daemon) elsewhere(w http.ResponseWriter, r *http.Request, known *http.ServeMux) {
	status := http.StatusNotFound
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = method
		if _, pattern := known.Handler(&other); pattern != "/" {
			status = http.StatusMethodNotAllowed
			w.Header().Add("Allow", method)
		}
	}
	http.Error(w, "there is nothing at "+r.Method+" "+r.URL.Path+"; MCP clients are to be given the address "+d.URL()+"/mcp", status)
}

func (d *Daemon) index(w http.ResponseWriter, r *http.Request) {
	who := whoOf(r.Context())
	for _, h := range d.hosts {
		if who.App == "" || who.App == h.id {
			fmt.Fprintf(w, "Helve %s serves the app %s over MCP at %s/mcp/apps/%s\n", d.o.Version, h.id, d.URL(), h.id)
		}
	}
}

// A patient writer does not wait for ever for a client that does not read.
type patient struct {
	http.ResponseWriter
	conn *http.ResponseController
}

func (p *patient) Write(data []byte) (int, error) {
	p.hurry()
	return p.ResponseWriter.Write(data)
}

// Flush sends what was written.
func (p *patient) Flush() {
	p.hurry()
	_ = p.conn.Flush() // what is lost the next write tells
}

func (p *patient) hurry() { _ = p.conn.SetWriteDeadline(time.Now().Add(writeTime)) }

// Unwrap returns the writer beneath.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
