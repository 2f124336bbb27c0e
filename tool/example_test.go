package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/tool"
)

// A tool's schemas follow from the types of its function: tags describe the
// arguments, bound them, and say by their roles what the guards are to judge.
func ExampleNew() {
	type input struct {
		Path string `json:"path" jsonschema:"the file to count in" role:"path.read"`
		Unit string `json:"unit,omitempty" jsonschema:"what to count" enum:"lines,words" default:"\"lines\""`
	}
	type output struct {
		Count int `json:"count"`
	}
	count := tool.New(tool.Definition{Name: "text.count", Description: "Count the lines or words of a file.", Effect: tool.Reads, Needs: tool.NeedsFilesystem},
		func(ctx context.Context, in input) (output, error) {
			if in.Unit == "words" {
				return output{}, tool.Errorf(tool.CodeRuntime, "%s: words are not counted yet; count lines", in.Path)
			}
			return output{Count: 3}, nil
		})

	var reg tool.Registry
	if err := reg.Add(count); err != nil { // such as: a name twice, a role without the capability it needs
		panic(err)
	}
	for _, p := range count.Input.Parameters() {
		fmt.Println(p.Name, p.Type, p.Description)
	}

	res, err := count.Handle(context.Background(), &tool.Call{Name: "text.count", Args: json.RawMessage(`{"path":"a.txt"}`)})
	if err != nil {
		panic(err) // the call did not end; what went wrong within it is res.Err
	}
	fmt.Println(string(res.Structured))
	// Output:
	// path string the file to count in
	// unit "lines"|"words" what to count
	// {"count":3}
}
