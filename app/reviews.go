package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Quarantine is the stage that audit lines name when a tool of an upstream
// server is held back, accepted or rejected.
const Quarantine = "quarantine"

// OpenReviews opens what is held back of an app's upstream servers alone: no
// module and no server. Close the app.
func OpenReviews(ctx context.Context, o Options) (_ *App, _ mcpbridge.Reviews, err error) {
	if o.Config == nil {
		o.Config = Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{Config: o.Config, opts: o, log: o.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	for _, step := range []func(context.Context) error{a.openRoot, a.openStore, a.openAudit} {
		if err := step(ctx); err != nil {
			return nil, mcpbridge.Reviews{}, err
		}
	}
	return a, mcpbridge.Reviews{Store: store.Sub(a.Store, "mcp")}, nil
}

// Reviewed writes to the audit what an operator decided about tools of an
// upstream server.
func (a *App) Reviewed(server string, names []string, verdict tool.Verdict, by, reason string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, a.note("mcp."+server+"."+name, verdict, by, reason))
	}
	return errors.Join(errs...)
}

func (a *App) note(name string, verdict tool.Verdict, by, reason string) error {
	if a.audit == nil {
		return nil
	}
	return a.audit.Append(&audit.Entry{Time: time.Now(), App: a.Config.App.ID, Kind: string(tool.KindCLI), Tool: name,
		Decision: verdict.String(), Stage: Quarantine, Reason: reason, Approver: by})
}

// heldBack writes down that a tool of an upstream server is held back.
func (a *App) heldBack(name, why string) {
	if err := a.note(name, tool.Ask, "", why); err != nil {
		a.log.Error("the audit does not say that a tool is held back", "tool", name, "error", err)
	}
}

// missing says why a tool that may be meant is not on offer, to those who may
// know of its server.
func (a *App) missing(from tool.Origin, name string) *tool.Error {
	return a.ups.Missing(name, func(server string) bool { return mcpbridge.Shown(a.Visible, from, server) })
}
