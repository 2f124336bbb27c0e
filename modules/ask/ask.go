// Package ask is the module by which a model asks the user.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Module is the ask module. It is open in every app.
var Module = always(module.New("ask", "Ask the user a question, and wait for the answer.", Config{}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module. There is nothing to configure.
type Config struct{}

// DefaultTimeout is how long a question waits (SPEC R5).
const DefaultTimeout = 300 * time.Second

const maxTimeout = time.Hour

type input struct {
	Question string          `json:"question"`
	Content  string          `json:"content,omitempty"`
	Choices  []string        `json:"choices,omitempty"`
	Multiple bool            `json:"allow_multiple,omitempty"`
	Form     json.RawMessage `json:"form,omitempty"`
	Timeout  int             `json:"timeout,omitempty"`
}

// An answer is what the model reads (SPEC R5).
type answer struct {
	Status   string          `json:"status"` // approved or denied
	Question string          `json:"question"`
	Content  string          `json:"content,omitempty"`
	Edited   bool            `json:"content_was_edited"`
	Choices  []string        `json:"choices,omitempty"`
	Form     json.RawMessage `json:"form,omitempty"`
	Feedback string          `json:"user_feedback,omitempty"`
}

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	t := tool.NewFor(tool.Definition{
		Name: "ask_user", Module: "ask",
		Description: "Ask the user a question, and wait for the answer.",
		Help:        "Ask only what you cannot find out and cannot sensibly decide. With content the user sees a text and may change it; with choices they pick; with form they fill in fields. If no user is attached the call fails at once: go on without the answer, and say what you assumed.",
		Effect:      tool.Reads, Category: tool.Interaction, Group: tool.GroupAgent, Meta: true,
		Timeout: maxTimeout + time.Minute, // its own is shorter
		Aliases: []string{"AskUserQuestion", "ask_question", "ask_human", "request_input"},
		Input:   schema.Must(`{"type":"object","properties":{"question":{"type":"string"},"content":{"type":"string","description":"a draft that the user may edit"},"choices":{"type":"array","items":{"type":"string"}},"allow_multiple":{"type":"boolean"},"form":{"type":"object","description":"JSON Schema of a flat object"},"timeout":{"type":"integer","description":"seconds, 5 to 3600; 300 if left out"}},"required":["question"],"additionalProperties":false}`),
	}, func(ctx context.Context, c *tool.Call, in input) (*tool.Result, error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		out, err := ask(ctx, h, c, in)
		if err != nil {
			return nil, err
		}
		text, err := tool.Encode(out)
		if err != nil {
			return nil, err
		}
		return tool.Text(string(text)), nil // without a schema: the listing of this tool is paid for by every session
	})
	return &module.Toolset{Tools: []*tool.Tool{t}}, nil
}

// check holds what the schema does not say: it is shown to every model.
func (in *input) check() error {
	switch {
	case strings.TrimSpace(in.Question) == "":
		return tool.Errorf(tool.CodeValidation, "/question: is empty; ask something that can be answered without knowing the rest")
	case len(in.Question) > maxQuestion:
		return tool.Errorf(tool.CodeValidation, "/question: is %d bytes long, the limit is %d; put long texts into content", len(in.Question), maxQuestion)
	case len(in.Choices) > maxChoices:
		return tool.Errorf(tool.CodeValidation, "/choices: there are %d, the limit is %d", len(in.Choices), maxChoices)
	case in.Timeout != 0 && (in.Timeout < 5 || in.Timeout > int(maxTimeout.Seconds())):
		return tool.Errorf(tool.CodeValidation, "/timeout: is %d; want 5 to %d seconds", in.Timeout, int(maxTimeout.Seconds()))
	}
	return nil
}

const (
	maxQuestion = 8000 // bytes
	maxChoices  = 50
)

func ask(ctx context.Context, h *module.Host, c *tool.Call, in input) (answer, error) {
	if h.Ask == nil {
		return answer{}, nobody(in)
	}
	wait := DefaultTimeout
	if in.Timeout > 0 {
		wait = time.Duration(in.Timeout) * time.Second
	}
	late := fmt.Errorf("the user did not answer within %s", wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, late)
	defer cancel()
	r, err := h.Ask(ctx, c, module.Question{Text: in.Question, Content: in.Content, Choices: in.Choices, Multiple: in.Multiple, Form: in.Form})
	switch {
	case errors.Is(err, module.ErrNobody):
		return answer{}, nobody(in)
	case errors.Is(context.Cause(ctx), late):
		return answer{}, tool.Errorf(tool.CodeTimeout, "%v; go on without the answer, or ask again later", late)
	case err != nil:
		return answer{}, err
	case r.Denied:
		return answer{Status: "denied", Question: in.Question, Feedback: r.Feedback}, nil
	}
	return approved(in, r)
}

func nobody(in input) error {
	return tool.Errorf(tool.CodeExternal, "%v: %q was not asked. Decide it yourself or leave it open, and say which", module.ErrNobody, clip(in.Question, 80))
}

// approved checks what the user entered, and returns it.
func approved(in input, r module.Reply) (answer, error) {
	out := answer{Status: "approved", Question: in.Question, Content: r.Content, Feedback: r.Feedback, Choices: r.Chosen, Form: r.Form}
	out.Edited = in.Content != "" && r.Content != in.Content
	for _, choice := range r.Chosen {
		if !slices.Contains(in.Choices, choice) {
			return answer{}, tool.Errorf(tool.CodeExternal, "the answer %q is none of the choices", clip(choice, 80))
		}
	}
	if len(in.Form) == 0 {
		return out, nil
	}
	s, err := schema.Parse(in.Form)
	if err != nil {
		return answer{}, tool.Errorf(tool.CodeValidation, "/form: %v", err)
	}
	if problems := s.Validate(r.Form); len(problems) > 0 {
		return answer{}, tool.Errorf(tool.CodeExternal, "what was entered does not fit the form: %s", problems[0])
	}
	return out, nil
}

func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
