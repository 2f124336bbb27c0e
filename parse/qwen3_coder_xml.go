package parse

import "github.com/helve-ai/helve/tool"

// Qwen3CoderXML is <function=NAME> elements with <parameter=KEY> elements.
var Qwen3CoderXML = &Format{
	Name:   "qwen3_coder_xml",
	Doc:    "<function=NAME> elements with <parameter=KEY> elements, within <tool_call> tags.",
	Models: "Qwen3-Coder, Qwen 3.5, Nemotron 3 Nano",
	grammar: grammar{
		openers: join([]opener{toolCall, functionTag}, thinkTags, afterCall(toolCallClose, functionClose, "<|im_end|>")),
		implied: closesThink,
	},
	render: each(func(c tool.Call) string { return "<tool_call>\n" + functionText(c) + "\n</tool_call>" }, "\n"),
	result: toolResponse,
}

// functionText writes a call as a <function=NAME> element.
var functionText = eachParam(
	func(name string) string { return "<function=" + name + ">\n" },
	func(key, value string, _ bool) string {
		return "<parameter=" + key + ">\n" + value + "\n</parameter>\n"
	},
	"</function>")
