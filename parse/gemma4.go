package parse

import (
	"github.com/helve-ai/helve/tool"
)

var gemma4Talk = gemmaTalk{"<|tool_call>", "<tool_call|>", `<|"|>`}

// Gemma4 is call:NAME{key:value} between tags, strings between <|"|> marks.
var Gemma4 = &Format{
	Name:   "gemma4",
	Doc:    "call:NAME{key:value} between <|tool_call> and <tool_call|>, strings between <|\"|> marks.",
	Models: "Gemma 4",
	grammar: grammar{
		openers: join([]opener{gemma4Talk.opener(), {tag: "<|channel>", read: readGemmaChannel}}, thinkTags,
			afterCall("<tool_call|>", "<|tool_response>", "<tool_response|>", "<turn|>")),
		implied: []string{"<channel|>"},
	},
	render: each(func(c tool.Call) string { return gemma4Talk.text(c.Name, string(c.Args)) }, ""),
	result: func(name, _, content string) string {
		return `<|tool_response>response:` + name + `{result:<|"|>` + content + `<|"|>}<tool_response|>`
	},
}

// readGemmaChannel begins reasoning, whose channel may be named.
func readGemmaChannel(e *env) verdict {
	n := len("<|channel>")
	for _, name := range []string{"thought\n", "thought"} {
		yes, wait := e.at(n, name)
		if wait {
			return more
		}
		if yes {
			n += len(name)
			break
		}
	}
	e.n, e.closers, e.trim = n, []string{"<channel|>"}, true
	return took
}
