package clientconf

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a file may nest.
const maxDepth = 200

type kind int

const (
	isNull kind = iota
	isBool
	isNumber // or a date of TOML
	isString
	isList
	isMap
)

// A value is one value of a file, and where it stands.
type value struct {
	kind       kind
	text       string // of a string: decoded; of other scalars: as it was written
	members    []member
	items      []*value
	start, end int
	open       bool // a table of TOML that later headers and keys may add to
}

// A member is one key of an object.
type member struct {
	key   string
	start int // of the key
	comma int // the offset of the comma that follows; -1: none does
	value *value
}

// get returns the value at a path of keys, or nil. Of keys that are there
// twice the last counts, as it does for the clients.
func (v *value) get(path ...string) *value {
	for _, key := range path {
		if v == nil || v.kind != isMap {
			return nil
		}
		var next *value
		for _, m := range v.members {
			if m.key == key {
				next = m.value
			}
		}
		v = next
	}
	return v
}

// A scanner reads one text.
type scanner struct {
	file, text string
	at, depth  int
}

// A SyntaxError says what is wrong with a file, and where.
type SyntaxError struct {
	File         string
	Line, Column int // of characters, from 1
	Message      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// position returns the line and column of an offset.
func position(text string, at int) (line, column int) {
	before := text[:min(at, len(text))]
	line = strings.Count(before, "\n") + 1
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if line == 1 {
		before = strings.TrimPrefix(before, bom)
	}
	return line, utf8.RuneCountInString(before) + 1
}

func (s *scanner) fail(at int, format string, args ...any) error {
	line, column := position(s.text, at)
	return &SyntaxError{s.file, line, column, fmt.Sprintf(format, args...)}
}

// parseJSONC reads JSON with comments and trailing commas.
func parseJSONC(file, text string) (*value, error) {
	s := &scanner{file: file, text: text}
	if strings.HasPrefix(text, bom) {
		s.at = len(bom)
	}
	v, err := s.value()
	if err != nil {
		return nil, err
	}
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.at < len(text) {
		return nil, s.fail(s.at, "something follows the end of the object; remove it")
	}
	if v.kind != isMap {
		return nil, s.fail(v.start, "the file is not a JSON object")
	}
	return v, nil
}

// space skips white space and comments.
func (s *scanner) space() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.at++
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return s.fail(s.at, "this comment is not closed by */")
			}
			s.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// peek skips space and returns the byte that comes next; 0 at the end.
func (s *scanner) peek() (byte, error) {
	if err := s.space(); err != nil || s.at >= len(s.text) {
		return 0, err
	}
	return s.text[s.at], nil
}

func (s *scanner) value() (*value, error) {
	c, err := s.peek()
	if err != nil {
		return nil, err
	}
	if s.depth++; s.depth > maxDepth {
		return nil, s.fail(s.at, "the file nests deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	v := &value{start: s.at}
	switch c {
	case 0:
		return nil, s.fail(s.at, "the file ends where a value is wanted")
	case '{':
		err = s.object(v)
	case '[':
		err = s.array(v)
	case '"':
		v.kind = isString
		v.text, err = s.quoted()
	default:
		err = s.scalar(v)
	}
	v.end = s.at
	return v, err
}

func (s *scanner) object(v *value) error {
	v.kind = isMap
	s.at++
	for {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c == '}' {
			s.at++
			return nil
		}
		if n := len(v.members); n > 0 && v.members[n-1].comma < 0 {
			return s.fail(s.at, "a comma or } is wanted here")
		}
		if c != '"' {
			return s.fail(s.at, "a key in double quotes or } is wanted here")
		}
		m := member{start: s.at, comma: -1}
		if m.key, err = s.quoted(); err != nil {
			return err
		}
		if c, err = s.peek(); err != nil {
			return err
		}
		if c != ':' {
			return s.fail(s.at, "a colon is wanted after the key %q", m.key)
		}
		s.at++
		if m.value, err = s.value(); err != nil {
			return err
		}
		if m.comma, err = s.comma(); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
}

func (s *scanner) array(v *value) error {
	v.kind = isList
	s.at++
	for comma := 0; ; {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c == ']' {
			s.at++
			return nil
		}
		if comma < 0 {
			return s.fail(s.at, "a comma or ] is wanted here")
		}
		item, err := s.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		if comma, err = s.comma(); err != nil {
			return err
		}
	}
}

// comma takes a comma, and returns where it is, or -1.
func (s *scanner) comma() (int, error) {
	c, err := s.peek()
	if err != nil || c != ',' {
		return -1, err
	}
	s.at++
	return s.at - 1, nil
}

func (s *scanner) quoted() (string, error) {
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '\n':
			return "", s.fail(s.at, "this string is not closed on its line")
		case '"':
			var text string
			if err := json.Unmarshal([]byte(s.text[s.at:i+1]), &text); err != nil {
				return "", s.fail(s.at, "this string is not valid JSON: %v", err)
			}
			s.at = i + 1
			return text, nil
		}
	}
	return "", s.fail(s.at, "this string is not closed")
}

func (s *scanner) scalar(v *value) error {
	end := s.at
	for end < len(s.text) && strings.IndexByte(" \t\r\n,:{}[]\"/", s.text[end]) < 0 {
		end++
	}
	v.text = s.text[s.at:end]
	if !json.Valid([]byte(v.text)) {
		return s.fail(s.at, "a value is wanted here: a string in double quotes, a number, true, false, null, an object or a list")
	}
	switch v.text {
	case "null":
	case "true", "false":
		v.kind = isBool
	default:
		v.kind = isNumber
	}
	s.at = end
	return nil
}
