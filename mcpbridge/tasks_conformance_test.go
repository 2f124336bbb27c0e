package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/tool"
)

// after is a tool that says something when that much time has passed.
func after(name string, input string, d func(args map[string]any) time.Duration, say func(args map[string]any) *tool.Result) *tool.Tool {
	t := handled(name, tool.Reads, func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
		var args map[string]any
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return nil, err
		}
		select {
		case <-time.After(d(args)):
			return say(args), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	t.Input = schema.Must(input)
	return t
}

// laborious are the tools that the suite's scenarios about tasks call.
func laborious() []*tool.Tool {
	return []*tool.Tool{
		after("greet", `{"type":"object","properties":{"name":{"type":"string"}}}`,
			func(map[string]any) time.Duration { return 0 },
			func(args map[string]any) *tool.Result { return tool.Text(fmt.Sprintf("Hello, %s!", args["name"])) }),
		after("slow_compute", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`,
			func(args map[string]any) time.Duration {
				return time.Duration(args["seconds"].(float64) * float64(time.Second))
			},
			func(args map[string]any) *tool.Result { return tool.Text(fmt.Sprintf("computed %s", args["label"])) }),
		after("failing_job", `{"type":"object"}`,
			func(map[string]any) time.Duration { return time.Second },
			func(map[string]any) *tool.Result {
				return tool.Fail(tool.Errorf(tool.CodeExternal, "the job failed"))
			}),
		handled("protocol_error_job", tool.Reads, echo().Handle), // its calls panic
	}
}

// inquisitive returns an upstream server whose tools ask their client.
func inquisitive() *mcp.Server {
	asking := func(name string, patience time.Duration, questions ...string) func(*mcp.Server) {
		return func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					asks := mcp.InputRequestMap{}
					said := ""
					for _, q := range questions {
						if a, ok := r.Params.InputResponses[q].(*mcp.ElicitResult); ok {
							said += fmt.Sprintf("%s: %s %v. ", q, a.Action, a.Content)
							continue
						}
						asks[q] = &mcp.ElicitParams{Message: q + "?", RequestedSchema: json.RawMessage(nameForm)}
					}
					if len(asks) > 0 {
						return &mcp.CallToolResult{InputRequests: asks}, nil
					}
					select {
					case <-time.After(patience):
					case <-ctx.Done():
					}
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
				})
		}
	}
	return sdkServer(func(s *mcp.Server) {
		asking("confirm_delete", 0, "confirm")(s)
		asking("multi_input", 0, "first", "second")(s)
		asking("test_tool_with_task", 2*threshold, "user_name")(s)
	})
}

// threshold is when calls become tasks in the fixture: longer than any call that
// is to be answered at once may take on a busy machine.
const threshold = 2 * time.Second

// taskScenarios are the suite's about tasks. tasks-status-notifications checks
// nothing in this version of the suite.
var taskScenarios = []string{"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
	"tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-status-notifications",
	"tasks-required-task-error", "tasks-mrtr-composition"}

func TestConformanceTasks(t *testing.T) {
	command := conformance24(t)
	atOnce := []string{"slow_compute", "protocol_error_job", "confirm_delete", "multi_input"}
	h, g := gateway(t, func(o *mcpbridge.ServerOptions) {
		o.Tasks = task.New(new(mem.Store), task.Options{})
		o.Long = func() mcpbridge.LongCalls {
			return mcpbridge.LongCalls{After: threshold, As: func(c *tool.Call) mcpbridge.AsTask {
				switch {
				case c.Name == "failing_job":
					return mcpbridge.Required
				case slices.Contains(atOnce, c.Name):
					return mcpbridge.AtOnce
				}
				return mcpbridge.WhenLong
			}}
		}
		do := o.Do
		o.Do = func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			if c.Name == "protocol_error_job" {
				panic("as the suite wants it")
			}
			return do(ctx, c)
		}
	}, rename(serveHTTP(t, inquisitive(), true), "theirs"))
	if err := g.reg.Replace("house", laborious()...); err != nil {
		t.Fatal(err)
	}
	web := h.http(t, "direct").URL
	for _, scenario := range taskScenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), command[0], command[1], "server", "--url", web, "--scenario", scenario).CombinedOutput()
			if err != nil || !strings.Contains(string(out), ", 0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
