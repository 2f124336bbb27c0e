package parse

import "strings"

// Auto is every format at once: what it is in follows from the text. JSON and
// Python that no tag announces count only on lines of their own.
var Auto = &Format{
	Name:   "auto",
	Doc:    "Whichever format the text is in.",
	Models: "any",
	grammar: grammar{
		openers: join(tagOpeners(), labelOpeners(false), glimmerStarts, []opener{lineFunctools, echoedPython, linePython, lineObject, lineArray}, autoReasoning, afterCall(closingTags...)),
		implied: []string{"</think>", "<|END_THINKING|>", "[/THINK]", "<channel|>", "</seed:think>"},
	},
	render: Hermes.render,
	result: toolResponse,
}

var autoReasoning = join(thinkTags, []opener{
	reasoning("<seed:think>", "</seed:think>"),
	reasoning("<longcat_think>", "</longcat_think>"),
	reasoning("[THINK]", "[/THINK]"),
	reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
	reasoning("<|inner_prefix|>", "<|inner_suffix|>"),
	reasoning("<|content_thinking|>", inklingEnd),
	{tag: "<|channel>", read: readGemmaChannel},
})

// closingTags mean nothing after a call.
var closingTags = []string{
	toolCallClose, functionClose, "</tool_calls>", "</function_calls>", "</minimax:tool_call>", "</seed:tool_call>",
	"</longcat_tool_call>", "<|tool_call_end|>", "<|python_end|>", "<tool_call|>", "<|tool_response>", "<|END_ACTION|>",
	"<|action_end|>", "<|tools_suffix|>", "[/TOOL_CALLS]", "</｜DSML｜function_calls>", "</｜DSML｜tool_calls>", m3Close,
	"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|assistant_end|>",
}

// tagOpeners returns the openers of calls that tags announce. The order of
// those with one tag is that in which they are tried.
func tagOpeners() []opener {
	return join(
		[]opener{toolCall, functionTag, toolCallsWrapper, jsonBetween("<tool_calls>", "</tool_calls>")},
		[]opener{functionIn("<seed:tool_call>", "</seed:tool_call>"), jsonBetween("<longcat_tool_call>", "</longcat_tool_call>")},
		[]opener{tagged("<function_call>", "", readJSONBody), graniteList("<|tool_call|>"), jsonBetween("<|tool_call|>", "<|/tool_call|>")},
		[]opener{jsonBetween("<|action_start|><|plugin|>", "<|action_end|>"), jsonBetween("<|action_start|> <|plugin|>", "<|action_end|>")},
		[]opener{jsonBetween("<|START_ACTION|>", "<|END_ACTION|>"), tagged("<|tools_prefix|>", "<|tools_suffix|>", readApertus)},
		[]opener{tagged("<|function_call|>", "", readJSONBody), tagged("<|message_sep|>\n\nfunction call<|role_sep|>", "", readJSONBody), tagged("<|python_tag|>", "", readJSONBody)},
		[]opener{plainInvoke.wrapped("<minimax:tool_call>", "</minimax:tool_call>"), closedInvoke("</minimax:tool_call>")},
		[]opener{plainInvoke.wrapped("<function_calls>", "</function_calls>"), closedInvoke("</function_calls>"), pythonBetween("<function_calls>", "</function_calls>")},
		[]opener{{tag: "<" + "antml:function_calls>", call: true, read: readAntml}},
		dsmlGrammar,
		[]opener{{tag: stepBlockBegin, call: true, read: readStep3}, {tag: m3Open, call: true, read: readMiniMaxM3}},
		[]opener{{tag: dsCall, call: true, read: readDeepSeek}, {tag: plainBars(dsCall), call: true, read: readDeepSeek}}, dropped(dsCalls, dsCallsEnd, plainBars(dsCalls), plainBars(dsCallsEnd), "<｜end▁of▁sentence｜>"),
		[]opener{{tag: kimiSection, call: true, read: readKimiSection}, {tag: kimiCall, call: true, read: readKimiCall}}, dropped(kimiSectionEnd),
		[]opener{{tag: "<|open|>tools<|sep|>", call: true, read: readKimiK3}, {tag: mistralCalls, call: true, read: readMistral}},
		[]opener{pythonBetween("<|python_start|>", "<|python_end|>"), pythonBetween("<|tool_call_start|>", "<|tool_call_end|>")},
		[]opener{functionGemmaTalk.opener(), gemma4Talk.opener()},
		miniCPMOpeners,
		[]opener{{tag: inklingModel, call: true, read: readInkling}, {tag: inklingJSON, call: true, read: readInkling}},
		[]opener{{tag: "<|start|>", call: true, read: readFrames}, {tag: "<|channel|>", call: true, read: readHarmony}}, dropped("<|eom|>", "<|eot|>"),
	)
}

// readAntml reads the namespaced form of Anthropic's elements.
func readAntml(e *env) verdict {
	const close = "</" + "antml:function_calls>"
	return e.invokes(invoke{"antml:"}, len(e.opener.tag), close)
}

// readFrames reads a message that may be of Harmony or of Glimmer.
func readFrames(e *env) verdict {
	if e.pos > 0 { // the header was read
		head := e.s[:e.pos]
		if strings.Contains(head, "<|channel|>") || strings.Contains(head, "to=functions.") {
			return readHarmony(e)
		}
		return readGlimmer(e)
	}
	i := strings.Index(e.s, harmonyMessage)
	if i < 0 && !e.eof && len(e.s) < 600 {
		return more
	}
	if i < 0 || i > 600 {
		return not
	}
	if head := e.s[:i]; strings.Contains(head, "<|channel|>") || strings.Contains(head, "to=functions.") {
		return readHarmony(e)
	}
	return readGlimmer(e)
}
