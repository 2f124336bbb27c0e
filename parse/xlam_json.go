package parse

// XLAMJSON is a JSON array, in a fenced block, in a tag or by itself.
var XLAMJSON = &Format{
	Name:   "xlam_json",
	Doc:    "A JSON array of calls: by itself, in a fenced block, in <tool_call> tags, or after [TOOL_CALLS].",
	Models: "xLAM 1 and 2",
	grammar: grammar{
		openers: join([]opener{fencedJSON("```json"), fencedJSON("```"), toolCall, {tag: mistralCalls, call: true, read: readMistral}, bareArray, bareObject}, thinkTags, afterCall(toolCallClose)),
		implied: closesThink,
	},
	render: listJSON("", "arguments", ""),
}

// fencedJSON reads calls in a fenced block wherever it stands.
func fencedJSON(open string) opener {
	return opener{tag: open, at: lineStart, read: func(e *env) verdict {
		i := e.skip(len(open))
		if i == len(e.s) && !e.eof {
			return more
		}
		if i == len(e.s) || !isBracket(e.s[i]) {
			return not
		}
		end := e.balanced(i)
		if end < 0 {
			if e.eof {
				e.n = len(e.s)
				return not
			}
			return more
		}
		n, wait := e.close(end, "```")
		if wait {
			e.rewind(end)
			return more
		}
		body := e.s[i:end]
		if n == end {
			return not
		}
		e.bareValues(body, false)
		return e.done(n)
	}}
}
