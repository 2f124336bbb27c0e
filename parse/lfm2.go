package parse

// LFM2 is a list of Python calls between tokens.
var LFM2 = &Format{
	Name:   "lfm2",
	Doc:    "A Python list of calls, or JSON, between <|tool_call_start|> and <|tool_call_end|>.",
	Models: "LFM2, LFM2.5",
	grammar: grammar{
		openers: join([]opener{pythonBetween("<|tool_call_start|>", "<|tool_call_end|>"), echoedPython, barePython}, thinkTags, afterCall("<|tool_call_end|>", "<|im_end|>")),
	},
	render: around("<|tool_call_start|>[", each(pythonText, ", "), "]<|tool_call_end|>"),
	result: func(_, _, content string) string {
		return "<|tool_response_start|>" + content + "<|tool_response_end|>"
	},
}

// echoedPython drops the repetition of a call's body that ends with the closing
// token again.
var echoedPython = opener{tag: "[", read: func(e *env) verdict {
	const end = "<|tool_call_end|>"
	if !e.m.called || !e.m.line {
		return not
	}
	n := e.balanced(0)
	if n < 0 {
		if e.eof {
			return not
		}
		return more
	}
	after, wait := e.close(n, end)
	if wait {
		e.rewind(n)
		return more
	}
	if after == n {
		return not
	}
	e.n = after
	return took
}}
