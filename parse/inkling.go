package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

const (
	inklingModel, inklingEnd = "<|message_model|>", "<|end_message|>"
	inklingJSON, inklingText = "<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>"
)

// Inkling is messages with kinds of content, one of them an invocation.
var Inkling = &Format{
	Name:   "inkling",
	Doc:    "JSON with \"name\" and \"args\" after <|content_invoke_tool_json|>, up to <|end_message|>.",
	Models: "Inkling",
	grammar: grammar{
		openers: join([]opener{
			{tag: inklingModel, call: true, read: readInkling},
			{tag: inklingJSON, call: true, read: readInkling},
			{tag: inklingText, call: true, read: readInkling},
			reasoning("<|content_thinking|>", inklingEnd),
		}, thinkTags, dropped(inklingEnd, "<|content_text|>", "<|content_model_end_sampling|>")),
		implied: closesThink,
	},
	render: each(func(c tool.Call) string {
		return inklingModel + c.Name + inklingJSON + `{"name":` + string(quote(c.Name)) + `,"args":` + string(c.Args) + "}" + inklingEnd
	}, ""),
}

// readInkling reads a message's header, and the message if it is an invocation.
func readInkling(e *env) verdict {
	if e.pos == 0 && e.opener.tag == inklingModel {
		if e.look == 0 {
			e.look = len(inklingModel)
		}
		i, tag := e.find(inklingJSON, inklingText, "<|content_text|>", "<|content_thinking|>", inklingEnd)
		if i < 0 && !e.eof && len(e.s) < 600 {
			return more
		}
		if i < 0 || tag != inklingJSON && tag != inklingText {
			e.n = len(inklingModel)
			return took
		}
		e.name = strings.TrimSpace(e.s[len(inklingModel):i])
		e.to(i+len(tag), 1)
	} else if e.pos == 0 {
		e.to(len(e.opener.tag), 1)
	}
	return e.inklingBody(strings.HasSuffix(e.s[:e.pos], inklingText))
}

func (e *env) inklingBody(isText bool) verdict {
	var i int
	if isText {
		i, _ = e.find(inklingEnd)
	} else {
		i, _ = e.outside(inklingEnd)
	}
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		if i = strings.Index(e.s[e.pos:], inklingEnd); i < 0 {
			e.wasCut(inklingEnd)
			return e.done(len(e.s))
		}
		i += e.pos
	}
	n := i + len(inklingEnd)
	body := e.s[e.pos:i]
	switch {
	case isText:
		e.call(e.name, "", append(appendQuoted([]byte(`{"text":`), body), '}'), e.s[:n])
	default:
		e.jsonCalls(body)
	}
	return e.done(n)
}
