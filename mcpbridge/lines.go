package mcpbridge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A line is what was read up to a line break.
type line struct {
	data []byte
	long bool  // it was longer than allowed, and skipped
	err  error // the input has ended
}

// readLines sends the lines of r, of at most limit bytes, until r ends or quit
// is closed. It cannot be interrupted while r blocks.
func readLines(r io.Reader, limit int, out chan<- line, quit <-chan struct{}) {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		l := readLine(br, limit)
		if l.err == nil && !l.long && len(bytes.TrimSpace(l.data)) == 0 {
			continue
		}
		select {
		case out <- l:
		case <-quit:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads one line. What stands before the end of the input without a
// line break is a line too.
func readLine(br *bufio.Reader, limit int) line {
	var buf []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		if !long && len(buf)+len(part) > limit {
			buf, long = nil, true
		}
		if !long {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(buf) == 0 && !long:
			return line{err: err}
		default: // the error, if any, comes again
			return line{data: buf, long: long}
		}
	}
}

// A lineWriter writes messages, each on a line of its own.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lineWriter) write(data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(append(data, '\n'))
	return err
}

func (w *lineWriter) send(msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return w.write(data)
}
