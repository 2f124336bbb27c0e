package parse

// Pythonic is a list of Python calls.
var Pythonic = &Format{
	Name:    "pythonic",
	Doc:     "A Python list of calls with keyword arguments.",
	Models:  "Llama 3.2 1B and 3B, ToolACE, Functionary-like fine-tunes",
	grammar: grammar{openers: join([]opener{pythonBetween("<|python_start|>", "<|python_end|>"), barePython}, thinkTags, afterCall("<|python_end|>", "<|eot_id|>")), implied: closesThink},
	render:  around("[", each(pythonText, ", "), "]"),
}
