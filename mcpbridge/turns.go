package mcpbridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

const (
	maxTurns     = 256              // calls that wait for answers at one time
	maxTurnsEach = 64               // of one user
	turnWait     = 10 * time.Minute // how long one waits
)

// A turn is a call of a client that is not asked but told, by the result, what
// is wanted, and then calls again. The call goes on meanwhile.
type turn struct {
	user   string
	what   func() string // the call, digested, and who makes it; worked out for few
	cancel context.CancelFunc
	asked  chan mcp.InputRequestMap
	answer chan mcp.InputResponseMap
	result chan outcome
	stop   <-chan struct{}          // the server stops
	given  mcp.InputResponseMap     // along with the call itself
	show   atomic.Pointer[progress] // of the request that waits for the result
	late   *time.Timer              // it has waited for too long

	asking sync.Mutex // one round at a time

	ctx   context.Context   // of the call
	begin func(func()) bool // runs something beside the call, unless the server stops

	mu   sync.Mutex
	next *gathering // of questions that the next round asks; nil: there is none yet
}

// gatherTime is how long the first question of a round waits for others: a
// server that wants to know several things at once, and must ask for each by a
// request, sends them one right after the other.
const gatherTime = 20 * time.Millisecond

// A gathering is what servers ask by requests, each on its own, that the client
// is asked in one round.
type gathering struct {
	asked  mcp.InputRequestMap
	count  int                // of questions, those that were taken back included
	open   int                // that are waited for
	cancel context.CancelFunc // nobody waits any more
	done   chan struct{}      // closed when got and err are there
	got    mcp.InputResponseMap
	err    error
}

var errStopping = errors.New("the server is stopping")

type outcome struct {
	res mcp.Result
	err error
}

// inputRequired is the type of results that ask.
const inputRequired = "input_required"

// An askingResult is the answer to a call that asks.
type askingResult struct {
	mcp.ResultBase
	ResultType string              `json:"resultType"`
	Requests   mcp.InputRequestMap `json:"inputRequests"`
	State      string              `json:"requestState"`
}

// ask asks the client when it next hears of the call, and again for what it
// does not answer, or not as it should.
func (t *turn) ask(ctx context.Context, asked mcp.InputRequestMap, open bool) (mcp.InputResponseMap, error) {
	if q := asked[questionID]; q != nil && len(asked) == 1 {
		got, err := t.gather(ctx, q)
		return mcp.InputResponseMap{questionID: got}, err
	}
	return t.askAll(ctx, asked, open)
}

// gather asks a question together with others that come at the same time.
func (t *turn) gather(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	t.mu.Lock()
	g := t.next
	if g == nil {
		on, cancel := context.WithCancel(t.ctx)
		g = &gathering{asked: mcp.InputRequestMap{}, cancel: cancel, done: make(chan struct{})}
		if !t.begin(func() { t.askGathered(on, g) }) {
			t.mu.Unlock()
			cancel()
			return nil, errStopping
		}
		t.next = g
	}
	g.count++
	g.open++
	name := questionID
	if g.count > 1 {
		name = fmt.Sprintf("%s-%d", questionID, g.count)
	}
	g.asked[name] = q
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if g.open--; g.open == 0 {
			g.cancel()
			if t.next == g {
				t.next = nil // nobody is to join it
			}
		}
	}()
	select {
	case <-g.done:
		return g.got[name], g.err
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(g.asked, name)
		return nil, context.Cause(ctx)
	}
}

// askGathered asks what has been gathered until then.
func (t *turn) askGathered(ctx context.Context, g *gathering) {
	defer close(g.done)
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	if t.next == g {
		t.next = nil
	}
	asked := maps.Clone(g.asked)
	t.mu.Unlock()
	if g.err = context.Cause(ctx); g.err == nil {
		g.got, g.err = t.askAll(ctx, asked, false)
	}
}

// askAll asks the client all of that, and again for what it does not answer.
func (t *turn) askAll(ctx context.Context, asked mcp.InputRequestMap, open bool) (mcp.InputResponseMap, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	out, left := mcp.InputResponseMap{}, maps.Clone(asked)
	if open {
		take(left, t.given, out, asked)
	}
	for range maxRounds {
		if len(left) == 0 {
			return out, nil
		}
		got, err := t.round(ctx, maps.Clone(left))
		if err != nil {
			return nil, err
		}
		take(left, got, out, asked)
	}
	if len(left) == 0 {
		return out, nil
	}
	return nil, fmt.Errorf("the client was asked %d times and did not answer %s", maxRounds,
		strings.Join(slices.Sorted(maps.Keys(left)), ", "))
}

// take moves the answers that fit from given to out. Of the others, what is
// wrong is added to the questions that are left.
func take(left mcp.InputRequestMap, given, out mcp.InputResponseMap, asked mcp.InputRequestMap) {
	for id, q := range asked {
		if _, open := left[id]; !open || given[id] == nil {
			continue
		}
		err := fits(q, given[id])
		if err == nil {
			out[id] = given[id]
			delete(left, id)
		} else if form, ok := q.(*mcp.ElicitParams); ok {
			again := *form
			again.Message += " (" + err.Error() + ")"
			left[id] = &again
		}
	}
}

// round asks once.
func (t *turn) round(ctx context.Context, q mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	select {
	case t.asked <- q:
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
func takesTurns(req fromClient) bool {
	caps := capabilitiesOf(req)
	return req.ProtocolVersion() >= firstStateless && caps != nil &&
		(caps.Elicitation != nil || caps.Sampling != nil || caps.RootsV2 != nil)
}

// thisProcess tells the states that this one gave from those of another.
var thisProcess = rand.Text()[:10]

// turns are the calls that wait for an answer, by the state that their clients
// hold: a name that nobody can guess.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

// put keeps a call until it is taken, or has waited for too long.
func (ts *turns) put(t *turn) (state string, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	mine := 0
	for _, other := range ts.all {
		if other.user == t.user {
			mine++
		}
	}
	if len(ts.all) >= maxTurns || mine >= maxTurnsEach {
		return "", errors.New("too many calls wait for answers")
	}
	if ts.all == nil {
		ts.all = map[string]*turn{}
	}
	state = thisProcess + "." + rand.Text()
	ts.all[state] = t
	t.late = time.AfterFunc(turnWait, func() {
		if t, _ := ts.take(state, t.what()); t != nil {
			t.cancel()
		}
	})
	return state, nil
}

// take returns the call that waits under a state, if it is the same call of
// the same client. The error says why there is none.
func (ts *turns) take(state, what string) (*turn, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[state]
	switch by, _, _ := strings.Cut(state, "."); {
	case t == nil && by != thisProcess && len(by) == len(thisProcess):
		return nil, invalidParams("requestState: it is not of this process: the server was started anew since it asked. Make the call again, without requestState")
	case t == nil:
		return nil, invalidParams("requestState: no call waits under it: it was altered, or its call was answered, ended, or given up after %s. Make the call again, without requestState", turnWait)
	case t.what() != what:
		return nil, invalidParams("requestState: it belongs to another call: repeat the same one, with the same arguments, as the same client")
	}
	t.late.Stop()
	delete(ts.all, state)
	return t, nil
}

// A turnRequest is a request of a client that takes turns.
type turnRequest struct {
	from  tool.Origin
	what  func() string // identifies the call
	state string
	given mcp.InputResponseMap
	show  *progress
	run   func(ctx context.Context, show func(tool.Content)) (mcp.Result, error)
}

// identify returns what tells a call of a client from all others. The order of keys in its
// arguments does not matter.
func identify(from tool.Origin, method, name string, args any) func() string {
	return sync.OnceValue(func() string { return digestOf(from, method, name, args) })
}

func digestOf(from tool.Origin, method, name string, args any) string {
	raw, err := tool.Encode(args)
	var v any
	if err == nil {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		if dec.Decode(&v) == nil {
			raw, _ = json.Marshal(v) // it was JSON
		}
	}
	hash := sha256.New()
	for _, part := range []string{from.User, from.Session, method, name, string(raw)} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
}

// inTurns runs a call, or goes on with one that waits, until there is a result
// or a question.
func (e *endpoint) inTurns(ctx context.Context, req fromClient, r *turnRequest) (mcp.Result, error) {
	var t *turn
	if r.state != "" {
		var err error
		if t, err = e.s.turns.take(r.state, r.what()); err != nil {
			return nil, err
		}
		t.show.Store(r.show)
		select {
		case t.answer <- r.given:
		case out := <-t.result: // it has not waited for so long
			t.cancel()
			return out.res, out.err
		case asked := <-t.asked: // somebody else has answered, and there is another question
			defer context.AfterFunc(ctx, t.cancel)()
			return e.parkTurn(t, asked)
		case <-ctx.Done():
		}
	} else {
		t = e.beginTurn(ctx, req, r)
	}
	defer context.AfterFunc(ctx, t.cancel)()
	select {
	case out := <-t.result:
		t.cancel()
		return out.res, out.err
	case asked := <-t.asked:
		return e.parkTurn(t, asked)
	}
}

// parkTurn lets a call wait for its client to come back with answers.
func (e *endpoint) parkTurn(t *turn, asked mcp.InputRequestMap) (mcp.Result, error) {
	state, err := e.s.turns.put(t)
	if err != nil {
		t.cancel()
		return nil, err
	}
	return &askingResult{ResultType: inputRequired, State: state, Requests: asked}, nil
}

// beginTurn begins a call that outlives its request, but not the server.
func (e *endpoint) beginTurn(ctx context.Context, req fromClient, r *turnRequest) *turn {
	t := &turn{user: r.from.User, what: r.what, given: r.given, asked: make(chan mcp.InputRequestMap),
		answer: make(chan mcp.InputResponseMap), result: make(chan outcome, 1), stop: e.s.stop, begin: e.s.begin}
	t.show.Store(r.show)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.ctx = ctx
	stop := context.AfterFunc(e.s.life, cancel)
	t.cancel = func() { stop(); cancel() }
	var show func(tool.Content)
	if r.show != nil {
		show = func(c tool.Content) {
			if p := t.show.Load(); p != nil {
				p.show(c)
			}
		}
	}
	ctx = e.withAsker(ctx, req, t, nil)
	if !e.s.begin(func() {
		res, err := r.run(ctx, show)
		t.result <- outcome{res, err}
	}) {
		t.result <- outcome{err: errStopping}
	}
	return t
}
