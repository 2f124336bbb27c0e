package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

const mistralCalls = "[TOOL_CALLS]"

// Mistral is NAME{json} or NAME[ARGS]{json} after [TOOL_CALLS], or a JSON array.
var Mistral = &Format{
	Name:   "mistral",
	Doc:    "A name, [ARGS] and JSON after each [TOOL_CALLS]; older versions have one JSON array after it.",
	Models: "Mistral, Ministral, Magistral, Devstral, Codestral",
	grammar: grammar{
		openers: join([]opener{{tag: mistralCalls, call: true, read: readMistral}, reasoning("[THINK]", "[/THINK]")}, thinkTags, afterCall("[/TOOL_CALLS]", "</s>")),
		implied: []string{"[/THINK]", "</think>"},
	},
	render: each(func(c tool.Call) string { return mistralCalls + c.Name + "[ARGS]" + string(c.Args) }, ""),
	result: func(_, _, content string) string { return "[TOOL_RESULTS]" + content + "[/TOOL_RESULTS]" },
}

func readMistral(e *env) verdict {
	first := e.skip(len(mistralCalls))
	if first == len(e.s) {
		if e.eof {
			e.n = first
			return not
		}
		return more
	}
	if isBracket(e.s[first]) && !strings.HasPrefix(e.s[first:], "[ARGS]") {
		return e.untagged(first, readJSONBody)
	}
	i := strings.IndexByte(e.s[first:], '{')
	if i < 0 {
		if !e.eof && len(e.s)-first < 600 {
			return more
		}
		return e.mistralCut(first)
	}
	name, _, _ := strings.Cut(e.s[first:first+i], "[ARGS]")
	name, id, _ := strings.Cut(name, "[CALL_ID]")
	name = strings.TrimSpace(name)
	if !nameLike(name) {
		e.n = first
		return not
	}
	end := e.balanced(first + i)
	if end < 0 {
		if !e.eof {
			return more
		}
		return e.mistralCut(first)
	}
	c := textCall(name, e.s[first+i:end], e.s[:end])
	c.id = strings.TrimSpace(id)
	e.jsonCall(c)
	return e.done(end)
}

// mistralCut leaves a call that does not end as text.
func (e *env) mistralCut(first int) verdict {
	e.wasCut("")
	e.n = len(e.s)
	if !e.eof {
		e.n = first
	}
	return not
}
