package parse

import "github.com/helve-ai/helve/tool"

var functionGemmaTalk = gemmaTalk{"<start_function_call>", "<end_function_call>", "<escape>"}

// FunctionGemma is call:NAME{key:value} between tags, strings between <escape>.
var FunctionGemma = &Format{
	Name:    "functiongemma",
	Doc:     "call:NAME{key:value} between <start_function_call> and <end_function_call>, strings between <escape> marks.",
	Models:  "FunctionGemma",
	grammar: grammar{openers: join([]opener{functionGemmaTalk.opener()}, thinkTags, afterCall("<start_function_response>", "<end_of_turn>"))},
	render:  each(func(c tool.Call) string { return functionGemmaTalk.text(c.Name, string(c.Args)) }, ""),
	result: func(name, _, content string) string {
		return "<start_function_response>response:" + name + "{result:<escape>" + content + "<escape>}<end_function_response>"
	},
}
