// Package apps is the module by which one app calls another.
package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Module is the apps module. It is open in every app, and seen where the app
// declares others.
var Module = always(module.New("apps", "Call the one-shot apps that the app declares under tools.apps.", Config{}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module. There is nothing to configure.
type Config struct{}

// longest is how long a called app may take; its own limits count.
const longest = 24 * time.Hour

type input struct {
	App   string          `json:"app"`
	Input json.RawMessage `json:"input"`
}

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	d := tool.Definition{
		Name: "call_app", Module: "apps", Description: "Have another app do a task, and return its answer." + listed(h.Apps),
		Help: "The app knows nothing of this conversation: its input must say all that it needs to know. It works in the same folder, by its own rules and within what you may do yourself." + spelled(h.Apps),
		// What it does is judged call by call; calling it changes nothing.
		Effect: tool.Reads, Category: tool.AgentWork, Group: tool.GroupAgent,
		Tags: []string{"app", "delegate", "workflow"}, Aliases: []string{"run_app", "invoke_app", "CallApp"},
		Input: inputSchema(h.Apps), Timeout: longest, MaxResult: 50_000,
	}
	t := tool.NewFor(d, func(ctx context.Context, c *tool.Call, in input) (*tool.Result, error) {
		return h.CallApp(ctx, c, in.App, in.Input)
	})
	return &module.Toolset{Tools: []*tool.Tool{t},
		Sees: func(tool.Origin, *tool.Tool) bool { return len(h.Apps) > 0 && h.CallApp != nil },
		Tell: func(context.Context, tool.Origin) (module.Told, error) { return tell(h.Apps), nil }}, nil
}

// inputSchema names the apps, so that another name is told off with those that
// there are.
func inputSchema(all []module.Callable) *schema.Schema {
	app := `{"type":"string"`
	if len(all) > 0 {
		var names []string
		for _, a := range all {
			names = append(names, fmt.Sprintf("%q", a.Name))
		}
		app += `,"enum":[` + strings.Join(names, ",") + `]`
	}
	return schema.Must(`{"type":"object","properties":{"app":` + app + `},"input":{"description":"what it is given: JSON by its schema, or a text"}},"required":["app","input"],"additionalProperties":false}`)
}

// listed names the apps for those who see no prompt.
func listed(all []module.Callable) string {
	var b strings.Builder
	for i, a := range all {
		if i == 0 {
			b.WriteString(" Apps:")
		}
		b.WriteString("\n- " + line(a))
	}
	return b.String()
}

func line(a module.Callable) string {
	if a.Description == "" {
		return a.Name
	}
	return a.Name + ": " + strings.Join(strings.Fields(a.Description), " ")
}

// spelled tells what each app is given and gives back.
func spelled(all []module.Callable) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "\n%s is given %s and gives back %s.", a.Name, formOf(a.Input), formOf(a.Output))
	}
	return b.String()
}

func formOf(s *schema.Schema) string {
	if s == nil {
		return "a text"
	}
	return "JSON by " + s.String()
}

// tell names the apps, and what they are given: without that the first call
// would be a guess.
func tell(all []module.Callable) (told module.Told) {
	var b strings.Builder
	for i, a := range all {
		if i == 0 {
			b.WriteString("You may call these apps (call_app):")
		}
		fmt.Fprintf(&b, "\n- %s. Input: %s", strings.TrimSuffix(line(a), "."), formOf(a.Input))
	}
	told.Specialists = b.String()
	return told
}
