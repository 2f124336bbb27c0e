package mcpbridge

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

// errorKey is where a result's _meta holds the structured error.
const errorKey = "helve/error"

// A callResult is the answer to tools/call.
type callResult struct {
	mcp.ResultBase
	ResultType string            `json:"resultType,omitempty"`
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError,omitempty"`
}

func (e *endpoint) callTool(ctx context.Context, req *mcp.ServerRequest[*mcp.CallToolParamsRaw]) (mcp.Result, error) {
	if req.Params == nil || req.Params.Name == "" {
		return nil, invalidParams("tools/call: missing name")
	}
	from, args := originOf(e, req), arguments(req.Params.Arguments)
	call := &tool.Call{Name: req.Params.Name, Args: args, From: from}
	p := progressOf(ctx, req)
	defer p.end()
	long := e.s.long()
	defer p.reporting(long.Report)()
	switch as := e.as(long, call); {
	case e.s.opts.Tasks != nil && speaksTasks(req):
		ctx, done := e.calling(ctx, req)
		defer done()
		return e.callLong(ctx, req, call, p, as)
	case as == Required:
		return nil, errNeedsTasks()
	}
	return e.calls(ctx, req, &turnRequest{from: from, what: identify(from, methodCallTool, req.Params.Name, args),
		state: req.Params.RequestState, given: req.Params.InputResponses, show: p,
		run: func(ctx context.Context, show func(tool.Content)) (mcp.Result, error) {
			call.Progress = show
			res, err := e.s.opts.Do(ctx, call)
			return e.answered(call, req.ProtocolVersion(), capabilitiesOf(req), res, err)
		}})
}

// answered returns what a call came to in the protocol's form.
func (e *endpoint) answered(call *tool.Call, version string, caps *mcp.ClientCapabilities, res *tool.Result, err error) (mcp.Result, error) {
	if err != nil {
		res = tool.Fail(tool.AsError(err))
	}
	if res == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call had neither a result nor an error"}
	}
	if err := forClients(version, caps, res.Err); err != nil {
		return nil, err
	}
	out := answer(res)
	for i, raw := range out.Content {
		out.Content[i] = blockFor(version, raw)
	}
	if e.structured(call.From, call.Name) {
		out.Structured = structured(res)
	}
	out.ResultType = complete(version)
	return out, nil
}

// forClients returns the error of the protocol that is for the client rather
// than its model; nil: the model reads it.
func forClients(version string, caps *mcp.ClientCapabilities, err *tool.Error) error {
	var theirs jsonrpc.Error
	if err == nil || err.Code != tool.CodeExternal || json.Unmarshal(err.Details, &theirs) != nil {
		return nil
	}
	switch {
	case theirs.Code == mcp.CodeMissingRequiredClientCapabilities && version >= firstStateless:
	case theirs.Code == mcp.CodeURLElicitationRequired && caps != nil && caps.Elicitation != nil && caps.Elicitation.URL != nil:
	default:
		return nil
	}
	return &jsonrpc.Error{Code: theirs.Code, Message: err.Message, Data: theirs.Data}
}

// calls makes a call for a client, in turns if it takes them.
func (e *endpoint) calls(ctx context.Context, req fromClient, r *turnRequest) (mcp.Result, error) {
	ctx, done := e.calling(ctx, req)
	defer done()
	if takesTurns(req) {
		return e.inTurns(ctx, req, r)
	}
	if r.state != "" {
		return nil, invalidParams("requestState: only clients that can be asked are given one")
	}
	var show func(tool.Content)
	if r.show != nil {
		show = r.show.show
	}
	return r.run(e.withAsker(ctx, req, nil, nil), show)
}

// firstResumed is the first revision whose clients come back for what they
// missed, so that a lost connection does not mean that nobody waits.
const firstResumed = "2025-11-25"

// comeBack is when clients shall come back whose connection has ended early.
const comeBack = 500 * time.Millisecond

// calling returns a context for a call that a request makes: it ends with done,
// with the server, and when nobody waits for the answer any more.
func (e *endpoint) calling(ctx context.Context, req fromClient) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	stops := []func() bool{context.AfterFunc(e.s.life, cancel)}
	resumed := req.ProtocolVersion() >= firstResumed && req.ProtocolVersion() < firstStateless
	if http, _ := e.request(req); http != nil {
		http.calling.Store(true)
		gone := cancel // a response cannot be delivered later
		if resumed {
			forget := e.s.left.add(req.GetSession().ID(), cancel)
			stops = append(stops, func() bool { forget(); return true })
			gone = func() {
				select {
				case <-e.s.stop: // nobody can come back
					cancel()
				case <-ctx.Done():
				}
			}
		}
		stops = append(stops, context.AfterFunc(http.ctx, gone))
	}
	if extra := req.GetExtra(); resumed && e.s.opts.StreamLimit > 0 && extra != nil && extra.CloseSSEStream != nil {
		timer := time.AfterFunc(e.s.opts.StreamLimit, func() { extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: comeBack}) })
		stops = append(stops, timer.Stop)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// left are the calls in flight whose clients may come back for the answer, by
// their sessions: until the session ends.
type left struct {
	mu  sync.Mutex
	all map[string]map[*context.CancelFunc]bool
}

func (l *left) add(session string, cancel context.CancelFunc) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]map[*context.CancelFunc]bool{}
	}
	if l.all[session] == nil {
		l.all[session] = map[*context.CancelFunc]bool{}
	}
	l.all[session][&cancel] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.all[session], &cancel); len(l.all[session]) == 0 {
			delete(l.all, session)
		}
	}
}

// end cancels the calls of a session that its client ends.
func (l *left) end(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for cancel := range l.all[session] {
		(*cancel)()
	}
}

// originOf says on whose behalf a request is made.
func originOf[P mcp.Params](e *endpoint, req *mcp.ServerRequest[P]) tool.Origin {
	who := Caller{User: localUser}
	switch r, http := e.request(req); {
	case r != nil:
		who = r.caller
	case http: // it is over: what is left of it is done for nobody else
		who = Caller{User: nobody}
		if h := e.sessions.get(req.Session.ID()); h != nil {
			who = h.caller
		}
	}
	from := tool.Origin{App: e.s.opts.App, Session: req.Session.ID(), User: who.User, Profile: e.s.opts.Profile, Kind: tool.KindMCP}
	info := req.ClientInfo()
	if info != nil {
		from.Agent = info.Name
	}
	if from.Session == "" {
		from.Session = stateless(who, info)
	}
	return from
}

// arguments returns none for those that clients send as null.
func arguments(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// structured reports whether clients expect a structured result of the tool:
// those that listed it with an output schema refuse any other, and to those
// that did not it would be the same content twice.
func (e *endpoint) structured(from tool.Origin, name string) bool {
	if e.s.opts.Resolve == nil {
		return false
	}
	t := e.s.opts.Resolve(from, name)
	if t == nil || t.Output == nil {
		return false
	}
	if e.list.empty() { // clients without sessions may have listed it before this process began
		view := e.s.opts.ViewKnown // a result does not wait for servers that are being listed
		if view == nil {
			view = e.s.opts.View
		}
		items := view(e.mode).Items
		i := slices.IndexFunc(items, func(it inject.Item) bool { return it.Tool != nil && it.Tool.Name == t.Name })
		return i >= 0 && listed(items[i]).OutputSchema != nil
	}
	return e.list.promises(t.Name)
}

// structured returns the structured result, or the text that is one.
func structured(res *tool.Result) json.RawMessage {
	if res.Structured != nil || res.Err != nil || len(res.Content) != 1 {
		return res.Structured
	}
	if text := strings.TrimSpace(res.Content[0].Text); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}

// answer returns a result in the protocol's form.
func answer(res *tool.Result) *callResult {
	out := &callResult{Content: make([]json.RawMessage, 0, len(res.Content)+1)}
	if meta := metaOf(res.Meta); meta != nil {
		out.Meta = meta
	}
	if res.Err != nil {
		out.IsError = true
		if out.Meta == nil {
			out.Meta = mcp.Meta{}
		}
		out.Meta[errorKey] = res.Err
		out.Content = append(out.Content, textBlock(res.Err.Error()))
	}
	for _, c := range res.Content {
		out.Content = append(out.Content, block(c))
	}
	if len(res.Notes) > 0 {
		out.Content = append(out.Content, textBlock("[note] "+strings.Join(res.Notes, "\n[note] ")))
	}
	return out
}

// metaOf returns an upstream's _meta, without what is the protocol's own
// business between two peers.
func metaOf(raw json.RawMessage) mcp.Meta {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	meta := mcp.Meta{}
	for k, v := range fields {
		if !strings.HasPrefix(k, "io.modelcontextprotocol/") && k != errorKey {
			meta[k] = v
		}
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

// progress shows a client what a call yields before its end.
type progress struct {
	send func(*mcp.ProgressNotificationParams)

	mu     sync.Mutex
	token  any
	at     float64 // what was sent last
	begun  bool    // something was sent
	source string  // the upstream call whose own numbers are sent; "": none yet
	total  float64 // of that call
	counts bool    // reports are counted: their own numbers make no sense together
	last   time.Time
	ended  bool
}

// A step is what an upstream call reports of its progress, as Content.Raw.
type step struct {
	Call     string  `json:"call"` // no other has this name
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"` // 0: unknown
}

// progressOf returns nil if the client did not ask for progress.
func progressOf(ctx context.Context, req *mcp.ServerRequest[*mcp.CallToolParamsRaw]) *progress {
	token := req.Params.GetMeta()["progressToken"]
	switch token.(type) {
	case string, float64:
	default:
		return nil
	}
	return &progress{token: token, send: func(p *mcp.ProgressNotificationParams) {
		_ = req.Session.NotifyProgress(ctx, p) // a client that is gone misses nothing
	}}
}

// show may be called at any time; after the end of the call it does nothing.
func (p *progress) show(c tool.Content) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.last = time.Now()
	p.at, p.total = p.next(c.Raw)
	p.begun = true
	p.send(&mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.at, Total: p.total, Message: c.String()})
}

// next returns the numbers of a report, which must grow: those of the upstream
// call as long as one call alone reports and its numbers grow, else a count.
func (p *progress) next(raw json.RawMessage) (at, total float64) {
	var s step
	numbers := raw != nil && json.Unmarshal(raw, &s) == nil && s.Call != ""
	switch {
	case p.counts:
	case !numbers && p.source != "": // such as that it still runs
		return math.Nextafter(p.at, math.Inf(1)), p.total
	case !numbers:
	case s.Progress < 0, s.Progress > 1e12, p.begun && s.Progress <= p.at, p.source != "" && p.source != s.Call:
		p.counts = true
	default:
		p.source = s.Call
		if s.Total < s.Progress {
			return s.Progress, 0
		}
		return s.Progress, s.Total
	}
	return math.Floor(p.at) + 1, 0
}

func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
