package mcpbridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/module"
)

// AskUser asks the person at the client that makes a call, by a form that the
// client shows. The error is module.ErrNobody where the client cannot.
func AskUser(ctx context.Context, q module.Question) (module.Reply, error) {
	a := askerOf(ctx)
	if !CanApprove(ctx) {
		return module.Reply{}, module.ErrNobody
	}
	form, err := questionForm(q)
	if err != nil {
		return module.Reply{}, err
	}
	got, err := a.approve(ctx, "question-"+rand.Text()[:12], form)
	if ctx.Err() != nil {
		return module.Reply{}, context.Cause(ctx)
	}
	if err != nil {
		return module.Reply{}, err
	}
	return replied(q, got)
}

// The fields of a form that is not the tool's own.
const (
	fieldAnswer   = "answer"
	fieldFeedback = "feedback"
)

// questionForm is a question as clients show it.
func questionForm(q module.Question) (*mcp.ElicitParams, error) {
	text := q.Text
	if q.Content != "" {
		text += "\n\n" + cutText(q.Content, maxShownDiff)
	}
	form := &mcp.ElicitParams{Mode: "form", Message: printable(text)}
	if len(q.Form) > 0 {
		var s map[string]any
		if err := json.Unmarshal(q.Form, &s); err != nil {
			return nil, fmt.Errorf("the form is no JSON Schema: %w", err)
		}
		form.RequestedSchema = s
		return form, nil
	}
	answer := map[string]any{"type": "string", "title": "Your answer"}
	switch {
	case len(q.Choices) > 0 && q.Multiple:
		answer = map[string]any{"type": "array", "title": "Your choice", "items": map[string]any{"type": "string", "enum": q.Choices}}
	case len(q.Choices) > 0:
		answer = map[string]any{"type": "string", "title": "Your choice", "enum": q.Choices}
	case q.Content != "":
		answer = map[string]any{"type": "string", "title": "The text as it should be", "description": "Leave it empty to take it as it is", "default": q.Content}
	}
	required := []string{fieldAnswer}
	if q.Content != "" {
		required = []string{}
	}
	form.RequestedSchema = map[string]any{"type": "object", "required": required,
		"properties": map[string]any{fieldAnswer: answer, fieldFeedback: map[string]any{"type": "string", "title": "Anything to add"}}}
	return form, nil
}

// replied reads what a person entered.
func replied(q module.Question, got mcp.InputResponse) (module.Reply, error) {
	r, _ := got.(*mcp.ElicitResult)
	switch {
	case r == nil:
		return module.Reply{}, fmt.Errorf("the client came back without an answer")
	case r.Action == "decline":
		feedback, _ := r.Content[fieldFeedback].(string)
		return module.Reply{Denied: true, Feedback: printable(feedback)}, nil
	case r.Action != "accept":
		return module.Reply{Denied: true, Feedback: "the user did not answer"}, nil
	case len(q.Form) > 0:
		raw, err := json.Marshal(r.Content)
		return module.Reply{Form: raw}, err
	}
	out := module.Reply{Content: q.Content}
	out.Feedback, _ = r.Content[fieldFeedback].(string)
	switch v := r.Content[fieldAnswer].(type) {
	case string:
		switch {
		case len(q.Choices) > 0:
			out.Chosen = []string{v}
		case v != "":
			out.Content = v
		}
	case []any:
		for _, x := range v {
			if s, ok := x.(string); ok {
				out.Chosen = append(out.Chosen, s)
			}
		}
	}
	return out, nil
}
