package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Step3 is invocations in Step's markup between tokens.
var Step3 = &Format{
	Name:   "step3",
	Doc:    "<steptml:invoke> elements between <｜tool_calls_begin｜> and <｜tool_calls_end｜>.",
	Models: "Step 3",
	grammar: grammar{
		openers: join([]opener{{tag: "<｜tool_calls_begin｜>", call: true, read: readStep3}}, thinkTags, afterCall("<｜tool_calls_end｜>", "<｜tool_call_end｜>")),
		implied: closesThink,
	},
	render: around("<｜tool_calls_begin｜>\n", each(func(c tool.Call) string {
		return "<｜tool_call_begin｜>function<｜tool_sep｜>" + invokeText(stepTags)(c) + "<｜tool_call_end｜>"
	}, "\n"), "\n<｜tool_calls_end｜>"),
}

var stepTags = invoke{"steptml:"}

const (
	stepBegin, stepEnd         = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
	stepBlockBegin, stepBlkEnd = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
)

// readStep3 reads a block of calls, each between its own tokens.
func readStep3(e *env) verdict {
	i := e.matching(len(stepBlockBegin), stepBlockBegin, stepBlkEnd)
	end := i + len(stepBlkEnd)
	if i < 0 {
		if !e.eof {
			return more
		}
		i, end = len(e.s), len(e.s)
	}
	rest := e.s[len(stepBlockBegin):i]
	for {
		_, body, begun := strings.Cut(rest, stepBegin)
		at := e.enclosed(body, stepBegin, stepEnd)
		if at < 0 {
			if begun {
				e.wasCut(stepEnd)
				if e.accepted {
					e.text(rest)
				}
			}
			return e.done(end)
		}
		one := body[:at]
		rest = body[at+len(stepEnd):]
		sub := env{s: one, eof: true, tools: e.tools, m: e.m}
		sub.pos = indexOr(one, stepTags.open(), len(one))
		sub.look = sub.pos
		if sub.invokes(stepTags, sub.pos, stepEnd); len(sub.out) > 0 {
			e.out = append(e.out, sub.out...)
			e.accepted = e.accepted || sub.accepted
			e.rejected += sub.rejected
		}
	}
}
