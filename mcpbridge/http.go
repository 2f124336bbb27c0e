package mcpbridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
)

const (
	maxBody     = 4 << 20        // of a request
	sessionIdle = 12 * time.Hour // after which a session without requests ends

	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// requestHeader carries the key of a request from the handler to the
	// method that it calls; what a client sends under it is dropped.
	requestHeader = "Helve-Request"
)

// Handler serves the tools over streamable HTTP, presented in one mode ("": as
// decided). Clients of the revisions with sessions and of those without are
// served side by side. A request from a page of another origin is refused, and
// one that reaches a loopback address under another name.
func (s *Server) Handler(mode inject.Mode) http.Handler {
	e := s.endpoint(mode)
	server := func(*http.Request) *mcp.Server { return e.server }
	sessions := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxBody, SessionTimeout: sessionIdle})
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxBody, Stateless: true, PropagateRequestCancellation: true})
	var foreign http.CrossOriginProtection
	return foreign.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping() {
			http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
			return
		}
		if !sameOrigin(r) {
			http.Error(w, "requests from other origins are refused", http.StatusForbidden)
			return
		}
		user := localUser
		if s.opts.User != nil {
			user = s.opts.User(r)
		}
		if id := r.Header.Get(sessionHeader); id != "" && !e.owners.may(id, user) {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		key, done := s.requests.add(&request{ctx: r.Context(), user: user})
		defer done()
		r = r.Clone(r.Context())
		r.Header.Set(requestHeader, key)
		stateful, err := wantsSession(w, r)
		switch {
		case err != nil:
			http.Error(w, err.Error(), statusOf(err))
		case stateful:
			sessions.ServeHTTP(w, r)
		default:
			stateless.ServeHTTP(w, r)
		}
	}))
}

// sameOrigin reports whether a request comes from no web page, or from one of
// the server itself.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// wantsSession reports whether a request belongs to a session or begins one.
// It reads the body and puts it back.
func wantsSession(w http.ResponseWriter, r *http.Request) (bool, error) {
	switch {
	case r.Header.Get(versionHeader) >= firstStateless:
		return false, nil
	case r.Method != http.MethodPost || r.Header.Get(sessionHeader) != "":
		return true, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	type message struct {
		Method string `json:"method"`
	}
	var all []message
	var one message
	if json.Unmarshal(body, &one) == nil {
		all = append(all, one)
	} else {
		_ = json.Unmarshal(body, &all) // what is neither is refused by the library
	}
	for _, m := range all {
		if m.Method == "initialize" {
			return true, nil
		}
	}
	return false, nil
}

func statusOf(err error) int {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// A request is an HTTP request while it is served.
type request struct {
	ctx     context.Context
	user    string
	calling atomic.Bool // a tool: it will be answered
}

// requests are those being served, by a key that no client knows.
type requests struct {
	mu   sync.Mutex
	all  map[string]*request
	left chan struct{} // closed when one has been served; nil: nobody waits
}

// wait waits until no request is served that calls a tool.
func (rs *requests) wait(ctx context.Context) {
	for {
		rs.mu.Lock()
		busy := false
		for _, r := range rs.all {
			busy = busy || r.calling.Load()
		}
		if rs.left == nil {
			rs.left = make(chan struct{})
		}
		left := rs.left
		rs.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-left:
		case <-ctx.Done():
			return
		}
	}
}

func (rs *requests) add(r *request) (key string, done func()) {
	key = rand.Text()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.all == nil {
		rs.all = map[string]*request{}
	}
	rs.all[key] = r
	return key, func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.all, key)
		if rs.left != nil {
			close(rs.left)
			rs.left = nil
		}
	}
}

func (rs *requests) get(key string) *request {
	if key == "" {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.all[key]
}

// owners knows who began which session: nobody else may use it.
type owners struct {
	mu sync.Mutex
	by map[string]string
}

// may reports whether a user may use a session. Sessions that nobody began are
// left to the library to refuse.
func (o *owners) may(session, user string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner, known := o.by[session]
	return !known || owner == user
}

// claim makes the caller the owner of the session that the request begins.
func (e *endpoint) claim(req *mcp.ServerRequest[*mcp.InitializeParams]) {
	user, http := e.user(req)
	id := req.Session.ID()
	if http == nil || id == "" {
		return
	}
	o := &e.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[string]string{}
	}
	o.by[id] = user
	e.s.begin(func() {
		_ = req.Session.Wait() // why it ended is the library's to log
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.by, id)
	})
}
