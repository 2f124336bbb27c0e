package parse

// Jamba is a JSON array within <tool_calls> tags.
var Jamba = &Format{
	Name:    "jamba",
	Doc:     "A JSON array of calls within <tool_calls> tags.",
	Models:  "Jamba 1.5 and later; Hunyuan A13B",
	grammar: grammar{openers: join([]opener{jsonBetween("<tool_calls>", "</tool_calls>")}, thinkTags, afterCall("</tool_calls>", "<|eom|>")), implied: closesThink},
	render:  listJSON("<tool_calls>", "arguments", "</tool_calls>"),
}
