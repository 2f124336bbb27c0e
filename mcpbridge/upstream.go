package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute            // the longest time between two attempts; a connection that lasted it counts as sound
	loginLook  = time.Second            // between two looks whether somebody has signed in
	relistWait = 200 * time.Millisecond // from the news that a list changed until it is read
)

// An upstream keeps one server connected while it is wanted.
type upstream struct {
	Upstream
	o        UpstreamOptions
	log      *slog.Logger
	keeper   *keeper
	running  *sync.WaitGroup              // what Close waits for
	opening  *opening                     // of all servers
	mute     atomic.Bool                  // lists wait no longer for its first answer, or did not the last time
	first    chan struct{}                // closed when its tools are known, or it has failed once
	kick     chan struct{}                // an attempt is wanted at once
	reviewed chan struct{}                // an operator has spoken about tools that are held
	memory   mem.Store                    // keeps what was accepted if there is no other store
	relay    relay                        // of resources, prompts and news
	filled   atomic.Pointer[fullUpstream] // nil: it was not filled in yet
	lack     atomic.Pointer[unfilled]     // why it could not be, last
	offered  *manifest                    // of the goroutine that runs the server; nil: its tools are not known

	mu       sync.Mutex
	status   ServerStatus
	link     *link         // nil: down
	attempt  chan struct{} // closed at the end of the attempt that is under way or comes next
	settled  bool
	calls    int        // in flight, or waiting for the server to be started
	used     time.Time  // when a call began or ended last
	failures int        // in a row
	next     time.Time  // no attempt is made before
	began    time.Time  // when the last attempt began; zero: there was none
	declared []string   // see record.Offers; nil: not known
	last     *record    // that was offered
	lists    []keptList // what is kept of the other lists; replaced, never changed
	unsaved  *record    // what the store is to keep
	saving   bool
	held     []heldName // tools that are not offered, and why
	serial   uint64     // of the pins that say so
}

func newUpstream(up Upstream, o UpstreamOptions) *upstream {
	s := &upstream{Upstream: up, o: o, log: o.Log.With("server", up.Name), opening: &opening{began: time.Now()},
		first: make(chan struct{}), kick: make(chan struct{}, 1), reviewed: make(chan struct{}, 1), attempt: make(chan struct{})}
	s.status = ServerStatus{Name: up.Name, Transport: "stdio", State: Configured, Since: time.Now(), LeftOut: []string{}, Held: []string{}}
	if up.URL != "" {
		s.status.Transport = "http"
	}
	if up.Fill == nil {
		s.filled.Store(&fullUpstream{Upstream: up, account: newAccount(&up, &o)})
	}
	return s
}

func (s *upstream) owner() string { return "mcp." + s.Name }

func (s *upstream) startTimeout() time.Duration {
	return orDuration(s.StartTimeout, DefaultStartTimeout)
}

func (s *upstream) callTimeout() time.Duration { return orDuration(s.CallTimeout, DefaultCallTimeout) }

func (s *upstream) idleTimeout() time.Duration { return orDuration(s.IdleTimeout, DefaultIdleTimeout) }

func orDuration(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

// now returns the status.
func (s *upstream) now() ServerStatus {
	listed, bad := s.relay.skills()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Skills, st.BadSkills = listed, bad
	if since := time.Since(s.began); st.State == Configured && !s.began.IsZero() && s.patience() <= 0 {
		st.Error = fmt.Sprintf("it has not answered for %s, and lists of tools do not wait for it any longer; after %s it counts as failed",
			max(since.Round(time.Second), time.Second), s.startTimeout())
	}
	st.LeftOut, st.Held, st.Flagged = append([]string{}, st.LeftOut...), append([]string{}, st.Held...), append([]string{}, st.Flagged...)
	return st
}

// enter changes the state. The caller holds s.mu.
func (s *upstream) enter(state State, err error) {
	if s.status.State != state {
		s.status.State, s.status.Since = state, time.Now()
	}
	s.status.Error = ""
	if err != nil {
		s.status.Error = s.plain(err)
	}
}

// plain says an error in words for people, without secrets.
func (s *upstream) plain(err error) string {
	w := s.full()
	text := hide(plain(err), w.Hidden)
	status := statusNamed(text) // all that the library says
	switch {
	case w.URL == "" || status == 0:
		return text
	case w.account == nil && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return fmt.Sprintf("%s (HTTP status %d %s)", s.stranger(), status, text)
	}
	return fmt.Sprintf("it answers with HTTP status %d %s", status, text)
}

// statusNamed returns the status of HTTP, of those for errors, that a text is
// the name of; 0: it is none.
func statusNamed(text string) int {
	for status := 400; text != "" && status < 600; status++ {
		if http.StatusText(status) == text {
			return status
		}
	}
	return 0
}

// stranger is why a server to which nobody signs in may refuse us.
func (s *upstream) stranger() string {
	for name := range s.full().Headers {
		if strings.EqualFold(name, "Authorization") {
			return "the server does not accept the Authorization header of the app file"
		}
	}
	return "the server wants to know who calls, and oauth: false turns logins off"
}

// show shows whether the server that is connected is in use. The caller holds s.mu.
func (s *upstream) show() {
	state := Started
	if s.calls > 0 {
		state = InUse
	}
	if s.link != nil && s.status.State != state {
		s.status.State, s.status.Since = state, time.Now()
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
	s.settle()
}

// settle lets those go on who wait for the tools. The caller holds s.mu.
func (s *upstream) settle() {
	if !s.settled {
		s.settled = true
		s.opening.note()
		close(s.first)
	}
}

// run starts the server whenever it is wanted, until ctx ends.
func (s *upstream) run(ctx context.Context) {
	s.refill(ctx)
	for s.rest(ctx) {
		s.mu.Lock()
		s.began = time.Now()
		s.mu.Unlock()
		l, err := s.connect(ctx)
		s.tried(ctx, l, err)
		if err != nil {
			continue
		}
		since := time.Now()
		s.running.Go(func() { s.learn(ctx, l) })
		err = s.attend(ctx, l)
		s.ended(ctx, since, err)
		l.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(Stopped, nil)
	s.answered()
}

// rest waits until an attempt is wanted and may be made. It returns false when
// ctx ends.
func (s *upstream) rest(ctx context.Context) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		s.signedIn()
		lacking := s.status.State == NeedsSetup
		if lacking && s.mended() {
			s.mu.Unlock()
			s.refill(ctx)
			continue
		}
		wanted, early := s.wanted(), time.Until(s.next)
		pause := nap(early, wanted, lacking, s.status.State == NeedsLogin)
		if early > 0 {
			s.answered() // those who came meanwhile are told when
		}
		s.mu.Unlock()
		if wanted && early <= 0 {
			return true
		}
		timer := time.NewTimer(pause)
		if pause == 0 {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.reviewed:
			s.reconsider(ctx)
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// nap returns for how long a server rests that is not started now, early before
// it may be; 0: until somebody comes. One that waits for somebody to act, to
// give a secret or to sign in, looks whether that has happened.
func nap(early time.Duration, wanted, lacking, login bool) time.Duration {
	switch {
	case !wanted && lacking:
		return loginLook
	case !wanted:
		return 0
	case lacking || login:
		return min(max(early, 0), loginLook)
	}
	return max(early, 0)
}

// wanted reports whether the server is to run: to learn its tools, because
// the operator says so, or because it is called. The caller holds s.mu.
func (s *upstream) wanted() bool {
	if s.status.State == NeedsSetup {
		return s.calls > 0 // the user may be asked to unlock a keyring
	}
	return s.offered == nil || s.Eager || s.calls > 0 || time.Since(s.used) < s.idleTimeout()
}

// idle returns how long the server may still run unused, 0 if it is not
// wanted any more: then nobody gets its connection from here on.
func (s *upstream) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Eager || s.calls > 0 {
		return s.idleTimeout()
	}
	if left := s.idleTimeout() - time.Since(s.used); left > 0 {
		return left
	}
	s.link = nil
	return 0
}

// tried notes how an attempt ended.
func (s *upstream) tried(ctx context.Context, l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		state := Failed
		switch {
		case needsLogin(err):
			state = NeedsLogin
		case needsSetup(err):
			state = NeedsSetup
		}
		level := slog.LevelWarn
		if s.status.State == state && s.status.Error == s.plain(err) {
			level = slog.LevelDebug // it was told
		}
		s.enter(state, err)
		about := []any{"error", s.plain(err)}
		if wait := s.putOff(); state == Failed { // others wait for somebody to act
			about = append(about, "retry", wait)
		}
		if ctx.Err() == nil {
			s.log.Log(ctx, level, "the MCP server cannot be used", about...)
		}
	} else {
		s.link = l
		s.used = time.Now()
		s.enter(Started, nil)
		s.show()
	}
	s.answered()
}

// putOff counts a failure, and returns how long there will be no other
// attempt. The caller holds s.mu.
func (s *upstream) putOff() time.Duration {
	wait := min(firstRetry<<min(s.failures, 10), lastRetry)
	s.failures++
	s.next = time.Now().Add(wait)
	return wait
}

// ended notes that a connection ended, and why; nil: it was not wanted.
func (s *upstream) ended(ctx context.Context, since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = nil
	if err == nil || time.Since(since) >= lastRetry {
		s.failures = 0
	}
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		s.enter(Known, nil)
		return
	case s.failures == 0: // once it may happen: the server is started again at once
		s.failures, s.next = 1, time.Now()
	default:
		s.putOff()
	}
	s.enter(Failed, err)
	s.log.Warn("the connection to the MCP server is lost", "error", s.plain(err))
}

// attend follows a connection to its end, and returns why it was lost; nil:
// it is not wanted any more.
func (s *upstream) attend(ctx context.Context, l *link) error {
	timer := time.NewTimer(s.idle())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			left := s.idle()
			if left == 0 {
				s.log.Debug("the MCP server is stopped: it was not used for long")
				return nil
			}
			timer.Reset(left)
		case <-l.ended:
			return l.why()
		case <-s.reviewed:
			s.reconsider(ctx)
		case <-l.changed:
			select {
			case <-time.After(relistWait): // several changes make one list
			case <-ctx.Done():
			}
			if err := s.relist(ctx, l); err != nil && ctx.Err() == nil {
				s.log.Warn("the changed tools of the MCP server cannot be listed; the former ones stay", "error", s.plain(err))
				s.mu.Lock()
				s.status.Error = s.plain(err)
				s.mu.Unlock()
			}
		}
	}
}

// connect makes a connection and offers the server's tools.
func (s *upstream) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(),
		fmt.Errorf("the server was not ready within %s", s.startTimeout()))
	defer cancel()
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	s.full().account.forget()
	l, err := dial(ctx, s)
	if err != nil {
		return nil, s.loginFirst(err)
	}
	if err := s.relist(ctx, l); err != nil {
		err = s.loginFirst(l.explain(err))
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
	r := &record{Identity: s.identity(), Server: l.server, Version: l.version, Protocol: l.protocol, Listed: time.Now().UTC(), tools: raws}
	r.Offers = offersOf(l.session.InitializeResult().Capabilities)
	s.spoke(ctx)
	known := s.offered
	if err := s.offer(ctx, r); err != nil {
		return err
	}
	for _, why := range s.offered.leftOut {
		s.log.Warn("a tool of the MCP server cannot be used", "why", why)
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.Overrides)), s.Only, s.Ruled) {
		if s.offered.made[name] == nil {
			s.log.Warn("the operator speaks of a tool that the MCP server does not have", "tool", name)
		}
	}
	if known == nil || !known.of.same(r) {
		s.save(r)
	}
	return nil
}

// offer offers the tools of a list that are as they were accepted in place of
// the former ones, all or none.
func (s *upstream) offer(ctx context.Context, r *record) error {
	m := s.manifest(r, s.offered)
	if err := s.judge(ctx, m, true); err != nil {
		return err
	}
	return s.adopt(m)
}

// reconsider offers the tools anew after an operator has spoken about them.
func (s *upstream) reconsider(ctx context.Context) {
	if s.offered == nil {
		return
	}
	m := *s.offered
	err := s.judge(ctx, &m, false)
	if err == nil {
		err = s.adopt(&m)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the tools of the MCP server cannot be offered as they were reviewed; the former ones stay", "error", err)
	}
}

// adopt is offer for tools that were made of a list already.
func (s *upstream) adopt(m *manifest) error {
	old, r := s.offered, m.of
	if old == nil || !sameTools(old.tools, m.tools) {
		if err := s.o.publish(s.owner(), m.tools); err != nil {
			return fmt.Errorf("the tools cannot be offered: %w", err)
		}
	}
	s.offered = m
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.status
	st.Tools, st.LeftOut, st.Error, st.Flagged, st.Held = len(m.tools), m.leftOut, "", m.flagged, []string{}
	for _, h := range m.held {
		st.Held = append(st.Held, fmt.Sprintf("tool %.60q: %s", h.name, h.why))
	}
	s.held, s.serial = m.held, m.serial
	st.Server, st.Version, st.Protocol = r.Server, r.Version, r.Protocol
	s.declared, s.last = r.Offers, r
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

// hold keeps the server from being stopped until the function that it returns
// is called.
func (s *upstream) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.used = time.Now()
	s.show()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls--
		s.used = time.Now()
		s.show()
	}
}

// ready returns the connection. If there is none, the server is started,
// unless it has just failed.
func (s *upstream) ready(ctx context.Context) (*link, error) {
	s.mu.Lock()
	l, attempt := s.link, s.attempt
	if l != nil && l.lost() {
		l = nil // about to be noticed
	}
	s.signedIn()
	if s.status.State == Stopped || l == nil && time.Now().Before(s.next) {
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
	if s.status.State == NeedsLogin || s.status.State == NeedsSetup {
		return tool.Errorf(tool.CodeExternal, "the MCP server %s cannot be used: %s", s.Name, s.status.Error)
	}
	when := "at once"
	if left := time.Until(s.next); left > 0 {
		when = "in " + max(left.Round(time.Second), time.Second).String()
	}
	return tool.Errorf(tool.CodeExternal, "the MCP server %s is down%s; the next attempt to start it can be made %s", s.Name, why, when).Retry()
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
	defer s.hold()()
	l, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	if why := s.holds(method, p.Name); why != nil {
		return nil, why // it has just been seen to have changed
	}
	ctx, told := s.asking(ctx, l, method, p.Name)
	defer func() { told(raw, err) }()
	late := fmt.Errorf("no answer within %s", s.callTimeout())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := newClock(s.callTimeout(), func() { cancel(late) })
	defer limit.timer.Stop()
	raw, err = l.converse(ctx, s, method, p, progress, limit)
	if errors.Is(err, mcp.ErrSessionMissing) { // the server did not look at the call: it is made once more, in a session that it knows
		if again := s.renewed(ctx, l); again != nil {
			l = again
			if why := s.holds(method, p.Name); why != nil {
				return nil, why
			}
			raw, err = l.converse(ctx, s, method, p, progress, limit)
		}
	}
	switch {
	case err == nil:
		return raw, nil
	case context.Cause(ctx) == late:
		return nil, tool.Errorf(tool.CodeTimeout, "the MCP server %s did not answer within %s", s.Name, s.callTimeout()).Retry()
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case unanswerable(err):
		return nil, err
	}
	return nil, s.failure(l, err)
}

// renewed returns the connection that takes the place of one whose session the
// server forgot; nil: none does.
func (s *upstream) renewed(ctx context.Context, old *link) *link {
	select {
	case <-old.ended:
	case <-ctx.Done():
		return nil
	}
	l, err := s.ready(ctx)
	if err != nil {
		return nil
	}
	return l
}

// failure is the error of a call that the server did not answer, or answered
// with an error of the protocol.
func (s *upstream) failure(l *link, err error) error {
	if e := refusedBy(err); e != nil && e.Code == httpRefusal {
		var how httpError
		failure := tool.Errorf(tool.CodeExternal, "the MCP server %s does not answer the call: %s", s.Name, s.plain(err)).With(e.Data)
		if json.Unmarshal(e.Data, &how) == nil && how.transient() {
			failure = failure.Retry()
		}
		return failure
	} else if e != nil {
		return &refused{tool.Errorf(tool.CodeExternal, "the MCP server %s refused the call: %s (code %d)", s.Name, s.plain(err), e.Code).With(e), e}
	}
	if need := s.loginFirst(err); needsLogin(need) {
		return tool.Errorf(tool.CodeExternal, "the MCP server %s cannot be used: %s", s.Name, s.plain(need))
	}
	select { // a call may learn of the end before the connection is told
	case <-l.ended:
	case <-time.After(pipeGrace):
	}
	if !l.lost() {
		return tool.Errorf(tool.CodeExternal, "the MCP server %s: %s", s.Name, s.plain(err)).Retry()
	}
	return tool.Errorf(tool.CodeExternal,
		"the connection to the MCP server %s was lost during the call, which may have had its effect (%s); the next call starts it again",
		s.Name, s.plain(l.why())).Retry()
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
