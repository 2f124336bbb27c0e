package app

import (
	"context"
	"slices"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// LongCalls says what becomes of calls over MCP that take long.
type LongCalls struct {
	After  int      `json:"after,omitempty" default:"10" min:"0" max:"86400" jsonschema:"seconds after which a call becomes a task, for clients that know tasks; 0: it never does"`
	AtOnce []string `json:"at_once,omitempty" jsonschema:"tools whose calls are tasks from the start, for such clients: names, with * for any part"`
	Keep   int      `json:"keep,omitempty" default:"3600" min:"60" jsonschema:"seconds that a task is kept after its end"`
	Report int      `json:"report,omitempty" default:"5" min:"0" max:"3600" jsonschema:"seconds without progress after which a call that is waited for says that it goes on, to clients that asked for progress; 0: it never does"`
}

// LongCalls says what becomes of calls over MCP that take long.
func (a *App) LongCalls() mcpbridge.LongCalls {
	c := a.Config.Runtime.LongCalls
	l := mcpbridge.LongCalls{After: orNever(c.After), Report: orNever(c.Report), Keep: time.Duration(c.Keep) * time.Second}
	if len(c.AtOnce) > 0 {
		l.As = a.asTask
	}
	return l
}

// orNever returns seconds as a duration; 0: one that never passes.
func orNever(seconds int) time.Duration {
	if seconds == 0 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// asTask reports how a call is treated: by its own tool, or by one that it
// would call in turn.
func (a *App) asTask(c *tool.Call) mcpbridge.AsTask {
	if a.atOnce(c.Name) {
		return mcpbridge.AtOnce
	}
	if t, err := a.Tools().Resolve(c.Name, nil); err == nil && t.Targets != nil {
		if slices.ContainsFunc(t.Targets(c.Args), func(target tool.Target) bool { return a.atOnce(target.Name) }) {
			return mcpbridge.AtOnce
		}
	}
	return mcpbridge.WhenLong
}

func (a *App) atOnce(name string) bool {
	t, err := a.Tools().Resolve(name, nil)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(a.Config.Runtime.LongCalls.AtOnce, func(pattern string) bool {
		return (&guard.Rule{Pattern: pattern}).Names(t)
	})
}

// Store returns the store of the app, which stays the same for its users
// whenever the app is opened anew. Its Close does nothing.
func (l *Live) Store() store.Store { return liveStore{l} }

type liveStore struct{ l *Live }

func (s liveStore) View(ctx context.Context, fn func(store.Reader) error) error {
	g := s.l.enter()
	defer s.l.leave(g)
	return g.app.Store.View(ctx, fn)
}

func (s liveStore) Update(ctx context.Context, fn func(store.Writer) error) error {
	g := s.l.enter()
	defer s.l.leave(g)
	return g.app.Store.Update(ctx, fn)
}

func (s liveStore) Close() error { return nil }
