package shell

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/helve-ai/helve/sandbox"
)

// text returns what was kept of a stream, at most so many bytes, as clean text
// with the cut marked.
func text(o *sandbox.Output, most int) string {
	head, tail, cut := o.Kept(most)
	if cut == 0 {
		return clean(string(head))
	}
	before, after := wholeHead(head), wholeTail(tail)
	left := o.Total() - len(before) - len(after)
	return fmt.Sprintf("%s[… %d of %d bytes left out …]\n%s", line(clean(string(before))), left, o.Total(), clean(string(after)))
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
