package parse

// Granite is a JSON array after <|tool_call|>.
var Granite = &Format{
	Name:   "granite",
	Doc:    "A JSON array of calls after <|tool_call|>, or <tool_call> in older versions.",
	Models: "Granite 3",
	grammar: grammar{
		openers: join([]opener{graniteList("<|tool_call|>"), graniteList("<tool_call>"), toolCall}, thinkTags, afterCall("</tool_call>", "<|end_of_text|>")),
		implied: closesThink,
	},
	render: listJSON("<|tool_call|>", "arguments", ""),
}

// graniteList reads an array after a token. An object is no call there.
func graniteList(open string) opener {
	return opener{tag: open, call: true, read: func(e *env) verdict {
		i := e.skip(len(open))
		if i == len(e.s) && !e.eof {
			return more
		}
		if i == len(e.s) || e.s[i] != '[' {
			return not
		}
		return e.untagged(i, readJSONBody)
	}}
}
