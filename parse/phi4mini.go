package parse

// Phi4Mini is a JSON array after the word functools.
var Phi4Mini = &Format{
	Name:    "phi4mini",
	Doc:     "A JSON array of calls right after the word functools.",
	Models:  "Phi-4-mini",
	grammar: grammar{openers: join([]opener{functools, jsonBetween("<|tool_call|>", "<|/tool_call|>")}, thinkTags, afterCall("<|end|>"))},
	render:  listJSON("functools", "arguments", ""),
}

// functools reads the word wherever it stands, lineFunctools at the beginning
// of a line.
var (
	functools     = opener{tag: "functools", call: true, read: readFunctools}
	lineFunctools = opener{tag: "functools", at: lineStart, call: true, read: readFunctools}
)

func readFunctools(e *env) verdict {
	i := e.skip(len("functools"))
	if i == len(e.s) && !e.eof {
		return more
	}
	if i == len(e.s) || e.s[i] != '[' {
		return not
	}
	return e.untagged(i, readJSONBody)
}
