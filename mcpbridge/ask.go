package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

const (
	maxRounds    = 10        // how often a server may ask during one call, and a client be asked the same
	maxQuestions = 16        // of a server at one time
	maxQuestion  = 256 << 10 // bytes of one question
	maxRoots     = 100       // that a client may name

	// askPatience is how long the people who are asked during a call may take
	// together. The time that servers take is limited beside.
	askPatience = 30 * time.Minute
)

// serverKey is where a question's _meta holds the name of the server that asks.
const serverKey = "helve/server"

// Asks says what a server may ask the client that called it. What it may not
// ask is refused, and it is not told that it could.
type Asks string

// The values of Asks.
const (
	AsksAll         Asks = "" // questions to people, and answers of their models
	AsksElicitation Asks = "elicitation"
	AsksSampling    Asks = "sampling"
	AsksNothing     Asks = "none"
)

// Roots says which folders a server is told that it may work in.
type Roots string

// The values of Roots.
const (
	RootsNone      Roots = "none" // "" is the same: servers take them in place of the folders that their operator named
	RootsWorkspace Roots = "workspace"
	RootsClient    Roots = "client" // what the calling client says, if it can
)

// An asker asks the client that made a call.
type asker struct {
	session *mcp.ServerSession
	ctx     context.Context // of the request: the question belongs to it
	caps    mcp.ClientCapabilities
	version string // of the protocol
	logs    mcp.LoggingLevel
	turn    *turn        // nil: the client is asked by requests
	long    *longCall    // nil: the call ends with its request
	rounds  atomic.Int32 // in which it was asked
}

type askerKey struct{}

// A fromClient is a request by a client, whatever its parameters.
type fromClient interface {
	mcp.Request
	ProtocolVersion() string
	ClientCapabilities() *mcp.ClientCapabilities
}

// withAsker tells the connection to an upstream server, on the only way that
// leads there through the pipeline, whom it may ask during a call.
func (e *endpoint) withAsker(ctx context.Context, req fromClient, t *turn, long *longCall) context.Context {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return ctx
	}
	a := &asker{session: session, ctx: ctx, version: req.ProtocolVersion(), turn: t, long: long}
	if caps := capabilitiesOf(req); caps != nil {
		a.caps = *caps
	}
	if a.version < firstStateless {
		a.logs = e.s.level("")
	} else if p := req.GetParams(); p != nil {
		level, _ := p.GetMeta()[mcp.MetaKeyLogLevel].(string)
		a.logs = mcp.LoggingLevel(level)
	}
	return context.WithValue(ctx, askerKey{}, a)
}

func askerOf(ctx context.Context) *asker {
	a, _ := ctx.Value(askerKey{}).(*asker)
	return a
}

// lacking is the error of a question that a client did not say it can answer.
type lacking struct {
	what string
	need map[string]any
}

func without(what, capability string, parts ...string) *lacking {
	inner := map[string]any{}
	for _, p := range parts {
		inner[p] = struct{}{}
	}
	return &lacking{what, map[string]any{capability: inner}}
}

// Error says what the client lacks.
func (l *lacking) Error() string { return "the client cannot be asked: it does not support " + l.what }

// refusal is the error that clients of the stateless revisions expect.
func (l *lacking) refusal() *jsonrpc.Error {
	data, _ := tool.Encode(map[string]any{"requiredCapabilities": l.need}) // of our own
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: l.Error(), Data: data}
}

// can returns why the client cannot be asked that; nil: it can.
func (a *asker) can(q mcp.InputRequest) error {
	if a == nil {
		return errors.New("nobody can be asked: the call was not made by a client of MCP")
	}
	switch q := q.(type) {
	case *mcp.ElicitParams:
		c := a.caps.Elicitation
		switch {
		case c == nil:
			return without("elicitation", "elicitation")
		case q.Mode == modeURL && c.URL == nil:
			return without("elicitation by address (mode url)", "elicitation", "url")
		case q.Mode != modeURL && c.Form == nil && c.URL != nil:
			return without("elicitation by form (mode form)", "elicitation", "form")
		}
	case *mcp.CreateMessageWithToolsParams:
		c := a.caps.Sampling
		switch {
		case c == nil:
			return without("sampling", "sampling")
		case c.Tools == nil && (len(q.Tools) > 0 || q.ToolChoice != nil):
			return without("sampling with tools", "sampling", "tools")
		}
	case *mcp.ListRootsParams:
		if a.caps.RootsV2 == nil {
			return without("roots", "roots")
		}
	}
	return nil
}

// answers answers what the server asks during a call: questions of roots by
// the operator's word, others by the client that made the call. If the server
// keeps nothing about its question (open), answers that the client sent along
// with the call count.
func (s *upstream) answers(ctx context.Context, a *asker, asked mcp.InputRequestMap, open bool) (mcp.InputResponseMap, error) {
	if len(asked) > maxQuestions {
		return nil, fmt.Errorf("%d questions at a time; at most %d are passed on", len(asked), maxQuestions)
	}
	out, forClient := mcp.InputResponseMap{}, mcp.InputRequestMap{}
	for id, q := range asked {
		if roots, ok := q.(*mcp.ListRootsParams); ok && (s.Roots != RootsClient || a.can(roots) != nil) {
			out[id] = &mcp.ListRootsResult{Roots: s.ownRoots()}
			continue
		}
		shown, err := s.admit(q)
		if err == nil {
			err = a.can(shown)
		}
		if err != nil {
			return nil, err
		}
		forClient[id] = shown
	}
	if len(forClient) == 0 {
		return out, nil
	}
	if a.rounds.Add(1) > maxRounds {
		return nil, fmt.Errorf("more than %d times in one call", maxRounds)
	}
	got, err := a.ask(ctx, forClient, open)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, got)
	return out, nil
}

// ownRoots are the folders that the server is told by ourselves.
func (s *upstream) ownRoots() []*mcp.Root {
	if s.Roots != RootsWorkspace || s.o.Root == "" {
		return []*mcp.Root{}
	}
	path := filepath.ToSlash(s.o.Root)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // of a drive
	}
	return []*mcp.Root{{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(s.o.Root)}}
}

// modeURL is the mode of questions that are answered at an address.
const modeURL = "url"

// admit returns a question as the client is shown it, who asks included; the
// error says why it is not passed on.
func (s *upstream) admit(q mcp.InputRequest) (mcp.InputRequest, error) {
	if data, err := tool.Encode(q); err != nil || len(data) > maxQuestion {
		return nil, fmt.Errorf("a question of more than %d KiB is not passed on", maxQuestion>>10)
	}
	meta := mcp.Meta{serverKey: s.Name}
	switch q := q.(type) {
	case *mcp.ElicitParams:
		if s.Asks == AsksSampling || s.Asks == AsksNothing {
			return nil, errors.New("the operator does not let this server ask people")
		}
		shown := *q
		shown.Meta, shown.Message = meta, s.Name+" asks: "+printable(q.Message)
		shown.RequestedSchema = readable(q.RequestedSchema)
		return &shown, checkElicit(&shown)
	case *mcp.CreateMessageWithToolsParams:
		if s.Asks == AsksElicitation || s.Asks == AsksNothing {
			return nil, errors.New("the operator does not let this server ask the client's model")
		}
		shown := *q
		shown.Meta = meta
		// To the client "this server" is Helve: the context of all servers.
		shown.IncludeContext = ""
		shown.SystemPrompt = strings.TrimSpace("This request comes from the MCP server " + s.Name + ".\n\n" + q.SystemPrompt)
		return &shown, nil
	case *mcp.ListRootsParams:
		return &mcp.ListRootsParams{Meta: meta}, nil
	}
	return nil, fmt.Errorf("questions of the kind %T are not supported", q)
}

func checkElicit(q *mcp.ElicitParams) error {
	switch q.Mode {
	case "", "form":
		if q.RequestedSchema == nil {
			return errors.New("it has neither a form (requestedSchema) nor an address")
		}
		raw, err := tool.Encode(q.RequestedSchema)
		if err == nil {
			_, err = schema.Parse(raw)
		}
		if err != nil {
			return fmt.Errorf("its requestedSchema cannot be used: %w", err)
		}
	case modeURL:
		u, err := url.Parse(q.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || printable(q.URL) != q.URL {
			return fmt.Errorf("%.200q is no address that a person can be sent to", q.URL)
		}
	default:
		return fmt.Errorf("the mode %.60q is not supported", q.Mode)
	}
	return nil
}

// readable returns a form with its texts free of what terminals obey. Items
// that are one of several texts lose the type that this implies: the library
// refuses it.
func readable(form any) any {
	switch f := form.(type) {
	case map[string]any:
		out := make(map[string]any, len(f))
		if items, ok := f["items"].(map[string]any); ok && items["anyOf"] != nil && items["type"] == "string" {
			f, items = maps.Clone(f), maps.Clone(items)
			delete(items, "type")
			f["items"] = items
		}
		for k, v := range f {
			if text, ok := v.(string); ok && (k == "title" || k == "description") {
				v = printable(text)
			}
			out[k] = readable(v)
		}
		return out
	case []any:
		out := make([]any, len(f))
		for i, v := range f {
			out[i] = readable(v)
		}
		return out
	}
	return form
}

// ask asks the client, one thing after the other or, in turns, all at once.
func (a *asker) ask(ctx context.Context, asked mcp.InputRequestMap, open bool) (mcp.InputResponseMap, error) {
	switch {
	case a.long != nil:
		return a.long.askAll(ctx, asked)
	case a.turn != nil:
		return a.turn.ask(ctx, asked, open)
	}
	if a.version >= firstStateless {
		return nil, fmt.Errorf("nobody can be asked: clients of revision %s are not asked during such a call", a.version)
	}
	on, cancel := context.WithCancel(a.ctx) // on whose stream the question goes
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	out := mcp.InputResponseMap{}
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		var err error
		switch q := asked[id].(type) {
		case *mcp.ElicitParams:
			out[id], err = a.session.Elicit(on, q)
		case *mcp.CreateMessageWithToolsParams:
			out[id], err = a.session.CreateMessageWithTools(on, q)
		case *mcp.ListRootsParams:
			out[id], err = a.session.ListRoots(on, q)
		}
		if err == nil {
			err = fits(asked[id], out[id])
		}
		if err != nil {
			return nil, fmt.Errorf("the client cannot be asked: %w", err)
		}
	}
	return out, nil
}

// fits returns why an answer is none to the question; nil: it is one.
func fits(q mcp.InputRequest, answer mcp.InputResponse) error {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		a, ok := answer.(*mcp.ElicitResult)
		if !ok || a == nil {
			return errors.New("the answer to elicitation/create needs an action")
		}
		return fitsForm(q, a)
	case *mcp.CreateMessageWithToolsParams:
		a, ok := answer.(*mcp.CreateMessageWithToolsResult)
		if !ok || a == nil || len(a.Content) == 0 || a.Role != "assistant" {
			return errors.New("the answer to sampling/createMessage needs content and the role assistant")
		}
	case *mcp.ListRootsParams:
		a, ok := answer.(*mcp.ListRootsResult)
		if !ok || a == nil || len(a.Roots) > maxRoots {
			return fmt.Errorf("the answer to roots/list needs roots, at most %d", maxRoots)
		}
		for _, r := range a.Roots {
			if r == nil || !strings.HasPrefix(r.URI, "file://") {
				return errors.New("the answer to roots/list needs roots whose uri begins with file://")
			}
		}
	}
	return nil
}

func fitsForm(q *mcp.ElicitParams, a *mcp.ElicitResult) error {
	switch {
	case a.Action != "accept" && a.Action != "decline" && a.Action != "cancel":
		return fmt.Errorf("the action %.60q is neither accept nor decline nor cancel", a.Action)
	case a.Action != "accept" || q.Mode == modeURL:
		return nil
	}
	form, err := tool.Encode(q.RequestedSchema)
	if err != nil {
		return err
	}
	sch, err := schema.Parse(form)
	if err != nil {
		return err
	}
	content := json.RawMessage(`{}`)
	if a.Content != nil {
		if content, err = tool.Encode(a.Content); err != nil {
			return err
		}
	}
	if problems := sch.Validate(content); len(problems) > 0 {
		return fmt.Errorf("the content does not fit the form: %s", problems[0])
	}
	return nil
}

// toldTo are the capabilities that a server is told during the call: what the
// client can answer, as far as the server may ask it; roots always.
func (a *asker) toldTo(s *upstream) map[string]any {
	caps := map[string]any{"roots": struct{}{}, "extensions": map[string]any{tasksExtension: struct{}{}}}
	if a == nil {
		return caps
	}
	if c := a.caps.Elicitation; c != nil && (s.Asks == AsksAll || s.Asks == AsksElicitation) {
		caps["elicitation"] = c
	}
	if c := a.caps.Sampling; c != nil && (s.Asks == AsksAll || s.Asks == AsksSampling) {
		told := *c
		told.Context = nil
		caps["sampling"] = told
	}
	return caps
}
