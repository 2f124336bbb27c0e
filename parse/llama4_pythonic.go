package parse

// Llama4Pythonic is a list of Python calls.
var Llama4Pythonic = &Format{
	Name:   "llama4_pythonic",
	Doc:    "A Python list of calls with keyword arguments, which <|python_start|> and <|python_end|> may surround.",
	Models: "Llama 4",
	grammar: grammar{
		openers: join([]opener{pythonBetween("<|python_start|>", "<|python_end|>"), barePython}, thinkTags, afterCall("<|python_end|>", "<|eom|>", "<|eot|>")),
		implied: closesThink,
	},
	render: around("[", each(pythonText, ", "), "]"),
}
