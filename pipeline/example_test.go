package pipeline_test

import (
	"context"
	"fmt"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// A stage wraps the handler of what stands behind it: it sees each call before
// the tool does, and each result after. guard.Standard returns those of Helve.
func Example() {
	var reg tool.Registry
	err := reg.Add(tool.New(tool.Definition{Name: "clock.now", Description: "Tell the time.", Effect: tool.Reads},
		func(context.Context, struct{}) (string, error) { return "noon", nil }))
	if err != nil {
		panic(err)
	}
	greets := pipeline.Stage{Name: "greet", Doc: "puts a greeting before each result",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, call *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, call)
				if err != nil || res.Err != nil {
					return res, err
				}
				return tool.Text("Hello. " + res.JoinText()), nil
			}
		}}

	exec := pipeline.New(&reg, greets)
	res, err := exec.Do(context.Background(), &tool.Call{Name: "clock.now"})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.JoinText())
	// Output: Hello. noon
}
