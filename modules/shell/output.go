package shell

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// capture keeps the beginning and the end of a stream, half of its room each.
type capture struct {
	half       int
	head, tail []byte
	total      int
}

func newCapture(room int) *capture { return &capture{half: room / 2} }

// Write never fails, so that a command is not ended by what it prints.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += n
	fits := min(n, c.half-len(c.head))
	c.head, p = append(c.head, p[:fits]...), p[fits:]
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*c.half {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.half:]...)
	}
	return n, nil
}

// text returns what was kept, at most so many bytes, as clean text with the
// cut marked.
func (c *capture) text(most int) string {
	tail := c.tail
	if c.total <= min(most, 2*c.half) {
		return clean(string(c.head) + string(tail))
	}
	half := min(most/2, c.half)
	head := c.head[:min(half, len(c.head))]
	if len(c.tail) < half { // the end lies in both
		tail = append(c.head[len(head):len(c.head):len(c.head)], tail...)
	}
	tail = tail[max(0, len(tail)-half):]
	before, after := wholeHead(head), wholeTail(tail)
	left := c.total - len(before) - len(after)
	return fmt.Sprintf("%s[… %d of %d bytes left out …]\n%s", line(clean(string(before))), left, c.total, clean(string(after)))
}

// wholeHead drops a character of which the cut left only the beginning.
func wholeHead(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// wholeTail drops a character of which the cut left only the end.
func wholeTail(b []byte) []byte {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// escapes are the sequences by which programs move a terminal's cursor, choose
// colours and set titles.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])`)

// clean makes output text: valid UTF-8, without escape sequences and without
// control characters other than tabs and the ends of lines.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' {
			return -1
		}
		return r
	}, s)
}

// line ends text with a line break, unless it is empty.
func line(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// render writes a result as SPEC S4 has it.
func render(code int, stdout, stderr string) string {
	return fmt.Sprintf("exit_code: %d\nstdout:\n%sstderr:\n%s", code, line(stdout), stderr)
}
