package tensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A message is a protocol buffer in a file, read field by field. What is long
// is left where it is.
type message struct {
	r       io.ReaderAt
	at, end int64
	window  *window
	err     error
}

// A window is the part of the file that was read last.
type window struct {
	buf  [4096]byte
	from int64
	n    int
}

// A field is one of a message: a number, or bytes from at to end.
type field struct {
	number  int
	value   uint64
	at, end int64
}

// The wire types of protocol buffers.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

var errEndsEarly = errors.New("a message ends early")

// next reads the next field; it returns false at the end and after an error.
func (m *message) next(f *field) bool {
	if m.err != nil || m.at >= m.end {
		return false
	}
	key := m.varint()
	*f = field{number: int(key >> 3)}
	switch key & 7 {
	case wireVarint:
		f.value = m.varint()
	case wire64:
		m.skip(f, 8)
	case wire32:
		m.skip(f, 4)
	case wireBytes:
		m.skip(f, m.varint())
	default:
		m.fail(fmt.Errorf("a field of the wire type %d", key&7))
	}
	return m.err == nil
}

func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *message) skip(f *field, n uint64) {
	if n > uint64(m.end-m.at) {
		m.fail(errEndsEarly)
		return
	}
	f.at, f.end = m.at, m.at+int64(n)
	m.at = f.end
}

func (m *message) varint() uint64 {
	var buf [binary.MaxVarintLen64]byte
	n := int(min(int64(len(buf)), m.end-m.at))
	if err := m.peek(buf[:n]); err != nil {
		m.fail(err)
		return 0
	}
	v, used := binary.Uvarint(buf[:n])
	if used <= 0 {
		m.fail(errEndsEarly)
		return 0
	}
	m.at += int64(used)
	return v
}

// peek reads what comes next without going on.
func (m *message) peek(dst []byte) error {
	w := m.window
	if m.at < w.from || m.at+int64(len(dst)) > w.from+int64(w.n) {
		n, err := m.r.ReadAt(w.buf[:], m.at)
		if err != nil && (err != io.EOF || n < len(dst)) {
			return err
		}
		w.from, w.n = m.at, n
	}
	copy(dst, w.buf[m.at-w.from:])
	return nil
}

// in returns the message that a field holds.
func (m *message) in(f *field) *message {
	return &message{r: m.r, at: f.at, end: f.end, window: m.window}
}

// maxText bounds names and small values.
const maxText = 1 << 16

func (m *message) text(f *field) string {
	if f.end-f.at > maxText {
		m.fail(fmt.Errorf("a text of %d bytes", f.end-f.at))
		return ""
	}
	b := make([]byte, f.end-f.at)
	if _, err := m.r.ReadAt(b, f.at); err != nil && len(b) > 0 {
		m.fail(err)
	}
	return string(b)
}

// numbers appends what a repeated field of varints holds, packed or not.
func (m *message) numbers(out []int, f *field) []int {
	if f.end == 0 {
		return append(out, int(f.value))
	}
	in := m.in(f)
	for in.at < in.end && in.err == nil {
		out = append(out, int(in.varint()))
	}
	if in.err != nil {
		m.fail(in.err)
	}
	return out
}
