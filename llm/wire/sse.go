package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines reads lines that end with LF, CR or CRLF, however they are cut into
// reads. A line is returned as soon as its end is there.
type lines struct {
	r      *bufio.Reader
	buf    []byte
	sawCR  bool
	opened bool
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns the next line, valid until the next call, and whether its end
// was there: the last line of a stream may lack it. io.EOF comes with no line.
func (l *lines) next() (line []byte, ended bool, err error) {
	l.buf = l.buf[:0]
	for {
		b, err := l.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return l.buf, false, nil
		case err != nil:
			return nil, false, err
		case b == '\n' && l.sawCR:
			l.sawCR = false
			continue
		}
		l.sawCR = b == '\r'
		if b == '\n' || b == '\r' {
			return l.first(l.buf), true, nil
		}
		if len(l.buf) == MaxEvent {
			return nil, false, errTooLong
		}
		l.buf = append(l.buf, b)
	}
}

// first takes a byte order mark off the first line.
func (l *lines) first(line []byte) []byte {
	if !l.opened {
		l.opened = true
		return bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return line
}

var errTooLong = fmt.Errorf("an event is longer than %d MB", MaxEvent>>20)

// eachEvent gives every event of a stream to a decoder.
func eachEvent(r io.Reader, d Decoder) error {
	l := newLines(r)
	var name string
	var data []byte
	some := false
	for {
		line, ended, err := l.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if value, ok := field(line, "data"); ok {
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		} else if value, ok := field(line, "event"); ok {
			name = string(value)
		}
		if len(data) > MaxEvent {
			return errTooLong
		}
		if (err != nil || !ended || len(line) == 0) && some { // servers leave out the last empty line
			if err := d.Event(name, data); err != nil {
				return err
			}
		}
		if err != nil || !ended {
			return d.End()
		}
		if len(line) == 0 {
			name, data, some = "", data[:0], false
		}
	}
}

// field returns the value of a line if it is of that field.
func field(line []byte, name string) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(name))
	if !ok {
		return nil, false
	}
	if len(rest) == 0 {
		return nil, true
	}
	if rest[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(rest[1:], []byte(" ")), true
}

// eachLine gives every line that is not empty to a decoder.
func eachLine(r io.Reader, d Decoder) error {
	l := newLines(r)
	for {
		line, _, err := l.next()
		if errors.Is(err, io.EOF) {
			return d.End()
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := d.Event("", line); err != nil {
			return err
		}
	}
}
