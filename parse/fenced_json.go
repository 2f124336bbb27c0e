package parse

// FencedJSON is JSON in a fenced block.
var FencedJSON = &Format{
	Name:    "fenced_json",
	Doc:     "A JSON object or array of calls in a fenced block.",
	Models:  "models without a format of their own",
	grammar: grammar{openers: join([]opener{fencedJSON("```json"), fencedJSON("```tool_call"), fencedJSON("```tool_code"), fencedJSON("```")}, thinkTags), implied: closesThink},
	render:  eachJSON("```json\n", "arguments", "\n```", "\n"),
}
