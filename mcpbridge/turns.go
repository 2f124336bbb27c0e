package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

const (
	maxTurns = 256              // calls that wait for answers at one time
	turnWait = 10 * time.Minute // how long one waits
)

// A turn is a call of a client that is not asked but told, by the result, what
// is wanted, and then calls again. The call goes on meanwhile.
type turn struct {
	user, tool string
	cancel     context.CancelFunc
	question   chan *mcp.ElicitParams
	answer     chan *mcp.ElicitResult
	result     chan outcome
	stop       <-chan struct{} // the server stops
	late       *time.Timer     // it has waited for too long

	asking sync.Mutex // one question at a time
}

var errStopping = errors.New("the server is stopping")

type outcome struct {
	res *tool.Result
	err error
}

// An inputRequired is the answer to tools/call that asks.
type inputRequired struct {
	mcp.ResultBase
	ResultType string              `json:"resultType"`
	Requests   mcp.InputRequestMap `json:"inputRequests"`
	State      string              `json:"requestState"`
}

// questionID names the question among those of one result: there is one.
const questionID = "question"

// ask asks the client when it next hears of the call.
func (t *turn) ask(ctx context.Context, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	select {
	case t.question <- q:
	case <-t.stop:
		return nil, errStopping
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-t.answer:
		return a, nil
	case <-t.stop:
		return nil, errStopping
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// takesTurns reports whether a request comes from a client that answers by
// calling again.
func takesTurns(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return req.ProtocolVersion() >= firstStateless && caps != nil && caps.Elicitation != nil
}

// turns are the calls that wait for an answer, by the state that their clients hold.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

// put keeps a call until it is taken, or has waited for too long.
func (ts *turns) put(t *turn) (state string, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.all) >= maxTurns {
		return "", errors.New("too many calls wait for answers")
	}
	if ts.all == nil {
		ts.all = map[string]*turn{}
	}
	state = rand.Text()
	ts.all[state] = t
	t.late = time.AfterFunc(turnWait, func() {
		if t := ts.take(state, t.user, t.tool); t != nil {
			t.cancel()
		}
	})
	return state, nil
}

// take returns the call that waits, if it is the user's and of that tool.
func (ts *turns) take(state, user, tool string) *turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[state]
	if t == nil || t.user != user || t.tool != tool {
		return nil
	}
	t.late.Stop()
	delete(ts.all, state)
	return t
}

// inTurns runs a call, or goes on with one that waits, until there is a result
// or a question.
func (e *endpoint) inTurns(ctx context.Context, req *mcp.CallToolRequest, call *tool.Call) (*tool.Result, *inputRequired, error) {
	t := e.s.turns.take(req.Params.RequestState, call.From.User, call.Name)
	switch {
	case t != nil:
		answer, _ := req.Params.InputResponses[questionID].(*mcp.ElicitResult)
		if answer == nil {
			answer = &mcp.ElicitResult{Action: "cancel"}
		}
		select {
		case t.answer <- answer:
		case out := <-t.result: // it has not waited for so long
			t.cancel()
			return out.res, nil, out.err
		case <-ctx.Done():
		}
	case req.Params.RequestState != "":
		return nil, nil, invalidParams("the call %.40q does not wait for an answer (any more)", req.Params.RequestState)
	default:
		t = e.begin(ctx, req, call)
	}
	defer context.AfterFunc(ctx, t.cancel)()
	select {
	case out := <-t.result:
		t.cancel()
		return out.res, nil, out.err
	case q := <-t.question:
		state, err := e.s.turns.put(t)
		if err != nil {
			t.cancel()
			return nil, nil, err
		}
		return nil, &inputRequired{ResultType: "input_required", State: state, Requests: mcp.InputRequestMap{questionID: q}}, nil
	}
}

// begin begins a call that outlives its request, but not the server.
func (e *endpoint) begin(ctx context.Context, req *mcp.CallToolRequest, call *tool.Call) *turn {
	t := &turn{user: call.From.User, tool: call.Name, question: make(chan *mcp.ElicitParams),
		answer: make(chan *mcp.ElicitResult), result: make(chan outcome, 1), stop: e.s.stop}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(e.s.life, cancel)
	t.cancel = func() { stop(); cancel() }
	ctx = context.WithValue(ctx, askerKey{}, &asker{session: req.Session, ctx: ctx, turn: t})
	if !e.s.begin(func() {
		res, err := e.s.opts.Do(ctx, call)
		t.result <- outcome{res, err}
	}) {
		t.result <- outcome{err: errStopping}
	}
	return t
}
