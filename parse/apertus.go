package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Apertus is a JSON array of {NAME: arguments} between tokens.
var Apertus = &Format{
	Name:   "apertus",
	Doc:    "A JSON array of {NAME: arguments} objects between <|tools_prefix|> and <|tools_suffix|>.",
	Models: "Apertus",
	grammar: grammar{
		openers: join([]opener{tagged("<|tools_prefix|>", "<|tools_suffix|>", readApertus), reasoning("<|inner_prefix|>", "<|inner_suffix|>")}, thinkTags, afterCall("<|tools_suffix|>", "<|assistant_end|>")),
		implied: []string{"<|inner_suffix|>"},
	},
	render: around("<|tools_prefix|>[", each(func(c tool.Call) string {
		return "{" + string(quote(c.Name)) + ": " + string(c.Args) + "}"
	}, ", "), "]<|tools_suffix|>"),
}

func readApertus(e *env, body string) {
	v, _, repaired, ok := leading(strings.TrimSpace(body))
	if !ok {
		e.note("what should be calls is not valid JSON: it was left as text; write [{\"NAME\": {…}}]")
		return
	}
	if repaired {
		e.note("a call was not valid JSON and was repaired")
	}
	list := []string{v}
	if v[0] == '[' {
		list = elements(v)
	}
	for _, el := range list {
		ms := members(el)
		if len(ms) != 1 || ms[0].value[0] != '{' {
			e.jsonCall(readCall(el))
			continue
		}
		e.call(ms[0].key, "", []byte(ms[0].value), el)
	}
}
