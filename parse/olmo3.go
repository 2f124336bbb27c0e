package parse

// Olmo3 is Python calls on lines of their own.
var Olmo3 = &Format{
	Name:    "olmo3",
	Doc:     "Python calls, one a line, within <function_calls> tags.",
	Models:  "OLMo 3",
	grammar: grammar{openers: join([]opener{pythonBetween("<function_calls>", "</function_calls>"), barePython}, thinkTags, afterCall("</function_calls>", "<|im_end|>")), implied: closesThink},
	render:  around("<function_calls>", each(pythonText, "\n"), "</function_calls>"),
}
