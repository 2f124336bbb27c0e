package parse

import (
	"encoding/json"
	"errors"
	"strings"
)

// A gemmaTalk is the notation call:NAME{key:value,…} with strings between marks.
type gemmaTalk struct{ open, close, mark string }

var errGemma = errors.New("cannot be read")

// opener reads a call in the notation.
func (g gemmaTalk) opener() opener {
	return opener{tag: g.open, call: true, read: g.read}
}

func (g gemmaTalk) read(e *env) verdict {
	i := g.end(e)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 && e.nested > 0 && e.flatten() {
		e.look, e.stage, e.nested = 0, 0, 0
		i = g.end(e)
	}
	n, cut := i+len(g.close), false
	if i >= 0 && !strings.HasPrefix(e.s[i:], g.close) {
		n = i // the next call begins
	}
	if i < 0 {
		i = strings.Index(e.s, g.close)
		n = i + len(g.close)
	}
	if i < 0 {
		i, n, cut = len(e.s), len(e.s), true
	}
	g.call(e, trimPartial(e.s[len(g.open):i], g.close), e.s[:n], cut)
	return e.done(n)
}

// end returns the place of the closing tag outside of strings, or of the next
// opening one, -1 if there is none.
func (g gemmaTalk) end(e *env) int {
	e.look = max(e.look, len(g.open))
	for {
		if e.stage == 1 && !g.endString(e) {
			return -1
		}
		i, tag := e.find(g.mark, g.close, g.open)
		if i < 0 {
			return -1
		}
		if tag != g.mark {
			return i
		}
		e.look, e.stage = i+len(g.mark), 1
	}
}

// endString passes over the mark that ends a string. Marks of calls that the
// string shows are its own, if all of these are closed.
func (g gemmaTalk) endString(e *env) bool {
	for {
		i, tag := e.scan(e.tags([]string{g.mark}, element{g.open, g.close})...)
		switch {
		case i < 0:
			return false
		case tag == g.open:
			e.nested++
			e.within.seen = true
		case tag == g.close:
			e.nested = max(0, e.nested-1)
		case e.nested == 0:
			e.look, e.stage = i+len(tag), 0
			return true
		}
		e.look = i + len(tag)
	}
}

func (g gemmaTalk) call(e *env, body, raw string, cut bool) {
	body = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(body), "call"), ":")
	if paren := strings.IndexByte(body, '('); paren >= 0 && paren < indexOr(body, "{", len(body)) {
		body = body[:paren] + "{" + strings.TrimSuffix(body[paren+1:], ")") + "}"
	}
	name, rest, ok := strings.Cut(body, "{")
	name = strings.TrimSpace(name)
	if !ok || !nameLike(name) {
		e.note("what should be a call is none: it was left as text; write call:NAME{key:value}")
		return
	}
	r := gemmaReader{gemmaTalk: g, s: "{" + rest, known: e.paramsOf(name), flat: e.within.flat}
	args, err := r.value(nil, 0)
	r.space()
	after := r.s[min(r.i, len(r.s)):]
	if err == nil && after != "" && !cut {
		err = errGemma
	}
	if err != nil || cut && r.repaired {
		e.note("the arguments of %s cannot be read: the call was left as text", name)
		return
	}
	if r.repaired {
		e.note("the arguments of %s were not quite well-formed and were repaired", name)
	}
	e.call(name, "", args, raw)
	if e.accepted {
		e.text(after)
	}
}

type gemmaReader struct {
	gemmaTalk
	s        string
	i        int
	known    *params // of the tool
	key1     string  // the parameter that is read, while nothing within it is
	repaired bool
	flat     bool // calls that a string shows are not looked at
}

func (r *gemmaReader) space() { r.i = skipSpace(r.s, r.i) }

func (r *gemmaReader) has(t string) bool {
	if !strings.HasPrefix(r.s[r.i:], t) {
		return false
	}
	r.i += len(t)
	return true
}

// value reads a value. What ends with the text is repaired.
func (r *gemmaReader) value(b []byte, depth int) ([]byte, error) {
	start := r.i
	if r.space(); depth > 200 {
		return nil, errGemma
	}
	switch {
	case r.has(r.mark):
		return appendQuoted(b, r.marked()), nil
	case r.has("{"):
		return r.members(append(b, '{'), depth)
	case r.has("["):
		return r.elements(append(b, '['), depth)
	case r.i < len(r.s) && r.s[r.i] == '"':
		return r.quoted(b)
	case r.i < len(r.s) && r.s[r.i] == '\'':
		return r.single(b)
	}
	r.i = start // white space is part of a string without marks
	return r.bare(b)
}

// marked reads a string up to its second mark. Without one it ends before the
// last brackets.
func (r *gemmaReader) marked() string {
	if end := r.stringEnd(r.s[r.i:]); end >= 0 {
		s := r.s[r.i : r.i+end]
		r.i += end + len(r.mark)
		return s
	}
	r.repaired = true
	end := len(strings.TrimRight(r.s, "}] \n"))
	s := r.s[r.i:max(end, r.i)]
	r.i += len(s)
	return s
}

// stringEnd returns the place of the mark that ends a string, as endString finds
// it; -1 if there is none.
func (r *gemmaReader) stringEnd(s string) int {
	for i, depth := 0, 0; !r.flat; {
		at, tag := scan(s, i, r.mark, r.open, r.close)
		switch {
		case at < 0:
			return strings.Index(s, r.mark)
		case tag == r.open:
			depth++
		case tag == r.close:
			depth = max(0, depth-1)
		case depth == 0:
			return at
		}
		i = at + len(tag)
	}
	return strings.Index(s, r.mark)
}

func (r *gemmaReader) quoted(b []byte) ([]byte, error) {
	end := stringEnd(r.s, r.i)
	v := r.s[r.i:end]
	if !json.Valid([]byte(v)) {
		return nil, errGemma
	}
	r.i = end
	return append(b, v...), nil
}

// single reads a string between apostrophes, after which a stray mark may stand.
func (r *gemmaReader) single(b []byte) ([]byte, error) {
	rest := r.s[r.i+1:]
	end := -1
	for j := range len(rest) {
		if rest[j] == '\'' && r.ends(strings.TrimPrefix(rest[j+1:], r.mark)) {
			end = j
			break
		}
	}
	if end < 0 {
		return r.bare(b)
	}
	r.repaired = true
	r.i += end + 2
	r.has(r.mark)
	return appendQuoted(b, rest[:end]), nil
}

// ends reports whether a value may end before s.
func (r *gemmaReader) ends(s string) bool {
	s = strings.TrimLeft(s, " \n\t")
	return s == "" || s[0] == ',' || s[0] == '}' || s[0] == ']'
}

// bare reads a value without marks: a constant, a number, or a string that
// ends where the next key or the last bracket stands.
func (r *gemmaReader) bare(b []byte) ([]byte, error) {
	start := r.i
	for r.i < len(r.s) {
		c := r.s[r.i]
		if (c == '}' || c == ']') && r.ends(r.s[r.i+1:]) || c == ',' && r.nextKey(r.i+1) {
			break
		}
		r.i++
	}
	raw := r.s[start:r.i]
	said := strings.TrimSpace(raw)
	if t := r.known.of(r.key1); t != 0 && r.key1 != "" && said != "" {
		if v := typed(said, t); v[0] != '"' {
			return append(b, v...), nil
		} else if t == typeString && json.Valid([]byte(said)) {
			return append(b, v...), nil
		}
	}
	if said != "" && json.Valid([]byte(said)) {
		return append(b, said...), nil
	}
	switch said {
	case "True", "False":
		return append(b, strings.ToLower(said)...), nil
	case "None":
		return append(b, "null"...), nil
	case "":
		return append(b, `""`...), nil
	}
	r.repaired = true
	return appendQuoted(b, raw), nil
}

// nextKey reports whether a key, or another plain element, stands at i.
func (r *gemmaReader) nextKey(i int) bool {
	i = skipSpace(r.s, i)
	start := i
	for i < len(r.s) && (isIdent(r.s[i]) || r.s[i] == '-' || r.s[i] == '.') {
		i++
	}
	if i == start {
		return i < len(r.s) && (strings.HasPrefix(r.s[i:], r.mark) || strings.IndexByte(`{["'`, r.s[i]) >= 0)
	}
	i = skipSpace(r.s, i)
	return i < len(r.s) && (r.s[i] == ':' || r.s[i] == ',' || r.s[i] == ']')
}

func (r *gemmaReader) members(b []byte, depth int) ([]byte, error) {
	for n := 0; ; n++ {
		r.space()
		if r.has("}") {
			return append(b, '}'), nil
		}
		if r.i == len(r.s) {
			r.repaired = true
			return append(b, '}'), nil
		}
		if n > 0 {
			if !r.has(",") {
				return nil, errGemma
			}
			if r.space(); r.has("}") {
				return append(b, '}'), nil
			}
			b = append(b, ',')
		}
		key, ok := r.key()
		if !ok {
			return nil, errGemma
		}
		b = append(appendQuoted(b, key), ':')
		if r.key1 = ""; depth == 0 {
			r.key1 = key
		}
		var err error
		if b, err = r.value(b, depth+1); err != nil {
			return nil, err
		}
	}
}

func (r *gemmaReader) key() (string, bool) {
	r.space()
	if r.has(r.mark) {
		k := r.marked()
		r.space()
		return k, r.has(":")
	}
	k, rest, ok := strings.Cut(r.s[r.i:], ":")
	r.i = len(r.s) - len(rest)
	k = strings.Trim(strings.TrimSpace(k), `"'`)
	return k, ok && k != "" && !strings.ContainsAny(k, "{}[]\n")
}

func (r *gemmaReader) elements(b []byte, depth int) ([]byte, error) {
	r.key1 = ""
	for n := 0; ; n++ {
		r.space()
		if r.has("]") {
			return append(b, ']'), nil
		}
		if r.i == len(r.s) {
			r.repaired = true
			return append(b, ']'), nil
		}
		if n > 0 {
			if !r.has(",") {
				return nil, errGemma
			}
			b = append(b, ',')
		}
		var err error
		if b, err = r.value(b, depth+1); err != nil {
			return nil, err
		}
	}
}

// text writes a call in the notation.
func (g gemmaTalk) text(name, args string) string {
	return g.open + "call:" + name + g.valueText(args) + g.close
}

func (g gemmaTalk) valueText(v string) string {
	var parts []string
	switch v[0] {
	case '"':
		return g.mark + unquote(v) + g.mark
	case '[':
		for _, el := range elements(v) {
			parts = append(parts, g.valueText(el))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case '{':
		for _, m := range members(v) {
			parts = append(parts, m.key+":"+g.valueText(m.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return v
}
