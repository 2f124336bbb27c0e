package parse

// InternLM2 is JSON between action tokens.
var InternLM2 = &Format{
	Name:   "internlm2",
	Doc:    "JSON objects between <|action_start|><|plugin|> and <|action_end|>.",
	Models: "InternLM 2 and 2.5, Intern-S1",
	grammar: grammar{
		openers: join([]opener{
			jsonBetween("<|action_start|><|plugin|>", "<|action_end|>"),
			jsonBetween("<|action_start|> <|plugin|>", "<|action_end|>"),
		}, thinkTags, afterCall("<|action_end|>", "<|im_end|>")),
		implied: closesThink,
	},
	render: eachJSON("<|action_start|><|plugin|>", "parameters", "<|action_end|>", "\n"),
}
