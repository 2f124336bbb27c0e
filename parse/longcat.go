package parse

// LongCat is JSON within <longcat_tool_call> tags.
var LongCat = &Format{
	Name:   "longcat",
	Doc:    "JSON objects within <longcat_tool_call> tags.",
	Models: "LongCat-Flash",
	grammar: grammar{
		openers: join([]opener{jsonBetween("<longcat_tool_call>", "</longcat_tool_call>"), toolCall,
			reasoning("<longcat_think>", "</longcat_think>")}, thinkTags, afterCall("</longcat_tool_call>", "</longcat_s>")),
		implied: []string{"</longcat_think>", "</think>"},
	},
	render: eachJSON("<longcat_tool_call>\n", "arguments", "\n</longcat_tool_call>", "\n"),
	result: toolResponse,
}
