package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

// A link is one connection to a server, from its start to its end.
type link struct {
	session  *mcp.ClientSession
	server   string // what it calls itself
	version  string
	protocol string

	ended   chan struct{} // closed when the connection is lost
	changed chan struct{} // the list of tools has changed
	proc    *process      // nil: the server is not ours
	kill    func()        // ends the connection at once
	direct  *direct       // nil: only the library speaks to the server
	owner   *upstream

	rootsChanged func() // tells the server that its roots have changed

	tally tally // of progress

	mu       sync.Mutex
	err      error // why it ended
	progress map[string]func(tool.Content)
	tokens   int
	calls    []*inFlight
	visits   []visit
	roots    *roots       // nil: the server has not asked, or is to ask again
	change   *rootsChange // of roots, the last that a call waited for

	questions map[string]context.CancelFunc // that the server asks during direct calls, by id
}

// stopTimeout bounds how long a session may take to end.
const stopTimeout = 3 * time.Second

// dialBy connects to the server, over the older transport of HTTP or else the
// newer one, and negotiates the protocol. Without web it is run.
func dialBy(ctx context.Context, s *upstream, web *httpTransport, old bool) (*link, error) {
	l := &link{ended: make(chan struct{}), changed: make(chan struct{}, 1), progress: map[string]func(tool.Content){}, owner: s}
	client := mcp.NewClient(&mcp.Implementation{Name: "helve", Version: s.o.Version}, s.asks(l, s.hears(&mcp.ClientOptions{
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { l.stale() },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { l.progressed(r.Params) },
	})))
	client.AddReceivingMiddleware(s.sturdy, s.replies(l))
	// The library tells servers when a root is added; this one is never listed.
	l.rootsChanged = func() { client.AddRoots(&mcp.Root{URI: "file:///changed"}) }
	if err := addMethods(client); err != nil {
		return nil, err
	}
	transport, err := l.transport(s, web, old)
	if err != nil {
		return nil, err
	}
	type connected struct {
		session *mcp.ClientSession
		err     error
	}
	done := make(chan connected, 1)
	var o *mcp.ClientSessionOptions
	if old || s.Sessions {
		o = &mcp.ClientSessionOptions{ProtocolVersion: lastWithStreams}
	}
	go func() {
		session, err := client.Connect(ctx, transport, o)
		done <- connected{session, err}
	}()
	var c connected
	select {
	case c = <-done:
	case <-ctx.Done():
		c.err = ctx.Err()
	}
	if c.err != nil {
		if ctx.Err() != nil {
			err = l.late(ctx)
		} else {
			err = l.explain(c.err)
		}
		l.stop()
		return nil, err
	}
	l.adopt(c.session)
	s.linked(l)
	return l, nil
}

func (l *link) adopt(session *mcp.ClientSession) {
	l.session = session
	if r := session.InitializeResult(); r != nil {
		l.protocol = r.ProtocolVersion
		if r.ServerInfo != nil {
			l.server, l.version = printable(r.ServerInfo.Name), printable(r.ServerInfo.Version)
		}
	}
	go func() {
		err := session.Wait()
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		close(l.ended)
	}()
}

// transport starts or addresses the server.
func (l *link) transport(s *upstream, web *httpTransport, old bool) (mcp.Transport, error) {
	if web != nil {
		l.kill, web.tally = web.close, &l.tally
		if !old {
			web.direct = &direct{url: web.address, client: web.client()}
			l.direct = web.direct
		}
		return web.transport(web.address, old), nil
	}
	p, err := start(s.full().Upstream, s.o.Root, s.keeper, s.log)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) { // without the name of the system's call
			err = fmt.Errorf("%s: %w", at.Path, at.Err)
		}
		return nil, fmt.Errorf("the server cannot be started: %w", err)
	}
	l.proc = p
	conn := newChildConn(p.stdout, p.stdin, func() {
		p.stdin.Close()
		p.stdout.Close()
	}, s.log)
	conn.stray = p.strayed
	l.kill, conn.tally = func() { conn.Close() }, &l.tally
	// Old servers may ignore what they do not know.
	time.AfterFunc(s.startTimeout()/3, conn.giveUpDiscovery)
	return oneConn{conn}, nil
}

// lost reports whether the connection has ended.
func (l *link) lost() bool {
	select {
	case <-l.ended:
		return true
	default:
	}
	return l.proc != nil && l.proc.epitaph() != ""
}

// why says why the connection ended.
func (l *link) why() error {
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err == nil {
		err = errors.New("the server closed the connection")
	}
	return l.explain(err)
}

// explain adds how the server's process ended, if it did by itself: not because
// of what it answered, which is an error that says why.
func (l *link) explain(err error) error {
	if l.proc == nil || errors.Is(err, errTooLarge) {
		return err
	}
	if m := otherRevision.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("it speaks the revision %s of the protocol, which Helve does not", m[1])
	}
	if refusedBy(err) != nil {
		return err
	}
	select { // it may be ending just now
	case <-l.proc.exited:
	case <-time.After(exitGrace):
	}
	if how := l.proc.epitaph(); how != "" {
		return errors.New(how)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it closed its standard output%s", l.proc.remarks())
	}
	return err
}

// otherRevision is what the library says of a server whose revision it does not know.
var otherRevision = regexp.MustCompile(`unsupported protocol version: "([^"]*)"`)

// late is the error of a server that was not ready in time.
func (l *link) late(ctx context.Context) error {
	err := context.Cause(ctx)
	if l.proc != nil {
		return fmt.Errorf("%w%s", err, l.proc.remarks())
	}
	return err
}

// stop ends the connection, and the process if there is one.
func (l *link) stop() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if l.session != nil {
			_ = l.session.Close() // what matters is that it ends
		}
	}()
	if l.proc != nil {
		l.kill()
		l.proc.stop()
	}
	select {
	case <-closed:
	case <-time.After(stopTimeout):
	}
	if l.kill != nil {
		l.kill()
	}
}

// listTools returns the server's tools as it sent them.
func (l *link) listTools(ctx context.Context) ([]json.RawMessage, error) {
	raws, err := pages("tools", func(cursor string) (json.RawMessage, error) {
		return callRaw(ctx, l.session, methodListTools, rawParams{Cursor: cursor})
	})
	if e := refusedBy(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
		if caps := l.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
			return nil, nil // it has resources or prompts only
		}
	}
	return raws, err
}

// call calls a method and returns its result as it came.
func (l *link) call(ctx context.Context, method string, p rawParams, progress func(tool.Content)) ([]byte, error) {
	if progress != nil {
		token, done := l.follow(progress)
		defer done()
		defer l.tally.wait(ctx)
		meta := mcp.Meta{"progressToken": token}
		maps.Copy(meta, p.Meta)
		p.Meta = meta
	}
	p.Meta = telemetry.ToMeta(ctx, p.Meta)
	if method == methodCallTool {
		if raw, err := l.direct.call(ctx, l, p); err != errLibrary {
			return raw, err
		}
	}
	return callRaw(ctx, l.session, method, p)
}

// stale notes that the list of tools has changed.
func (l *link) stale() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// follow passes on the progress that the server reports under the token.
func (l *link) follow(show func(tool.Content)) (token string, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	token = fmt.Sprintf("call-%d", l.tokens)
	l.progress[token] = show
	return token, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.progress, token)
	}
}

func (l *link) progressed(p *mcp.ProgressNotificationParams) {
	defer l.tally.handOver()
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	l.mu.Lock()
	show := l.progress[token]
	l.mu.Unlock()
	if show == nil {
		return
	}
	text := printable(p.Message)
	if text == "" {
		text = fmt.Sprintf("%g", p.Progress)
		if p.Total > 0 {
			text = fmt.Sprintf("%g of %g", p.Progress, p.Total)
		}
	}
	numbers, _ := json.Marshal(step{Call: l.owner.Name + " " + token, Progress: p.Progress, Total: p.Total}) // it always encodes
	show(tool.Content{Text: cut(text, maxLogLine), Raw: numbers})
}

// refusedBy returns the error of the protocol with which the server answered;
// nil: it did not answer.
func refusedBy(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if err == nil || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) || !errors.As(err, &e) {
		return nil
	}
	switch e.Code {
	case -32003, -32004, -32005: // the library's own: closing, rejected by the transport
		return nil
	}
	return e
}

// sturdy refuses what lacks its params, and outlives whatever else a server
// sends: what goes wrong with it is an error of that message alone.
func (s *upstream) sturdy(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				s.log.Error("panic in what an MCP server sent", "method", method, "panic", v, "stack", string(debug.Stack()))
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the message cannot be handled"}
			}
		}()
		if p := reflect.ValueOf(req.GetParams()); p.Kind() == reflect.Pointer && p.IsNil() && !bare[method] {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " needs params"}
		}
		return next(ctx, method, req)
	}
}

// bare are the methods of servers that need no params.
var bare = map[string]bool{methodRoots: true, "ping": true, "notifications/tools/list_changed": true,
	"notifications/resources/list_changed": true, "notifications/prompts/list_changed": true}

// maxBlocks is how many parts of one result are passed on.
const maxBlocks = 5000

// result makes our result of the server's.
func result(raw []byte) (*tool.Result, error) {
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
		Meta       json.RawMessage   `json:"_meta"`
		Type       string            `json:"resultType"`
	}
	err := json.Unmarshal(raw, &r)
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		err = errors.New("it is no JSON object")
	}
	if err != nil {
		return nil, tool.Errorf(tool.CodeExternal, "the server's result cannot be read: %v", misread(err))
	}
	if r.Type != "" && r.Type != "complete" {
		return nil, tool.Errorf(tool.CodeExternal, "the server answered with a result of type %q, which is not supported", cut(printable(r.Type), 60))
	}
	res := &tool.Result{Meta: r.Meta}
	if string(r.Structured) != "null" {
		res.Structured = r.Structured
	}
	for _, block := range r.Content[:min(len(r.Content), maxBlocks)] {
		res.Content = append(res.Content, content(block))
	}
	if left := len(r.Content) - maxBlocks; left > 0 {
		res.Content = append(res.Content, tool.Content{Text: fmt.Sprintf("[%d more parts of the result were left out: at most %d are passed on]", left, maxBlocks)})
	}
	if len(res.Content) == 0 && len(res.Structured) > 0 {
		res.Content = []tool.Content{{Text: string(res.Structured)}}
	}
	if r.IsError {
		return failed(res), nil
	}
	return res, nil
}

// failed makes the text of a result its error.
func failed(res *tool.Result) *tool.Result {
	text := ""
	var rest []tool.Content
	for _, c := range res.Content {
		switch {
		case c.Text == "" || c.URI != "":
			rest = append(rest, c)
		case text != "":
			text += "\n" + c.Text
		default:
			text = c.Text
		}
	}
	return &tool.Result{Content: rest, Meta: res.Meta,
		Err: tool.Errorf(tool.CodeExternal, "%s", orElse(text, "the server says that the call failed, and not why"))}
}
