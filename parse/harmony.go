package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Harmony is messages in channels, some of them to functions.
var Harmony = &Format{
	Name:   "harmony",
	Doc:    "Messages in the channels analysis, commentary and final; those to functions.NAME are calls.",
	Models: "gpt-oss",
	grammar: grammar{
		openers: join([]opener{
			{tag: "<|start|>", call: true, read: readHarmony},
			{tag: "<|channel|>", call: true, read: readHarmony},
			{tag: "<|message|>", read: readHarmony},
		}, dropped("<|end|>", "<|return|>", "<|call|>")),
	},
	render: each(func(c tool.Call) string {
		return "<|start|>assistant<|channel|>commentary to=functions." + c.Name + " <|constrain|>json<|message|>" + string(c.Args) + "<|call|>"
	}, ""),
	result: func(name, _, content string) string {
		return "<|start|>functions." + name + " to=assistant<|channel|>commentary<|message|>" + content + "<|end|>"
	},
}

const harmonyMessage = "<|message|>"

var harmonyEnds = []string{"<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"}

// A header is what stands before a message.
type header struct{ role, channel, to string }

func readHeader(s string) (h header) {
	s = strings.ReplaceAll(s, "<|constrain|>", " ")
	s = strings.ReplaceAll(s, "<|channel|>", " \x00")
	s = strings.TrimPrefix(s, "<|start|>")
	for i, w := range strings.Fields(s) {
		switch to, addressed := strings.CutPrefix(w, "to="); {
		case addressed:
			h.to = to
		case w[0] == 0:
			h.channel = w[1:]
		case i == 0:
			h.role = w
		}
	}
	return h
}

// readHarmony reads a header, and the whole message if it is a call.
func readHarmony(e *env) verdict {
	if e.pos == 0 {
		i, tag := e.find(harmonyMessage, "<|end|>", "<|return|>")
		if i < 0 && !e.eof && len(e.s) < 2000 {
			return more
		}
		if i < 0 || tag != harmonyMessage {
			e.n = len(e.opener.tag) // a header without a message says nothing
			return took
		}
		e.to(i+len(harmonyMessage), 1)
	}
	h := readHeader(e.s[:e.pos-len(harmonyMessage)])
	switch {
	case h.role != "" && h.role != "assistant" && strings.HasPrefix(e.s, "<|start|>"):
		return e.harmonyOther()
	case h.to != "" && h.to != "assistant" && h.to != "user" && h.to != "all":
		return e.harmonyCall(h)
	}
	e.n, e.closers, e.framed = e.pos, harmonyEnds, true
	e.verbatim = h.channel != "analysis"
	return took
}

// harmonyOther takes out a message that the model wrote in another's name.
func (e *env) harmonyOther() verdict {
	i, _ := e.find(harmonyEnds...)
	if i < 0 {
		if !e.eof {
			return more
		}
		i = len(e.s)
	}
	e.n = i
	e.note("a message that the model wrote in another's name was taken out")
	return took
}

func (e *env) harmonyCall(h header) verdict {
	i, tag := e.outside(harmonyEnds...)
	if i < 0 && !e.eof {
		return more
	}
	if i < 0 {
		e.look = e.pos
		if i, tag = e.find(harmonyEnds...); i < 0 {
			return e.harmonyCut(h)
		}
	}
	n := i
	if !beginsFrame(tag) {
		n += len(tag)
	}
	e.harmonyArgs(h, e.s[e.pos:i], e.s[:n])
	return e.done(n)
}

func (e *env) harmonyCut(h header) verdict {
	if body := e.s[e.pos:]; endsComplete(body) {
		e.harmonyArgs(h, body, e.s)
	} else {
		e.wasCut("<|call|>")
	}
	return e.done(len(e.s))
}

func (e *env) harmonyArgs(h header, body, raw string) {
	name := strings.TrimPrefix(h.to, "functions.")
	body = strings.TrimSpace(body)
	if body != "" && body[0] != '{' && body[0] != '"' && body != "null" {
		e.note("the arguments of %s are not a JSON object: the call was left as text", name)
		return
	}
	e.jsonCall(textCall(name, body, raw))
}
