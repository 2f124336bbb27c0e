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
	return repairMore(s)
}

func repairMore(s string) (string, bool) {
	v, err := jsonrepair.Repair(s)
	if err != nil {
		return "", false
	}
	v = strings.TrimSpace(v)
	return v, v != "" && json.Valid([]byte(v))
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
			if s[i+1] >= ' ' {
				b = append(b, c)
				i++
				c = s[i]
			}
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
