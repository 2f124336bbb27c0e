package parse

// Laguna is the pairs of GLM45, or JSON.
var Laguna = &Format{
	Name:    "laguna",
	Doc:     "A name with <arg_key> and <arg_value> pairs, or JSON, within <tool_call> tags.",
	Models:  "Laguna",
	grammar: grammar{openers: join(pairOpeners, dropped("</assistant>")), implied: closesThink},
	render:  GLM45.render,
	result:  toolResponse,
}
