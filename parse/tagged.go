package parse

import (
	"encoding/json"
	"strings"
)

// tagged returns an opener of calls between two tags. read is given what
// stands between. close "" means that the calls end with their JSON.
func tagged(open, close string, read func(e *env, body string)) opener {
	return opener{tag: open, call: true, read: func(e *env) verdict {
		return e.tagged(open, close, read)
	}}
}

// jsonBetween is tagged for a body of JSON calls.
func jsonBetween(open, close string) opener { return tagged(open, close, readJSONBody) }

func readJSONBody(e *env, body string) { e.jsonCalls(body) }

// tagged reads a body up to the closing tag, which may be missing before the
// next opening tag, or at the end of the text if the body is complete.
func (e *env) tagged(open, close string, read func(e *env, body string)) verdict {
	return e.taggedFrom(len(open), open, close, read)
}

// taggedFrom is tagged for a body that begins at start.
func (e *env) taggedFrom(start int, open, close string, read func(e *env, body string)) verdict {
	first := e.skip(start)
	if first == len(e.s) && !e.eof {
		return more
	}
	if first == len(e.s) || !isBracket(e.s[first]) {
		e.n = start
		return not
	}
	if close == "" {
		return e.untagged(first, read)
	}
	e.look = max(e.look, start)
	i, tag := e.outside(close, open)
	switch {
	case i < 0 && !e.eof:
		return more
	case i < 0:
		return e.unclosed(start, close, read)
	}
	read(e, e.s[start:i])
	if tag == close {
		i += len(close)
	}
	return e.done(i)
}

func isBracket(c byte) bool { return c == '{' || c == '[' }

// unclosed reads a body whose closing tag was not found before the end of the text.
func (e *env) unclosed(start int, close string, read func(e *env, body string)) verdict {
	if i := strings.Index(e.s[start:], close); i >= 0 { // within what looked like a string
		read(e, e.s[start:start+i])
		return e.done(start + i + len(close))
	}
	return e.cutOff(trimPartial(strings.TrimSpace(e.s[start:]), close), close, read)
}

// cutOff reads what is whole of a body at the end of the text. The rest of it
// is text.
func (e *env) cutOff(body, close string, read func(e *env, body string)) verdict {
	if endsComplete(body) {
		read(e, body)
		return e.done(len(e.s))
	}
	whole, rest := wholePart(body)
	if whole != "" {
		read(e, whole)
	}
	e.wasCut(close)
	if e.accepted {
		e.text(rest)
	}
	return e.done(len(e.s))
}

// wasCut notes that a call is not whole.
func (e *env) wasCut(close string) {
	upTo := ""
	if close != "" {
		upTo = ", up to " + close
	}
	e.note("a call was cut off: it was left as text; write it again, whole%s", upTo)
}

// trimPartial cuts off the beginning of a tag at the end of s.
func trimPartial(s, tag string) string {
	for n := min(len(tag), len(s)); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return strings.TrimSpace(s[:len(s)-n])
		}
	}
	return s
}

// untagged reads calls that end with their JSON. Further values may follow
// after commas and semicolons.
func (e *env) untagged(first int, read func(e *env, body string)) verdict {
	if e.pos == 0 {
		e.pos = first
	}
	for {
		end := e.balanced(e.pos)
		if end < 0 {
			return e.unbalanced(first, read)
		}
		next := e.skip(end)
		sep := next < len(e.s) && (e.s[next] == ';' || e.s[next] == ',')
		if sep {
			next = e.skip(next + 1)
		}
		if next >= len(e.s) && !e.eof {
			e.rewind(end)
			return more
		}
		if next < len(e.s) && isBracket(e.s[next]) && (sep || e.s[next] == '{') {
			e.pos, e.look, e.lex = next, next, lexer{}
			continue
		}
		read(e, e.s[first:end])
		return e.done(end)
	}
}

// rewind lets balanced find the same end again.
func (e *env) rewind(end int) {
	e.look = end - 1
	e.lex.depth = 1
}

func (e *env) unbalanced(first int, read func(e *env, body string)) verdict {
	if !e.eof {
		return more
	}
	return e.cutOff(e.s[first:], "", read)
}

// A param is an argument as tags have it.
type param struct {
	name, value string
	types       types
	typed       bool // the dialect states the types itself
	json        json.RawMessage
}

// How a dialect reads arguments that no schema types.
type untyped uint8

const (
	asStrings    untyped = iota
	nullsToo             // strings, but for null
	asTheyLook           // what they look like, if the tool is known at all
	listsAndMaps         // strings, but for JSON arrays and objects
)

// object returns the parameters as a JSON object, typed by the tool's schema.
func (e *env) object(name string, ps []param, without untyped) json.RawMessage {
	known := e.paramsOf(name)
	b := []byte{'{'}
	for i, p := range ps {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, p.name), ':')
		switch {
		case p.json != nil:
			b = append(b, p.json...)
		case p.typed:
			b = append(b, typed(p.value, p.types)...)
		default:
			b = append(b, known.argument(p.name, p.value, without)...)
		}
	}
	return append(b, '}')
}

// argument types one argument.
func (k *params) argument(name, value string, without untyped) json.RawMessage {
	t := k.of(name)
	if t != 0 {
		return typed(value, t)
	}
	said := strings.TrimSpace(value)
	declared := false
	if k != nil {
		_, declared = k.types[name]
	}
	switch {
	case without == asTheyLook && k != nil:
		return guess(value)
	case (without == nullsToo || without == asTheyLook) && strings.EqualFold(said, "null"):
		return json.RawMessage("null")
	case without == listsAndMaps || declared:
		if v := structured(said, typeObject|typeArray); v != "" && said[0] != '"' && said[0] != '(' {
			return json.RawMessage(v)
		}
	}
	return quote(value)
}

// unwrapped returns the arguments that a single parameter of such a name
// holds, if the tool has no parameter of that name.
func (e *env) unwrapped(name string, ps []param, wrappers ...string) (json.RawMessage, bool) {
	known := e.paramsOf(name)
	if len(ps) != 1 || known == nil {
		return nil, false
	}
	if _, own := known.types[ps[0].name]; own {
		return nil, false
	}
	for _, w := range wrappers {
		if ps[0].name == w {
			v := structured(strings.TrimSpace(ps[0].value), typeObject)
			return json.RawMessage(v), v != ""
		}
	}
	return nil, false
}
