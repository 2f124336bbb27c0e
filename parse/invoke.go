package parse

import "strings"

// An invoke is a dialect of <invoke name="…"> elements within a wrapper.
type invoke struct {
	ns string // before the names of the tags, such as "atem:"
}

var plainInvoke = invoke{}

func (v invoke) open() string       { return "<" + v.ns + "invoke" }
func (v invoke) close() string      { return "</" + v.ns + "invoke>" }
func (v invoke) param() string      { return "<" + v.ns + "parameter" }
func (v invoke) paramClose() string { return "</" + v.ns + "parameter>" }

// The stages of reading invocations.
const (
	invokeNext = iota
	invokeOpen
	invokeBody
	invokeParam
	invokeValue
	invokeJSON
)

// wrapped returns an opener of invocations between two tags.
func (v invoke) wrapped(open, close string) opener {
	return opener{tag: open, call: true, read: func(e *env) verdict { return e.invokes(v, len(open), close) }}
}

// invokes reads invocations from a place on, up to the wrapper's end. At the
// end of the text whole invocations count without it.
func (e *env) invokes(v invoke, from int, close string) verdict {
	if e.pos == 0 {
		e.to(from, invokeNext)
	}
	for {
		ok, ended := e.invokeStep(v, close)
		switch {
		case ended:
			return e.done(e.pos)
		case ok:
		case e.none:
			return not
		case e.n > 0:
			return e.done(e.n)
		case !e.eof:
			return more
		case e.stage == invokeNext:
			return e.done(e.pos)
		default:
			e.wasCut(v.close())
			if e.accepted {
				e.text(e.s[e.pos:])
			}
			return e.done(len(e.s))
		}
	}
}

func (e *env) invokeStep(v invoke, close string) (ok, ended bool) {
	switch e.stage {
	case invokeNext:
		return e.invokeNext(v, close)
	case invokeOpen:
		return e.invokeOpen(v), false
	case invokeBody:
		return e.invokeBody(v), false
	case invokeParam:
		return e.invokeParam(v), false
	case invokeValue:
		return e.invokeValue(v), false
	case invokeJSON:
		if end := e.balanced(e.pos); end >= 0 {
			e.params = append(e.params[:0], param{value: e.s[e.pos:end]})
			e.to(end, invokeBody)
			return true, false
		}
	}
	return false, false
}

// invokeNext looks for the next invocation or the wrapper's end. Anything else
// makes the whole text, unless calls were read.
func (e *env) invokeNext(v invoke, close string) (ok, ended bool) {
	i := e.skip(e.pos)
	if i == len(e.s) {
		return false, false
	}
	yes, wait := e.at(i, v.open())
	if yes {
		e.to(i, invokeOpen)
		return true, false
	}
	closes, wait2 := e.at(i, close)
	switch {
	case closes:
		e.pos = i + len(close)
		return true, true
	case wait || wait2:
		return false, false
	case e.accepted || e.rejected > 0:
		return true, true
	}
	e.none = true
	return false, false
}

func (e *env) invokeOpen(v invoke) bool {
	i, _ := e.find(">")
	if i < 0 {
		return false
	}
	e.name = attribute(e.s[e.pos+len(v.open()):i], "name")
	e.params = e.params[:0]
	if e.name == "" {
		e.n = i + 1
		return false
	}
	e.to(i+1, invokeBody)
	return true
}

// attribute returns the value of an attribute in what stands between a tag's
// name and its end.
func attribute(s, name string) string {
	_, v, found := strings.Cut(s, name+"=")
	if !found {
		return ""
	}
	if v != "" && (v[0] == '"' || v[0] == '\'') {
		v, _, _ = strings.Cut(v[1:], v[:1])
		return strings.TrimSpace(v)
	}
	v, _, _ = strings.Cut(v, " ")
	return strings.TrimSpace(v)
}

func (e *env) invokeBody(v invoke) bool {
	i := e.skip(e.pos)
	if i == len(e.s) {
		return false
	}
	if e.s[i] == '{' && len(e.params) == 0 {
		e.to(i, invokeJSON)
		return true
	}
	closes, wait := e.at(i, v.close())
	if closes {
		e.endInvoke(v, i+len(v.close()))
		return true
	}
	opens, wait2 := e.at(i, v.param())
	switch {
	case opens:
		e.to(i, invokeParam)
		return true
	case wait || wait2:
		return false
	}
	at, _ := e.find(v.param(), v.close()) // other text is none of ours
	if at < 0 {
		return false
	}
	e.to(at, invokeBody)
	return true
}

func (e *env) invokeParam(v invoke) bool {
	i, _ := e.find(">")
	if i < 0 {
		return false
	}
	tag := e.s[e.pos+len(v.param()) : i]
	p := param{name: attribute(tag, "name")}
	switch attribute(tag, "string") {
	case "true":
		p.typed, p.types = true, typeString
	case "false":
		p.types = typeNumber
	}
	e.params = append(e.params, p)
	e.to(i+1, invokeValue)
	return true
}

// invokeValue reads a parameter's value; see functionValue.
func (e *env) invokeValue(v invoke) bool {
	call, par := element{v.open() + " name=", v.close()}, element{v.param() + " name=", v.paramClose()}
	for {
		i, tag := e.find(e.tags([]string{v.paramClose(), v.close()}, call, par)...)
		switch {
		case i < 0 && e.eof && e.flatten():
			continue
		case i < 0:
			return false
		case e.inner(i, tag, call, par):
			continue
		case tag == v.close() && e.within.open[1] > 0 && e.flatten():
			continue
		}
		ends, wait := true, false
		if tag == v.paramClose() {
			ends, wait = e.follows(i+len(tag), v.param(), v.close(), "</")
		}
		if wait {
			e.look = i
			return false
		}
		if !ends {
			e.look = i + len(tag)
			continue
		}
		p := &e.params[len(e.params)-1]
		p.value = e.s[e.pos:i]
		if v.ns == "" && strings.HasPrefix(p.value, "\n") && strings.HasSuffix(p.value, "\n") {
			p.value = trimLine(p.value)
		}
		if tag == v.paramClose() {
			i += len(tag)
		} else {
			e.note("a parameter was not closed: it was read up to the next tag")
		}
		e.to(i, invokeBody)
		return true
	}
}

// endInvoke adds the call of an invocation that ends at n.
func (e *env) endInvoke(v invoke, n int) {
	raw := e.s[:n]
	if at := strings.LastIndex(raw[:e.pos], "invoke"); at >= 0 {
		raw = raw[max(0, strings.LastIndexByte(raw[:at], '<')):]
	}
	defer e.to(n, invokeNext)
	if len(e.params) == 1 && e.params[0].name == "" {
		e.jsonCall(textCall(e.name, e.params[0].value, raw))
		return
	}
	known := e.paramsOf(e.name)
	for i := range e.params {
		p := &e.params[i]
		if p.types == typeNumber && !p.typed { // marked as JSON
			if t := known.of(p.name); t != 0 {
				p.json = typed(p.value, t)
			} else {
				p.json = guess(p.value)
			}
		}
	}
	without := asStrings
	if v == atemTags {
		without = listsAndMaps
	}
	args := e.object(e.name, e.params, without)
	if w, ok := e.unwrapped(e.name, e.params, "arguments", "input", "parameters"); ok {
		args = w
	}
	e.call(e.name, "", args, raw)
}

// of returns the types of a parameter, none if they are not known.
func (k *params) of(name string) types {
	if k == nil {
		return 0
	}
	return k.types[name]
}
