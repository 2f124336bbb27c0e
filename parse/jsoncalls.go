package parse

import (
	"encoding/json"
	"strings"
)

// A rawCall is a call as JSON has it.
type rawCall struct {
	name, id, args string
	hasArgs        bool
	foreign        bool // there are members that calls do not have
	valid          bool // the arguments are valid JSON
	nested         bool // as the chat completions API has it: arguments are a string there
	raw            string

	json json.RawMessage // the arguments, read
	note string          // and what was done to them
}

// callMembers are the names under which a call's parts go, by dialect.
func (c *rawCall) take(m member) {
	switch m.key {
	case "name", "tool_name", "tool", "function_name", "recipient_name":
		if strings.HasPrefix(m.value, `"`) {
			c.name = unquote(m.value)
		}
	case "function":
		if strings.HasPrefix(m.value, `"`) {
			c.name = unquote(m.value)
			return
		}
		c.nested = true
		for _, inner := range members(m.value) {
			c.take(inner)
		}
	case "arguments", "parameters", "args", "params", "input", "tool_input", "action_input":
		if c.hasArgs && (m.value == "null" || m.value == "{}") {
			return
		}
		c.args, c.hasArgs = m.value, true
	case "id", "tool_call_id", "call_id":
		c.id = m.value
		if strings.HasPrefix(m.value, `"`) {
			c.id = unquote(m.value)
		}
	case "type", "index", "thought", "reasoning", "cache_control":
	default:
		c.foreign = true
	}
}

// readCall reads a JSON object as a call.
func readCall(s string) (c rawCall) {
	c.raw, c.valid = s, true
	for _, m := range members(s) {
		c.take(m)
	}
	return c
}

// arguments returns the arguments as a JSON object, and what was done to them.
func (c *rawCall) arguments() (args json.RawMessage, note string, ok bool) {
	s := strings.TrimSpace(c.args)
	valid := c.valid
	if strings.HasPrefix(s, `"`) {
		s = strings.TrimSpace(unquote(s))
		valid = false
		if !c.nested {
			note = "the arguments of " + c.name + " were a JSON string: write them as an object"
		}
	}
	switch {
	case s == "" || s == "null" || s == "[]":
		return json.RawMessage("{}"), note, true
	case s[0] != '{':
		return nil, "", false
	case valid || json.Valid([]byte(s)):
		return json.RawMessage(s), note, true
	}
	if v, ok := repair(s); ok && v[0] == '{' {
		return json.RawMessage(v), "the arguments of " + c.name + " were not valid JSON and were repaired", true
	}
	return nil, "", false
}

// jsonCall adds the call that a JSON object is, if it is one.
func (e *env) jsonCall(c rawCall) bool {
	if c.name == "" {
		return false
	}
	args, note, ok := c.arguments()
	if !ok {
		e.note("the arguments of %s are not a JSON object: the call was left as text", c.name)
		return false
	}
	if note != "" {
		e.note("%s", note)
	}
	e.call(c.name, c.id, args, c.raw)
	return true
}

// jsonCalls adds the calls in a body that holds JSON objects or arrays of
// them, with commas, semicolons or white space between. It reports whether
// there was nothing else; what could not be read has a note.
func (e *env) jsonCalls(body string) bool {
	for s := strings.TrimLeft(body, " \t\r\n,;"); s != ""; {
		v, end, repaired, ok := leading(s)
		if !ok {
			e.note("what should be a call is not valid JSON: it was left as text; write {\"name\": …, \"arguments\": {…}}")
			return false
		}
		if !e.jsonValue(v) {
			e.note("what should be a call has no name and arguments: it was left as text; write {\"name\": …, \"arguments\": {…}}")
			return false
		}
		if repaired {
			e.note("a call was not valid JSON and was repaired")
		}
		s = strings.TrimLeft(s[end:], " \t\r\n,;")
	}
	return true
}

// jsonValue adds the calls that a valid JSON value holds.
func (e *env) jsonValue(v string) bool {
	v = strings.TrimSpace(v)
	if v[0] == '[' {
		for _, el := range elements(v) {
			if el[0] != '{' || !e.jsonValue(el) {
				return false
			}
		}
		return true
	}
	if v[0] != '{' {
		return false
	}
	c := readCall(v)
	if c.name == "" {
		for _, m := range members(v) {
			if (m.key == "tool_calls" || m.key == "tool_call" || m.key == "function_call" || m.key == "function_calls") && (m.value[0] == '[' || m.value[0] == '{') {
				return e.jsonValue(m.value)
			}
		}
	}
	return e.jsonCall(c)
}

// endsComplete reports whether a body that was cut off lacks only closers of
// what stands around the arguments.
func endsComplete(body string) bool {
	body = strings.TrimSpace(body)
	var l lexer
	for i := range len(body) {
		l.step(body[i])
	}
	if l.quote != 0 || body == "" {
		return false
	}
	c := body[len(body)-1]
	switch l.open() {
	case "":
		return true
	case "{", "[", "[{":
		return c == '}' || c == ']'
	}
	return false
}

// wholePart splits a body that was cut off into the calls that are whole,
// closed if they are a list, and what follows them. whole is "" if there are none.
func wholePart(body string) (whole, rest string) {
	var l lexer
	base, end := 0, 0
	if strings.HasPrefix(body, "[") {
		base = 1
	}
	for i := range len(body) {
		was := l.depth
		l.step(body[i])
		if l.depth == base && was == base+1 {
			end = i + 1
		}
	}
	if end == 0 {
		return "", body
	}
	if base == 1 {
		return body[:end] + "]", body[end:]
	}
	return body[:end], body[end:]
}
