package mcpbridge

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server with sessions has one list of roots for each, and ours has one
// session with it for all clients. So where it is told the roots of clients, a
// change of hands is a change of its roots, as is one that a client tells of;
// and what it asks about no call in particular is answered by the client whose
// roots it was told last.

const (
	rootsAsk  = 500 * time.Millisecond // for a server that was told of a change to ask, before it is called
	rootsHeed = 20 * time.Millisecond  // for the answer to arrive, and to be heeded: nothing tells when it is
	rootsTime = 10 * time.Second       // for a client to say its roots when no call of it waits for that
)

// A roots is which roots a server was told last in its session.
type roots struct {
	of *asker // whose; nil: our own
}

// A rootsChange is one that a call waits for.
type rootsChange struct {
	asked, told         chan struct{} // closed when the server has asked, and was told
	asksOnce, tellsOnce sync.Once
}

// withRoots returns the asker if it is a client that has roots, nil if it is not.
func withRoots(a *asker) *asker {
	if a.can((*mcp.ListRootsParams)(nil)) != nil {
		return nil
	}
	return a
}

// tellsChanges reports whether a client has one list of roots in all its
// calls, and says when it changes.
func (a *asker) tellsChanges() bool { return a != nil && a.version < firstStateless }

// sharesRoots reports whether a server with sessions may be told as much of
// roots by b as it was by a.
func (a *asker) sharesRoots(b *asker) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.session == b.session && a.tellsChanges()
}

// followsRoots reports whether the server is told roots of clients, in a session.
func (l *link) followsRoots() bool {
	return l.owner.Roots == RootsClient && l.protocol < firstStateless
}

// toldRoots notes whose roots the server was told; nil: our own.
func (l *link) toldRoots(a *asker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roots = &roots{a}
	if c := l.change; c != nil {
		c.tellsOnce.Do(func() { close(c.told) })
	}
}

// asksRoots notes that the server asks for its roots.
func (l *link) asksRoots() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.change; c != nil {
		c.asksOnce.Do(func() { close(c.asked) })
	}
}

// handRoots tells a server that knows other roots than those of the client
// that is about to call it that they have changed, and waits a moment for it
// to ask for them. One that never asked is told nothing.
func (l *link) handRoots(ctx context.Context, a *asker) {
	if !l.followsRoots() {
		return
	}
	l.mu.Lock()
	if l.roots == nil || l.roots.of.sharesRoots(withRoots(a)) {
		l.mu.Unlock()
		return
	}
	c := &rootsChange{asked: make(chan struct{}), told: make(chan struct{})}
	l.roots, l.change = nil, c // until it asks again
	l.mu.Unlock()
	l.rootsChanged()
	timer := time.NewTimer(rootsAsk)
	defer timer.Stop()
	select {
	case <-c.asked:
	case <-timer.C:
		return
	case <-l.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-c.told:
		time.Sleep(rootsHeed)
	case <-l.ended:
	case <-ctx.Done():
	}
}

// rootsAgain answers a server that asks for roots about no call in particular.
func (l *link) rootsAgain(s *upstream) *mcp.ListRootsResult {
	l.mu.Lock()
	told := l.roots
	l.mu.Unlock()
	if s.Roots == RootsClient && told != nil && told.of.tellsChanges() {
		ctx, cancel := context.WithTimeout(context.Background(), rootsTime)
		defer cancel()
		q := &mcp.ListRootsParams{Meta: mcp.Meta{serverKey: s.Name}}
		got, err := told.of.session.ListRoots(ctx, q)
		if err == nil {
			err = fits(q, got)
		}
		if err == nil {
			l.toldRoots(told.of)
			return got
		}
		s.log.Debug("a client does not say its roots any more", "why", err)
	}
	l.toldRoots(nil)
	return &mcp.ListRootsResult{Roots: s.ownRoots()}
}

// rootsChanged tells the servers that know a client's roots that these have
// changed.
func (u *Upstreams) rootsChanged(session *mcp.ServerSession) {
	if u == nil {
		return
	}
	each(u.servers, func(s *upstream) struct{} {
		s.mu.Lock()
		l := s.link
		s.mu.Unlock()
		if l == nil || !l.followsRoots() {
			return struct{}{}
		}
		l.mu.Lock()
		knows := l.roots != nil && l.roots.of != nil && l.roots.of.session == session
		l.mu.Unlock()
		if knows {
			l.rootsChanged()
		}
		return struct{}{}
	})
}

// rootsChanged passes on that a client's roots have changed.
func (e *endpoint) rootsChanged(_ context.Context, req *mcp.RootsListChangedRequest) {
	if e.s.opts.Upstreams == nil {
		return
	}
	u, session := e.s.opts.Upstreams(), req.Session
	e.s.begin(func() { u.rootsChanged(session) })
}
