package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// maxRounds bounds how often a server may ask during one call.
const maxRounds = 10

const methodElicit = "elicitation/create"

// An asker asks the person at whose client a call was made.
type asker struct {
	session *mcp.ServerSession
	ctx     context.Context // of the request: the question belongs to it
	turn    *turn           // nil: the client is asked by a request
	long    *longCall       // nil: the call ends with its request
}

type askerKey struct{}

// withAsker tells the connection to an upstream server, on the only way that
// leads there through the pipeline, whom it may ask during a call.
func withAsker(ctx context.Context, req mcp.Request) context.Context {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, askerKey{}, &asker{session: session, ctx: ctx})
}

// elicit asks. The error says why nobody can be asked.
func (a *asker) elicit(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if a == nil {
		return nil, errors.New("nobody can be asked: the call was not made by a client of MCP")
	}
	q := *p
	q.Meta = nil
	q.Message = printable(q.Message)
	if a.long != nil {
		answer, err := a.long.ask(a.ctx, &q)
		if err != nil {
			return nil, err
		}
		res, ok := answer.(*mcp.ElicitResult)
		if !ok {
			return nil, errors.New("the client answered something else")
		}
		return res, nil
	}
	if a.turn != nil {
		return a.turn.ask(a.ctx, &q)
	}
	if init := a.session.InitializeParams(); init != nil && init.ProtocolVersion >= firstStateless {
		return nil, fmt.Errorf("nobody can be asked: clients of revision %s are not asked during a call", init.ProtocolVersion)
	}
	res, err := a.session.Elicit(a.ctx, &q)
	if err != nil {
		return nil, fmt.Errorf("the client cannot be asked: %w", err)
	}
	return res, nil
}

// mayAsk reports whether servers may ask during calls of the method.
func mayAsk(method string) bool {
	return method == methodCallTool || method == methodGetPrompt || method == methodReadResource
}

// during notes that a call is in flight, and whom the server may ask about it.
func (l *link) during(ctx context.Context, method string) (done func()) {
	if !mayAsk(method) {
		return func() {}
	}
	a, _ := ctx.Value(askerKey{}).(*asker)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.askers = append(l.askers, a)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.Index(l.askers, a)
		l.askers = slices.Delete(l.askers, at, at+1)
	}
}

// elicited answers a server that asks without saying about which call. With
// calls of several clients in flight nobody is asked, lest it be the wrong one.
func (l *link) elicited(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	l.mu.Lock()
	askers := slices.Clone(l.askers)
	l.mu.Unlock()
	if len(askers) == 0 {
		return nil, cannotAsk("nobody can be asked: no call is in flight")
	}
	for _, a := range askers {
		if !a.asksSame(askers[0]) {
			return nil, cannotAsk("nobody can be asked: calls of several clients are in flight, and it is not known whose this is")
		}
	}
	res, err := askers[len(askers)-1].elicit(r.Params)
	if err != nil {
		return nil, cannotAsk(err.Error())
	}
	return res, nil
}

// asksSame reports whether a and b ask one and the same client. Calls without
// sessions may come from anybody: each is one by itself.
func (a *asker) asksSame(b *asker) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.session == b.session && a.turn == b.turn && a.long == b.long
}

func cannotAsk(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
}

// converse calls a method, and again with answers as long as the server wants
// input: that is how servers of the newest revision ask.
func (l *link) converse(ctx context.Context, method string, p rawParams, progress func(tool.Content)) ([]byte, error) {
	defer l.during(ctx, method)()
	for range maxRounds {
		raw, err := l.call(ctx, method, p, progress)
		if err != nil || !mayAsk(method) {
			return raw, err
		}
		if t := taskIn(method, raw); t != nil {
			return l.await(ctx, t, progress)
		}
		var r struct {
			Type     string                     `json:"resultType"`
			Requests map[string]json.RawMessage `json:"inputRequests"`
			State    string                     `json:"requestState"`
		}
		if json.Unmarshal(raw, &r) != nil || r.Type != "input_required" || len(r.Requests) == 0 {
			return raw, nil
		}
		a, _ := ctx.Value(askerKey{}).(*asker)
		p.State = r.State
		if p.Responses, err = a.respondAll(r.Requests); err != nil {
			return nil, err
		}
	}
	return nil, tool.Errorf(tool.CodeExternal, "the MCP server wanted input %d times in one call", maxRounds)
}

// unanswerable reports whether a call ended because what the server asked for
// was not to be had.
func unanswerable(err error) bool {
	var e *tool.Error
	return errors.As(err, &e)
}

// respond answers one request for input.
func (a *asker) respond(request json.RawMessage) (any, error) {
	var r struct {
		Method string            `json:"method"`
		Params *mcp.ElicitParams `json:"params"`
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if r.Method != methodElicit || r.Params == nil {
		return nil, fmt.Errorf("by %.60q, which is not supported", printable(r.Method))
	}
	return a.elicit(r.Params)
}
