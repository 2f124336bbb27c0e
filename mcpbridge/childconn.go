package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxAnswer is how many bytes one message of a server may have.
const maxAnswer = 64 << 20

// A childConn is a connection to a server over two streams. It skips what is
// no message (many servers print their logs among them), and a server that
// does not read cannot hold up the caller beyond its deadline.
type childConn struct {
	log   *slog.Logger
	lines chan line
	out   chan []byte
	quit  chan struct{}
	close func() // ends the streams; called once
	once  sync.Once
	queue []jsonrpc.Message // of the reader alone
	stray func(text string) // is told what is no message; nil: nobody is
	tally *tally

	mu       sync.Mutex
	broken   error        // why writing failed
	discover []jsonrpc.ID // calls of server/discover that wait for an answer
	silent   chan jsonrpc.ID
}

func newChildConn(r io.Reader, w io.Writer, stop func(), log *slog.Logger) *childConn {
	c := &childConn{log: log, lines: make(chan line), out: make(chan []byte), quit: make(chan struct{}), close: stop,
		silent: make(chan jsonrpc.ID, 1)}
	go readLines(r, maxAnswer, c.lines, c.quit)
	go c.writeAll(w)
	return c
}

func (c *childConn) writeAll(w io.Writer) {
	for {
		select {
		case data := <-c.out:
			if _, err := w.Write(data); err != nil {
				c.mu.Lock()
				c.broken = err
				c.mu.Unlock()
				c.Close()
				return
			}
		case <-c.quit:
			return
		}
	}
}

// SessionID returns "": the streams are the session.
func (c *childConn) SessionID() string { return "" }

// Close ends the connection at once.
func (c *childConn) Close() error {
	c.once.Do(func() {
		close(c.quit)
		c.close()
	})
	return nil
}

// Read returns the next message.
func (c *childConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		select {
		case l := <-c.lines:
			switch {
			case l.err != nil:
				return nil, l.err
			case l.long:
				return nil, errTooLarge
			}
			if data := bytes.TrimSpace(wellFormed(bytes.TrimPrefix(l.data, mark))); len(data) > 0 {
				c.accept(data)
			}
		case id := <-c.silent:
			return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: "no answer to server/discover"}}, nil
		case <-c.quit:
			return nil, io.EOF
		}
	}
}

// mark is what some programs begin their output with, to say that it is UTF-8.
var mark = []byte("\ufeff")

// wellFormed returns a text with U+FFFD in place of what is no UTF-8: what a
// server sends is passed on as it came, and a client that may not read one
// answer would lose the connection, and with it all other servers.
func wellFormed(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

func (c *childConn) accept(data []byte) {
	parts := []json.RawMessage{data}
	if data[0] == '[' && json.Unmarshal(data, &parts) != nil {
		parts = nil
	}
	for _, part := range parts {
		msg, err := jsonrpc.DecodeMessage(part)
		if id, ok := answered(part); err != nil && ok { // whoever waits for it need not wait in vain
			msg, err = &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError,
				Message: "its answer cannot be read: " + unread(err)}}, nil
		}
		if err != nil {
			text := cut(printable(string(data)), maxLogLine)
			c.log.Debug("the server printed what is no message", "text", text)
			if c.stray != nil {
				c.stray(text)
			}
			return
		}
		if isProgress(msg) {
			c.tally.arrive(1)
		}
		c.queue = append(c.queue, msg)
	}
}

var answerTo = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:`)

// answered returns the id of the call that a text means to answer, by how it
// begins.
func answered(text []byte) (jsonrpc.ID, bool) {
	m := answerTo.FindSubmatch(text[:min(len(text), 200)])
	if m == nil {
		return jsonrpc.ID{}, false
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(float64(n))
	return id, err == nil
}

// Write sends a message, or gives up when ctx ends.
func (c *childConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(trueName(msg))
	if err != nil {
		return err
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == "server/discover" {
		c.mu.Lock()
		c.discover = append(c.discover, req.ID)
		c.mu.Unlock()
	}
	select {
	case c.out <- append(data, '\n'):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.quit:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.broken != nil {
			return c.broken
		}
		return io.ErrClosedPipe
	}
}

// giveUpDiscovery answers in place of a server that ignores server/discover,
// as old ones may, so that the library goes on as with an old server.
func (c *childConn) giveUpDiscovery() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.discover {
		select {
		case c.silent <- id:
		default:
		}
	}
	c.discover = nil
}
