// Package agents is the module by which agents give work and conversations to each other, keep a plan, and end their work.
package agents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Module is the agents module. It is open in every app, and seen by its agents only.
var Module = always(module.New("agents", "Give work to other agents of the app, ask them, hand the conversation over, keep a plan, and end the work.", Config{}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module. There is nothing to configure.
type Config struct{}

// agents is the open module.
type agents struct{ host *module.Host }

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	a := &agents{h}
	return &module.Toolset{Tools: []*tool.Tool{a.spawn(), a.consult(), a.handOver(), a.todo(), completion()}, Sees: a.sees, Tell: a.tell, Recall: a.recall}, nil
}

// sees shows the tools to agents of the app, and those that need another agent
// to agents that have one.
func (a *agents) sees(from tool.Origin, t *tool.Tool) bool {
	if from.Agent == "" || a.host.Delegates == nil {
		return false
	}
	switch from.Kind {
	case tool.KindModel, "", tool.KindBackground, tool.KindScript:
	default:
		return false
	}
	switch t.Name {
	case "agents.spawn", "agents.consult":
		return len(a.host.Delegates(from)) > 0
	case module.SwitchTool:
		return len(a.host.Successors(from)) > 0
	}
	return true
}

func def(name, description string, aliases ...string) tool.Definition {
	return tool.Definition{Name: name, Module: "agents", Description: description, Effect: tool.Reads, Category: tool.AgentWork,
		Group: tool.GroupAgent, Aliases: aliases, Meta: true}
}

// longest is how long what other agents do may take; their own limits count.
const longest = 24 * time.Hour

type spawnInput struct {
	Tasks []struct {
		Agent    string   `json:"agent"`
		Task     string   `json:"task"`
		Tools    []string `json:"tools"`
		MaxTurns int      `json:"max_turns"`
		Budget   float64  `json:"budget"`
	} `json:"tasks"`
}

func (a *agents) spawn() *tool.Tool {
	d := def("agents.spawn", "Give tasks to other agents, which work at the same time. Returns what they report.", "agents.delegate", "Agent", "Task", "new_task", "spawn_agent", "delegate")
	d.Help = "Each agent begins anew and knows nothing of this conversation: the task must say all that it needs to know. It can call what both it and you may call, and of those, if tools names some, only these."
	d.Timeout, d.MaxResult = longest, 50_000
	d.Input = schema.Must(`{"type":"object","properties":{"tasks":{"type":"array","minItems":1,"maxItems":16,"items":{"type":"object","properties":{
		"agent":{"type":"string"},"task":{"type":"string","minLength":1},
		"tools":{"type":"array","items":{"type":"string"},"description":"all if left out"},
		"max_turns":{"type":"integer","minimum":1},
		"budget":{"type":"number","exclusiveMinimum":0,"description":"money"}},
		"required":["agent","task"],"additionalProperties":false}}},"required":["tasks"],"additionalProperties":false}`)
	return tool.NewFor(d, func(ctx context.Context, c *tool.Call, in spawnInput) (*tool.Result, error) {
		work := make([]module.Work, len(in.Tasks))
		for i, t := range in.Tasks {
			work[i] = module.Work{Agent: t.Agent, Task: t.Task, Tools: t.Tools, MaxTurns: t.MaxTurns, Budget: t.Budget}
		}
		done, err := a.host.Delegate(ctx, c, work)
		if err != nil {
			return nil, err
		}
		return report(done), nil
	})
}

// report tells what agents came to, as one text. It is a failure if all failed.
func report(all []module.Done) *tool.Result {
	var parts []string
	failed := 0
	for _, d := range all {
		head := fmt.Sprintf("## %s: %s (%d turns, %d calls, session %s)", d.Agent, d.Outcome, d.Turns, d.Calls, d.Session)
		if d.Outcome != "answered" {
			failed++
		}
		parts = append(parts, strings.TrimSpace(head+"\n"+strings.TrimSpace(d.Detail+"\n"+d.Text)))
	}
	text := strings.Join(parts, "\n\n")
	if failed == len(all) {
		return tool.Fail(tool.Errorf(tool.CodeRuntime, "no agent did its task\n%s", text))
	}
	return tool.Text(text)
}

type consultInput struct {
	Agent    string `json:"agent"`
	Question string `json:"question" minlen:"1" jsonschema:"with all that one must know to answer it"`
}

func (a *agents) consult() *tool.Tool {
	d := def("agents.consult", "Ask another agent one question, which it answers by thinking alone, without tools.", "consult", "consult_flagship", "ask_expert")
	d.Timeout, d.MaxResult = longest, 50_000
	return tool.NewFor(d, func(ctx context.Context, c *tool.Call, in consultInput) (string, error) {
		done, err := a.host.Delegate(ctx, c, []module.Work{{Agent: in.Agent, Task: in.Question, MaxTurns: 1, Mute: true}})
		switch {
		case err != nil:
			return "", err
		case done[0].Outcome != "answered":
			return "", tool.Errorf(tool.CodeExternal, "%s gave no answer: %s: %s", in.Agent, done[0].Outcome, done[0].Detail)
		}
		return done[0].Text, nil
	})
}

type switchInput struct {
	Agent string `json:"agent"`
	Note  string `json:"note,omitempty" jsonschema:"what it should know beside the conversation, which it sees"`
}

func (a *agents) handOver() *tool.Tool {
	d := def(module.SwitchTool, "Hand the conversation over to another agent, who speaks with the user from now on.", "agents.switch", "switch_mode", "handoff", "transfer_to_agent")
	d.Help = "The other agent sees the conversation, and can call what both it and you may call. Hand over as the last thing that you do."
	return tool.NewFor(d, func(ctx context.Context, c *tool.Call, in switchInput) (string, error) {
		if err := a.host.Switch(ctx, c, in.Agent); err != nil {
			return "", err
		}
		text := fmt.Sprintf("%s has handed the conversation over to %s. You are %s now: go on.", c.From.Agent, in.Agent, in.Agent)
		if in.Note != "" {
			text += "\nNote of " + c.From.Agent + ": " + in.Note
		}
		return text, nil
	})
}

type item struct {
	Text   string `json:"text"`
	Status string `json:"status,omitempty"`
}

type todoInput struct {
	Items []item `json:"items"`
}

const plans = store.Bucket[[]item]("plans")

func planKey(from tool.Origin) string { return from.User + "/" + from.Session }

func (a *agents) todo() *tool.Tool {
	d := def("agents.plan", "Set your plan for this session, in place of the last one. It outlasts the conversation being made shorter.", "todo_write", "TodoWrite", "update_todo_list", "update_plan", "plan")
	d.Input = schema.Must(`{"type":"object","properties":{"items":{"type":"array","maxItems":50,"items":{"type":"object","properties":{
		"text":{"type":"string","minLength":1,"maxLength":300},"status":{"enum":["open","doing","done"]}},"required":["text"],"additionalProperties":false}}},
		"required":["items"],"additionalProperties":false}`)
	return tool.NewFor(d, func(ctx context.Context, c *tool.Call, in todoInput) (string, error) {
		err := a.host.Store.Update(ctx, func(w store.Writer) error {
			if len(in.Items) == 0 {
				return plans.Delete(w, planKey(c.From))
			}
			return plans.Put(w, planKey(c.From), in.Items)
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("The plan has %d items.", len(in.Items)), nil
	})
}

type completionInput struct {
	Result string `json:"result" jsonschema:"the answer, complete: nothing else that you said is shown"`
}

// completion is the tool by which an agent gives its answer.
func completion() *tool.Tool {
	d := def(module.FinalTool, "Give the final answer, and end the work.", "final_answer", "finish_task")
	return tool.NewFor(d, func(_ context.Context, _ *tool.Call, in completionInput) (string, error) { return in.Result, nil })
}

// tell names the agents to whom a caller may give work.
func (a *agents) tell(_ context.Context, from tool.Origin) (told module.Told, _ error) {
	if a.host.Delegates != nil {
		var b strings.Builder
		for i, d := range a.host.Delegates(from) {
			if i == 0 {
				b.WriteString("You may give work to these agents (agents.spawn), or ask them a question (agents.consult):")
			}
			b.WriteString("\n- " + d.ID)
			if d.Specialty != "" {
				b.WriteString(": " + d.Specialty)
			}
		}
		for i, d := range a.host.Successors(from) {
			if i == 0 {
				b.WriteString("\nYou may hand the conversation over (switch_agent) to ")
			} else {
				b.WriteString(", ")
			}
			b.WriteString(d.ID)
		}
		told.Specialists = strings.TrimSpace(b.String())
	}
	return told, nil
}

// recall tells the plan of a session.
func (a *agents) recall(ctx context.Context, from tool.Origin) (told string, _ error) {
	if from.Session == "" || a.host.Store == nil {
		return "", nil
	}
	var plan []item
	err := a.host.Store.View(ctx, func(r store.Reader) error {
		plan = nil
		for key, p := range plans.Scan(r, planKey(from)) {
			if key == planKey(from) {
				plan = p
			}
		}
		return nil
	})
	for i, it := range plan {
		if i == 0 {
			told = "Plan:"
		}
		mark := map[string]string{"done": "x", "doing": ">"}[it.Status]
		if mark == "" {
			mark = " "
		}
		told += fmt.Sprintf("\n- [%s] %s", mark, it.Text)
	}
	return told, err
}
