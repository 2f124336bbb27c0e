package parse

import "github.com/helve-ai/helve/tool"

// LlamaFunction is <function=NAME>{json}</function>.
var LlamaFunction = &Format{
	Name:    "llama_function",
	Doc:     "JSON arguments within <function=NAME> tags.",
	Models:  "Llama 3.1 with custom tools",
	grammar: grammar{openers: join([]opener{functionTag, toolCall}, thinkTags, afterCall("<|eom_id|>", "<|eot_id|>")), implied: closesThink},
	render: each(func(c tool.Call) string {
		return "<function=" + c.Name + ">" + string(c.Args) + "</function>"
	}, "\n"),
}
