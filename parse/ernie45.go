package parse

// Ernie45 is Hermes with answers in <response> tags.
var Ernie45 = &Format{
	Name:   "ernie45",
	Doc:    "JSON objects within <tool_call> tags; answers may stand within <response> tags.",
	Models: "ERNIE 4.5",
	grammar: grammar{
		openers: join([]opener{toolCall}, thinkTags, dropped("<response>\n", "\n</response>", "<response>", "</response>"), afterCall(toolCallClose)),
		implied: closesThink,
	},
	render: eachJSON("<tool_call>\n", "arguments", "\n</tool_call>", "\n"),
	result: func(_, _, content string) string { return "<tool_output>\n" + content + "\n</tool_output>" },
}
