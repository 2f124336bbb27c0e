package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// OpenAIJSON is the tool_calls array of the chat completions API, as text.
var OpenAIJSON = &Format{
	Name:    "openai_json",
	Doc:     "A JSON object with a tool_calls array, as chat completions have it.",
	Models:  "models that imitate the API",
	grammar: grammar{openers: join([]opener{bareObject, bareArray}, thinkTags), implied: closesThink},
	render: func(calls []tool.Call) string {
		parts := make([]string, len(calls))
		for i, c := range calls {
			id := ""
			if c.ID != "" {
				id = `"id": ` + string(quote(c.ID)) + `, `
			}
			parts[i] = "{" + id + `"type": "function", "function": {"name": ` + string(quote(c.Name)) + `, "arguments": ` + string(quote(string(c.Args))) + `}}`
		}
		return `{"tool_calls": [` + strings.Join(parts, ", ") + "]}"
	},
}
