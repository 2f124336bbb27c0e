package parse

import (
	"strconv"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// CohereCommand is a JSON array between action tokens.
var CohereCommand = &Format{
	Name:   "cohere_command",
	Doc:    "A JSON array of {tool_call_id, tool_name, parameters} between <|START_ACTION|> and <|END_ACTION|>.",
	Models: "Command R7B, Command A",
	grammar: grammar{
		openers: join([]opener{jsonBetween("<|START_ACTION|>", "<|END_ACTION|>"), reasoning("<|START_THINKING|>", "<|END_THINKING|>")},
			dropped("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|END_ACTION|>")),
		implied: []string{"<|END_THINKING|>"},
	},
	render: func(calls []tool.Call) string {
		parts := make([]string, len(calls))
		for i, c := range calls {
			parts[i] = `{"tool_call_id": "` + strconv.Itoa(i) + `", "tool_name": ` + string(quote(c.Name)) + `, "parameters": ` + string(c.Args) + `}`
		}
		return "<|START_ACTION|>[" + strings.Join(parts, ", ") + "]<|END_ACTION|>"
	},
	result: func(_, id, content string) string {
		return `<|START_TOOL_RESULT|>[{"tool_call_id": ` + string(quote(id)) + `, "results": {"0": ` + string(quote(content)) + `}}]<|END_TOOL_RESULT|>`
	},
}
