package parse

// OllamaGeneric is whatever a model's template has, as Ollama reads it where
// it has no parser for the model.
var OllamaGeneric = &Format{
	Name:   "ollama_generic",
	Doc:    "JSON calls after whatever a model's own template puts before them.",
	Models: "models served by Ollama without a parser of their own",
	grammar: grammar{
		openers: join(tagOpeners(), []opener{fencedJSON("```json"), fencedJSON("```")}, labelOpeners(false), []opener{functools, barePython, bareObject, bareArray}, thinkTags, afterCall("]", ";", "</tool_call>", "[/TOOL_CALLS]")),
		implied: closesThink,
	},
	render: Hermes.render,
	result: toolResponse,
}
