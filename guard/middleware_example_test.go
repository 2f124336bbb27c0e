package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// A kind of middleware that an app file can name: {office_hours: {closed: "…"}}.
func ExampleNewMiddleware() {
	type settings struct {
		Closed string `json:"closed" jsonschema:"what nobody may ask about"`
	}
	kind := guard.NewMiddleware("office_hours", "Keep to what is open.", settings{}, func(s settings, _ guard.MiddlewareHost) (guard.Middleware, error) {
		return guard.Middleware{
			Rewrite: func(_ context.Context, c *tool.Call) (json.RawMessage, error) {
				return json.RawMessage(strings.ReplaceAll(string(c.Args), "paris", "Paris")), nil
			},
			Pre: func(_ context.Context, c *tool.Call) error {
				if strings.Contains(string(c.Args), s.Closed) {
					return errors.New(s.Closed + " is closed")
				}
				return nil
			},
			Post: func(_ context.Context, _ *tool.Call, res *tool.Result) (*tool.Result, error) {
				res.Content[0].Text += ", says the office"
				return res, nil
			},
		}, nil
	})
	hours, err := kind.Build(json.RawMessage(`{"closed":"Rome"}`), guard.MiddlewareHost{})
	if err != nil {
		panic(err)
	}

	type input struct {
		City string `json:"city"`
	}
	var reg tool.Registry
	err = reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather in a city.", Effect: tool.Reads},
		func(_ context.Context, in input) (string, error) { return "sunny in " + in.City, nil }))
	if err != nil {
		panic(err)
	}
	rules := new(guard.Rules)
	exec := pipeline.New(&reg, guard.Standard(guard.Options{
		Tools: &reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge}, Middleware: []guard.Middleware{hours},
	})...)

	for _, args := range []string{`{"city":"paris"}`, `{"city":"Rome"}`} {
		res, err := exec.Do(context.Background(), &tool.Call{Name: "weather.now", Args: json.RawMessage(args)})
		if err != nil {
			panic(err)
		}
		if res.Err != nil {
			fmt.Println(res.Err)
			continue
		}
		fmt.Println(res.JoinText())
	}
	// Output:
	// sunny in Paris, says the office
	// permission_denied: office_hours: Rome is closed
}
