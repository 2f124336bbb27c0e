package parse

import "github.com/helve-ai/helve/tool"

// DeepSeekV31 is a name and JSON between tokens.
var DeepSeekV31 = &Format{
	Name:    "deepseek_v31",
	Doc:     "A name and JSON between tool-call tokens.",
	Models:  "DeepSeek V3.1, Cogito",
	grammar: grammar{openers: deepSeekOpeners, implied: closesThink},
	render: around(dsCalls, each(func(c tool.Call) string {
		return dsCall + c.Name + dsSep + string(c.Args) + dsCallEnd
	}, ""), dsCallsEnd),
	result: deepSeekResult,
}
