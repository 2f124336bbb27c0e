package parse_test

import (
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/parse"
)

// A parser is fed the text as it comes from the model; however it is cut, the
// message is the same.
func Example() {
	offer := parse.Offer{Name: "get_weather", Description: "Tell the weather.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`)}
	asks, reads := parse.ForModel("Qwen/Qwen3-Coder-30B-A3B-Instruct")
	fmt.Println(asks.Name) // asks.Prompt([]parse.Offer{offer}) tells the model its tools

	m := parse.Read(reads.New(parse.NewTools(offer)),
		"Let me look.\n<tool_call>\n<function=get_wea", "ther>\n<parameter=city>\nParis\n</parameter>\n",
		"<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>")
	fmt.Printf("%q\n", m.Content)
	for _, call := range m.Calls {
		fmt.Println(call.Name, string(call.Args))
	}
	// Output:
	// qwen3_coder_xml
	// "Let me look.\n"
	// get_weather {"city":"Paris","days":3}
}
