package parse

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/helve-ai/helve/tool"
)

const (
	kimiSection, kimiSectionEnd = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
	kimiCall, kimiCallEnd       = "<|tool_call_begin|>", "<|tool_call_end|>"
	kimiArgs                    = "<|tool_call_argument_begin|>"
)

// KimiK2 is functions.NAME:INDEX and JSON between tokens.
var KimiK2 = &Format{
	Name:   "kimi_k2",
	Doc:    "functions.NAME:INDEX and JSON arguments between tool-call tokens.",
	Models: "Kimi K2, K2 Thinking",
	grammar: grammar{
		openers: join([]opener{
			{tag: kimiSection, call: true, read: readKimiSection},
			{tag: "<|tool_call_section_begin|>", call: true, read: readKimiSection},
			{tag: kimiCall, call: true, read: readKimiCall},
		}, thinkTags, dropped(kimiSectionEnd, "<|tool_call_section_end|>", "<|im_end|>")),
		implied: closesThink,
	},
	render: func(calls []tool.Call) string {
		var b strings.Builder
		b.WriteString(kimiSection)
		for i, c := range calls {
			b.WriteString(kimiCall + "functions." + c.Name + ":" + strconv.Itoa(i) + kimiArgs + string(c.Args) + kimiCallEnd)
		}
		return b.String() + kimiSectionEnd
	},
	result: func(name, id, content string) string {
		if id == "" {
			id = name
		}
		return "## Return of " + id + "\n" + content
	},
}

// readKimiSection passes over the section's token and what should not stand
// between it and the first call.
func readKimiSection(e *env) verdict {
	if e.look == 0 {
		e.look = len(e.opener.tag)
	}
	i, tag := e.find(kimiCall, kimiSectionEnd)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		return not
	}
	e.n = i
	if tag == kimiSectionEnd {
		e.n += len(tag)
	}
	return took
}

func readKimiCall(e *env) verdict {
	if e.look == 0 {
		e.look = len(kimiCall)
	}
	i, tag := e.outside(kimiCallEnd, kimiSectionEnd, kimiCall)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		if i = strings.Index(e.s, kimiCallEnd); i < 0 {
			return e.cutKimi()
		}
		tag = kimiCallEnd
	}
	n := i
	if tag == kimiCallEnd {
		n += len(tag)
	}
	return e.kimiCall(e.s[len(kimiCall):i], n)
}

func (e *env) cutKimi() verdict {
	body := trimPartial(e.s[len(kimiCall):], kimiCallEnd)
	if _, args, ok := strings.Cut(body, kimiArgs); ok && strings.TrimSpace(args) != "" && endsComplete(args) {
		return e.kimiCall(body, len(e.s))
	}
	e.wasCut(kimiCallEnd)
	return e.done(len(e.s))
}

// kimiCall reads an id and arguments. A broken id takes only its call with it.
func (e *env) kimiCall(body string, n int) verdict {
	id, args, ok := strings.Cut(body, kimiArgs)
	id = strings.TrimSpace(id)
	c := textCall("", args, e.s[:n])
	c.id = id
	name, index, numbered := cutLast(id, ":")
	switch _, err := strconv.Atoi(index); {
	case !ok:
	case numbered && err == nil:
		c.name = strings.TrimPrefix(name, "functions.")
	case !numbered && digitsOnly(id):
		c.name = e.byArguments(args)
	case !numbered && e.tools != nil:
		if name, ok := e.offered(id); ok || !strings.Contains(id, ".") {
			c.name = name
		}
	}
	if c.name == "" {
		e.note("the call id %q does not have the form functions.NAME:INDEX: the call was left as text", id)
		return e.done(n)
	}
	e.jsonCall(c)
	return e.done(n)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func digitsOnly(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// byArguments returns the only tool that takes these arguments, "" if it is not alone.
func (e *env) byArguments(args string) string {
	args = strings.TrimSpace(args)
	if e.tools == nil || !json.Valid([]byte(args)) {
		return ""
	}
	ms := members(args)
	found := ""
	for _, name := range e.tools.names {
		k := e.paramsOf(name)
		if k == nil || !k.fits(ms) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// fits reports whether these are parameters, and all that are required.
func (k *params) fits(ms []member) bool {
	given := map[string]bool{}
	for _, m := range ms {
		if _, ok := k.types[m.key]; !ok {
			return false
		}
		given[m.key] = true
	}
	for _, r := range k.required {
		if !given[r] {
			return false
		}
	}
	return true
}
