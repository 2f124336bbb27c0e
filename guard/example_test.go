package guard_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

func Example() {
	type input struct {
		City string `json:"city" jsonschema:"the city to look up"`
	}
	var reg tool.Registry
	err := reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather in a city.", Effect: tool.Reads},
		func(ctx context.Context, in input) (string, error) {
			return "sunny in " + in.City, nil
		}))
	if err != nil {
		panic(err)
	}

	rules := new(guard.Rules) // low-risk reads run, the rest needs an approval
	exec := pipeline.New(&reg, guard.Standard(guard.Options{
		Tools: &reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge},
	})...)

	for _, args := range []string{`{"city":"Paris"}`, `{"town":"Paris"}`} {
		res, err := exec.Do(context.Background(), &tool.Call{Name: "weather.now", Args: json.RawMessage(args)})
		switch {
		case err != nil:
			panic(err)
		case res.Err != nil:
			fmt.Println(res.Err.Code)
		default:
			fmt.Println(res.JoinText(), res.Notes)
		}
	}
	// Output:
	// sunny in Paris []
	// validation_error
}
