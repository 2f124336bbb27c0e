package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Audit returns the stage that writes down every call, refusals included,
// before its result is returned (SPEC X10). A result whose line cannot be
// written is withheld. A nil log writes nothing.
func Audit(log *audit.Log, redact *Redactor, now func() time.Time) pipeline.Stage {
	return pipeline.Stage{
		Name: "audit", Doc: "write down every call",
		Wrap: func(next tool.Handler) tool.Handler {
			if log == nil {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				start := now()
				res, err := next(ctx, c)
				e := entryOf(c, res, redact)
				e.Time, e.Duration = start, now().Sub(start)
				if lost := log.Append(e); lost != nil {
					return nil, tool.Errorf(tool.CodeRuntime, "the result of %s is withheld because the call could not be written to the audit log: %v", c.Name, lost)
				}
				return res, err
			}
		},
	}
}

// Record writes down a call that does not go through a pipeline, and what came
// of it. A *tool.Error that refuses, or says that nothing was found, counts as a denial. A nil log
// writes nothing.
func Record(log *audit.Log, redact *Redactor, now func() time.Time, call *tool.Call, err error) error {
	if log == nil {
		return nil
	}
	c := *call
	c.Trail = &tool.Trail{Decision: tool.Allow}
	res := new(tool.Result)
	if err != nil {
		res.Err = tool.AsError(err)
		switch {
		case res.Err.Code == tool.CodeNotFound:
			c.Trail.Deny("resolve", res.Err)
		case res.Err.Code.Refusal():
			c.Trail.Deny("visible", res.Err)
		}
	}
	e := entryOf(&c, res, redact)
	e.Time = now()
	if lost := log.Append(e); lost != nil {
		return tool.Errorf(tool.CodeRuntime, "the result of %s is withheld because the call could not be written to the audit log: %v", c.Name, lost)
	}
	return nil
}

func entryOf(c *tool.Call, res *tool.Result, redact *Redactor) *audit.Entry {
	e := &audit.Entry{
		App: c.From.App, Agent: c.From.Agent, Session: c.From.Session, User: c.From.User, Kind: string(c.From.Kind),
		Call: c.ID, Parent: c.From.Parent, Via: c.From.Via, Tool: c.Name,
		Decision: c.Trail.Decision.String(), Stage: c.Trail.Stage, Reason: redact.Text(c.Trail.Reason),
		Cost:     audit.Cost{Tokens: c.Trail.Tokens, Money: c.Trail.Money},
		Approver: c.Trail.Approver, Notes: redact.coercions(c), Truncated: c.Trail.Truncated, Args: redact.Call(c),
	}
	if u := c.From.Under; u != nil && e.Parent == "" {
		e.Parent = u.Call
	}
	if c.Tool != nil {
		e.Effect = c.Tool.Effect.String()
	}
	if res.Err != nil {
		e.Error = string(res.Err.Code)
	}
	text := res.JoinText()
	e.ResultBytes = max(len(text), c.Trail.Bytes)
	if text != "" {
		sum := sha256.Sum256([]byte(text))
		e.ResultDigest = hex.EncodeToString(sum[:16])
	}
	return e
}

// Ready returns the stage that refuses calls that may change something while
// the audit log cannot be written: what is not on record does not happen.
func Ready(log *audit.Log) pipeline.Stage {
	const name = "audit-ready"
	return pipeline.Stage{
		Name: name, Doc: "refuse changes that could not be written down",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if log != nil && !c.Tool.IsRead() {
					if err := log.Reserve(); err != nil {
						return nil, c.Trail.Deny(name, tool.Errorf(tool.CodeRuntime, "%s was not run because the audit log cannot be written: %v", c.Name, err))
					}
				}
				return next(ctx, c)
			}
		},
	}
}
