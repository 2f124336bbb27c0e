package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// The bounds of sessions over HTTP where nobody states others.
const (
	DefaultMaxSessions     = 4096
	DefaultSessionsPerUser = 1024
	DefaultSessionIdle     = 4 * time.Hour
)

// A Caller is who makes an HTTP request.
type Caller struct {
	User string // as audits and limits name it; "": local
	// Key tells callers apart whose users have one name: nobody may use what
	// was begun with another key. "": the user's name tells enough.
	Key string
}

// localUser is the user where nobody says who calls.
const localUser = "local"

// nobody is the user of a request that is over.
const nobody = "nobody"

// Limits bound how many sessions clients have over HTTP. Servers with the same
// Limits are bounded together. The zero Limits are the default ones.
type Limits struct {
	Most int           // of all users; 0: DefaultMaxSessions
	Idle time.Duration // after which a session without a request or an open stream ends; 0: DefaultSessionIdle

	mu  sync.Mutex
	n   int
	per map[string]int // by app and user
}

// take makes room for one more session, unless that is too many. The error
// says which bound was met.
func (l *Limits) take(key string, perUser int) error {
	most := l.Most
	if most <= 0 {
		most = DefaultMaxSessions
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.per[key] >= perUser:
		return fmt.Errorf("this user has %d sessions, which is as many as one may have; end one (DELETE with its Mcp-Session-Id), or wait until one has been idle for %v", perUser, l.idle())
	case l.n >= most:
		return fmt.Errorf("there are %d sessions, which is as many as there may be; try again later", most)
	}
	if l.per == nil {
		l.per = map[string]int{}
	}
	l.n++
	l.per[key]++
	return nil
}

func (l *Limits) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
	if l.per[key]--; l.per[key] == 0 {
		delete(l.per, key)
	}
}

func (l *Limits) idle() time.Duration {
	if l.Idle > 0 {
		return l.Idle
	}
	return DefaultSessionIdle
}

// A held session is one that a client has begun over HTTP.
type held struct {
	session *mcp.ServerSession
	caller  Caller
	from    tool.Origin   // of its calls
	wait    time.Duration // how long it may be idle
	open    int           // requests and streams
	idle    *time.Timer   // ends the session
}

// sessions are those of one endpoint, by id: only who began one may use it.
type sessions struct {
	mu  sync.Mutex
	all map[string]*held
}

// enter begins a request within a session. It reports false for a session that
// does not exist or is another's: nobody learns which.
func (ss *sessions) enter(id string, who Caller) (leave func(), ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	h := ss.all[id]
	if h == nil || h.caller != who {
		return nil, false
	}
	if h.open++; h.open == 1 {
		h.idle.Stop()
	}
	return func() { ss.leave(h) }, true
}

func (ss *sessions) leave(h *held) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if h.open--; h.open == 0 {
		h.idle.Reset(h.wait)
	}
}

// expire ends a session, unless it has come to be used.
func (ss *sessions) expire(h *held) {
	ss.mu.Lock()
	used := h.open > 0
	ss.mu.Unlock()
	if !used {
		h.session.Close()
	}
}

// get returns the session of that id, nil if there is none over HTTP.
func (ss *sessions) get(id string) *held {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[id]
}

// of returns the sessions that a key began.
func (ss *sessions) of(key string) (all []*held) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, h := range ss.all {
		if h.caller.Key == key {
			all = append(all, h)
		}
	}
	return all
}

// limitKey is how limits know the users of this server.
func (s *Server) limitKey(who Caller) string { return s.opts.App + "\x00" + who.User }

// room makes room for a session that a request begins.
func (s *Server) room(who Caller) error {
	most := 0
	if s.opts.SessionsPerUser != nil {
		most = s.opts.SessionsPerUser()
	}
	if most <= 0 {
		most = DefaultSessionsPerUser
	}
	return s.limits.take(s.limitKey(who), most)
}

// claim makes the caller the owner of the session that the request begins,
// until it ends. A session of a request that nobody waits for any more ends at
// once: it would be nobody's.
func (e *endpoint) claim(req *mcp.ServerRequest[*mcp.InitializeParams]) {
	r, http := e.request(req)
	id := req.Session.ID()
	if !http || id == "" || r != nil && !r.begins {
		return // over stdio; without a session; or a second time
	}
	h := &held{session: req.Session, from: originOf(e, req), wait: e.s.limits.idle(), open: 1}
	if p := req.Params; p != nil && p.ClientInfo != nil {
		h.from.Agent = p.ClientInfo.Name
	}
	h.idle = time.AfterFunc(h.wait, func() { e.sessions.expire(h) })
	h.idle.Stop()
	if r == nil || !r.begin(h) {
		e.s.begin(func() { req.Session.Close() })
		return
	}
	e.sessions.add(id, h)
	forget := func() {
		e.sessions.remove(id, h)
		e.s.limits.give(e.s.limitKey(h.caller))
		e.s.ended(h.from)
	}
	if !e.s.begin(func() {
		_ = req.Session.Wait() // why it ended is the library's to log
		forget()
	}) {
		forget()
	}
}

func (ss *sessions) add(id string, h *held) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all == nil {
		ss.all = map[string]*held{}
	}
	ss.all[id] = h
}

func (ss *sessions) remove(id string, h *held) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.all, id)
	h.idle.Stop()
	h.open++ // the timer is not to be started again
}

// ended tells that there will be no more calls of a session.
func (s *Server) ended(from tool.Origin) {
	if s.opts.Ended != nil {
		s.opts.Ended(from)
	}
}

// End ends the sessions that callers with this key began.
func (s *Server) End(key string) {
	for _, e := range s.all() {
		for _, h := range e.sessions.of(key) {
			h.session.Close()
		}
	}
}

// stateless names the session of calls that belong to none: that of the caller
// and of the client as it describes itself. It keeps apart what different
// clients do, and is no secret: whoever may call as the caller can say the same.
func stateless(who Caller, client *mcp.Implementation) string {
	parts := []string{who.User, who.Key}
	if client != nil {
		parts = append(parts, client.Name, client.Version)
	}
	var all []byte
	for _, p := range parts {
		all = strconv.AppendQuote(all, p)
	}
	sum := sha256.Sum256(all)
	return "stateless:" + hex.EncodeToString(sum[:12])
}
