package mcpbridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// mayAsk reports whether servers may ask during calls of the method.
func mayAsk(method string) bool {
	return method == methodCallTool || method == methodGetPrompt || method == methodReadResource
}

// A clock ends a call that takes too long. It stands still while a client is
// asked.
type clock struct {
	limit time.Duration
	timer *time.Timer

	mu     sync.Mutex
	paused int
}

func newClock(limit time.Duration, end func()) *clock {
	return &clock{limit: limit, timer: time.AfterFunc(limit, end)}
}

// pause stops the clock; it starts anew with the last resume.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused++
	c.timer.Stop()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 {
			c.timer.Reset(c.limit)
		}
	}
}

// asksSame reports whether a and b ask one and the same client. Calls without
// sessions may come from anybody: each is one by itself.
func (a *asker) asksSame(b *asker) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.session == b.session && a.turn == b.turn && a.long == b.long
}

// An inFlight is a call that has no answer yet.
type inFlight struct {
	asker *asker // nil: nobody can be asked
	clock *clock
	mark  string // of questions about it
}

// markSecret is never sent, so nobody can make up a mark.
var markSecret, marks = rand.Text(), atomic.Uint64{}

func newMark() string { return markSecret + strconv.FormatUint(marks.Add(1), 36) }

// during notes that a call is in flight, and whom the server may ask about it.
func (l *link) during(ctx context.Context, method string, c *clock) (_ context.Context, done func()) {
	if !mayAsk(method) {
		return ctx, func() {}
	}
	call := &inFlight{askerOf(ctx), c, newMark()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
	return withCall(ctx, call), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.Index(l.calls, call)
		l.calls = slices.Delete(l.calls, at, at+1)
	}
}

// asking returns the call about which a server asks. Where nothing marks it
// and calls of several clients are in flight, nobody is asked, lest it be the
// wrong one.
func (l *link) asking(mark any) (*inFlight, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.IndexFunc(l.calls, func(c *inFlight) bool { return c.mark == mark }); at >= 0 {
		return l.calls[at], nil
	}
	if len(l.calls) == 0 {
		return nil, errors.New("nobody can be asked: no call is in flight")
	}
	first := l.calls[0].asker
	for _, c := range l.calls {
		if !c.asker.asksSame(first) {
			return nil, errors.New("nobody can be asked: calls of several clients are in flight, and it is not known whose this is")
		}
	}
	return l.calls[len(l.calls)-1], nil
}

// questionID names the question of a server that asks by a request.
const questionID = "question"

// asked answers a server that asks by a request, on any stream, unless it
// cancels that: then ctx ends.
func (l *link) asked(ctx context.Context, s *upstream, q mcp.InputRequest, meta mcp.Meta) (mcp.InputResponse, error) {
	call, err := l.asking(meta[callKey])
	_, roots := q.(*mcp.ListRootsParams)
	if roots {
		l.asksRoots()
		if err != nil || s.Roots != RootsClient {
			return l.rootsAgain(s), nil // of no call in particular
		}
	}
	if err != nil {
		return nil, cannotAsk(err)
	}
	got, err := l.askedDuring(ctx, call, s, q)
	if roots && err != nil && ctx.Err() == nil && l.isOver(call) {
		return l.rootsAgain(s), nil // it was not about the call that has ended
	}
	return got, err
}

// isOver reports whether a call is in flight no more.
func (l *link) isOver(call *inFlight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.Contains(l.calls, call)
}

// askedDuring answers a server that asks by a request about a call.
func (l *link) askedDuring(ctx context.Context, call *inFlight, s *upstream, q mcp.InputRequest) (mcp.InputResponse, error) {
	defer call.clock.pause()()
	if call.asker != nil {
		on, cancel := context.WithCancel(call.asker.ctx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		ctx = on
		if e, ok := q.(*mcp.ElicitParams); ok && e.ElicitationID != "" {
			l.sent(e.ElicitationID, call.asker.session)
		}
	}
	got, err := s.answers(ctx, call.asker, mcp.InputRequestMap{questionID: q}, false)
	if err != nil {
		s.log.Debug("a question of the MCP server is not passed on", "why", err)
		return nil, cannotAsk(err)
	}
	if _, roots := q.(*mcp.ListRootsParams); roots {
		l.toldRoots(withRoots(call.asker))
	}
	return got[questionID], nil
}

// answered answers a question that came on the stream of a call.
func (l *link) answered(ctx context.Context, m *message) (mcp.InputResponse, *jsonrpc.Error) {
	raw, err := tool.Encode(map[string]any{questionID: map[string]any{"method": m.Method, "params": orEmpty(m.Params)}})
	var asked mcp.InputRequestMap
	if err != nil || json.Unmarshal(raw, &asked) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request cannot be read"}
	}
	got, err := l.askedDuring(ctx, callOf(ctx), l.owner, asked[questionID])
	var refusal *jsonrpc.Error
	if err != nil && !errors.As(err, &refusal) {
		refusal = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return got, refusal
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func cannotAsk(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}

// maxSent bounds how many addresses are remembered to which people were sent.
const maxSent = 64

// sent remembers who was sent to the address of a question.
func (l *link) sent(id string, session *mcp.ServerSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visits = append(l.visits, visit{id, session})
	if len(l.visits) > maxSent {
		l.visits = l.visits[1:]
	}
}

// A visit is that of a person to the address of a question.
type visit struct {
	id      string
	session *mcp.ServerSession
}

// completed tells the client, whose user was sent to an address, that the
// server knows the answer.
func (l *link) completed(ctx context.Context, p *mcp.ElicitationCompleteParams) {
	l.mu.Lock()
	at := slices.IndexFunc(l.visits, func(v visit) bool { return v.id == p.ElicitationID })
	var session *mcp.ServerSession
	if at >= 0 {
		session = l.visits[at].session
		l.visits = slices.Delete(l.visits, at, at+1)
	}
	l.mu.Unlock()
	if session != nil {
		_ = session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: p.ElicitationID}) // a client that is gone misses nothing
	}
}

// The methods by which servers ask.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

func isQuestion(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

// asks adds to a client what it says that it can answer.
func (s *upstream) asks(l *link, o *mcp.ClientOptions) *mcp.ClientOptions {
	o.Capabilities = &mcp.ClientCapabilities{Extensions: map[string]any{tasksExtension: map[string]any{}}}
	if s.Roots == RootsWorkspace || s.Roots == RootsClient {
		o.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: s.Roots == RootsClient}
	}
	if s.Asks == AsksAll || s.Asks == AsksElicitation {
		o.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
		o.ElicitationCompleteHandler = func(ctx context.Context, r *mcp.ElicitationCompleteNotificationRequest) { l.completed(ctx, r.Params) }
	}
	if s.Asks == AsksAll || s.Asks == AsksSampling {
		o.Capabilities.Sampling = &mcp.SamplingCapabilities{}
	}
	return o
}

// replies answers the server's questions before the library does: it has one
// list of roots for all, and refuses forms that are right.
func (s *upstream) replies(l *link) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			q, ok := req.GetParams().(mcp.InputRequest)
			if !ok || !isQuestion(method) {
				return next(ctx, method, req)
			}
			var meta mcp.Meta
			if roots, ok := q.(*mcp.ListRootsParams); ok && roots == nil { // it may have none
				q = &mcp.ListRootsParams{}
			} else {
				meta = req.GetParams().GetMeta()
			}
			got, err := l.asked(ctx, s, q, meta)
			if err != nil {
				return nil, err
			}
			return got.(mcp.Result), nil
		}
	}
}

// converse calls a method, and again with answers as long as the server wants
// input: that is how servers of the newest revision ask.
func (l *link) converse(ctx context.Context, s *upstream, method string, p rawParams, progress func(tool.Content), c *clock) ([]byte, error) {
	ctx, done := l.during(ctx, method, c)
	defer done()
	a := askerOf(ctx)
	if mayAsk(method) {
		l.handRoots(ctx, a)
	}
	if mayAsk(method) && l.protocol >= firstStateless {
		p.Meta = mcp.Meta{mcp.MetaKeyClientCapabilities: a.toldTo(s)}
		if a != nil && a.logs != "" {
			p.Meta[mcp.MetaKeyLogLevel] = a.logs
		}
	}
	for range maxRounds + 1 {
		raw, err := l.call(ctx, method, p, progress)
		if err != nil || !mayAsk(method) {
			return raw, err
		}
		if t := taskIn(method, raw); t != nil {
			return l.await(ctx, t, progress)
		}
		var kind struct {
			Type string `json:"resultType"`
		}
		if json.Unmarshal(raw, &kind) != nil || kind.Type != inputRequired {
			return raw, nil
		}
		if p.State, p.Responses, err = s.inputs(ctx, a, raw, c); err != nil {
			return nil, wantsInput(s, err)
		}
	}
	return nil, wantsInput(s, fmt.Errorf("more than %d times in one call", maxRounds))
}

// inputs returns what the server wants to be called with again.
func (s *upstream) inputs(ctx context.Context, a *asker, raw []byte, c *clock) (string, mcp.InputResponseMap, error) {
	var r struct {
		Requests mcp.InputRequestMap `json:"inputRequests"`
		State    string              `json:"requestState"`
	}
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		return "", nil, fmt.Errorf("its questions cannot be read: %w", err)
	case len(r.Requests) == 0:
		return "", nil, errors.New("and asks nothing")
	}
	defer c.pause()()
	got, err := s.answers(ctx, a, r.Requests, r.State == "")
	return r.State, got, err
}

// wantsInput is the error of a call that ended because what the server asked
// for was not to be had.
func wantsInput(s *upstream, err error) error {
	e := tool.Errorf(tool.CodeExternal, "the MCP server %s wants input: %v", s.Name, err)
	var l *lacking
	if errors.As(err, &l) {
		e = e.With(l.refusal())
	}
	return e
}

// unanswerable reports whether a call ended so.
func unanswerable(err error) bool {
	var e *tool.Error
	return errors.As(err, &e)
}
