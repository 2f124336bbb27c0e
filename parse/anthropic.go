package parse

// Anthropic is invocations within <function_calls> tags.
var Anthropic = &Format{
	Name:   "anthropic",
	Doc:    "<invoke name=\"…\"> elements with <parameter name=\"…\"> elements within <function_calls> tags.",
	Models: "Claude, when it writes calls as text",
	grammar: grammar{
		openers: join([]opener{
			plainInvoke.wrapped("<function_calls>", "</function_calls>"), closedInvoke("</function_calls>"),
			{tag: "<" + "antml:function_calls>", call: true, read: readAntml},
		}, thinkTags, afterCall("</function_calls>")),
	},
	render: around("<function_calls>\n", each(invokeText(plainInvoke), "\n"), "\n</function_calls>"),
	result: func(name, _, content string) string {
		return "<function_results>\n<result>\n<tool_name>" + name + "</tool_name>\n<stdout>\n" + content + "\n</stdout>\n</result>\n</function_results>"
	},
}
