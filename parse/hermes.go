package parse

// Hermes is JSON within <tool_call> tags.
var Hermes = &Format{
	Name:   "hermes",
	Doc:    "JSON objects within <tool_call> tags.",
	Models: "Hermes 2 and 3, Qwen 2.5, Qwen 3, QwQ",
	grammar: grammar{
		openers: join([]opener{toolCall, functionTag}, thinkTags, afterCall(toolCallClose, "<|im_end|>")),
		implied: closesThink,
	},
	render: eachJSON("<tool_call>\n", "arguments", "\n</tool_call>", "\n"),
	result: toolResponse,
}

func toolResponse(_, _, content string) string {
	return "<tool_response>\n" + content + "\n</tool_response>"
}
