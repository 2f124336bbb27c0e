package parse

// Llama3JSON is bare JSON, announced by <|python_tag|> or not.
var Llama3JSON = &Format{
	Name:   "llama3_json",
	Doc:    "A JSON object with \"name\" and \"parameters\", after <|python_tag|> or by itself; several are separated by semicolons.",
	Models: "Llama 3.1, 3.2, 3.3",
	grammar: grammar{
		openers: join([]opener{tagged("<|python_tag|>", "", readJSONBody), bareObject, bareArray, functionTag}, thinkTags, afterCall("<|eom_id|>", "<|eot_id|>", ";")),
		implied: closesThink,
	},
	render: around("<|python_tag|>", eachJSON("", "parameters", "", "; "), ""),
}
