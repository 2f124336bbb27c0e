package parse

// GigaChat3 is JSON after a token.
var GigaChat3 = &Format{
	Name:   "gigachat3",
	Doc:    "A JSON object after <|function_call|>, or after a message header \"function call\" in the first version.",
	Models: "GigaChat 3, 3.1",
	grammar: grammar{
		openers: join([]opener{
			tagged("<|function_call|>", "", readJSONBody),
			tagged("<|message_sep|>\n\nfunction call<|role_sep|>", "", readJSONBody),
			tagged("function call<|role_sep|>", "", readJSONBody),
		}, thinkTags, dropped("</s>"), afterCall("<|message_sep|>")),
		implied: closesThink,
	},
	render: eachJSON("<|function_call|>", "arguments", "", "\n"),
}
