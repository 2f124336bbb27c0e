package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// MiniMaxM2 is invocations within <minimax:tool_call> tags.
var MiniMaxM2 = &Format{
	Name:   "minimax_m2",
	Doc:    "<invoke name=\"…\"> elements with <parameter name=\"…\"> elements within <minimax:tool_call> tags.",
	Models: "MiniMax-M2, M2.1",
	grammar: grammar{
		openers: join([]opener{plainInvoke.wrapped("<minimax:tool_call>", "</minimax:tool_call>"), closedInvoke("</minimax:tool_call>"), toolCall},
			thinkTags, afterCall("</minimax:tool_call>", "[e~[")),
		implied: closesThink,
	},
	render: around("<minimax:tool_call>\n", each(invokeText(plainInvoke), "\n"), "\n</minimax:tool_call>"),
	result: func(_, _, content string) string { return "<response>" + content + "</response>" },
}

// closedInvoke reads invocations whose opening wrapper is missing: the closing
// one makes them calls.
func closedInvoke(close string) opener {
	return opener{tag: "<invoke name=", read: func(e *env) verdict {
		v := e.invokes(plainInvoke, 0, close)
		if v == took && !strings.HasSuffix(e.s[:e.n], close) {
			e.n, e.out = 0, e.out[:0]
			return not
		}
		if v == took {
			e.note("the opening tag of %s was missing", close)
		}
		return v
	}}
}

// invokeText writes a call as an invocation.
func invokeText(v invoke) func(tool.Call) string {
	return eachParam(
		func(name string) string { return v.open() + ` name="` + name + "\">\n" },
		func(key, value string, _ bool) string {
			return v.param() + ` name="` + key + `">` + value + v.paramClose() + "\n"
		},
		v.close())
}
