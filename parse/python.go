package parse

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errLiteral = errors.New("not a literal")

// literal reads the Python or JSON literal at i, and returns it as JSON with
// the place after it.
func literal(s string, i int) (json.RawMessage, int, error) {
	p := &python{s: s, i: i}
	b, err := p.value(nil, 0)
	return b, p.i, err
}

// A python reads literals and calls as Python writes them, and what models
// mix in from JSON.
type python struct {
	s     string
	i     int
	words bool // words that are no constants are strings
}

func (p *python) space() {
	for p.i < len(p.s) {
		if isSpace(p.s[p.i]) {
			p.i++
		} else if p.s[p.i] == '\\' && p.i+1 < len(p.s) && p.s[p.i+1] == '\n' {
			p.i += 2
		} else if p.s[p.i] == '#' {
			for p.i < len(p.s) && p.s[p.i] != '\n' {
				p.i++
			}
		} else {
			return
		}
	}
}

func (p *python) eat(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *python) value(b []byte, depth int) ([]byte, error) {
	p.space()
	if p.i == len(p.s) || depth > 500 {
		return nil, errLiteral
	}
	switch c := p.s[p.i]; {
	case c == '{':
		return p.object(b, depth)
	case c == '[':
		return p.list(b, ']', depth)
	case c == '(':
		return p.list(b, ')', depth)
	case c == '"' || c == '\'':
		return p.texts(b)
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return p.number(b)
	case isIdent(c):
		return p.word(b)
	}
	return nil, errLiteral
}

// word reads a constant, or a string with a prefix.
func (p *python) word(b []byte) ([]byte, error) {
	start := p.i
	for p.i < len(p.s) && isIdent(p.s[p.i]) {
		p.i++
	}
	w := p.s[start:p.i]
	if p.i < len(p.s) && (p.s[p.i] == '"' || p.s[p.i] == '\'') && strings.Trim(strings.ToLower(w), "rbuf") == "" && len(w) <= 2 {
		p.i = start
		return p.texts(b)
	}
	switch w {
	case "True", "true", "TRUE":
		return append(b, "true"...), nil
	case "False", "false", "FALSE":
		return append(b, "false"...), nil
	case "None", "null", "NULL", "undefined":
		return append(b, "null"...), nil
	case "NaN", "Infinity":
		if !p.words {
			return append(b, "null"...), nil // as JavaScript writes them in JSON
		}
	}
	if p.words {
		for p.i < len(p.s) && strings.IndexByte(",:()[]{}=\"'\n", p.s[p.i]) < 0 {
			p.i++
		}
		if p.i < len(p.s) && strings.IndexByte(",:)]}", p.s[p.i]) >= 0 {
			return appendQuoted(b, strings.TrimSpace(p.s[start:p.i])), nil
		}
	}
	return nil, errLiteral
}

func (p *python) number(b []byte) ([]byte, error) {
	start := p.i
	for p.i < len(p.s) && (isIdent(p.s[p.i]) || strings.IndexByte("+-.", p.s[p.i]) >= 0) {
		if c := p.s[p.i]; (c == '+' || c == '-') && p.i > start && p.s[p.i-1]|0x20 != 'e' {
			return nil, errLiteral
		}
		p.i++
	}
	w := strings.ReplaceAll(strings.TrimPrefix(p.s[start:p.i], "+"), "_", "")
	if json.Valid([]byte(w)) {
		return append(b, w...), nil
	}
	if i, err := strconv.ParseInt(w, 0, 64); err == nil {
		return strconv.AppendInt(b, i, 10), nil
	}
	f, err := strconv.ParseFloat(w, 64)
	if err != nil {
		return nil, errLiteral
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(b, "null"...), nil
	}
	j, err := json.Marshal(f)
	return append(b, j...), err
}

func (p *python) list(b []byte, end byte, depth int) ([]byte, error) {
	p.i++
	b = append(b, '[')
	for n := 0; ; n++ {
		if p.eat(end) {
			return append(b, ']'), nil
		}
		if n > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = p.value(b, depth+1); err != nil {
			return nil, err
		}
		if !p.commas() && !p.peek(end) {
			return nil, errLiteral
		}
	}
}

func (p *python) peek(c byte) bool {
	p.space()
	return p.i < len(p.s) && p.s[p.i] == c
}

// commas reads one, and others by mistake.
func (p *python) commas() bool {
	n := 0
	for p.eat(',') {
		n++
	}
	return n > 0
}

func (p *python) object(b []byte, depth int) ([]byte, error) {
	p.i++
	b = append(b, '{')
	for n := 0; ; n++ {
		if p.eat('}') {
			return append(b, '}'), nil
		}
		if n > 0 {
			b = append(b, ',')
		}
		key, err := p.value(nil, depth+1)
		if err != nil || key[0] == '{' || key[0] == '[' {
			return nil, errLiteral
		}
		if key[0] != '"' {
			key = quote(string(key))
		}
		if !p.eat(':') {
			return nil, errLiteral
		}
		b = append(append(b, key...), ':')
		if b, err = p.value(b, depth+1); err != nil {
			return nil, err
		}
		if !p.commas() && !p.peek('}') {
			return nil, errLiteral
		}
	}
}

// texts reads strings that follow each other, which are one.
func (p *python) texts(b []byte) ([]byte, error) {
	var all string
	for n := 0; ; n++ {
		p.space()
		start := p.i
		raw := false
		for p.i < len(p.s) && p.i-start < 2 && strings.IndexByte("rRbBuUfF", p.s[p.i]) >= 0 {
			raw = raw || p.s[p.i]|0x20 == 'r'
			p.i++
		}
		if p.i == len(p.s) || p.s[p.i] != '"' && p.s[p.i] != '\'' {
			p.i = start
			return appendQuoted(b, all), nil
		}
		t, err := p.text(raw)
		if err != nil {
			return nil, err
		}
		all += t
	}
}

// text reads one string.
func (p *python) text(raw bool) (string, error) {
	mark := p.s[p.i : p.i+1]
	if strings.HasPrefix(p.s[p.i:], strings.Repeat(mark, 3)) {
		mark = strings.Repeat(mark, 3)
	}
	start := p.i + len(mark)
	escaped := false
	for i := start; i < len(p.s); i++ {
		switch {
		case p.s[i] == '\\':
			escaped = true
			i++
		case strings.HasPrefix(p.s[i:], mark):
			p.i = i + len(mark)
			if raw || !escaped {
				return p.s[start:i], nil
			}
			return unescape(p.s[start:i]), nil
		}
	}
	return "", errLiteral
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': "", '/': "/", '0': "\x00"}

// unescape resolves the escapes of a Python or JSON string. Unknown ones stay.
func unescape(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		size := 0
		switch s[i] {
		case 'x':
			size = 2
		case 'u':
			size = 4
		case 'U':
			size = 8
		}
		if size > 0 {
			if r, n := hexRune(s[i-1:], size); n > 0 {
				b.WriteRune(r)
				i += n - 2
				continue
			}
		}
		if t, ok := escapes[s[i]]; ok {
			b.WriteString(t)
		} else {
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// hexRune reads an escape of so many digits, and the second half of a
// surrogate pair. n is 0 if it is none.
func hexRune(s string, digits int) (r rune, n int) {
	if len(s) < 2+digits {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	if err != nil {
		return 0, 0
	}
	n = 2 + digits
	if v >= 0xd800 && v < 0xdc00 && strings.HasPrefix(s[n:], `\u`) && len(s) >= n+6 {
		if lo, err := strconv.ParseUint(s[n+2:n+6], 16, 32); err == nil && lo >= 0xdc00 && lo < 0xe000 {
			return rune((v-0xd800)<<10|(lo-0xdc00)) + 0x10000, n + 6
		}
	}
	if !utf8.ValidRune(rune(v)) {
		return utf8.RuneError, n
	}
	return rune(v), n
}

// A pythonCall is one call as Python writes it.
type pythonCall struct {
	name, raw string
	args      []byte
}

// pythonCalls reads calls with keyword arguments, separated by commas,
// semicolons or white space.
func pythonCalls(s string) ([]pythonCall, error) { return (&python{s: s}).calls() }

func (p *python) calls() ([]pythonCall, error) {
	s := p.s
	var out []pythonCall
	for {
		for p.eat(',') || p.eat(';') {
		}
		if p.space(); p.i == len(s) {
			return out, nil
		}
		start := p.i
		for p.i < len(s) && (isIdent(s[p.i]) || s[p.i] == '.' || s[p.i] == '-') {
			p.i++
		}
		c := pythonCall{name: s[start:p.i]}
		if c.name == "" || c.name[0] >= '0' && c.name[0] <= '9' || !p.eat('(') {
			return nil, errLiteral
		}
		var err error
		if c.args, err = p.keywords(); err != nil {
			return nil, err
		}
		c.raw = s[start:p.i]
		out = append(out, c)
	}
}

// keywords reads keyword arguments up to the closing parenthesis, as a JSON object.
func (p *python) keywords() ([]byte, error) {
	b := []byte{'{'}
	for n := 0; ; n++ {
		if p.eat(')') {
			return append(b, '}'), nil
		}
		if n > 0 {
			b = append(b, ',')
		}
		p.space()
		start := p.i
		for p.i < len(p.s) && (isIdent(p.s[p.i]) || p.s[p.i] == '-') {
			p.i++
		}
		key := p.s[start:p.i]
		if key == "" || !p.eat('=') {
			return nil, errLiteral
		}
		b = append(appendQuoted(b, key), ':')
		var err error
		if b, err = p.value(b, 0); err != nil {
			return nil, err
		}
		if !p.eat(',') && !p.peek(')') {
			return nil, errLiteral
		}
	}
}
