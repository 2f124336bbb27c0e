package parse

// GLM47 is GLM45 without line breaks.
var GLM47 = &Format{
	Name:    "glm47",
	Doc:     "A name, then <arg_key> and <arg_value> pairs, all in one line, within <tool_call> tags.",
	Models:  "GLM-4.7, GLM-5",
	grammar: grammar{openers: pairOpeners, implied: closesThink},
	render:  each(pairsInLine, ""),
	result:  toolResponse,
}

// pairsInLine writes a call as a name and pairs in one line.
var pairsInLine = eachParam(
	func(name string) string { return "<tool_call>" + name },
	func(key, value string, _ bool) string {
		return "<arg_key>" + key + "</arg_key><arg_value>" + value + "</arg_value>"
	},
	"</tool_call>")
