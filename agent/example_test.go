package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/script"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// The model is a declared script; llm/provider has those that think.
func ExampleAgent_Run() {
	type order struct {
		Item string `json:"item" jsonschema:"what to order"`
	}
	var reg tool.Registry
	err := reg.Add(tool.New(tool.Definition{Name: "shop.order", Description: "Order an item.", Effect: tool.Writes},
		func(ctx context.Context, in order) (string, error) { return "one " + in.Item + " is on its way", nil }))
	if err != nil {
		panic(err)
	}
	rules := new(guard.Rules)
	exec := pipeline.New(&reg, guard.Standard(guard.Options{
		Tools: &reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge},
		Approver: func(ctx context.Context, q guard.Question) (guard.Answer, error) {
			fmt.Println("asked:", q.Call.Name, string(q.Args))
			return guard.Answer{Approved: true, By: "the example"}, nil
		},
	})...)

	a := &agent.Agent{
		Brains: []agent.Brain{{Name: "script", Model: &script.Script{Turns: []script.Turn{
			{Calls: []script.Call{{Tool: "shop.order", Args: json.RawMessage(`{"item":"hat"}`)}}},
			{Say: "Done: [[last]]."},
		}}}},
		Show: func(tool.Origin, *agent.Brain) []inject.Item {
			return inject.Present(reg.Set(), inject.Options{}).Items
		},
		Do: exec.DoAll,
	}
	for e := range a.Run(context.Background(), new(agent.Conversation), llm.Said(llm.User, "I need a hat")) {
		switch {
		case e.Result != nil:
			fmt.Println("result:", e.Result.JoinText())
		case e.Done != nil:
			fmt.Println(e.Done.Reason, "-", e.Done.Text)
		}
	}
	// Output:
	// asked: shop.order {"item":"hat"}
	// result: one hat is on its way
	// answered - Done: one hat is on its way.
}
