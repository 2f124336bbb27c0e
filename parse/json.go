package parse

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string: nothing is escaped that need not be.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// A member is one key of an object and its value, as JSON.
type member struct{ key, value string }

// members returns the members of a valid JSON object, nil if it is none.
func members(s string) []member {
	i := skipSpace(s, 0)
	if i == len(s) || s[i] != '{' {
		return nil
	}
	out := make([]member, 0, 4)
	for i = skipSpace(s, i+1); i < len(s) && s[i] != '}'; {
		end := valueEnd(s, i)
		key := unquote(s[i:end])
		i = skipSpace(s, end)
		i = skipSpace(s, min(i+1, len(s))) // the colon
		end = valueEnd(s, i)
		out = append(out, member{key, s[i:end]})
		if i = skipSpace(s, end); i < len(s) && s[i] == ',' {
			i = skipSpace(s, i+1)
		}
	}
	return out
}

// elements returns the elements of a valid JSON array.
func elements(s string) (out []string) {
	i := skipSpace(s, 0)
	for i = skipSpace(s, i+1); i < len(s) && s[i] != ']'; {
		end := valueEnd(s, i)
		out = append(out, s[i:end])
		if i = skipSpace(s, end); i < len(s) && s[i] == ',' {
			i = skipSpace(s, i+1)
		}
	}
	return out
}

func skipSpace(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

// valueEnd returns the end of the JSON value at i of valid JSON.
func valueEnd(s string, i int) int {
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '"':
		return stringEnd(s, i)
	case '{', '[':
		depth := 0
		for i < len(s) {
			switch s[i] {
			case '"':
				i = stringEnd(s, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	}
	for i < len(s) && !isSpace(s[i]) && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

// stringEnd returns the place after the string that begins at i.
func stringEnd(s string, i int) int {
	for i++; i < len(s); {
		j := strings.IndexByte(s[i:], '"')
		if j < 0 {
			return len(s)
		}
		i += j
		k := i
		for s[k-1] == '\\' {
			k--
		}
		i++
		if (i-1-k)%2 == 0 {
			return i
		}
	}
	return len(s)
}

// unquote returns what a valid JSON string holds.
func unquote(s string) string {
	if len(s) >= 2 && strings.IndexByte(s, '\\') < 0 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	var out string
	json.Unmarshal([]byte(s), &out)
	return out
}

// leading returns the JSON value with which s begins, repaired if need be, and
// the place after it. ok is false if none begins there or it cannot be read.
func leading(s string) (value string, end int, repaired, ok bool) {
	var l lexer
	if s == "" || s[0] != '{' && s[0] != '[' {
		return "", 0, false, false
	}
	if end = valueEnd(s, 0); json.Valid([]byte(s[:end])) {
		return s[:end], end, false, true
	}
	end = len(s)
	for i := range len(s) {
		l.step(s[i])
		if l.depth == 0 && i > 0 && l.quote == 0 && (s[i] == '}' || s[i] == ']') {
			end = i + 1
			break
		}
	}
	value = s[:end]
	if v, ok := repair(value); ok {
		return v, end, true, true
	}
	if end < len(s) { // the end may have been taken from within a string
		if v, ok := repair(s); ok {
			return v, len(s), true, true
		}
	}
	return "", end, true, false
}
