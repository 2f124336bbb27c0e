package mcpbridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
)

const (
	maxMessage = 16 << 20 // bytes of one message from a client

	drainInput = time.Minute     // how long calls are waited for after the input has ended
	drainStop  = 5 * time.Second // and after the server was told to stop
	linger     = 2 * time.Second // how long cancelled calls may take to return
)

// ServeStdio serves one client that writes to in and reads from out, each
// message on a line of its own. It returns nil when in has ended and the calls
// in flight have been answered (or a minute has passed) or the client has
// closed out, ctx's error when ctx
// has ended (the calls are given five seconds), or what broke the connection.
// A read from in that blocks is left behind.
//
// Nothing but messages is written to out. What is not a message is answered
// with the protocol's error, and the connection goes on.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, mode inject.Mode) error {
	s.mu.Lock()
	if s.stopping() {
		s.mu.Unlock()
		return errors.New("the MCP server has been closed")
	}
	s.stdio.Add(1)
	s.mu.Unlock()
	defer s.stdio.Done()
	c := newStdioConn(in, out)
	e := s.endpoint(mode)
	session, err := e.server.Connect(context.WithoutCancel(ctx), oneConn{c}, nil)
	if err != nil {
		return err
	}
	defer func() { s.ended(e.originOf(session)) }()
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	stop := context.AfterFunc(ctx, func() { c.stop(drainStop) })
	defer stop()
	defer c.Close()
	defer s.handles.leave(c.session, linger)
	for drained := c.drained; ; {
		select {
		case err = <-ended:
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE):
				return nil // the client has left
			}
			return err
		case <-drained: // calls that do not heed their cancellation are left behind
			drained = nil
			timer := time.AfterFunc(linger, func() { ended <- ctx.Err() })
			defer timer.Stop()
		case <-s.stop:
			c.stop(drainStop)
			select {
			case <-c.drained:
			case <-ended: // it was over anyway
			}
			return nil
		}
	}
}

// oneConn is a transport that is connected already.
type oneConn struct{ mcp.Connection }

func (t oneConn) Connect(context.Context) (mcp.Connection, error) { return t.Connection, nil }

// A stdioConn is a connection to a client over two streams. Unlike the
// library's it outlives bad input, and it ends only when the calls that it
// delivered have been answered.
type stdioConn struct {
	out     lineWriter
	session string
	lines   chan line
	quit    chan struct{} // closed: nothing more is read or written
	drained chan struct{} // closed: the reader was told that the input has ended
	closing sync.Once
	halt    chan time.Duration // how long calls are waited for

	queue []jsonrpc.Message // the rest of a batch; of the reader alone

	mu       sync.Mutex
	listens  listens
	inFlight map[jsonrpc.ID]*batch // nil: not part of a batch
	parked   map[jsonrpc.ID]bool   // never answered of themselves
	unwanted map[jsonrpc.ID]bool   // given up by the client: not to be answered
	writing  int                   // answers on their way
	changed  chan struct{}         // closed when a call has been answered
	version  string                // as negotiated; "": not yet
	starting jsonrpc.ID            // the initialize request
}

// A batch is an array of messages, answered by an array (until 2025-03-26).
type batch struct {
	waiting int
	answers []json.RawMessage
}

func newStdioConn(in io.Reader, out io.Writer) *stdioConn {
	c := &stdioConn{
		out: lineWriter{w: out}, session: rand.Text(), lines: make(chan line), quit: make(chan struct{}),
		drained: make(chan struct{}), halt: make(chan time.Duration, 1), inFlight: map[jsonrpc.ID]*batch{},
		parked: map[jsonrpc.ID]bool{}, unwanted: map[jsonrpc.ID]bool{}, changed: make(chan struct{}),
	}
	go readLines(in, maxMessage, c.lines, c.quit)
	return c
}

// SessionID names the connection: it is the session of its calls.
func (c *stdioConn) SessionID() string { return c.session }

// Close ends the connection at once.
func (c *stdioConn) Close() error {
	c.closing.Do(func() { close(c.quit) })
	return nil
}

// stop ends the input, and waits at most that long for the calls in flight.
func (c *stdioConn) stop(wait time.Duration) {
	select {
	case c.halt <- wait:
	default:
	}
}

// Read returns the next message. It answers itself what is none.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		select {
		case l := <-c.lines:
			if l.err != nil {
				return nil, c.drain(drainInput, l.err)
			}
			if err := c.accept(l); err != nil {
				return nil, err
			}
		case wait := <-c.halt:
			return nil, c.drain(wait, io.EOF)
		case <-c.quit:
			return nil, io.EOF
		}
	}
}

// drain waits until every call has been answered. Then it returns err.
func (c *stdioConn) drain(most time.Duration, err error) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	defer close(c.drained)
	for {
		c.mu.Lock()
		waiting, changed := len(c.inFlight)-len(c.parked)+c.writing, c.changed
		c.mu.Unlock()
		if waiting == 0 {
			return err
		}
		select {
		case <-changed:
		case wait := <-c.halt:
			timer.Reset(wait)
		case <-timer.C:
			return err
		case <-c.quit:
			return err
		}
	}
}

// accept queues the messages on a line. The error is that of writing an answer.
func (c *stdioConn) accept(l line) error {
	data := bytes.TrimSpace(l.data)
	switch {
	case l.long:
		return c.out.write(refusal(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message may have at most %d bytes", maxMessage)))
	case !json.Valid(data):
		return c.out.write(refusal(nil, jsonrpc.CodeParseError, "parse error: not JSON"))
	case data[0] == '[':
		return c.acceptBatch(data)
	}
	msg, bad := c.decode(data, nil)
	if bad != nil {
		return c.out.write(bad)
	}
	c.queue = append(c.queue, c.seen(msg)...)
	return nil
}

// seen returns what the library is to see of a message.
func (c *stdioConn) seen(msg jsonrpc.Message) []jsonrpc.Message {
	if req, ok := msg.(*jsonrpc.Request); !ok || req.Method != "notifications/cancelled" {
		return []jsonrpc.Message{msg}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := cancelledBy(msg)
	if b, open := c.inFlight[id]; ok && open && b == nil && !c.parked[id] && id != c.starting {
		c.unwanted[id] = true
	}
	return c.listens.cancelled(msg)
}

// lastBatches is the first revision without batches.
const lastBatches = "2025-06-18"

func (c *stdioConn) acceptBatch(data []byte) error {
	version := c.negotiated()
	var parts []json.RawMessage
	switch err := json.Unmarshal(data, &parts); {
	case version >= lastBatches:
		return c.out.write(refusal(nil, jsonrpc.CodeInvalidRequest, "revision "+version+" has no batches: send each message on a line of its own"))
	case err != nil || len(parts) == 0:
		return c.out.write(refusal(nil, jsonrpc.CodeInvalidRequest, "invalid request: an empty batch"))
	}
	b := &batch{}
	var msgs []jsonrpc.Message
	for _, part := range parts {
		msg, bad := c.decode(part, b)
		if bad != nil {
			b.answers = append(b.answers, bad)
			continue
		}
		msgs = append(msgs, msg)
	}
	c.queue = append(c.queue, msgs...)
	if b.waiting == 0 && len(b.answers) > 0 {
		return c.out.write(joinArray(b.answers))
	}
	return nil
}

// negotiated returns the revision, "" if there is none yet. If one is being
// negotiated, it waits for that.
func (c *stdioConn) negotiated() string {
	for {
		c.mu.Lock()
		_, starting := c.inFlight[c.starting]
		version, changed := c.version, c.changed
		c.mu.Unlock()
		if !starting {
			return version
		}
		select {
		case <-changed:
		case <-c.quit:
			return version
		}
	}
}

// listensEnded waits until the library has ended the listens whose end it has
// seen: it would take the next for one of them.
func (c *stdioConn) listensEnded() {
	for {
		c.mu.Lock()
		waiting := slices.ContainsFunc(c.listens.late, func(id jsonrpc.ID) bool { return c.parked[id] })
		changed := c.changed
		if !waiting {
			c.listens.late = nil
		}
		c.mu.Unlock()
		if !waiting {
			return
		}
		select {
		case <-changed:
		case <-c.quit:
			return
		}
	}
}

// decode returns the message, or the answer to what is none. A call counts as
// in flight from here on.
func (c *stdioConn) decode(data []byte, b *batch) (jsonrpc.Message, json.RawMessage) {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if data[0] != '{' || json.Unmarshal(data, &head) != nil {
		return nil, refusal(nil, jsonrpc.CodeInvalidRequest, "invalid request: not an object")
	}
	if head.ID != nil && !validID(head.ID) {
		return nil, refusal(nil, jsonrpc.CodeInvalidRequest, "invalid request: the id is neither a string nor an integer")
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, refusal(head.ID, jsonrpc.CodeInvalidRequest, "invalid request: "+err.Error())
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return msg, nil
	}
	if req.Method == methodListen {
		c.listensEnded()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.inFlight[req.ID]; taken {
		return nil, refusal(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: the id %v is in use", req.ID.Raw()))
	}
	if req.Method == methodListen {
		p := listenParams(req.Params)
		if err := p.refused(); err != nil {
			data, _ := encodeResponse(&jsonrpc.Response{ID: req.ID, Error: err}) // of strings
			return nil, data
		}
		if !c.listens.begin(req) {
			return nil, refusal(head.ID, jsonrpc.CodeInvalidRequest, fmt.Sprintf("no more than %d subscriptions at a time", maxListens))
		}
		c.parked[req.ID] = true
	}
	c.inFlight[req.ID] = b
	if b != nil {
		b.waiting++
	}
	if req.Method == "initialize" {
		c.starting = req.ID
	}
	return msg, nil
}

// maxInteger is the largest integer that every JSON reader keeps.
const maxInteger = 1<<53 - 1

// validID reports whether an id can be sent back as it came.
func validID(raw json.RawMessage) bool {
	if raw[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && n <= maxInteger && n >= -maxInteger
}

// refusal is the answer to what cannot be processed. A nil id is that of a
// request whose id cannot be told.
func refusal(id json.RawMessage, code int, message string) json.RawMessage {
	if id == nil {
		id = json.RawMessage("null")
	}
	if len(message) > 500 {
		message = message[:500] + "…"
	}
	text, err := json.Marshal(message)
	if err != nil {
		text = []byte(`""`)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, text)
}

func joinArray(parts []json.RawMessage) []byte {
	all := make([][]byte, len(parts))
	for i, p := range parts {
		all[i] = p
	}
	return append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']')
}

// Write sends a message; an answer to a part of a batch waits for the others.
func (c *stdioConn) Write(_ context.Context, msg jsonrpc.Message) error {
	select {
	case <-c.quit:
		return io.ErrClosedPipe
	default:
	}
	res, ok := msg.(*jsonrpc.Response)
	if !ok {
		c.mu.Lock()
		all := c.listens.told(msg)
		c.mu.Unlock()
		for _, msg := range all {
			if err := c.out.send(msg); err != nil {
				return err
			}
		}
		return nil
	}
	data, err := encodeResponse(res)
	if err != nil {
		return err
	}
	defer c.written()
	if data = c.answered(res, data); data == nil {
		return nil
	}
	return c.out.write(data)
}

// answered forgets the call that res answers, whose id may come again as soon
// as the answer is written, and learns the negotiated revision. It returns
// what is to be written: nothing if other answers of the batch are missing, or
// the client has given the call up.
func (c *stdioConn) answered(res *jsonrpc.Response, data json.RawMessage) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing++
	if c.starting.IsValid() && res.ID == c.starting && res.Error == nil {
		var result struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(res.Result, &result) == nil {
			c.version = result.Version
		}
	}
	b := c.inFlight[res.ID]
	delete(c.inFlight, res.ID)
	delete(c.parked, res.ID)
	unwanted := c.unwanted[res.ID]
	delete(c.unwanted, res.ID)
	c.listens.end(res.ID)
	switch {
	case unwanted:
		return nil
	case b == nil:
		return data
	}
	b.answers = append(b.answers, data)
	if b.waiting--; b.waiting > 0 {
		return nil
	}
	return joinArray(b.answers)
}

// written notes that an answer is on its way no longer.
func (c *stdioConn) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	close(c.changed)
	c.changed = make(chan struct{})
}

// encodeResponse gives an error without a code one, and a response without an
// id the null that JSON-RPC asks for.
func encodeResponse(res *jsonrpc.Response) (json.RawMessage, error) {
	var coded *jsonrpc.Error
	if res.Error != nil && !errors.As(res.Error, &coded) {
		r := *res
		r.Error = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: res.Error.Error()}
		res = &r
	}
	if !res.ID.IsValid() && res.Error != nil {
		code := jsonrpc.CodeInvalidRequest
		if coded != nil {
			code = int(coded.Code)
		}
		return refusal(nil, code, res.Error.Error()), nil
	}
	return jsonrpc.EncodeMessage(res)
}
