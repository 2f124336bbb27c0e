// Package tasks is the module that runs several tool calls as one.
package tasks

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Module is the tasks module. It is open in every app.
var Module = always(module.New("tasks", "Run several tool calls at once.", Config{AtOnce: 8}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module.
type Config struct {
	AtOnce int `json:"at_once" min:"1" max:"8" jsonschema:"how many actions of one call run at the same time"`
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	return &module.Toolset{Tools: []*tool.Tool{runParallel(h, c.AtOnce)}}, nil
}

// parallelName is the tool's name, by which nesting is told.
const parallelName = "run_parallel"

// An outcome is what became of one action (SPEC R1).
type outcome struct {
	Index   int             `json:"index"`
	Name    string          `json:"name"`
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data,omitempty"`
	Error   *tool.Error     `json:"error,omitempty"`
}

// A report is the answer of run_parallel.
type report struct {
	Results   []outcome `json:"results"`
	Total     int       `json:"total"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	ElapsedMS int64     `json:"elapsed_ms"`
}

func runParallel(h *module.Host, atOnce int) *tool.Tool {
	return &tool.Tool{
		Definition: tool.Definition{
			Name: parallelName, Description: "Run up to 50 tool calls at once.",
			Input:  schema.Must(`{"type":"object","properties":{"actions":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{"name":{"type":"string"},"params":{"type":"object"}},"required":["name"],"additionalProperties":false}}},"required":["actions"],"additionalProperties":false}`),
			Help:   "Each action is judged and run as if it had been called on its own. The results keep the order of the actions; one that fails does not stop the others. Actions must not be run_parallel themselves.",
			Effect: tool.Reads, Category: tool.Workflow, Group: tool.GroupAgent, Meta: true,
			Aliases:   []string{"parallel", "batch_tools", "multi_tool_use.parallel", "parallel_calls"},
			Timeout:   24 * time.Hour, // the actions' own timeouts count
			MaxResult: 50_000,
		},
		Targets: func(args json.RawMessage) []tool.Target {
			actions, _ := actionsOf(args)
			return actions
		},
		Handle: func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			actions, err := actionsOf(c.Args)
			if err != nil {
				return nil, err
			}
			if err := notNested(h, c, actions); err != nil {
				return nil, err
			}
			return run(ctx, h, c, actions, atOnce)
		},
	}
}

func actionsOf(args json.RawMessage) ([]tool.Target, error) {
	var in struct {
		Actions []tool.Target `json:"actions"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, tool.Errorf(tool.CodeValidation, "arguments: %v", err)
	}
	return in.Actions, nil
}

// notNested refuses a parallel run within a parallel run, on whichever way it came.
func notNested(h *module.Host, c *tool.Call, actions []tool.Target) error {
	nested := slices.Contains(c.From.Via, parallelName)
	for _, a := range actions {
		t, err := h.Tools().Resolve(a.Name, nil)
		nested = nested || err == nil && t.Name == parallelName
	}
	if nested {
		return tool.Errorf(tool.CodeValidation, "run_parallel cannot be nested: list all actions in one call")
	}
	return nil
}

func run(ctx context.Context, h *module.Host, c *tool.Call, actions []tool.Target, atOnce int) (*tool.Result, error) {
	start := h.Now()
	r := report{Results: make([]outcome, len(actions)), Total: len(actions)}
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, a := range actions {
		wg.Add(1)
		places <- struct{}{}
		go func() {
			defer func() { <-places; wg.Done() }()
			r.Results[i] = do(ctx, h, c, i, a)
		}()
	}
	wg.Wait()
	for _, o := range r.Results {
		if o.Success {
			r.Succeeded++
		} else {
			r.Failed++
		}
	}
	r.ElapsedMS = h.Now().Sub(start).Milliseconds()
	data, err := tool.Encode(r)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []tool.Content{{Text: string(data)}}}, nil
}

func do(ctx context.Context, h *module.Host, c *tool.Call, i int, a tool.Target) outcome {
	o := outcome{Index: i, Name: a.Name}
	res, err := h.Call(ctx, c.Child("", a.Name, a.Args))
	switch {
	case err != nil:
		o.Error = tool.AsError(err)
	case res.Err != nil:
		o.Error = res.Err
	default:
		o.Success, o.Data = true, dataOf(res)
	}
	return o
}

// dataOf returns a result as JSON: its structure, its text if that is JSON, or its text as a string.
func dataOf(res *tool.Result) json.RawMessage {
	text := res.JoinText()
	switch {
	case res.Structured != nil:
		return res.Structured
	case len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	data, _ := tool.Encode(text)
	return data
}
