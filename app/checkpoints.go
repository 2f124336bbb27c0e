package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// limits returns the limits of checkpoints; what the app leaves open is zero.
func (c Checkpoints) limits() checkpoint.Limits {
	return checkpoint.Limits{
		MaxFile: c.MaxFile, MaxCall: c.MaxCall, MaxSnapshot: c.MaxSnapshot, MaxTotal: c.MaxTotal,
		MaxAge: time.Duration(c.MaxAge) * 24 * time.Hour, Skip: c.Skip, RunUnsaved: c.OverLimit == "run",
	}
}

func (a *App) openCheckpoints(context.Context) error {
	index := a.Store
	if a.opts.Inspect {
		index = a.manifestStore() // that which the app's serving writes, and not to be changed
	}
	a.Checkpoints = checkpoint.New(checkpoint.Options{
		Dir: filepath.Join(a.State, "checkpoints"), Store: store.Sub(index, "checkpoints"), Root: a.Root, App: a.Config.App.ID,
		Limits: a.Config.Runtime.Checkpoints.limits(), Log: a.log, Temporary: a.opts.Store == "memory",
		Redact: a.redactor.Command,
	})
	a.closers = append(a.closers, a.Checkpoints.Close)
	return nil
}

// OpenCheckpoints opens the checkpoints of an app alone: no module, no server,
// no setup. With Options.Inspect they can only be looked at. Close the app.
func OpenCheckpoints(ctx context.Context, o Options) (_ *App, err error) {
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
	for _, step := range []func(context.Context) error{a.openRoot, a.openStore, a.openCheckpoints} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Preview returns what a call would change, as a unified diff, without running
// it; "" if nobody can tell, or if it would be refused.
func (a *App) Preview(ctx context.Context, c *tool.Call) (string, error) {
	x := a.Explain(ctx, c)
	t, ok := a.reg.Set().Lookup(x.Tool)
	if !ok || x.Error != nil || t.Preview == nil {
		return "", nil
	}
	own := *c
	own.Name, own.Args, own.Tool = x.Tool, x.Args, t
	text, err := t.Preview(ctx, &own)
	return a.redactor.Text(text), err
}
