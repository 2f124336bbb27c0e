package parse

// HunyuanV3 is a name, <tool_sep>, and pairs as GLM45 has them.
var HunyuanV3 = &Format{
	Name:   "hunyuan_v3",
	Doc:    "A name, <tool_sep>, then <arg_key> and <arg_value> pairs; each call in <tool_call> tags, all in <tool_calls> tags.",
	Models: "Hunyuan 3",
	grammar: grammar{
		openers: join([]opener{toolCallsWrapper, jsonBetween("<tool_calls>", "</tool_calls>")}, pairOpeners, afterCall("</tool_calls>")),
		implied: closesThink,
	},
	render: around("<tool_calls>\n", each(eachParam(
		func(name string) string { return "<tool_call>" + name + "<tool_sep>\n" },
		func(key, value string, _ bool) string {
			return "<arg_key>" + key + "</arg_key>\n<arg_value>" + value + "</arg_value>\n"
		},
		"</tool_call>"), "\n"), "\n</tool_calls>"),
	result: func(_, _, content string) string { return "<tool_response>" + content + "</tool_response>" },
}

// toolCallsWrapper passes over <tool_calls> before a <tool_call>.
var toolCallsWrapper = opener{tag: "<tool_calls>", call: true, read: func(e *env) verdict {
	i := e.skip(len("<tool_calls>"))
	yes, wait := e.at(i, toolCallOpen)
	if wait || i == len(e.s) && !e.eof {
		return more
	}
	if !yes {
		return not
	}
	e.n = i
	return took
}}
