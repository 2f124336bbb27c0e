package main

import "fmt"

type Call struct {
	Name string `json:"name"`
	Args any    `json:"arguments"`
}

func main() {
	calls := []Call{
		{Name: "search", Args: map[string]any{"query": "x"}},
	}
	fmt.Printf("<tool_call>%v</tool_call>\n", calls)
	fmt.Println(`{"name": "search", "arguments": {"query": "x"}}`)
}
