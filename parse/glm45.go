package parse

// GLM45 is a name and <arg_key>, <arg_value> pairs, each on a line of its own.
var GLM45 = &Format{
	Name:    "glm45",
	Doc:     "A name, then <arg_key> and <arg_value> pairs on lines of their own, within <tool_call> tags.",
	Models:  "GLM-4.5, GLM-4.6",
	grammar: grammar{openers: pairOpeners, implied: closesThink},
	render: each(eachParam(
		func(name string) string { return "<tool_call>" + name + "\n" },
		func(key, value string, _ bool) string {
			return "<arg_key>" + key + "</arg_key>\n<arg_value>" + value + "</arg_value>\n"
		},
		"</tool_call>"), "\n"),
	result: toolResponse,
}

var pairOpeners = join([]opener{toolCall, functionTag}, thinkTags, afterCall(toolCallClose, "<|observation|>", "<|user|>"))
