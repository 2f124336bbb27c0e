package parse

import "github.com/helve-ai/helve/tool"

// SeedOSS is the elements of Qwen3-Coder within <seed:tool_call> tags.
var SeedOSS = &Format{
	Name:   "seed_oss",
	Doc:    "<function=NAME> elements with <parameter=KEY> elements, within <seed:tool_call> tags.",
	Models: "Seed-OSS",
	grammar: grammar{
		openers: join([]opener{functionIn("<seed:tool_call>", "</seed:tool_call>"), functionTag, toolCall,
			reasoning("<seed:think>", "</seed:think>")}, thinkTags, afterCall("</seed:tool_call>", "<seed:eos>")),
		implied: []string{"</seed:think>"},
	},
	render: each(func(c tool.Call) string {
		return "<seed:tool_call>\n" + functionText(c) + "\n</seed:tool_call>"
	}, "\n"),
}

// functionIn reads a function element within tags of another name.
func functionIn(open, close string) opener {
	return opener{tag: open, call: true, read: func(e *env) verdict {
		first := e.skip(len(open))
		yes, wait := e.at(first, "<function=")
		switch {
		case yes:
			return e.function(first, close)
		case wait:
			return more
		}
		e.n = len(open)
		return not
	}}
}
