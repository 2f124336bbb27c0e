package mcpbridge

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/helve-ai/helve/tool"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute            // the longest time between two attempts; a connection that lasted it counts as sound
	relistWait = 200 * time.Millisecond // from the news that a list changed until it is read
)

// An upstream keeps one server connected.
type upstream struct {
	Upstream
	o     UpstreamOptions
	log   *slog.Logger
	first chan struct{} // closed when it has answered or failed once
	kick  chan struct{} // an attempt is wanted at once

	mu      sync.Mutex
	status  ServerStatus
	link    *link         // nil: down
	attempt chan struct{} // closed at the end of the attempt that is under way or comes next
	offered *manifest
	settled bool
}

func newUpstream(up Upstream, o UpstreamOptions) *upstream {
	s := &upstream{Upstream: up, o: o, log: o.Log.With("server", up.Name),
		first: make(chan struct{}), kick: make(chan struct{}, 1), attempt: make(chan struct{})}
	s.status = ServerStatus{Name: up.Name, Transport: "stdio", State: Starting, Since: time.Now(), LeftOut: []string{}}
	if up.URL != "" {
		s.status.Transport = "http"
	}
	return s
}

func (s *upstream) owner() string { return "mcp." + s.Name }

func (s *upstream) startTimeout() time.Duration {
	if s.StartTimeout > 0 {
		return s.StartTimeout
	}
	return DefaultStartTimeout
}

func (s *upstream) callTimeout() time.Duration {
	if s.CallTimeout > 0 {
		return s.CallTimeout
	}
	return DefaultCallTimeout
}

// now returns the status.
func (s *upstream) now() ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.LeftOut = append([]string{}, st.LeftOut...)
	return st
}

// enter changes the state. The caller holds s.mu.
func (s *upstream) enter(state State, err error) {
	if s.status.State != state {
		s.status.State, s.status.Since = state, time.Now()
	}
	s.status.Error = ""
	if err != nil {
		s.status.Error = plain(err)
	}
}

// refuse leaves the server stopped for good.
func (s *upstream) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(Stopped, err)
	s.answered()
}

// answered lets those go on who wait for an attempt. The caller holds s.mu.
func (s *upstream) answered() {
	close(s.attempt)
	s.attempt = make(chan struct{})
	select {
	case <-s.kick: // it was for the attempt that has just ended
	default:
	}
	if !s.settled {
		s.settled = true
		close(s.first)
	}
}

// run keeps the server connected until ctx ends.
func (s *upstream) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		l, err := s.connect(ctx)
		s.settle(l, err)
		if err == nil {
			since := time.Now()
			s.attend(ctx, l)
			l.stop()
			if time.Since(since) >= lastRetry {
				retry = firstRetry
			}
		} else if ctx.Err() == nil {
			s.log.Warn("the MCP server cannot be used", "error", plain(err), "retry", retry)
		}
		timer := time.NewTimer(retry)
		select {
		case <-timer.C:
			retry = min(2*retry, lastRetry)
		case <-s.kick:
		case <-ctx.Done():
		}
		timer.Stop()
		s.begin(ctx)
	}
	s.begin(ctx)
}

// begin enters the state in which the next attempt is made, if there is one.
func (s *upstream) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		s.enter(Stopped, nil)
		s.answered()
		return
	}
	err := s.status.Error
	s.enter(Starting, nil)
	s.status.Error = err // until it is known to be over
}

// settle notes how an attempt ended.
func (s *upstream) settle(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.enter(Failed, err)
	} else {
		s.link = l
		s.enter(Ready, nil)
		s.status.Server, s.status.Version, s.status.Protocol = l.server, l.version, l.protocol
	}
	s.answered()
}

// attend follows a connection to its end.
func (s *upstream) attend(ctx context.Context, l *link) {
	for {
		select {
		case <-ctx.Done():
			s.lost(nil)
			return
		case <-l.ended:
			err := l.why()
			s.log.Warn("the connection to the MCP server is lost", "error", plain(err))
			s.lost(err)
			return
		case <-l.changed:
			select {
			case <-time.After(relistWait): // several changes make one list
			case <-ctx.Done():
			}
			if err := s.relist(ctx, l); err != nil && ctx.Err() == nil {
				s.log.Warn("the changed tools of the MCP server cannot be listed; the former ones stay", "error", plain(err))
				s.mu.Lock()
				s.status.Error = plain(err)
				s.mu.Unlock()
			}
		}
	}
}

func (s *upstream) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = nil
	if err != nil {
		s.enter(Failed, err)
	}
}

// connect makes a connection and offers the server's tools.
func (s *upstream) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(),
		fmt.Errorf("the server was not ready within %s", s.startTimeout()))
	defer cancel()
	l, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.relist(ctx, l); err != nil {
		err = l.explain(err)
		l.stop()
		return nil, err
	}
	return l, nil
}

// relist reads the tools of the server and offers them, all or none.
func (s *upstream) relist(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(),
		fmt.Errorf("the tools were not listed within %s", s.startTimeout()))
	defer cancel()
	raws, err := l.listTools(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	old := s.offered
	m := s.manifest(raws, old)
	if old == nil || !sameTools(old.tools, m.tools) {
		if err := s.o.publish(s.owner(), m.tools); err != nil {
			return fmt.Errorf("the tools cannot be offered: %w", err)
		}
	}
	for _, why := range m.leftOut {
		s.log.Warn("a tool of the MCP server cannot be used", "why", why)
	}
	for name := range s.Overrides {
		if m.made[name] == nil {
			s.log.Warn("the operator speaks of a tool that the MCP server does not have", "tool", name)
		}
	}
	s.offered = m // of the goroutine that runs the server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Tools, s.status.LeftOut, s.status.Error = len(m.tools), m.leftOut, ""
	return nil
}

func (o *UpstreamOptions) publish(owner string, tools []*tool.Tool) error {
	if o.Publish == nil {
		return nil
	}
	return o.Publish(owner, tools...)
}

func sameTools(a, b []*tool.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// ready returns the connection. If there is none, one attempt is made at once.
func (s *upstream) ready(ctx context.Context) (*link, error) {
	s.mu.Lock()
	l, attempt := s.link, s.attempt
	if l != nil && l.lost() {
		l = nil // about to be noticed
	}
	if s.status.State == Stopped {
		defer s.mu.Unlock()
		return nil, s.down()
	}
	if l == nil {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	select {
	case <-attempt:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.link.lost() {
		return nil, s.down()
	}
	return s.link, nil
}

// down is the error of a call while there is no connection. The caller holds s.mu.
func (s *upstream) down() error {
	why := ""
	if s.status.Error != "" {
		why = " (" + s.status.Error + ")"
	}
	if s.status.State == Stopped {
		return tool.Errorf(tool.CodeExternal, "the MCP server %s is stopped%s", s.Name, why)
	}
	return tool.Errorf(tool.CodeExternal, "the MCP server %s is down%s; it is being restarted: try again in a while", s.Name, why).Retry()
}

// handler serves calls of the tool that the server knows under that name.
func (s *upstream) handler(name string, headers []binding) tool.Handler {
	return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
		raw, err := s.call(withBindings(ctx, headers), methodCallTool, rawParams{Name: name, Arguments: c.Args}, c.Progress)
		if err != nil {
			return nil, err
		}
		return result(raw)
	}
}

// call calls a method of the server within the time that a call may take.
func (s *upstream) call(ctx context.Context, method string, p rawParams, progress func(tool.Content)) (raw []byte, err error) {
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	late := fmt.Errorf("no answer within %s", s.callTimeout())
	ctx, cancel := context.WithTimeoutCause(ctx, s.callTimeout(), late)
	defer cancel()
	raw, err = l.call(ctx, method, p, progress)
	switch {
	case err == nil:
		return raw, nil
	case context.Cause(ctx) == late:
		return nil, tool.Errorf(tool.CodeTimeout, "the MCP server %s did not answer within %s", s.Name, s.callTimeout()).Retry()
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.failure(l, err)
}

// failure is the error of a call that the server did not answer, or answered
// with an error of the protocol.
func (s *upstream) failure(l *link, err error) error {
	if e := refusedBy(err); e != nil {
		return &refused{tool.Errorf(tool.CodeExternal, "the MCP server %s refused the call: %s (code %d)", s.Name, plain(err), e.Code).With(e), e}
	}
	select { // a call may learn of the end before the connection is told
	case <-l.ended:
	case <-time.After(pipeGrace):
	}
	if !l.lost() {
		return tool.Errorf(tool.CodeExternal, "the MCP server %s: %s", s.Name, plain(err)).Retry()
	}
	return tool.Errorf(tool.CodeExternal,
		"the connection to the MCP server %s was lost during the call, which may have had its effect (%s); it is being restarted",
		s.Name, plain(l.why())).Retry()
}

// refused is the error of a call that the server answered with one of the protocol.
type refused struct {
	ours *tool.Error
	wire *jsonrpc.Error
}

// Error says that the server refused, and why.
func (r *refused) Error() string { return r.ours.Error() }

// Unwrap returns what it is to a model, and what it was on the wire.
func (r *refused) Unwrap() []error { return []error{r.ours, r.wire} }
