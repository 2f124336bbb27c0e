package parse

import (
	"encoding/json"
	"strings"
)

// JSON and Python calls that no tag announces. What only looks like one is
// ordinary text, so little is forgiven here.

// bareObject reads {"name": …, "arguments": {…}} anywhere in the text.
var bareObject = opener{tag: "{", read: func(e *env) verdict { return e.bareJSON(false) }}

// bareArray reads [{"name": …}, …] anywhere in the text.
var bareArray = opener{tag: "[", read: func(e *env) verdict { return e.bareJSON(false) }}

// lineObject and lineArray read the same where they stand alone: see
// standsAlone.
var (
	lineObject = opener{tag: "{", at: lineStart, bare: true, read: func(e *env) verdict { return e.bareJSON(true) }}
	lineArray  = opener{tag: "[", at: lineStart, bare: true, read: func(e *env) verdict { return e.bareJSON(true) }}
)

// plausible reports whether JSON may be a call by its first key, and waits
// until that is known.
func (e *env) plausible() (yes, wait bool) {
	i := e.skip(1)
	if e.s[0] == '[' && i < len(e.s) && e.s[i] == '{' {
		i = e.skip(i + 1)
	} else if e.s[0] == '[' && i < len(e.s) {
		return false, false
	}
	if i == len(e.s) {
		return false, !e.eof
	}
	if q := e.s[i]; q != '"' && q != '\'' {
		return false, false
	}
	key, _, closed := strings.Cut(e.s[i+1:], e.s[i:i+1])
	if !closed && len(key) < 24 {
		return false, !e.eof
	}
	switch key {
	case "name", "function", "tool", "tool_name", "id", "type", "arguments", "parameters", "tool_calls", "tool_call", "function_call", "tool_call_id", "index", "action":
		return true, false
	}
	return false, false
}

// bareJSON reads calls in JSON that nothing announces. alone: see standsAlone.
func (e *env) bareJSON(alone bool) verdict {
	if alone && e.m.indent >= 4 {
		return e.ordinary()
	}
	yes, wait := e.plausible()
	if wait {
		return more
	}
	if !yes {
		return e.ordinary()
	}
	end := e.balanced(0)
	if end < 0 && !e.eof {
		return more
	}
	body, rest := e.s, ""
	cut := false
	if end >= 0 {
		body = e.s[:end]
	} else {
		end = len(e.s)
		if cut = true; !endsComplete(body) {
			if body, rest = wholePart(body); body == "" || body[0] != '[' {
				e.n = end
				return not
			}
		}
	}
	if alone {
		ends, wait := e.standsAlone(end)
		if wait {
			e.rewind(end)
			return more
		}
		if !ends {
			e.n = end
			return not
		}
	}
	next, wait := e.separated(end)
	if wait {
		e.rewind(end)
		return more
	}
	if e.bareValues(body, cut); e.accepted {
		end = next
	}
	if e.accepted {
		e.text(rest)
	}
	return e.done(end)
}

// separated returns the place after the semicolon that may follow at i, and
// the white space around it.
func (e *env) separated(i int) (end int, wait bool) {
	j := e.skip(i)
	if j == len(e.s) {
		return i, !e.eof
	}
	if e.s[j] != ';' {
		return i, false
	}
	return j + 1, false
}

// ordinary passes over JSON that is no call: what is nested in it is not looked at.
func (e *env) ordinary() verdict {
	if e.opener.bare {
		e.m.inJSON = lexer{}
		e.m.inJSON.step(e.s[0])
		e.m.line = false
		e.m.blank = false
		e.text(e.s[:1])
		e.n = 1
		return took
	}
	return not
}

// standsAlone reports whether what begins here and ends at i may be a call
// that nothing announces: it begins the reply, or it ends the reply with
// nothing else in its line, other calls aside. What stands amid prose is an
// example.
func (e *env) standsAlone(i int) (yes, wait bool) {
	if e.m.blank {
		return true, false
	}
	ended := false
	for ; i < len(e.s); i++ {
		switch c := e.s[i]; {
		case c == '\n':
			if ended = true; e.m.called {
				return true, false
			}
		case isSpace(c):
		case c == ';' && !ended:
		case ended:
			return isBracket(c), false
		default:
			rest := e.s[i:]
			if strings.HasPrefix(rest, "<|") || strings.HasPrefix(rest, "</s>") {
				return true, false
			}
			return false, !e.eof && (rest == "<" || strings.HasPrefix("</s>", rest))
		}
	}
	return e.eof, !e.eof
}

func (e *env) bareValues(body string, cut bool) {
	v := body
	repaired := false
	if !json.Valid([]byte(v)) {
		var ok bool
		if v, ok = repair(body); !ok {
			return
		}
		repaired = true
	}
	calls, ok := e.callsLike(nil, v)
	if !ok {
		return
	}
	if repaired {
		e.note("a call was not valid JSON and was repaired")
	}
	if cut {
		e.note("the JSON of a call was cut off: what was whole of it was read")
	}
	for _, c := range calls {
		if c.note != "" {
			e.note("%s", c.note)
		}
		e.call(c.name, c.id, c.json, c.raw)
	}
}

// callsLike appends the calls in valid JSON that holds calls of offered tools,
// and nothing that calls do not have.
func (e *env) callsLike(out []rawCall, v string) ([]rawCall, bool) {
	v = strings.TrimSpace(v)
	if v[0] == '[' {
		els := elements(v)
		ok := len(els) > 0
		for _, el := range els {
			if ok = ok && el[0] == '{'; ok {
				out, ok = e.callsLike(out, el)
			}
		}
		return out, ok
	}
	if v[0] != '{' {
		return out, false
	}
	c := readCall(v)
	if c.name == "" {
		ms := members(v)
		if len(ms) == 1 && (ms[0].key == "tool_calls" || ms[0].key == "tool_call" || ms[0].key == "function_call") && isBracket(ms[0].value[0]) {
			return e.callsLike(out, ms[0].value)
		}
		return out, false
	}
	if c.foreign || !c.hasArgs || !nameLike(c.name) {
		return out, false
	}
	var ok bool
	if c.json, c.note, ok = c.arguments(); !ok || schemaLike(string(c.json)) && !e.takes(c.name, "properties") {
		return out, false
	}
	if _, ok := e.offered(c.name); !ok {
		e.note("%s", e.tools.unknown(c.name))
		return out, false
	}
	return append(out, c), true
}

// schemaLike reports whether arguments are a JSON Schema: then the object
// describes a tool, and calls none.
func schemaLike(args string) bool {
	var isObject, props bool
	for _, m := range members(args) {
		isObject = isObject || m.key == "type" && m.value == `"object"`
		props = props || m.key == "properties"
	}
	return isObject && props
}

func (e *env) takes(name, param string) bool {
	k := e.paramsOf(name)
	return k != nil && k.of(param) != 0
}

// barePython reads [name(key=value), …] anywhere in the text.
var barePython = opener{tag: "[", read: func(e *env) verdict { return e.pythonList(false) }}

// linePython reads the same where it stands alone.
var linePython = opener{tag: "[", at: lineStart, bare: true, read: func(e *env) verdict { return e.pythonList(true) }}

func (e *env) pythonList(alone bool) verdict {
	if alone && e.m.indent >= 4 {
		return not
	}
	i := e.skip(1)
	start := i
	for i < len(e.s) && (isIdent(e.s[i]) || e.s[i] == '.' || e.s[i] == '-') {
		i++
	}
	if i == len(e.s) && !e.eof && i-start < 260 {
		return more
	}
	if i == len(e.s) || e.s[i] != '(' || i == start {
		return not
	}
	end := e.balanced(0)
	if end < 0 {
		if e.eof {
			return e.cutPythonList(alone)
		}
		return more
	}
	if alone {
		ends, wait := e.standsAlone(end)
		if wait {
			e.rewind(end)
			return more
		}
		if !ends {
			e.n = end
			return not
		}
	}
	calls, err := pythonCalls(e.s[1 : end-1])
	if err != nil {
		return not
	}
	for _, c := range calls {
		if _, ok := e.offered(c.name); !ok && alone {
			return not
		}
	}
	e.addPython(calls)
	return e.done(end)
}

// cutPythonList reads a list that does not end before the text does.
func (e *env) cutPythonList(alone bool) verdict {
	whole, rest := wholePart(e.s)
	calls, err := pythonCalls(strings.TrimSuffix(strings.TrimPrefix(whole, "["), "]"))
	if _, ok := e.offered(nameBefore(e.s[1:], '(')); whole == "" || err != nil || !ok || alone && e.tools == nil {
		e.n = len(e.s)
		return not
	}
	e.addPython(calls)
	e.wasCut("")
	if e.accepted {
		e.text(rest)
	}
	return e.done(len(e.s))
}

// nameBefore returns what stands before the first c.
func nameBefore(s string, c byte) string {
	return strings.TrimSpace(s[:max(0, strings.IndexByte(s, c))])
}

func (e *env) addPython(calls []pythonCall) {
	for _, c := range calls {
		e.call(c.name, "", c.args, c.raw)
	}
}

// readPython reads a body of Python calls, in a list or not, or of JSON calls.
func readPython(e *env, body string) {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") && strings.HasPrefix(strings.TrimSpace(body[1:]), "{") {
		e.jsonCalls(body)
		return
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(body, "["), "]")
	calls, err := pythonCalls(inner)
	if err != nil {
		calls, err = (&python{s: inner, words: true}).calls()
	}
	if err != nil {
		calls, err = pythonCalls(strings.TrimRight(inner, "]) ") + ")")
		if err != nil {
			e.note("what should be calls cannot be read: it was left as text; write [name(key=value)]")
			return
		}
		e.note("a list of calls was not closed")
	}
	e.addPython(calls)
}

// pythonBetween is tagged for a body of Python calls, in which JSON is read as well.
func pythonBetween(open, close string) opener {
	return opener{tag: open, call: true, read: func(e *env) verdict {
		e.look = max(e.look, len(open))
		i, tag := e.outside(close, open)
		switch {
		case i < 0 && !e.eof:
			return more
		case i < 0:
			if i = strings.Index(e.s[len(open):], close); i >= 0 {
				readPython(e, e.s[len(open):len(open)+i])
				return e.done(len(open) + i + len(close))
			}
			return e.unclosedPython(open, close)
		}
		readPython(e, e.s[len(open):i])
		if tag == close {
			i += len(close)
		}
		return e.done(i)
	}}
}

func (e *env) unclosedPython(open, close string) verdict {
	body := trimPartial(strings.TrimSpace(e.s[len(open):]), close)
	var l lexer
	for i := range len(body) {
		l.step(body[i])
	}
	if l.depth == 0 && l.quote == 0 && body != "" {
		readPython(e, body)
		return e.done(len(e.s))
	}
	whole, rest := wholePart(body)
	if whole != "" {
		readPython(e, whole)
	}
	e.wasCut(close)
	if e.accepted {
		e.text(rest)
	}
	return e.done(len(e.s))
}
