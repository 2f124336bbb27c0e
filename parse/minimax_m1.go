package parse

// MiniMaxM1 is JSON lines within <tool_calls> tags.
var MiniMaxM1 = &Format{
	Name:    "minimax_m1",
	Doc:     "One JSON object a line within <tool_calls> tags.",
	Models:  "MiniMax-M1",
	grammar: grammar{openers: join([]opener{jsonBetween("<tool_calls>", "</tool_calls>")}, thinkTags, afterCall("</tool_calls>")), implied: closesThink},
	render:  around("<tool_calls>\n", eachJSON("", "arguments", "", "\n"), "\n</tool_calls>"),
}
