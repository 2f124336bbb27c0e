package parse

// PoolsideV1 is the pairs of GLM45.
var PoolsideV1 = &Format{
	Name:    "poolside_v1",
	Doc:     "A name, then <arg_key> and <arg_value> pairs, within <tool_call> tags.",
	Models:  "Poolside Malibu and Point",
	grammar: grammar{openers: pairOpeners, implied: closesThink},
	render:  GLM45.render,
	result:  toolResponse,
}
