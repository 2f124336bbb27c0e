package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Glimmer is messages to oneself, to the user and to tools.
var Glimmer = &Format{
	Name:   "glimmer",
	Doc:    "Messages to=self, to=user and to=TOOL; those to tools hold <atem:invoke> elements within <atem:function_calls>.",
	Models: "Glimmer",
	grammar: grammar{
		openers: join([]opener{{tag: "<|start|>", call: true, read: readGlimmer}}, glimmerStarts, dropped("<|eom|>", "<|eot|>", "<|end_of_text|>")),
	},
	render: each(func(c tool.Call) string {
		return "<|start|>assistant to=" + c.Name + "<|message|>" + atemOpen + "\n" + invokeText(atemTags)(c) + "\n" + atemClose + "<|eom|>"
	}, ""),
	result: func(name, _, content string) string {
		return "<|start|>" + name + " to=assistant<|message|>" + content + "<|eom|>"
	},
}

// glimmerStarts are the ends of a header that the prompt began.
var glimmerStarts = []opener{
	{tag: "to=", at: replyStart, read: readGlimmer},
	{tag: "<|message|>", at: replyStart, read: readGlimmer},
}

var atemTags = invoke{"atem:"}

const atemOpen, atemClose = "<atem:function_calls>", "</atem:function_calls>"

var glimmerEnds = []string{"<|eom|>", "<|eot|>", "<|end_of_text|>"}

// readGlimmer reads a header, and the message if that is a call.
func readGlimmer(e *env) verdict {
	if e.pos == 0 && e.opener.tag == harmonyMessage {
		e.to(len(harmonyMessage), 1)
	}
	if e.pos == 0 {
		i, _ := e.find(harmonyMessage)
		if i < 0 && !e.eof && len(e.s) < 600 && !strings.ContainsAny(e.s[len(e.opener.tag):], "\n") {
			return more
		}
		if i < 0 || strings.ContainsAny(e.s[len(e.opener.tag):i], "\n<") {
			if i >= 0 && e.opener.tag == "<|start|>" {
				e.n = len(e.opener.tag)
			}
			return not
		}
		e.to(i+len(harmonyMessage), 1)
	}
	head := e.s[:e.pos-len(harmonyMessage)]
	_, to, _ := strings.Cut(head, "to=")
	if to = strings.TrimSpace(to); to == "self" {
		e.n, e.closers, e.framed = e.pos, append(glimmerEnds[:len(glimmerEnds):len(glimmerEnds)], "<|start|>"), true
		return took
	}
	if to == "assistant" && e.m.called {
		return e.invented(e.pos)
	}
	body := e.skip(e.pos)
	yes, wait := e.at(body, atemOpen)
	if wait || body == len(e.s) && !e.eof {
		return more
	}
	if !yes {
		e.n, e.closers, e.verbatim, e.framed = e.pos, glimmerEnds, true, true
		return took
	}
	return e.atem(body)
}

// atem reads a message that begins with a block of calls. It is one of calls
// if nothing else is in it; else it is text.
func (e *env) atem(body int) verdict {
	if e.stage == 1 {
		e.look, e.stage = body+len(atemOpen), 2
	}
	i := e.matching(body+len(atemOpen), atemOpen, atemClose)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		e.wasCut(atemClose)
		e.n = len(e.s)
		return not
	}
	end := i + len(atemClose)
	next := e.skip(end)
	ends, wait := e.follows(end, glimmerEnds...)
	if wait {
		e.look = i
		return more
	}
	if next == len(e.s) {
		ends = true
	}
	if ends {
		block := atemRepaired(e.s[body+len(atemOpen) : end])
		sub := env{s: block, eof: true, tools: e.tools, m: e.m}
		sub.atemCalls()
		if sub.accepted {
			e.out = append(e.out, sub.out...)
			e.accepted = true
			return e.done(end)
		}
		for _, o := range sub.out {
			if o.Kind == Note {
				e.out = append(e.out, o)
			}
		}
	}
	e.n, e.closers, e.verbatim, e.framed = e.pos, glimmerEnds, true, true
	return took
}

func (e *env) atemCalls() {
	e.pos = e.skip(0)
	e.look = e.pos
	for {
		if ok, ended := e.invokeStep(atemTags, atemClose); ended || !ok {
			break
		}
		if e.stage == invokeValue && e.name != "" {
			e.name = e.selfNamed(e.name)
		}
		if e.stage == invokeBody {
			e.name = e.selfNamed(e.name)
		}
	}
}

// selfNamed takes off the namespace that glimmer puts before a tool's name.
func (e *env) selfNamed(name string) string {
	if _, ok := e.offered(name); ok && e.tools != nil {
		return name
	}
	ns, short, ok := strings.Cut(name, ".")
	if !ok {
		return name
	}
	if e.tools == nil && ns == short || e.tools != nil && e.tools.lookup(short) != nil {
		return short
	}
	return name
}

// atemRepaired mends opening tags into which <|message|> slipped.
func atemRepaired(block string) string {
	const open = "<atem:invoke name=\""
	at := strings.Index(block, open)
	if at < 0 {
		return block
	}
	at += len(open)
	head, rest := block[at:], ""
	if i := strings.Index(head, "<atem:parameter"); i >= 0 {
		head, rest = head[:i], head[i:]
	}
	if !strings.Contains(head, harmonyMessage) {
		return block
	}
	head = strings.ReplaceAll(head, harmonyMessage, "")
	if !strings.Contains(head, ">") {
		head = strings.TrimRight(head, "\"") + "\">"
	}
	return block[:at] + head + rest
}
