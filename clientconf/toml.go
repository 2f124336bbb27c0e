package clientconf

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A section is what stands under one header of a TOML file.
type section struct {
	path       []string
	start, end int // from the header to the end of the last line that says something
}

// A tomlReader reads the TOML that configuration files are written in: every
// kind of key, string, list, inline table and table. Numbers and dates are
// kept as they are written.
type tomlReader struct {
	scanner
	root     *value
	sections []section
}

func parseTOML(file, text string) (*value, []section, error) {
	r := &tomlReader{scanner: scanner{file: file, text: text}, root: &value{kind: isMap, open: true}}
	if strings.HasPrefix(text, bom) {
		r.at = len(bom)
	}
	at := r.root
	for {
		if err := r.blank(); err != nil {
			return nil, nil, err
		}
		if r.at >= len(text) {
			r.root.end = len(text)
			return r.root, r.sections, nil
		}
		var err error
		if text[r.at] == '[' {
			at, err = r.header()
		} else {
			err = r.pair(at)
		}
		if err == nil {
			err = r.lineEnd()
		}
		if err != nil {
			return nil, nil, err
		}
		if n := len(r.sections); n > 0 {
			r.sections[n-1].end = r.at
		}
	}
}

// spaces skips blanks of one line.
func (r *tomlReader) spaces() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t') {
		r.at++
	}
}

// blank skips blanks, comments and ends of lines.
func (r *tomlReader) blank() error {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '#':
			r.comment()
		case strings.IndexByte(" \t\r\n", c) >= 0:
			r.at++
		default:
			return nil
		}
	}
	return nil
}

func (r *tomlReader) comment() {
	for r.at < len(r.text) && r.text[r.at] != '\n' {
		r.at++
	}
}

// lineEnd takes the rest of a line, on which only a comment may stand.
func (r *tomlReader) lineEnd() error {
	r.spaces()
	if r.at < len(r.text) && r.text[r.at] == '#' {
		r.comment()
	}
	rest := r.text[r.at:]
	switch {
	case rest == "":
	case rest[0] == '\n':
		r.at++
	case strings.HasPrefix(rest, "\r\n"):
		r.at += 2
	default:
		return r.fail(r.at, "the end of the line is wanted here")
	}
	return nil
}

// header reads [a.b] or [[a.b]] and returns the table that it opens.
func (r *tomlReader) header() (*value, error) {
	start := r.at
	double := strings.HasPrefix(r.text[r.at:], "[[")
	r.at++
	if double {
		r.at++
	}
	path, err := r.key()
	if err != nil {
		return nil, err
	}
	closing := "]"
	if double {
		closing = "]]"
	}
	if !strings.HasPrefix(r.text[r.at:], closing) {
		return nil, r.fail(r.at, "%s is wanted after the name of the table", closing)
	}
	r.at += len(closing)
	r.sections = append(r.sections, section{path: path, start: start})
	parent, err := r.table(r.root, path[:len(path)-1], start)
	if err != nil {
		return nil, err
	}
	last := path[len(path)-1:]
	if !double {
		return r.table(parent, last, start)
	}
	list := parent.get(last...)
	if list == nil {
		list = &value{kind: isList, open: true, start: start}
		parent.members = append(parent.members, member{key: last[0], start: start, comma: -1, value: list})
	}
	if list.kind != isList || !list.open {
		return nil, r.fail(start, "%s is not a list of tables", strings.Join(path, "."))
	}
	t := &value{kind: isMap, open: true, start: start}
	list.items = append(list.items, t)
	return t, nil
}

// table returns the table at a path below t, and makes it if it is not there.
func (r *tomlReader) table(t *value, path []string, at int) (*value, error) {
	if len(path) > maxDepth {
		return nil, r.fail(at, "the file nests deeper than %d", maxDepth)
	}
	for _, key := range path {
		next := t.get(key)
		switch {
		case next == nil:
			next = &value{kind: isMap, open: true, start: at}
			t.members = append(t.members, member{key: key, start: at, comma: -1, value: next})
		case next.kind == isList && next.open:
			next = next.items[len(next.items)-1]
		case next.kind != isMap || !next.open:
			return nil, r.fail(at, "%s was given a value before, and cannot be a table", key)
		}
		t = next
	}
	return t, nil
}

// pair reads key = value into a table.
func (r *tomlReader) pair(t *value) error {
	start := r.at
	path, err := r.key()
	if err != nil {
		return err
	}
	if r.at >= len(r.text) || r.text[r.at] != '=' {
		return r.fail(r.at, "= is wanted after the key %s", strings.Join(path, "."))
	}
	r.at++
	r.spaces()
	v, err := r.tomlValue()
	if err != nil {
		return err
	}
	if t, err = r.table(t, path[:len(path)-1], start); err != nil {
		return err
	}
	last := path[len(path)-1]
	if t.get(last) != nil {
		return r.fail(start, "the key %s is given twice", strings.Join(path, "."))
	}
	t.members = append(t.members, member{key: last, start: start, comma: -1, value: v})
	return nil
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+`)

// key reads a key, dotted or not, and the blanks after it.
func (r *tomlReader) key() ([]string, error) {
	var path []string
	for {
		r.spaces()
		rest := r.text[r.at:]
		switch {
		case rest != "" && (rest[0] == '"' || rest[0] == '\''):
			part, err := r.tomlString()
			if err != nil {
				return nil, err
			}
			path = append(path, part)
		default:
			part := bareKey.FindString(rest)
			if part == "" {
				return nil, r.fail(r.at, "a key is wanted here: letters, digits, _ and -, or in quotes")
			}
			r.at += len(part)
			path = append(path, part)
		}
		r.spaces()
		if r.at >= len(r.text) || r.text[r.at] != '.' {
			return path, nil
		}
		r.at++
	}
}

var (
	tomlBool   = regexp.MustCompile(`^(?:true|false)\b`)
	tomlScalar = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:\d\d)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?|[+-]?(?:inf|nan)|0[xob][0-9A-Fa-f_]+|[+-]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)`)
)

func (r *tomlReader) tomlValue() (*value, error) {
	if r.depth++; r.depth > maxDepth {
		return nil, r.fail(r.at, "the file nests deeper than %d", maxDepth)
	}
	defer func() { r.depth-- }()
	v, rest := &value{start: r.at}, r.text[r.at:]
	var err error
	switch {
	case rest != "" && (rest[0] == '"' || rest[0] == '\''):
		v.kind = isString
		v.text, err = r.tomlString()
	case strings.HasPrefix(rest, "["):
		err = r.tomlList(v)
	case strings.HasPrefix(rest, "{"):
		err = r.inline(v)
	case tomlBool.MatchString(rest):
		v.kind, v.text = isBool, tomlBool.FindString(rest)
		r.at += len(v.text)
	case tomlScalar.MatchString(rest):
		v.kind, v.text = isNumber, tomlScalar.FindString(rest)
		r.at += len(v.text)
	default:
		err = r.fail(r.at, "a value is wanted here: a string in quotes, a number, a date, true, false, a list or a table")
	}
	v.end = r.at
	return v, err
}

func (r *tomlReader) tomlList(v *value) error {
	v.kind = isList
	r.at++
	for comma := true; ; {
		if err := r.blank(); err != nil {
			return err
		}
		if r.at < len(r.text) && r.text[r.at] == ']' {
			r.at++
			return nil
		}
		if !comma {
			return r.fail(r.at, "a comma or ] is wanted here")
		}
		item, err := r.tomlValue()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		if err := r.blank(); err != nil {
			return err
		}
		if comma = r.at < len(r.text) && r.text[r.at] == ','; comma {
			r.at++
		}
	}
}

func (r *tomlReader) inline(v *value) error {
	t := &value{kind: isMap, open: true, start: v.start}
	r.at++
	for comma := true; ; {
		if err := r.blank(); err != nil {
			return err
		}
		if r.at < len(r.text) && r.text[r.at] == '}' {
			r.at++
			v.kind, v.members = isMap, t.members
			return nil
		}
		if !comma {
			return r.fail(r.at, "a comma or } is wanted here")
		}
		if err := r.pair(t); err != nil {
			return err
		}
		if err := r.blank(); err != nil {
			return err
		}
		if comma = r.at < len(r.text) && r.text[r.at] == ','; comma {
			r.at++
		}
	}
}

// tomlString reads a string of any of the four kinds.
func (r *tomlReader) tomlString() (string, error) {
	start, rest := r.at, r.text[r.at:]
	mark, basic := rest[:1], rest[0] == '"'
	long := strings.HasPrefix(rest, mark+mark+mark)
	if long {
		mark = strings.Repeat(mark, 3)
	}
	i := len(mark)
	for ; ; i++ {
		if i >= len(rest) || rest[i] == '\n' && !long {
			return "", r.fail(start, "this string is not closed by %s", mark)
		}
		if basic && rest[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(rest[i:], mark) {
			break
		}
	}
	for n := 0; long && n < 2 && i+3 < len(rest) && rest[i+3] == mark[0]; n++ {
		i++ // quotes that stand before the closing ones
	}
	body := rest[len(mark):i]
	r.at += i + len(mark)
	if long {
		body = strings.TrimPrefix(strings.TrimPrefix(body, "\r"), "\n")
	}
	if !basic {
		return body, nil
	}
	return r.unescape(body, start, long)
}

var lineFolded = regexp.MustCompile(`^\\[ \t]*\r?\n\s*`)

func (r *tomlReader) unescape(s string, start int, long bool) (string, error) {
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' {
			i := strings.IndexByte(s, '\\')
			if i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
			s = s[i:]
			continue
		}
		if m := lineFolded.FindString(s); long && m != "" {
			s = s[len(m):]
			continue
		}
		if len(s) < 2 {
			return "", r.fail(start, "this string ends within an escape")
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
		if digits > 0 && len(s) >= 2+digits {
			n, err := strconv.ParseUint(s[2:2+digits], 16, 32)
			if err != nil || !utf8.ValidRune(rune(n)) {
				return "", r.fail(start, "%q is no character", s[:2+digits])
			}
			b.WriteRune(rune(n))
			s = s[2+digits:]
			continue
		}
		i := strings.IndexByte(`btnfre"\`, s[1])
		if i < 0 {
			return "", r.fail(start, "%q is no escape of TOML; write a backslash as \\\\, or the string in single quotes", s[:2])
		}
		b.WriteByte("\b\t\n\f\r\x1b\"\\"[i])
		s = s[2:]
	}
	return b.String(), nil
}
