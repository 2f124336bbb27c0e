package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/search/habits"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// habitPart is the part of an app's store that holds what it learnt from usage.
const habitPart = "habits"

// openHabits opens what is learnt from usage, where the app file says so. An
// app that is only looked at reads it, and learns nothing.
func (a *App) openHabits(context.Context) error {
	if !a.Config.Tools.Search.Learn {
		return nil
	}
	s := a.quietly(habitPart)
	if a.opts.Inspect {
		s = store.Sub(a.manifestStore(), habitPart)
	}
	a.habits = habits.New(s, time.Now)
	return nil
}

// learningSearch searches with what was learnt from usage, and notes what was shown.
func (a *App) learningSearch(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if a.habits == nil {
		return a.finder().Search(ctx, q)
	}
	known, err := a.habits.Like(ctx, q.Text)
	if err != nil {
		a.log.Warn("what was learnt from usage cannot be read; tools are found without it", "error", err)
	}
	q.Habits = known
	hits, err := a.finder().Search(ctx, q)
	if a.opts.Inspect {
		return hits, err
	}
	shown := make([]string, len(hits))
	for i, h := range hits {
		shown[i] = h.Tool.Name
	}
	a.habits.Searched(q.From, q.Text, shown)
	return hits, err
}

// around names the tools that were usually called before and after the named one.
func (a *App) around(ctx context.Context, name string) (before, after []string) {
	if a.habits == nil {
		return nil, nil
	}
	before, after, err := a.habits.Around(ctx, name)
	if err != nil {
		a.log.Warn("what was learnt from usage cannot be read", "error", err)
	}
	return before, after
}

// habitStages returns the stage, innermost of all, that learns from calls that
// succeed; none if nothing is learnt.
func (a *App) habitStages() []pipeline.Stage {
	if a.habits == nil || a.opts.Inspect {
		return nil
	}
	return []pipeline.Stage{{Name: "habits", Doc: "learn which tools are of use after which queries", Wrap: a.learnFrom}}
}

func (a *App) learnFrom(next tool.Handler) tool.Handler {
	return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
		res, err := next(ctx, c)
		if err == nil && res != nil && res.Err == nil && !c.Tool.Meta {
			if err := a.habits.Called(context.WithoutCancel(ctx), c.From, c.Tool.Name); err != nil {
				a.log.Warn("nothing was learnt from a call", "tool", c.Tool.Name, "error", err)
			}
		}
		return res, err
	}
}

// ForgetHabits forgets what an app learnt from usage, and returns of how many
// queries and tools that was.
func ForgetHabits(ctx context.Context, o Options) (n int, err error) {
	if o.Config == nil {
		o.Config = Default()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{Config: o.Config, opts: o, log: o.Log}
	defer func() { err = errors.Join(err, a.Close()) }()
	for _, step := range []func(context.Context) error{a.openRoot, a.openStore} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	return habits.Forget(ctx, store.Sub(a.Store, habitPart))
}
