package mcpbridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
)

const (
	maxBody  = 4 << 20     // of a request
	bodyTime = time.Minute // in which it must have come

	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// requestHeader carries the key of a request from the handler to the
	// method that it calls; what a client sends under it is dropped.
	requestHeader = "Helve-Request"
)

// Handler serves the tools over streamable HTTP, presented in one mode ("": as
// decided). Clients of the revisions with sessions and of those without are
// served side by side. A request from a page of another origin is refused, and
// one that reaches a loopback address under another name. Sessions belong to
// the handler and the caller that began them: to others they do not exist.
func (s *Server) Handler(mode inject.Mode) http.Handler {
	e := s.endpoint(mode)
	server := func(*http.Request) *mcp.Server { return e.server }
	stateful := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxBody, EventStore: &s.events})
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxBody, Stateless: true, PropagateRequestCancellation: true})
	return Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping() {
			http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
			return
		}
		kind, err := kindOf(w, r)
		if err != nil {
			http.Error(w, err.Error(), statusOf(err))
			return
		}
		q := &request{ctx: r.Context(), caller: s.caller(r), begins: kind == beginsSession}
		key, done := s.requests.add(q)
		defer done()
		r = r.Clone(r.Context())
		r.Header.Set(requestHeader, key)
		if misrouted(w, r) {
			return
		}
		switch kind {
		case withoutSession:
			if refuseListen(w, r) || e.checkHeaders(w, r, q.caller) || e.quick(w, r) {
				return
			}
			stateless.ServeHTTP(w, r)
		case beginsSession:
			s.beginSession(stateful, w, r, q, e)
		default:
			if r.Header.Get(sessionHeader) == "" {
				stateful.ServeHTTP(w, r) // says what is missing
				return
			}
			leave, ok := e.sessions.enter(r.Header.Get(sessionHeader), q.caller)
			if !ok {
				http.Error(w, "session not found", http.StatusNotFound)
				return
			}
			defer leave()
			if r.Method == http.MethodDelete {
				s.left.end(r.Header.Get(sessionHeader))
			}
			stateful.ServeHTTP(w, r)
		}
	}))
}

// beginSession serves a request that begins a session, if there is room for it.
func (s *Server) beginSession(h http.Handler, w http.ResponseWriter, r *http.Request, q *request, e *endpoint) {
	if err := s.room(q.caller); err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(refusal(nil, jsonrpc.CodeInternalError, err.Error())) // a client that is gone misses nothing
		return
	}
	defer func() {
		if began := q.end(); began != nil {
			e.sessions.leave(began)
		} else {
			s.limits.give(s.limitKey(q.caller))
		}
	}()
	h.ServeHTTP(w, r)
}

// caller returns who makes a request.
func (s *Server) caller(r *http.Request) (who Caller) {
	if s.opts.Caller != nil {
		who = s.opts.Caller(r)
	}
	if who.User == "" {
		who.User = localUser
	}
	return who
}

// Guard refuses the requests of web pages of other origins, and those that
// reach a loopback address under a name that is not one: a page may have made
// its own name lead here.
func Guard(next http.Handler) http.Handler {
	var foreign http.CrossOriginProtection
	return foreign.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		switch {
		case at != nil && loopback(at.String()) && !loopback(r.Host):
			http.Error(w, fmt.Sprintf("requests to a loopback address must name it; %.100q is no name of one", r.Host), http.StatusForbidden)
		case !sameOrigin(r):
			http.Error(w, "requests from other origins are refused", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	}))
}

// loopback reports whether a host, with or without a port, is this machine's own.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether a request comes from no web page, or from one of
// the server itself.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" { // as in what a page loads as an image; browsers say where it comes from
		from := r.Header.Get("Sec-Fetch-Site")
		return from == "" || from == "same-origin" || from == "none"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// A requestKind says what a request has to do with sessions.
type requestKind int

const (
	withoutSession requestKind = iota
	withinSession              // or a request that needs one and names none
	beginsSession
)

// kindOf tells what a request has to do with sessions. It reads the body, all
// of which must come in time, and puts it back.
func kindOf(w http.ResponseWriter, r *http.Request) (requestKind, error) {
	if r.Method != http.MethodPost {
		if r.Header.Get(versionHeader) >= firstStateless {
			return withoutSession, nil
		}
		return withinSession, nil
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // what has no deadlines reads no network
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return 0, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case r.Header.Get(versionHeader) >= firstStateless:
		return withoutSession, nil
	case r.Header.Get(sessionHeader) != "":
		return withinSession, nil
	case initializes(body):
		return beginsSession, nil
	}
	return withoutSession, nil
}

// initializes reports whether there is an initialize among the messages.
func initializes(body []byte) bool {
	if !bytes.Contains(body, []byte("initialize")) && !bytes.Contains(body, []byte(`\u`)) {
		return false
	}
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
			return true
		}
	}
	return false
}

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// A request is an HTTP request while it is served.
type request struct {
	ctx     context.Context
	caller  Caller
	calling atomic.Bool // a tool: it will be answered
	begins  bool        // a session may begin with it

	mu    sync.Mutex
	began *held // the session that did
	over  bool  // none will
}

// begin notes the session that began with the request; false: it is over.
func (r *request) begin(h *held) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.began != nil {
		return false
	}
	r.began, h.caller = h, r.caller
	return true
}

// end returns the session that began with the request; nil: none did, nor will.
func (r *request) end() *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.began
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
