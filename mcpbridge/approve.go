package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/approval"
)

// CanApprove reports whether the person at the client that makes a call can be
// asked about it.
func CanApprove(ctx context.Context) bool {
	a := askerOf(ctx)
	return a != nil && a.can(&mcp.ElicitParams{}) == nil && (a.long != nil || a.turn != nil || a.version < firstStateless)
}

// Approve asks the person at the client that makes a call whether it may run:
// by a form that the client shows, never by anything in the call itself. What
// is not a clear yes is a denial. The error says that there was no answer.
func Approve(ctx context.Context, q approval.Question) (approval.Answer, error) {
	a := askerOf(ctx)
	if !CanApprove(ctx) {
		return approval.Answer{}, errors.New("the client cannot be asked")
	}
	form := approvalForm(q, a.lasting())
	got, err := a.approve(ctx, "approval-"+q.ID, form)
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return approval.Answer{}, context.Cause(ctx)
	case errors.As(err, &refused) || errors.Is(err, errStopping):
		return approval.Answer{}, err
	case err != nil:
		return approval.Answer{Feedback: "the client's answer was none: " + err.Error()}, nil
	}
	return decided(got, offered(form)), nil
}

// lasting reports whether the call is one of a session that ends with its
// client: a client without sessions is known by its name and token only, and
// what were approved for one of them would be for all that have these.
func (a *asker) lasting() bool { return a.session != nil && a.session.ID() != "" }

// approve asks once, in the way that the client can be asked.
func (a *asker) approve(ctx context.Context, id string, form *mcp.ElicitParams) (mcp.InputResponse, error) {
	switch {
	case a.long != nil:
		return a.long.ask(ctx, form)
	case a.turn != nil:
		a.turn.asking.Lock()
		defer a.turn.asking.Unlock()
		got, err := a.turn.round(ctx, mcp.InputRequestMap{id: form})
		return got[id], err
	}
	return a.session.Elicit(ctx, form)
}

// What the person at a client may decide.
const (
	sayApprove = "approve"
	saySession = "approve for this session"
	sayDeny    = "deny"
)

// offered returns the decisions that a form offers.
func offered(form *mcp.ElicitParams) []any {
	properties := form.RequestedSchema.(map[string]any)["properties"].(map[string]any)
	return properties["decision"].(map[string]any)["enum"].([]any)
}

// decided reads what a person entered into the form that offered some decisions.
func decided(got mcp.InputResponse, offers []any) approval.Answer {
	r, _ := got.(*mcp.ElicitResult)
	if r == nil {
		return approval.Answer{Feedback: "the client came back without an answer"}
	}
	feedback, _ := r.Content["feedback"].(string)
	feedback = strings.TrimSpace(cutText(printable(feedback), maxFeedback))
	switch {
	case r.Action == "accept" && slices.Contains(offers, r.Content["decision"]):
		switch r.Content["decision"] {
		case sayApprove:
			return approval.Answer{Approve: true}
		case saySession:
			return approval.Answer{Approve: true, Session: true}
		}
		return approval.Answer{Feedback: feedback}
	case r.Action == "decline":
		return approval.Answer{Feedback: "the user declined"}
	case r.Action == "cancel":
		return approval.Answer{Feedback: "the user did not answer; for a client with nobody at it, the operator can grant the call under tools.capabilities.grant in the app file"}
	}
	return approval.Answer{Feedback: "the client's answer was not understood"}
}

// How much of a question a client is shown, and what is taken of feedback, in bytes.
const (
	maxShownArgs = 4000
	maxShownDiff = 12000
	maxFeedback  = 2000
)

// approvalForm is the question as clients show it, of a call of a session that
// lasts or not.
func approvalForm(q approval.Question, lasting bool) *mcp.ElicitParams {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants to run", q.Tool)
	if len(q.Via) > 0 {
		fmt.Fprintf(&b, " (called by %s)", strings.Join(q.Via, " → "))
	}
	fmt.Fprintf(&b, " with\n%s\n", cutText(string(q.Args), maxShownArgs))
	for _, r := range q.Reasons {
		fmt.Fprintf(&b, "It is asked because %s.\n", r)
	}
	if q.Diff != "" {
		fmt.Fprintf(&b, "It would change:\n%s", cutText(q.Diff, maxShownDiff))
	}
	decisions := []any{sayApprove, sayDeny}
	if lasting && q.Scope.Key != "" {
		decisions = []any{sayApprove, saySession, sayDeny}
		fmt.Fprintf(&b, "\nApproved for this session, %s would not be asked about again.", cutText(q.Scope.Shown, maxShownArgs))
	}
	return &mcp.ElicitParams{
		Mode: "form", Message: printable(b.String()), Meta: mcp.Meta{"helve/approval": q.ID},
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{"type": "string", "enum": decisions, "title": "Run it?"},
				"feedback": map[string]any{"type": "string", "title": "With a denial: what the model is told"},
			},
			"required": []any{"decision"},
		},
	}
}

// cutText cuts a text at a rune, and says so.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + fmt.Sprintf("… [%d bytes more; helve approvals show has them]", len(s)-most)
}
