package parse

import "strings"

const toolCallOpen, toolCallClose = "<tool_call>", "</tool_call>"

// toolCall reads <tool_call> elements, whatever of the usual things they hold:
// JSON (Hermes), <function=…> (Qwen3-Coder), <name> and <arguments>, or a name
// and <arg_key>, <arg_value> pairs (GLM).
var toolCall = opener{tag: toolCallOpen, call: true, read: readToolCall}

func readToolCall(e *env) verdict {
	first := e.skip(len(toolCallOpen))
	if first == len(e.s) {
		if e.eof {
			e.n = len(e.s)
			return not
		}
		return more
	}
	switch c := e.s[first]; {
	case isBracket(c):
		return e.tagged(toolCallOpen, toolCallClose, readJSONBody)
	case c == '<':
		return e.toolCallElement(first)
	case c == '`':
		return e.fencedToolCall(first)
	}
	return e.argPairs(len(toolCallOpen))
}

// fencedToolCall reads a <tool_call> whose JSON stands in a fenced block.
func (e *env) fencedToolCall(first int) verdict {
	nl := strings.IndexByte(e.s[first:], '\n')
	switch fence, wait := e.at(first, fenceMark); {
	case wait || fence && nl < 0 && !e.eof && len(e.s)-first < 100:
		return more
	case !fence || nl < 0:
		return e.argPairs(len(toolCallOpen))
	}
	return e.taggedFrom(first+nl+1, toolCallOpen, toolCallClose, func(e *env, body string) {
		readJSONBody(e, strings.TrimSuffix(strings.TrimSpace(body), fenceMark))
	})
}

const fenceMark = "```"

// toolCallElement reads a <tool_call> in which an element comes first.
func (e *env) toolCallElement(first int) verdict {
	for _, tag := range []string{"<function=", "<function ", "<invoke ", "<name>", "<tool_name>", "</tool_call>"} {
		yes, wait := e.at(first, tag)
		if wait {
			return more
		}
		if !yes {
			continue
		}
		switch tag {
		case "<function=", "<function ":
			return e.function(first, toolCallClose)
		case "<invoke ":
			return e.invokes(plainInvoke, first, toolCallClose)
		case "<name>", "<tool_name>":
			return e.nestedXML(tag)
		}
		e.n = first + len(tag)
		return not
	}
	e.n = first
	return not
}

// nestedXML reads <name>…</name><arguments>{…}</arguments>.
func (e *env) nestedXML(nameTag string) verdict {
	e.look = max(e.look, len(toolCallOpen))
	i, _ := e.outside(toolCallClose)
	n := i + len(toolCallClose)
	if i < 0 {
		if !e.eof {
			return more
		}
		if i = strings.Index(e.s, toolCallClose); i < 0 {
			e.wasCut(toolCallClose)
			return e.done(len(e.s))
		}
		n = i + len(toolCallClose)
	}
	body := e.s[len(toolCallOpen):i]
	name := between(body, nameTag, "</"+nameTag[1:])
	args := ""
	for _, tag := range []string{"arguments", "parameters", "args", "tool_arguments"} {
		if args == "" {
			args = betweenLast(body, "<"+tag+">", "</"+tag+">")
		}
	}
	e.jsonCall(textCall(strings.TrimSpace(name), args, e.s[:n]))
	return e.done(n)
}

// textCall returns a call whose arguments are JSON as text.
func textCall(name, args, raw string) rawCall {
	return rawCall{name: name, args: strings.TrimSpace(args), hasArgs: true, raw: raw}
}

// between returns what stands between the first open and the next close.
func between(s, open, close string) string {
	_, s, _ = strings.Cut(s, open)
	s, _, _ = strings.Cut(s, close)
	return s
}

// betweenLast returns what stands between the first open and the last close.
func betweenLast(s, open, close string) string {
	_, s, _ = strings.Cut(s, open)
	if i := strings.LastIndex(s, close); i >= 0 {
		s = s[:i]
	}
	return s
}

const (
	keyOpen, keyClose     = "<arg_key>", "</arg_key>"
	valueOpen, valueClose = "<arg_value>", "</arg_value>"
	toolSep               = "<tool_sep>"
)

// The stages of reading pairs.
const (
	pairName = iota
	pairKey
	pairKeyEnd
	pairValue
	pairValueEnd
)

// argPairs reads a name and pairs of <arg_key> and <arg_value>, from a place
// after the opening tag.
func (e *env) argPairs(start int) verdict {
	if e.pos == 0 {
		e.pos, e.look = start, start
	}
	for {
		var ok bool
		switch e.stage {
		case pairName:
			ok = e.pairName()
		case pairKey:
			i, tag := e.find(keyOpen, toolCallClose)
			if tag == toolCallClose {
				return e.endPairs(i + len(tag))
			}
			if ok = i >= 0; ok {
				e.to(i+len(keyOpen), pairKeyEnd)
			}
		case pairKeyEnd:
			ok = e.pairKey()
		case pairValue:
			ok = e.pairValueStart()
		case pairValueEnd:
			ok = e.pairValue()
		}
		if ok {
			continue
		}
		if e.n > 0 {
			return not
		}
		if !e.eof {
			return more
		}
		return e.cutPairs()
	}
}

// to moves on to another stage.
func (e *env) to(pos, stage int) {
	e.pos, e.look, e.stage = pos, pos, stage
	e.within = within{}
}

func (e *env) pairName() bool {
	i, tag := e.find(toolSep, keyOpen, toolCallClose, toolCallOpen)
	if i < 0 {
		return false
	}
	name := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(e.s[e.pos:i]), `\n`))
	if !nameLike(name) || tag == toolCallOpen {
		e.n = len(toolCallOpen)
		if tag == toolCallClose && len(name) < 100 {
			e.n = i + len(tag)
		}
		return false
	}
	e.name = name
	if tag == toolSep {
		i += len(tag)
		e.sep = true
	}
	e.to(i, pairKey)
	return true
}

// nameLike reports whether s may be the name of a tool.
func nameLike(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsAny(s, " \t\r\n<>{}[]()\"'`,;=")
}

func (e *env) pairKey() bool {
	i, tag := e.find(keyClose, valueOpen, toolCallClose)
	switch tag {
	case "":
		return false
	case keyClose:
		e.params = append(e.params, param{name: strings.TrimSpace(e.s[e.pos:i])})
		e.to(i+len(tag), pairValue)
	case valueOpen: // a key that does not end has no value
		e.params = append(e.params, param{})
		e.to(i, pairValue)
	case toolCallClose:
		e.to(i, pairKey)
	}
	return true
}

func (e *env) pairValueStart() bool {
	i := e.skip(e.pos)
	if strings.HasPrefix(e.s[i:], `\n`) {
		i = e.skip(i + 2)
	}
	yes, wait := e.at(i, valueOpen)
	if i == len(e.s) || wait || e.s[i] == '\\' && i+1 == len(e.s) && !e.eof {
		return false
	}
	if yes {
		i += len(valueOpen)
	}
	e.to(i, pairValueEnd)
	return true
}

func (e *env) pairValue() bool {
	call := element{toolCallOpen, toolCallClose}
	i, tag := e.find(e.tags([]string{valueClose, keyOpen}, call)...)
	switch {
	case i < 0 && e.eof && e.flatten(), i >= 0 && e.inner(i, tag, call):
		return true
	case tag == toolCallClose:
		e.look = i + len(tag)
		return true
	}
	if i < 0 && e.eof {
		e.look = e.pos
		i, tag = e.find(toolCallClose)
	}
	if i < 0 {
		return false
	}
	v := e.s[e.pos:i]
	if tag == valueClose {
		if !strings.HasSuffix(e.s[:e.pos], valueOpen) {
			v = strings.TrimSpace(v)
		}
		i += len(tag)
	} else {
		v = strings.TrimSpace(v)
		e.note("an <arg_value> was not closed: it was read up to the next tag")
	}
	e.params[len(e.params)-1].value = v
	if e.params[len(e.params)-1].name == "" {
		e.params = e.params[:len(e.params)-1]
		e.note("an <arg_key> was not closed: its value was dropped")
	}
	e.to(i, pairKey)
	return true
}

func (e *env) endPairs(n int) verdict {
	without := asTheyLook
	if e.sep { // Hunyuan
		without = asStrings
	}
	e.call(e.name, "", e.object(e.name, e.params, without), e.s[:n])
	return e.done(n)
}

// cutPairs reads a call at the end of the text that lacks its last closing tag.
func (e *env) cutPairs() verdict {
	rest := strings.TrimSpace(e.s[e.pos:])
	if e.stage == pairKey && len(e.params) > 0 && strings.HasPrefix(toolCallClose, rest) {
		return e.endPairs(len(e.s))
	}
	e.wasCut(toolCallClose)
	e.n = len(e.s)
	return not
}

// indexOr returns the place of the first tag, or another if there is none.
func indexOr(s, tag string, or int) int {
	if i := strings.Index(s, tag); i >= 0 {
		return i
	}
	return or
}
