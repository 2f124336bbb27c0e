package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// A Question is put to an approver about one call.
type Question struct {
	Call    *tool.Call      // must not be changed
	Args    json.RawMessage // redacted, fit to be shown
	Reasons []string        // why it is asked
	Diff    string          // what it would change, as a unified diff, redacted; "": nobody can tell
}

// An Answer is what an approver says. The zero Answer is a denial.
type Answer struct {
	Approved bool
	By       string // who answered, and how
	Feedback string // for the model, with a denial

	// Args, with an approval, are to be used in place of the call's. The call is
	// judged anew with them, and may be refused. What is redacted in them as it
	// was shown stays as it is. Nil: the call's.
	Args json.RawMessage
}

// An Approver answers questions about calls. An error is a denial.
type Approver func(context.Context, Question) (Answer, error)

// Approval returns the stage that seeks an answer about calls on which a
// policy said Ask. No approver, an error or anything but a clear yes is a denial.
func Approval(approve Approver, redact *Redactor) pipeline.Stage {
	const name = "approval"
	return pipeline.Stage{
		Name: name, Doc: "ask the operator about calls that want an approval",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if len(c.Trail.Asked) == 0 {
					return next(ctx, c)
				}
				again := amendmentOf(ctx, c)
				if again != nil && again.args != nil {
					c.Trail.Decision, c.Trail.Stage, c.Trail.Approver = tool.Allow, name, again.by
					return next(ctx, c)
				}
				a, err := ask(ctx, approve, redact, c)
				if err == nil && a.Args != nil {
					err = again.with(a, redact, c)
				}
				if err != nil {
					c.Trail.Approver = a.By
					return nil, c.Trail.Deny(name, err)
				}
				if a.Args != nil {
					return nil, errAmended
				}
				c.Trail.Decision, c.Trail.Stage, c.Trail.Approver = tool.Allow, name, a.By
				return next(ctx, c)
			}
		},
	}
}

// preview returns what a call would change. What cannot be previewed will fail,
// or is shown by its arguments alone.
func preview(ctx context.Context, redact *Redactor, c *tool.Call) string {
	if c.Tool.Preview == nil {
		return ""
	}
	diff, err := c.Tool.Preview(ctx, c)
	if err != nil {
		diff = fmt.Sprintf("[what it would change cannot be shown: %v]\n", err)
	}
	return redact.Text(diff)
}

func ask(ctx context.Context, approve Approver, redact *Redactor, c *tool.Call) (Answer, *tool.Error) {
	why := strings.Join(c.Trail.Asked, "; ")
	if approve == nil {
		return Answer{}, tool.Errorf(tool.CodeDenied,
			"%s needs an approval (%s), and no approver is attached; the operator can run it with `helve tools call`, or grant it in the app file under tools.capabilities.grant", c.Name, why)
	}
	defer hold(ctx)()
	a, err := approve(ctx, Question{Call: c, Args: redact.Call(c), Reasons: c.Trail.Asked, Diff: preview(ctx, redact, c)})
	var refused *tool.Error
	switch {
	case errors.As(err, &refused):
		return a, refused
	case errors.Is(err, context.DeadlineExceeded):
		return a, tool.Errorf(tool.CodeApprovalLate, "nobody approved %s in time (%s)", c.Name, why)
	case err != nil:
		return a, tool.Errorf(tool.CodeDenied, "%s was not approved: %v", c.Name, err)
	case !a.Approved && a.Feedback != "":
		return a, tool.Errorf(tool.CodeDenied, "%s was not approved: %s", c.Name, a.Feedback)
	case !a.Approved:
		return a, tool.Errorf(tool.CodeDenied, "%s was not approved", c.Name)
	}
	return a, nil
}
