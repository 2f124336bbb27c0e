package parse

import "strings"

// functionTag reads <function=NAME> elements that stand for themselves.
var functionTag = opener{tag: "<function=", call: true, read: func(e *env) verdict { return e.function(0, "") }}

const functionClose, parameterClose = "</function>", "</parameter>"

// The stages of reading a function element.
const (
	functionName = iota
	functionBody
	functionParam
	functionValue
	functionJSON
	functionEnd
)

// function reads the element at from: <function=NAME> with <parameter=KEY>
// elements, others, or a JSON object. close may follow it.
func (e *env) function(from int, close string) verdict {
	if e.pos == 0 {
		e.to(from, functionName)
	}
	for {
		ok := false
		switch e.stage {
		case functionName:
			ok = e.functionName()
		case functionBody:
			ok = e.functionBody()
		case functionParam:
			ok = e.functionParam()
		case functionValue:
			ok = e.functionValue()
		case functionJSON:
			if end := e.balanced(e.pos); end >= 0 {
				e.params = append(e.params[:0], param{value: e.s[e.pos:end]})
				e.to(end, functionEnd)
				ok = true
			}
		case functionEnd:
			if v := e.functionEnd(close); v != more || !e.eof {
				return v
			}
		}
		switch {
		case ok:
		case e.n > 0:
			return not
		case !e.eof:
			return more
		default:
			e.wasCut(functionClose)
			e.n = len(e.s)
			return not
		}
	}
}

func (e *env) functionName() bool {
	i, _ := e.find(">")
	if i < 0 {
		if len(e.s)-e.pos > 400 {
			e.n = e.pos + 1
		}
		return false
	}
	tag := e.s[e.pos+len("<function") : i]
	name := strings.TrimSpace(strings.TrimPrefix(tag, "="))
	if bare, ok := e.offered(unquoted(name)); ok && e.tools != nil {
		name = bare
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(tag), "name="); ok {
		name = unquoted(rest)
	}
	if name == "" || strings.ContainsAny(name, "\n<{") {
		e.n = i + 1
		return false
	}
	e.name = name
	e.to(i+1, functionBody)
	return true
}

// unquoted takes the quotes off an attribute.
func unquoted(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

// functionBody looks at what comes next within the element.
func (e *env) functionBody() bool {
	i := e.skip(e.pos)
	if i == len(e.s) {
		return false
	}
	if e.s[i] == '{' && len(e.params) == 0 {
		e.to(i, functionJSON)
		return true
	}
	for _, tag := range []string{functionClose, toolCallClose, "<parameter"} {
		yes, wait := e.at(i, tag)
		if wait {
			return false
		}
		if !yes {
			continue
		}
		switch tag {
		case functionClose:
			e.to(i+len(tag), functionEnd)
		case toolCallClose:
			e.to(i, functionEnd)
		default:
			e.to(i, functionParam)
		}
		return true
	}
	if e.s[i] == '<' {
		e.to(i, functionParam)
		return true
	}
	at, _ := e.find("<") // text between parameters is none of ours
	if at < 0 {
		return false
	}
	e.to(at, functionBody)
	return true
}

// functionParam reads the opening tag of a parameter.
func (e *env) functionParam() bool {
	i, _ := e.find(">")
	if i < 0 {
		return false
	}
	tag := e.s[e.pos+1 : i]
	p := param{name: strings.TrimSpace(tag)}
	if rest, ok := strings.CutPrefix(tag, "parameter"); ok {
		rest = strings.TrimSpace(rest)
		if attr, ok := strings.CutPrefix(rest, "name="); ok {
			p.name = unquoted(attr)
		} else {
			p.name = strings.TrimSpace(strings.TrimPrefix(rest, "="))
			if known := e.paramsOf(e.name); known != nil && known.types[p.name] == 0 && known.types[unquoted(p.name)] != 0 {
				p.name = unquoted(p.name)
			}
		}
	} else if !nameLike(tag) || tag[0] == '/' {
		e.to(i+1, functionBody)
		return true
	}
	e.params = append(e.params, p)
	e.to(i+1, functionValue)
	return true
}

// functionValue reads a parameter's value. A closing tag counts if what
// follows it can follow a parameter: values may hold such tags themselves.
func (e *env) functionValue() bool {
	p := &e.params[len(e.params)-1]
	close := parameterClose
	if tag := e.s[:e.pos]; !strings.HasPrefix(tag[strings.LastIndexByte(tag, '<'):], "<parameter") {
		close = "</" + p.name + ">"
	}
	call := element{"<function=", functionClose}
	for {
		i, tag := e.find(e.tags([]string{close, "\n<parameter=", functionClose}, call)...)
		switch {
		case i < 0 && e.eof && e.flatten():
			continue
		case i >= 0 && e.inner(i, tag, call):
			continue
		}
		if i < 0 && e.eof {
			e.look = e.pos
			i, tag = e.find(toolCallClose)
		}
		if i < 0 {
			return false
		}
		ends, wait := true, false
		switch tag {
		case close:
			ends, wait = e.follows(i+len(tag), "<parameter", functionClose, toolCallClose, toolCallOpen, "<")
		case "\n<parameter=":
			ends, wait = e.nextParameter(i + len(tag))
		case functionClose:
			ends, wait = e.follows(i+len(tag), toolCallClose, toolCallOpen, "<function", "</")
		}
		if wait {
			e.look = i
			return false
		}
		if !ends {
			e.look = i + len(tag)
			continue
		}
		p.value = trimLine(e.s[e.pos:i])
		if tag == close {
			i += len(tag)
		} else {
			e.note("a parameter was not closed: it was read up to the next tag")
		}
		e.to(i, functionBody)
		return true
	}
}

// nextParameter reports whether a parameter's tag, of which the key begins at
// i, ends the one before it, which was not closed. It may stand in its value.
func (e *env) nextParameter(i int) (yes, wait bool) {
	key, _, ok := strings.Cut(e.s[i:], ">")
	if !ok {
		return false, !e.eof && len(key) < 300
	}
	known := e.paramsOf(e.name)
	if known == nil {
		return true, false
	}
	for _, p := range e.params {
		if p.name == key {
			return false, false
		}
	}
	_, declared := known.types[key]
	return declared, false
}

// follows reports whether after white space at i the text ends or one of the
// tags stands.
func (e *env) follows(i int, tags ...string) (yes, wait bool) {
	i = e.skip(i)
	if i == len(e.s) {
		return e.eof, !e.eof
	}
	for _, t := range tags {
		y, w := e.at(i, t)
		if y {
			return true, false
		}
		wait = wait || w
	}
	return false, wait
}

// trimLine takes off one line break at either end.
func trimLine(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

func (e *env) functionEnd(close string) verdict {
	n := e.pos
	isJSON := len(e.params) == 1 && e.params[0].name == ""
	if isJSON { // the element's own closing tag is still to come
		end, wait := e.close(n, functionClose)
		if wait {
			return more
		}
		n = end
	}
	if close != "" {
		end, wait := e.close(n, close)
		if wait {
			return more
		}
		n = end
	}
	if isJSON {
		e.jsonCall(textCall(e.name, e.params[0].value, e.s[:n]))
		return e.done(n)
	}
	args := e.object(e.name, e.params, nullsToo)
	if wrapped, ok := e.unwrapped(e.name, e.params, "arguments", "parameters"); ok {
		args = wrapped
	}
	e.call(e.name, "", args, e.s[:n])
	return e.done(n)
}
