package mcpbridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// The transport of the library of Go hands each request from goroutine to
// goroutine, twice on its way and once back, and the waking of their threads
// costs more than the request. So a direct call to a server without TLS is
// written and read by the goroutine that makes it, in the library's form.

const (
	maxWritten = 16 << 10 // bytes of a request that no server must have begun to read
	dialTime   = 30 * time.Second
	idleTime   = time.Minute
	maxInforms = 5 // answers of the kind 1xx before the one
)

// An exchange is a request that did not come through the protocol's library.
type exchange struct {
	parks    bool // its connection can wait with the end of the answer unread
	answered bool // what is left of the answer is of no interest
}

// conns are the connections to one server.
type conns struct {
	addr  string
	wait  time.Duration // for the headers of an answer
	most  int64         // bytes of them
	mu    sync.Mutex
	idle  []*conn // the last used last
	swept bool    // a sweep is due
	shut  bool
}

// A conn is a connection, in use by one request or by none.
type conn struct {
	net.Conn
	raw   syscall.RawConn
	in    *bufio.Reader
	out   *bufio.Writer
	left  int64     // bytes of headers that may still be read; negative: no bound
	now   bool      // only what has come is read
	rest  io.Reader // of an answer that was not read to its end
	since time.Time // when its use ended
}

func (c *conn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, errors.New("the headers of the answer are too large")
	}
	if c.left > 0 {
		p = p[:min(int64(len(p)), c.left)]
	}
	read := c.Conn.Read
	if c.now {
		read = c.readNow
	}
	n, err := read(p)
	if c.left > 0 {
		c.left -= int64(n)
	}
	return n, err
}

// take returns a connection that is ready for a request.
func (cs *conns) take(ctx context.Context) (*conn, error) {
	var later []*conn
	for {
		cs.mu.Lock()
		n := len(cs.idle)
		if n == 0 {
			cs.idle = append(cs.idle, later...)
			cs.mu.Unlock()
			break
		}
		c := cs.idle[n-1]
		cs.idle[n-1], cs.idle = nil, cs.idle[:n-1]
		cs.mu.Unlock()
		switch c.state() {
		case ready:
			if len(later) > 0 {
				cs.mu.Lock()
				cs.idle = append(later, cs.idle...)
				cs.mu.Unlock()
			}
			return c, nil
		case unfinished:
			later = append(later, c)
		default:
			c.Close()
		}
	}
	dialer := net.Dialer{Timeout: dialTime}
	plain, err := dialer.DialContext(ctx, "tcp", cs.addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: plain}
	if c.raw, err = plain.(*net.TCPConn).SyscallConn(); err != nil {
		plain.Close()
		return nil, err
	}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(plain)
	return c, nil
}

// The states of a connection that waits.
const (
	ready      = iota
	unfinished // the end of the last answer has not come yet
	spoilt     // the server has closed it, or sent what nobody asked for
)

// state reads what is left of the last answer, if it has come.
func (c *conn) state() int {
	if c.rest != nil {
		if c.in.Buffered() == 0 && c.quiet() {
			return unfinished
		}
		c.now = true
		n, err := io.Copy(io.Discard, io.LimitReader(c.rest, maxRest))
		if err != nil || n == maxRest {
			return spoilt
		}
		c.now, c.rest = false, nil
	}
	if c.in.Buffered() > 0 || !c.quiet() {
		return spoilt
	}
	return ready
}

// give takes back a connection.
func (cs *conns) give(c *conn) {
	c.since = time.Now()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.shut || len(cs.idle) >= idleConns {
		c.Close()
		return
	}
	cs.idle = append(cs.idle, c)
	if !cs.swept {
		cs.swept = true
		time.AfterFunc(restTime, cs.sweep)
	}
}

// sweep closes the connections that have waited for too long: those whose
// answer does not end, and those that nobody uses.
func (cs *conns) sweep() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := cs.idle[:0]
	for _, c := range cs.idle {
		if age := time.Since(c.since); age >= idleTime || c.rest != nil && age >= restTime && c.state() != ready {
			c.Close()
		} else {
			kept = append(kept, c)
		}
	}
	clear(cs.idle[len(kept):])
	cs.idle = kept
	if cs.swept = len(kept) > 0; cs.swept {
		time.AfterFunc(restTime, cs.sweep)
	}
}

func (cs *conns) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.shut = true
	for _, c := range cs.idle {
		c.Close()
	}
	cs.idle = nil
}

// suits reports whether a request can be made so: a server that answers before
// it has read all of a large one would wait for us as we do for it.
func (cs *conns) suits(r *http.Request) bool {
	return cs != nil && r.Method == http.MethodPost && r.ContentLength > 0 && r.ContentLength <= maxWritten
}

// long is when a deadline has passed.
var long = time.Unix(1, 0)

// roundTrip makes a request. Its context ends the answer, too.
func (cs *conns) roundTrip(r *http.Request, ex *exchange) (_ *http.Response, err error) {
	ctx := r.Context()
	c, err := cs.take(ctx)
	if err != nil {
		r.Body.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(long) })
	defer func() {
		if err != nil {
			stop()
			c.Close()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
		}
	}()
	if cs.wait > 0 {
		if err := c.SetReadDeadline(time.Now().Add(cs.wait)); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil { // the deadline that ends it may have been overwritten
		return nil, context.Cause(ctx)
	}
	if err := r.Write(c.out); err != nil {
		return nil, err
	}
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	resp, err := c.answer(r, cs.most)
	if err != nil {
		var late net.Error
		if errors.As(err, &late) && late.Timeout() && ctx.Err() == nil {
			err = fmt.Errorf("the server has not begun to answer after %s", cs.wait)
		}
		return nil, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // as above
		return nil, context.Cause(ctx)
	}
	ex.parks = true
	resp.Body = &connBody{ReadCloser: resp.Body, conns: cs, conn: c, ctx: ctx, stop: stop, ex: ex, keep: !resp.Close}
	return resp, nil
}

// answer reads the head of an answer.
func (c *conn) answer(r *http.Request, most int64) (*http.Response, error) {
	c.left = most
	defer func() { c.left = -1 }()
	for range maxInforms {
		resp, err := http.ReadResponse(c.in, r)
		switch {
		case err == io.ErrUnexpectedEOF || err == io.EOF:
			return nil, errors.New("the server closed the connection before it answered")
		case err != nil || resp.StatusCode >= 200:
			return resp, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the server wants to speak another protocol")
		}
	}
	return nil, errors.New("the server announces its answer again and again")
}

// A connBody is the body of an answer; its end gives the connection back.
type connBody struct {
	io.ReadCloser
	conns *conns
	conn  *conn
	ctx   context.Context
	stop  func() bool
	ex    *exchange
	keep  bool
	once  sync.Once
}

func (b *connBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.over(true)
	case err != nil:
		b.over(false)
		if b.ctx.Err() != nil {
			err = context.Cause(b.ctx)
		}
	}
	return n, err
}

// Close ends the answer. It is not called beside Read.
func (b *connBody) Close() error {
	b.over(false)
	return nil
}

func (b *connBody) over(ended bool) {
	b.once.Do(func() {
		switch {
		case !b.stop() || !b.keep || !ended && !b.ex.answered: // it may have a deadline
			b.conn.Close()
		case ended:
			b.conns.give(b.conn)
		default:
			b.conn.rest = b.ReadCloser
			b.conns.give(b.conn)
		}
	})
}
