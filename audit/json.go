package audit

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Beyond what JSON asks for, DEL and
// the C1 controls are escaped, so that a line may be shown on a terminal.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < 0x7f {
			i++
			continue
		}
		size := 1
		if b >= utf8.RuneSelf {
			var plain bool
			if size, plain = runeAt(s, i); plain {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscaped(dst, s, i, size)
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// runeAt returns the length of what stands at s[i], and whether it may be
// written as it is: it is UTF-8 and no control.
func runeAt[T string | []byte](s T, i int) (size int, plain bool) {
	var window [utf8.UTFMax]byte
	n := copy(window[:], s[i:])
	r, size := utf8.DecodeRune(window[:n])
	return size, (r != utf8.RuneError || size > 1) && r > 0x9f
}

// appendEscaped appends the escape of the size bytes at s[i].
func appendEscaped[T string | []byte](dst []byte, s T, i, size int) []byte {
	b := s[i]
	if b >= utf8.RuneSelf {
		if size == 1 {
			return append(dst, "\uFFFD"...)
		}
		b = s[i+1] // C1 controls are the byte C2 and their own number
	}
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}

// maxDepth bounds the nesting of arguments that are kept as JSON.
const maxDepth = 500

// appendCompact appends the JSON value src without its spaces and with its
// strings in UTF-8. It is false, and appends nothing, if src is not JSON.
//
// It is json.Valid and json.Compact in one pass, which this path cannot afford
// apart: a fuzz test holds it to them.
func appendCompact(dst, src []byte) ([]byte, bool) {
	c := compactor{src: src, dst: dst}
	c.space()
	if !c.value(0) {
		return dst, false
	}
	if c.space(); c.i != len(src) {
		return dst, false
	}
	return c.dst, true
}

type compactor struct {
	src, dst []byte
	i        int
}

func (c *compactor) space() {
	for c.i < len(c.src) {
		switch c.src[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (c *compactor) peek() byte {
	if c.i < len(c.src) {
		return c.src[c.i]
	}
	return 0
}

// accept takes the byte b if it is next.
func (c *compactor) accept(b byte) bool {
	if c.peek() != b || c.i == len(c.src) {
		return false
	}
	c.i++
	c.dst = append(c.dst, b)
	return true
}

func (c *compactor) value(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch b := c.peek(); b {
	case '{':
		return c.list('}', depth)
	case '[':
		return c.list(']', depth)
	case '"':
		return c.text()
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		return c.number()
	}
}

// list takes an object or an array, which ends with end.
func (c *compactor) list(end byte, depth int) bool {
	c.accept(c.peek())
	c.space()
	if c.accept(end) {
		return true
	}
	for {
		if end == '}' {
			if c.peek() != '"' || !c.text() {
				return false
			}
			if c.space(); !c.accept(':') {
				return false
			}
			c.space()
		}
		if !c.value(depth + 1) {
			return false
		}
		c.space()
		if c.accept(end) {
			return true
		}
		if !c.accept(',') {
			return false
		}
		c.space()
	}
}

func (c *compactor) word(w string) bool {
	if len(c.src)-c.i < len(w) || string(c.src[c.i:c.i+len(w)]) != w {
		return false
	}
	c.i += len(w)
	c.dst = append(c.dst, w...)
	return true
}

func (c *compactor) number() bool {
	c.accept('-')
	if !c.accept('0') && !c.digits() {
		return false
	}
	if c.accept('.') && !c.digits() {
		return false
	}
	if c.accept('e') || c.accept('E') {
		if !c.accept('+') {
			c.accept('-')
		}
		return c.digits()
	}
	return true
}

func (c *compactor) digits() bool {
	start := c.i
	for b := c.peek(); b >= '0' && b <= '9'; b = c.peek() {
		c.i++
	}
	c.dst = append(c.dst, c.src[start:c.i]...)
	return c.i > start
}

// text takes a string, whose opening quote is next.
func (c *compactor) text() bool {
	c.accept('"')
	start := c.i
	for c.i < len(c.src) {
		b := c.src[c.i]
		switch {
		case b == '"':
			c.i++
			c.dst = append(c.dst, c.src[start:c.i]...)
			return true
		case b == '\\':
			n := escapeLen(c.src[c.i:])
			if n == 0 {
				return false
			}
			c.i += n
		case b < ' ':
			return false
		case b < 0x7f:
			c.i++
		default:
			size, plain := 1, false
			if b >= utf8.RuneSelf {
				size, plain = runeAt(c.src, c.i)
			}
			if !plain {
				c.dst = append(c.dst, c.src[start:c.i]...)
				c.dst = appendEscaped(c.dst, c.src, c.i, size)
				start = c.i + size
			}
			c.i += size
		}
	}
	return false
}

// escapeLen returns the length of the escape at the start of s, 0 if it is none.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, b := range s[2:6] {
			if !('0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}
