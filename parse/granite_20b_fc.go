package parse

// Granite20BFC is JSON after <function_call>.
var Granite20BFC = &Format{
	Name:    "granite_20b_fc",
	Doc:     "A JSON object after each <function_call>.",
	Models:  "Granite 20B FunctionCalling",
	grammar: grammar{openers: join([]opener{tagged("<function_call>", "", readJSONBody)}, afterCall("</function_call>", "<|endoftext|>"))},
	render:  eachJSON("<function_call> ", "arguments", "", "\n"),
}
