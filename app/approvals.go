package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/approval"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// waitAlways is the approval_wait of apps whose questions wait although nobody
// is there to answer.
const waitAlways = "always"

func (a *App) openApprovals(context.Context) error {
	redact := a.redactor
	if redact == nil {
		redact = guard.NewRedactor()
	}
	part := func(whole store.Store) store.Store {
		return store.Sub(store.Sub(whole, "apps/"+a.Config.App.ID), "approvals")
	}
	a.Approvals = approval.New(part(a.whole), approval.Options{
		Timeout: timeoutOr(a.Config.Tools.Capabilities.ApprovalTimeout, approval.DefaultTimeout), Log: a.log,
		Redact: func(args json.RawMessage) json.RawMessage { return redact.Args(args, nil) },
		Peek:   part(IfThere(a.whole)),
	})
	a.closers = append(a.closers, a.Approvals.Close)
	return nil
}

// OpenApprovals opens the questions of an app alone: no module, no server, no
// setup. Close the app.
func OpenApprovals(ctx context.Context, o Options) (_ *App, err error) {
	if o.Config == nil {
		o.Config = Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Inspect = false
	a := &App{Config: o.Config, opts: o, log: o.Log}
	return a.openSteps(ctx, a.openRoot, a.openStore, a.openApprovals)
}

// OpenKept opens what is kept of an app alone, such as its Conversations: no
// module, no server, no setup. Close the app.
func OpenKept(ctx context.Context, o Options) (*App, error) {
	if o.Config == nil {
		o.Config = Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Inspect = false
	a := &App{Config: o.Config, opts: o, log: o.Log}
	return a.openSteps(ctx, a.openRoot, a.openStore)
}

func (a *App) openSteps(ctx context.Context, steps ...func(context.Context) error) (*App, error) {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

// approver returns who is asked about calls.
func (a *App) approver() guard.Approver {
	switch {
	case a.opts.Approver != nil:
		return a.opts.Approver
	case a.opts.Inspect:
		return nil
	}
	return a.seekApproval
}

// seekApproval asks whoever is there: those who watch the table of questions,
// and the person at the client that made the call. The first answer counts.
func (a *App) seekApproval(ctx context.Context, q guard.Question) (guard.Answer, error) {
	owner, scope := approval.OwnerOf(q.Call.From), a.rules.Scope(q.Call)
	reasons := a.redacted(q.Reasons)
	granted, err := a.Approvals.Granted(ctx, owner, q.Call.Name, reasons, scope)
	if err != nil {
		return guard.Answer{}, err
	}
	if granted != nil {
		return guard.Answer{Approved: true, By: granted.By + " (earlier, for the session: " + scope.Shown + ")"}, nil
	}
	byClient := a.Config.Security.ApproveByClient == nil || *a.Config.Security.ApproveByClient
	asks := byClient && mcpbridge.CanApprove(ctx)
	others := a.Config.Tools.Capabilities.ApprovalWait == waitAlways
	if !others {
		if others, err = a.Approvals.Attended(ctx); err != nil {
			return guard.Answer{}, err
		}
	}
	if !asks && !others {
		return guard.Answer{}, a.nobodyThere(q, byClient)
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	got, err := a.Approvals.Ask(ctx, approval.Question{
		Owner: owner, Tool: q.Call.Name, Call: q.Call.ID, Via: q.Call.From.Via, Args: q.Args, Diff: q.Diff, Reasons: reasons, Scope: scope,
	}, func(kept approval.Question) {
		if asks {
			asking.Go(func() { a.askClient(ctx, kept, others) })
		}
	})
	cancel() // the client need not answer any more
	asking.Wait()
	if err != nil {
		return guard.Answer{}, err
	}
	return answerOf(got, a.Approvals.Timeout())
}

func (a *App) redacted(reasons []string) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = a.redactor.Text(r)
	}
	return out
}

// nobodyThere says that nobody can be asked, and how to change that.
func (a *App) nobodyThere(q guard.Question, byClient bool) *tool.Error {
	client := "the client that called cannot ask its user"
	if !byClient {
		client = "the app does not let clients approve (security.approve_by_client)"
	}
	return tool.Errorf(tool.CodeDenied, "%s needs an approval (%s), and no approver is attached: %s; the operator can answer while `helve approvals watch` runs, or set tools.capabilities.approval_wait to always, or grant the call under tools.capabilities.grant in the app file",
		q.Call.Name, strings.Join(q.Reasons, "; "), client)
}

// askClient puts a question to the client that made the call. If it cannot be
// asked and nobody else is there, that is a denial.
func (a *App) askClient(ctx context.Context, q approval.Question, others bool) {
	said, err := mcpbridge.Approve(ctx, q)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && others:
		a.log.Info("the client cannot be asked to approve a call; others may", "tool", q.Tool, "question", q.ID, "why", err)
		return
	case err != nil:
		said = approval.Answer{Feedback: "the client could not ask its user: " + err.Error()}
	}
	said.By, said.How = q.Owner.User, "through the MCP client"
	if q.Owner.Agent != "" {
		said.How += " " + q.Owner.Agent
	}
	if said.By == "" {
		said.By = "somebody"
	}
	if _, err := a.Approvals.Answer(ctx, q.ID, said); err != nil && ctx.Err() == nil {
		a.log.Warn("an answer of a client came to nothing", "tool", q.Tool, "question", q.ID, "why", err)
	}
}

// answerOf returns what a question came to. Whatever is no approval is a denial.
func answerOf(q approval.Question, waited time.Duration) (guard.Answer, error) {
	switch {
	case q.State == approval.Approved && q.Answer != nil && q.Answer.Approve:
		return guard.Answer{Approved: true, By: q.Answer.Who(), Args: q.Answer.Args}, nil
	case q.State == approval.Denied && q.Answer != nil:
		return guard.Answer{By: q.Answer.Who(), Feedback: q.Answer.Feedback}, nil
	case q.State == approval.TimedOut:
		return guard.Answer{}, fmt.Errorf("nobody answered within %s: %w", waited, context.DeadlineExceeded)
	}
	return guard.Answer{}, fmt.Errorf("the question ended without an answer (%s)", q.State)
}
