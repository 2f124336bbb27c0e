package parse

import "github.com/helve-ai/helve/tool"

// XMLNested is a name and JSON arguments in elements of their own.
var XMLNested = &Format{
	Name:    "xml_nested",
	Doc:     "<name> and <arguments> elements within <tool_call> tags.",
	Models:  "models told to write XML",
	grammar: grammar{openers: join([]opener{toolCall, functionTag}, thinkTags, afterCall(toolCallClose)), implied: closesThink},
	render: each(func(c tool.Call) string {
		return "<tool_call>\n<name>" + c.Name + "</name>\n<arguments>" + string(c.Args) + "</arguments>\n</tool_call>"
	}, "\n"),
	result: toolResponse,
}
