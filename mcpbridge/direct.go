package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// A call over HTTP is one request and its answer. The library takes it through
// a queue, several goroutines and a dozen decodings, which costs more than all
// else that a call does. So calls of tools go to servers directly, on the
// session that the library has made. What a server refuses to begin is left to
// the library, which knows what to do about it.

// direct makes calls to a server over HTTP.
type direct struct {
	url    string
	client *http.Client
	ids    atomic.Int64
	model  atomic.Pointer[model] // nil: the library has not spoken yet
}

// A model is what the library writes into its requests.
type model struct {
	headers http.Header
	version string                     // of the protocol; "": none is told
	meta    map[string]json.RawMessage // what is said of us with every request
}

// learn takes a request of the library, which calls a method, for a model.
// Where the library adds credentials of its own only it speaks.
func (d *direct) learn(r *http.Request, meta map[string]json.RawMessage) {
	if d == nil || d.model.Load() != nil || r.Header.Get("Authorization") != "" {
		return
	}
	m := &model{headers: http.Header{}, version: r.Header.Get(versionHeader), meta: map[string]json.RawMessage{}}
	for _, name := range []string{"Content-Type", "Accept", versionHeader, sessionHeader} {
		if v := r.Header.Get(name); v != "" {
			m.headers.Set(name, v)
		}
	}
	for _, key := range []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities} {
		if meta[key] != nil {
			m.meta[key] = meta[key]
		}
	}
	d.model.Store(m)
}

// errLibrary is the error of a call that the library is to make: the server
// has not begun it.
var errLibrary = errors.New("left to the library")

// A directCall is one call under way.
type directCall struct {
	*direct
	*model
	ctx   context.Context
	l     *link
	id    string
	begun time.Time
	end   context.CancelFunc // of the request
	reads bool               // the end of the answer, behind the call: that ends the request
	on    exchange           // the request, while the answer is waited for
}

// call calls a tool. News that come with the answer go to l.
func (d *direct) call(ctx context.Context, l *link, p rawParams) (raw json.RawMessage, err error) {
	if d == nil || d.model.Load() == nil {
		return nil, errLibrary
	}
	c := &directCall{direct: d, model: d.model.Load(), ctx: ctx, l: l, id: "h" + strconv.FormatInt(d.ids.Add(1), 10), begun: time.Now()}
	body, err := encodeCall(c.id, c.meta, p)
	if err != nil {
		return nil, err
	}
	stateless, linger := c.version >= firstStateless, time.Duration(0)
	if stateless && l.offersTasks() {
		linger = lingers
	}
	on, stop := c.outlives(ctx, linger)
	defer func() {
		if stop(); !c.reads {
			c.end()
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	r, err := c.requestOn(on, http.MethodPost, body, &c.on)
	if err != nil {
		return nil, err
	}
	if stateless {
		r.Header.Set(methodHeader, methodCallTool)
		r.Header.Set(nameHeader, headerValue(p.Name))
		setBindings(r, p.Arguments)
	} else {
		untold := context.AfterFunc(ctx, c.cancelled)
		defer func() { // the request may have heard of the end of ctx first
			if untold() && err != nil && ctx.Err() != nil {
				go c.cancelled()
			}
		}()
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, notOK(resp)
	}
	if streamed(resp) {
		return c.follow(resp.Body)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if raw, _, err = c.take(data); raw == nil && err == nil {
		err = errors.New("the message that the server sent does not answer the request")
	}
	return raw, err
}

// lingers is how long the answer of a server that has tasks is read on when
// nobody waits for it any more: it may name a task, which runs until it is told
// that nobody wants it.
var lingers = 250 * time.Millisecond

// outlives returns the context of the request, which ends so long after the
// call's own, unless it is stopped first: then it is the answer's end that ends
// it, which comes after the call's. (A connection whose request has ended before
// the answer was read to its end cannot be used again.)
func (c *directCall) outlives(ctx context.Context, linger time.Duration) (on context.Context, stop func() bool) {
	on, c.end = context.WithCancel(context.WithoutCancel(ctx))
	return on, context.AfterFunc(ctx, func() {
		if linger > 0 {
			select {
			case <-time.After(linger):
			case <-on.Done():
			}
		}
		c.end()
	})
}

func (l *link) offersTasks() bool {
	is := l.session.InitializeResult()
	return is != nil && is.Capabilities != nil && is.Capabilities.Extensions[tasksExtension] != nil
}

func streamed(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// request returns a request as the library would make it.
func (c *directCall) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	return c.requestOn(ctx, method, body, &exchange{})
}

func (c *directCall) requestOn(ctx context.Context, method string, body []byte, ex *exchange) (*http.Request, error) {
	r, err := http.NewRequestWithContext(withoutLibrary(ctx, ex), method, c.url, bytes.NewReader(body))
	if err == nil {
		r.Header = c.headers.Clone()
	}
	return r, err
}

// tellTimeout bounds how long a message without an answer may take.
const tellTimeout = 10 * time.Second

// tell sends a message that is not answered.
func (c *directCall) tell(msg any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), tellTimeout)
	defer cancel()
	body, err := tool.Encode(msg)
	if err != nil {
		return // it is ours, and can be written
	}
	r, err := c.request(ctx, http.MethodPost, body)
	if err != nil {
		return
	}
	if resp, err := c.client.Do(r); err == nil { // a server that is gone needs to know nothing
		resp.Body.Close()
	}
}

// overtaking is how long a message may be on its way after one that was sent later.
const overtaking = time.Second

// cancelled tells a server with sessions that nobody waits for the answer: the
// end of the request does not say so. What cancels a young call may be read
// before the call is, by another handler of the server, and would be for
// nothing: it is told again.
func (c *directCall) cancelled() {
	tell := func() {
		c.tell(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": map[string]any{"requestId": c.id, "reason": context.Cause(c.ctx).Error()}})
	}
	tell()
	if time.Since(c.begun) < overtaking {
		time.AfterFunc(overtaking, tell)
	}
}

// encodeCall returns the message that calls a tool.
func encodeCall(id string, about map[string]json.RawMessage, p rawParams) ([]byte, error) {
	meta := make(map[string]any, len(about)+len(p.Meta))
	for key, value := range about {
		meta[key] = value
	}
	for key, value := range p.Meta {
		meta[key] = value
	}
	p.Meta = meta
	params, err := tool.Encode(p)
	if err != nil {
		return nil, err
	}
	return append(append(append([]byte(`{"jsonrpc":"2.0","id":"`), id+`","method":"`+methodCallTool+`","params":`...), params...), '}'), nil
}

// maxRefusal bounds what is read of an answer that refuses a request.
const maxRefusal = 64 << 10

// notOK is the error of a request that was answered with another status. What
// a server refuses without an error of the protocol, it has not begun.
func notOK(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what is cut off is no message
	var m message
	if json.Unmarshal(data, &m) == nil && m.Error != nil {
		return m.Error
	}
	if resp.StatusCode >= 400 && resp.StatusCode < 500 {
		return errLibrary
	}
	return fmt.Errorf("the server answered with the status %s", resp.Status)
}

// A message is an answer, or what a server says or asks before it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *jsonrpc.Error  `json:"error"`
}

// answers reports whether m is the answer to a request.
func (m *message) answers(id string) bool {
	return m.Method == "" && (len(m.ID) == len(id)+2 && string(m.ID[1:len(m.ID)-1]) == id ||
		m.Error != nil && (len(m.ID) == 0 || string(m.ID) == "null"))
}

// take takes what the server sent, one message or, in old revisions, several.
// done reports that the answer was among them.
func (c *directCall) take(data []byte) (raw json.RawMessage, done bool, err error) {
	var all []message
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) > 0 && data[0] == '[' {
		err = json.Unmarshal(data, &all)
	} else {
		all = make([]message, 1)
		err = json.Unmarshal(data, &all[0])
	}
	if err != nil {
		return nil, true, fmt.Errorf("what the server sent is no message of the protocol: %w", err)
	}
	for i := range all {
		m := &all[i]
		switch {
		case m.Method != "" && len(m.ID) == 0:
			c.l.told(m)
		case m.Method != "":
			ctx, done := c.l.questioned(c.ctx, m.ID)
			go func() {
				defer done()
				c.asked(ctx, m)
			}()
		case !m.answers(c.id):
		case m.Error != nil:
			return nil, true, m.Error
		case m.Result == nil:
			return nil, true, errors.New("the server's answer has neither a result nor an error")
		default:
			raw, done = m.Result, true
		}
	}
	return raw, done, nil
}

// maxResumes is how often a stream is taken up again without having brought
// anything.
const maxResumes = 5

// follow reads a stream up to the answer. One that the server ends before, or
// that breaks, is taken up again where the server says how. What comes after
// the answer is not waited for.
func (c *directCall) follow(body io.ReadCloser) (json.RawMessage, error) {
	var at reached
	for idle := 0; ; idle++ {
		before := at.last
		raw, done, err := c.read(body, &at)
		if done {
			return raw, err
		}
		if at.last != before {
			idle = 0
		}
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		if at.last == "" || c.version >= firstStateless || idle >= maxResumes || errors.Is(err, errTooLarge) {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server ended the stream before its answer")
			}
			return nil, fmt.Errorf("%w; the call may have had its effect", err)
		}
		if body, err = c.resume(&at); err != nil {
			return nil, fmt.Errorf("the stream of the answer broke and cannot be taken up again (the call may have had its effect): %w", err)
		}
	}
}

// A reached says how far a stream has been read.
type reached struct {
	last string        // the id of the last event that had one
	wait time.Duration // what the server asks to be left in peace before it is asked for the rest
}

const (
	usualWait = time.Second
	maxWait   = 30 * time.Second
)

// resume asks for the rest of a stream.
func (c *directCall) resume(at *reached) (io.ReadCloser, error) {
	wait := usualWait
	if at.wait > 0 {
		wait = min(at.wait, maxWait)
	}
	select {
	case <-time.After(wait):
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
	r, err := c.request(c.ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Del("Content-Type")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", at.last)
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || !streamed(resp) {
		resp.Body.Close()
		return nil, fmt.Errorf("the server answered with the status %s", resp.Status)
	}
	return resp.Body, nil
}

// read reads a stream up to the answer or its end.
func (c *directCall) read(body io.ReadCloser, at *reached) (raw json.RawMessage, done bool, err error) {
	in := readers.Get().(*bufio.Reader)
	in.Reset(body)
	for {
		data, err := readEvent(in, maxAnswer, at)
		if err != nil {
			body.Close()
			return nil, false, err
		}
		if raw, done, err := c.take(data); done {
			if c.on.answered = true; c.on.parks {
				body.Close()
				in.Reset(nil)
				readers.Put(in)
				return raw, true, err
			}
			c.reads = true
			go func() {
				defer c.end()
				finish(in, body)
			}()
			return raw, true, err
		}
	}
}

var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// maxRest bounds what is read after an answer.
const (
	maxRest  = 4 << 10
	restTime = time.Second
)

// finish reads the end of a stream, so that its connection can be used again.
func finish(in *bufio.Reader, body io.ReadCloser) {
	timer := time.AfterFunc(restTime, func() { body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, in, maxRest) // one that does not end is closed
	body.Close()
	in.Reset(nil)
	readers.Put(in)
}

// readEvent returns the data of the next event that has any, at most most
// bytes, and notes in at what stands beside it. The error is io.EOF at the end
// of the stream.
func readEvent(in *bufio.Reader, most int, at *reached) ([]byte, error) {
	var data []byte
	size := 0
	for {
		l := readLine(in, most-size)
		if l.long {
			return nil, errTooLarge
		}
		if l.err != nil {
			return nil, l.err
		}
		line := bytes.TrimRight(l.data, "\r\n")
		size += len(line)
		switch {
		case len(line) == 0 && data != nil:
			return data, nil
		case len(line) == 0:
			size = 0
		case bytes.HasPrefix(line, []byte("data:")):
			value := bytes.TrimPrefix(line[len("data:"):], []byte(" "))
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case bytes.HasPrefix(line, []byte("id:")):
			at.last = strings.TrimPrefix(string(line[len("id:"):]), " ")
		case bytes.HasPrefix(line, []byte("retry:")):
			if ms, err := strconv.Atoi(strings.TrimSpace(string(line[len("retry:"):]))); err == nil && ms >= 0 {
				at.wait = min(time.Duration(ms)*time.Millisecond, maxWait)
			}
		}
	}
}

// told takes what a server says during a call.
func (l *link) told(m *message) {
	switch m.Method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if json.Unmarshal(m.Params, &p) == nil {
			l.progressed(&p)
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams
		if json.Unmarshal(m.Params, &p) == nil {
			l.owner.logged(&p)
		}
	case "notifications/cancelled":
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			l.unasked(p.ID)
		}
	case "notifications/tools/list_changed":
		l.stale()
	case "notifications/resources/list_changed":
		l.owner.changed(resources, templates)
	case "notifications/prompts/list_changed":
		l.owner.changed(prompts)
	case "notifications/resources/updated":
		var p mcp.ResourceUpdatedNotificationParams
		if json.Unmarshal(m.Params, &p) == nil {
			l.owner.updated(p.URI)
		}
	}
}

// questioned returns a context that ends when the server cancels the request
// of that id, or with done.
func (l *link) questioned(ctx context.Context, id json.RawMessage) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.questions == nil {
		l.questions = map[string]context.CancelFunc{}
	}
	l.questions[string(id)] = cancel
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.questions, string(id))
	}
}

// unasked cancels a request that the server does not want to be answered.
func (l *link) unasked(id json.RawMessage) {
	l.mu.Lock()
	cancel := l.questions[string(id)]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// asked answers a request that the server makes during a call, unless ctx ends
// first.
func (c *directCall) asked(ctx context.Context, m *message) {
	reply := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: m.ID}
	switch m.Method {
	case "ping":
		reply.Result = struct{}{}
	case methodElicit, methodSample, methodRoots:
		res, err := c.l.answered(ctx, m)
		if err != nil {
			reply.Error = err
		} else {
			reply.Result = res
		}
	default:
		reply.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%.60q is not supported", m.Method)}
	}
	if ctx.Err() == nil || c.ctx.Err() != nil {
		c.tell(reply)
	}
}
