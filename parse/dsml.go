package parse

import "github.com/helve-ai/helve/tool"

// dsmlTags are invocations in DeepSeek's markup. The bar is a full-width one;
// models that cannot write it use the plain one.
var (
	dsmlTags  = invoke{"｜DSML｜"}
	dsmlPlain = invoke{"|DSML|"}
)

var dsmlGrammar = []opener{
	dsmlTags.wrapped("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
	dsmlTags.wrapped("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
	dsmlPlain.wrapped("<|DSML|function_calls>", "</|DSML|function_calls>"),
	dsmlPlain.wrapped("<|DSML|tool_calls>", "</|DSML|tool_calls>"),
}

func dsmlFormat(name, models, wrapper string) *Format {
	return &Format{
		Name:   name,
		Doc:    "<｜DSML｜invoke> elements within <｜DSML｜" + wrapper + "> tags; string=\"false\" marks JSON.",
		Models: models,
		grammar: grammar{
			openers: join(dsmlGrammar, thinkTags, dropped("<｜end▁of▁sentence｜>"), afterCall("</｜DSML｜function_calls>", "</｜DSML｜tool_calls>")),
			implied: closesThink,
		},
		render: around("<｜DSML｜"+wrapper+">\n", each(dsmlText, "\n"), "\n</｜DSML｜"+wrapper+">"),
		result: func(_, _, content string) string {
			return "<function_results>\n<result>" + content + "</result>\n</function_results>"
		},
	}
}

// DSML is invocations in DeepSeek's markup, whichever wrapper they have.
var DSML = dsmlFormat("dsml", "DeepSeek V3.2 and later", "function_calls")

func dsmlText(c tool.Call) string {
	return eachParam(
		func(name string) string { return `<｜DSML｜invoke name="` + name + "\">\n" },
		func(key, value string, isString bool) string {
			kind := "false"
			if isString {
				kind = "true"
			}
			return `<｜DSML｜parameter name="` + key + `" string="` + kind + `">` + value + "</｜DSML｜parameter>\n"
		},
		"</｜DSML｜invoke>")(c)
}
