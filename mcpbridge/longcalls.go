package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/tool"
)

const (
	// DefaultAfter is when a call becomes a task.
	DefaultAfter = 10 * time.Second
	// DefaultReport is how often the caller of a long call hears that it goes on.
	DefaultReport = 5 * time.Second
)

// LongCalls say what becomes of calls that take long.
type LongCalls struct {
	// After is when a call becomes a task, for clients that know tasks: those
	// that speak io.modelcontextprotocol/tasks, of revision 2026-07-28 on.
	// 0: DefaultAfter; negative: never.
	After time.Duration
	// Report is the longest time without a report of progress, for clients that
	// asked for progress. 0: DefaultReport; negative: there are only the
	// tool's own.
	Report time.Duration
	// As says how a call is treated. Nil: WhenLong.
	As func(*tool.Call) AsTask
	// Keep is how long a task is kept after its end. 0: task.DefaultKeep.
	Keep time.Duration
}

// AsTask says whether a call becomes a task.
type AsTask int

const (
	// WhenLong: when it takes long.
	WhenLong AsTask = iota
	// AtOnce: before it has begun, where the client knows tasks.
	AtOnce
	// Required: before it has begun. Clients that do not know tasks are refused.
	Required
)

func (s *Server) long() LongCalls {
	var l LongCalls
	if s.opts.Long != nil {
		l = s.opts.Long()
	}
	if l.After == 0 {
		l.After = DefaultAfter
	}
	if l.Report == 0 {
		l.Report = DefaultReport
	}
	return l
}

// as says whether a call becomes a task.
func (e *endpoint) as(l LongCalls, c *tool.Call) AsTask {
	if l.As == nil || e.s.opts.Tasks == nil {
		return WhenLong
	}
	return l.As(c)
}

// A longCall is a call that may outlive its request: it goes on while its
// client holds its task, or thinks about what it was asked.
type longCall struct {
	e       *endpoint
	owner   task.Owner
	call    *tool.Call
	version string // of the protocol
	caps    *mcp.ClientCapabilities
	cancel  context.CancelFunc
	over    chan struct{} // closed when res and err are there
	stop    <-chan struct{}
	res     mcp.Result // nil: err is an error of the protocol
	err     error

	mu          sync.Mutex
	progress    *progress // of the request that waits; nil: none wants to know
	task        *task.Task
	message     string // what was reported last
	updated     time.Time
	ended       bool
	unwanted    bool // the client has cancelled it
	interrupted bool // the server ends
	asked       int
	questions   map[string]*question // not answered yet
	news        chan struct{}        // closed when there is another question
}

// A question is what a call waits for.
type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // has room for one
}

// callLong runs a call for a client that knows tasks, or goes on with one that
// waits for answers, until there is a result, a question, or a task in its
// place.
func (e *endpoint) callLong(ctx context.Context, req *mcp.CallToolRequest, call *tool.Call, p *progress, as AsTask) (mcp.Result, error) {
	c := e.s.parked.take(req.Params.RequestState, task.OwnerOf(call.From), call.Name)
	switch {
	case c != nil:
		c.join(p)
		for id, answer := range req.Params.InputResponses {
			c.reply(id, answer)
		}
	case req.Params.RequestState != "":
		return nil, invalidParams("the call %.40q does not wait for an answer (any more)", req.Params.RequestState)
	default:
		c = e.launch(ctx, req, call, p)
		if as == WhenLong {
			break
		}
		res, err := c.handle(ctx)
		if err == nil {
			return res, nil
		}
		if as == Required {
			c.cancel()
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call runs only as a task: " + err.Error()}
		}
	}
	var late <-chan time.Time
	if after := e.s.long().After; after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		late = timer.C
	}
	for {
		all, news := c.open()
		if len(all) > 0 {
			p.end()
			return c.park(all)
		}
		select {
		case <-c.over:
			p.end()
			return c.res, c.err
		case <-news:
		case <-late:
			if res, err := c.handle(ctx); err == nil {
				return res, nil
			}
			late = nil // it is waited for
		case <-ctx.Done():
			c.cancel()
			return nil, context.Cause(ctx)
		}
	}
}

// launch begins a call that outlives its request, but not the server.
func (e *endpoint) launch(ctx context.Context, req *mcp.CallToolRequest, call *tool.Call, p *progress) *longCall {
	c := &longCall{e: e, owner: task.OwnerOf(call.From), call: call, version: req.ProtocolVersion(),
		caps: capabilitiesOf(req), over: make(chan struct{}), stop: e.s.stop, progress: p,
		updated: time.Now().UTC(), questions: map[string]*question{}, news: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(e.s.life, cancel)
	c.cancel = func() { stop(); cancel() }
	call.Progress = c.show
	ctx = e.withAsker(ctx, req, nil, c)
	if !e.s.begin(func() {
		defer c.cancel()
		defer close(c.over)
		c.res, c.err = c.run(ctx)
		c.finish()
	}) {
		c.cancel()
		c.err = errStopping
		close(c.over)
	}
	return c
}

// run runs the call to its answer.
func (c *longCall) run(ctx context.Context) (res mcp.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.e.s.opts.Log.Error("panic in a call", "tool", c.call.Name, "panic", v, "stack", string(debug.Stack()))
			res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
	}()
	r, err := c.e.s.opts.Do(ctx, c.call)
	return c.e.answered(c.call, c.version, c.caps, r, err)
}

// join makes a further request of the client the one that waits.
func (c *longCall) join(p *progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress = p
}

// show reports what the call yields before its end.
func (c *longCall) show(content tool.Content) {
	c.mu.Lock()
	p := c.progress
	c.message, c.updated = content.String(), time.Now().UTC()
	c.mu.Unlock()
	if p != nil {
		p.show(content)
	}
}

// askAll asks the client, all at once, and again for what is not answered as it
// should be.
func (c *longCall) askAll(ctx context.Context, asked mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	out := mcp.InputResponseMap{}
	var failed error
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, q := range asked {
		all.Go(func() {
			answer, err := c.ask(ctx, q)
			for n := 1; err == nil && fits(q, answer) != nil; n++ {
				if n == maxRounds {
					err = fmt.Errorf("the client was asked %d times: %w", n, fits(q, answer))
					break
				}
				answer, err = c.ask(ctx, q)
			}
			mu.Lock()
			defer mu.Unlock()
			if out[id] = answer; err != nil {
				failed = err
			}
		})
	}
	all.Wait()
	return out, failed
}

// ask asks the client when it next hears of the call.
func (c *longCall) ask(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	q := &question{request, make(chan mcp.InputResponse, 1)}
	c.mu.Lock()
	c.asked++
	id := "q" + strconv.Itoa(c.asked) // never used twice in one call
	c.questions[id] = q
	c.updated = time.Now().UTC()
	close(c.news)
	c.news = make(chan struct{})
	c.mu.Unlock()
	defer c.drop(id)
	select {
	case a := <-q.answer:
		return a, nil
	case <-c.stop:
		return nil, errStopping
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drop forgets a question, and reports whether it was there.
func (c *longCall) drop(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions[id] == nil {
		return false
	}
	delete(c.questions, id)
	c.updated = time.Now().UTC()
	return true
}

// reply answers a question. What was not asked, or is answered already, is
// left alone.
func (c *longCall) reply(id string, a mcp.InputResponse) {
	c.mu.Lock()
	q := c.questions[id]
	c.mu.Unlock()
	if q != nil && a != nil && c.drop(id) {
		q.answer <- a
	}
}

// asks returns the request of a question; nil: it is not asked (any more).
func (c *longCall) asks(id string) mcp.InputRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.questions[id]; q != nil {
		return q.request
	}
	return nil
}

// open returns the questions that have no answer, and what is closed when there
// are more.
func (c *longCall) open() (mcp.InputRequestMap, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := mcp.InputRequestMap{}
	for id, q := range c.questions {
		all[id] = q.request
	}
	return all, c.news
}

// park lets the call wait for the client to come back with answers.
func (c *longCall) park(all mcp.InputRequestMap) (mcp.Result, error) {
	state, err := c.e.s.parked.put(c)
	if err != nil {
		c.cancel()
		return nil, err
	}
	return &askingResult{ResultType: inputRequired, State: state, Requests: all}, nil
}

// parked are the calls that wait for their clients to come back, by the state
// that these hold.
type parked struct {
	mu  sync.Mutex
	all map[string]*waiting
}

type waiting struct {
	call *longCall
	late *time.Timer // it has waited for too long
}

func (ps *parked) put(c *longCall) (state string, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.all) >= maxTurns {
		return "", errors.New("too many calls wait for answers")
	}
	if ps.all == nil {
		ps.all = map[string]*waiting{}
	}
	state = rand.Text()
	ps.all[state] = &waiting{c, time.AfterFunc(turnWait, func() {
		if c := ps.take(state, c.owner, c.call.Name); c != nil {
			c.cancel()
		}
	})}
	return state, nil
}

// take returns the call that waits, if it is the owner's and of that tool.
func (ps *parked) take(state string, o task.Owner, tool string) *longCall {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	w := ps.all[state]
	if w == nil || w.call.owner != o || w.call.call.Name != tool {
		return nil
	}
	w.late.Stop()
	delete(ps.all, state)
	return w.call
}

// reporting reports progress whenever the call has shown none for so long,
// until the function that it returns is called.
func (p *progress) reporting(every time.Duration) (stop func()) {
	if p == nil || every <= 0 {
		return func() {}
	}
	began := time.Now()
	var done sync.WaitGroup
	end := make(chan struct{})
	done.Go(func() {
		for wait := every; ; {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-end:
				timer.Stop()
				return
			}
			if wait = every - p.silent(); wait <= 0 {
				p.show(tool.Content{Text: fmt.Sprintf("running for %s", time.Since(began).Round(time.Second))})
				wait = every
			}
		}
	})
	return func() {
		close(end)
		done.Wait()
	}
}

// silent returns how long nothing was shown.
func (p *progress) silent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last)
}
