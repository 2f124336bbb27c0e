package parse

import (
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// repair returns the JSON that s seems to mean. What it does to s is small
// things first: control characters within strings; Python's spelling; then
// missing quotes, commas and closers.
func repair(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || !shallow(s) {
		return "", false
	}
	if json.Valid([]byte(s)) {
		return s, true
	}
	if v := escapeControls(s); v != s && json.Valid([]byte(v)) {
		return v, true
	}
	if s[0] == '{' || s[0] == '[' {
		if v, end, err := literal(s, 0); err == nil && skipSpace(s, end) == len(s) {
			return string(v), true
		}
	}
	if v, ok := repairMore(s); ok {
		return v, true
	}
	return repairMore(escapeControls(s))
}

func repairMore(s string) (string, bool) {
	hidden, show := hideEscapes(s)
	v, err := jsonrepair.Repair(hidden)
	if err != nil {
		return "", false
	}
	v = strings.TrimSpace(show(v))
	return v, v != "" && json.Valid([]byte(v))
}

// escaped are the characters that follow a backslash in JSON; firstHidden is
// the first of the private characters that stand for such pairs meanwhile.
const (
	escaped     = `"\/bfnrtu`
	firstHidden = '\U000F5E00'
)

// hideEscapes replaces the escapes in the strings of s by characters that are
// none, and returns what brings them back. The repairer would take them for
// something else: a string with many of them for a path, whose backslashes it
// doubles, and an escaped quote for the end of one.
func hideEscapes(s string) (hidden string, show func(string) string) {
	same := func(s string) string { return s }
	if q := strings.IndexByte(s, '"'); q < 0 || q > 0 && s[q-1] == '\\' || strings.ContainsFunc(s, isHidden) {
		return s, same // it is all within a string, or could not be told apart
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if at := strings.IndexByte(escaped, s[i+1]); at >= 0 && (s[i+1] != 'u' || isUnicodeEscape(s[i:])) {
				b.WriteRune(firstHidden + rune(at))
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if isHidden(r) {
				b.WriteByte('\\')
				r = rune(escaped[r-firstHidden])
			}
			b.WriteRune(r)
		}
		return b.String()
	}
}

func isHidden(r rune) bool { return r >= firstHidden && r < firstHidden+rune(len(escaped)) }

// isUnicodeEscape reports whether s begins with a \u escape that is whole.
func isUnicodeEscape(s string) bool {
	return len(s) >= 6 && strings.Trim(s[2:6], "0123456789abcdefABCDEF") == ""
}

// shallow reports whether the brackets of s nest at most so deep as
// any reader should follow.
func shallow(s string) bool {
	const deepest = 500
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		}
		if depth > deepest {
			return false
		}
	}
	return true
}

// escapeControls escapes line breaks and tabs that stand within strings.
func escapeControls(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(s):
			b = append(b, c)
			if s[i+1] >= ' ' {
				i++
				c = s[i]
			} // else it escapes nothing: a command goes on in the next line, say
		}
		if quoted && c < ' ' {
			q := appendQuoted(nil, string(rune(c)))
			b = append(b, q[1:len(q)-1]...)
			continue
		}
		b = append(b, c)
	}
	return string(b)
}
