package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// A Limit is how often tools may be called (SPEC X7).
type Limit struct {
	Tools      string // a tool, a module, a glob of tools, or "*" for all: together they have this limit
	Calls      int
	Window     time.Duration // zero: a minute
	PerSession bool          // for each session on its own; false: for the whole app
}

func (l *Limit) covers(t *tool.Tool) bool {
	module := t.ModuleName()
	return l.Tools == "*" || l.Tools == t.Name || l.Tools == module || strings.HasPrefix(module, l.Tools+".") ||
		strings.Contains(l.Tools, "*") && globName(l.Tools, t.Name)
}

// A Limiter holds calls to limits. In no stretch of time as long as a limit's
// window do more calls run than it allows. It is safe for concurrent use.
type Limiter struct {
	limits []Limit
	shared store.Store // nil: the process is alone
	now    func() time.Time

	mu      sync.Mutex
	windows map[string]*window // without a store
}

// NewLimiter returns a Limiter. With a store, which several processes may
// share, the limits hold for all of them together, at the price of a write for
// each limited call; a nil store counts in the process.
func NewLimiter(limits []Limit, shared store.Store, now func() time.Time) *Limiter {
	limits = slices.Clone(limits)
	for i := range limits {
		if limits[i].Window <= 0 {
			limits[i].Window = time.Minute
		}
	}
	if now == nil {
		now = time.Now
	}
	return &Limiter{limits: limits, shared: shared, now: now, windows: map[string]*window{}}
}

// Rate returns the stage that refuses calls beyond the limits. It stands
// behind the policy: calls that were refused before do not count. One that a
// later stage refuses gives its place back, except to the operator who was
// asked about it. What acts as the app has no limits. A nil l has none.
func Rate(l *Limiter) pipeline.Stage {
	const name = "rate limit"
	return pipeline.Stage{
		Name: name, Doc: "refuse calls beyond the rate limits",
		Wrap: func(next tool.Handler) tool.Handler {
			if l == nil || len(l.limits) == 0 {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if c.From.Kind.Daemon() {
					return next(ctx, c)
				}
				places := l.places(c)
				if len(places) == 0 {
					return next(ctx, c)
				}
				if err := l.take(ctx, c, places); err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				res, err := next(ctx, c)
				if c.Trail.Decision == tool.Deny && c.Trail.Stage != "approval" {
					l.giveBack(context.WithoutCancel(ctx), places)
				}
				return res, err
			}
		},
	}
}

// A place is a limit that a call falls under, and the window that counts it.
type place struct {
	limit *Limit
	key   string
	at    time.Time // when it was counted
}

func (l *Limiter) places(c *tool.Call) []place {
	var out []place
	for i := range l.limits {
		limit := &l.limits[i]
		if !limit.covers(c.Tool) {
			continue
		}
		key := c.From.App + "/" + limit.Tools
		if limit.PerSession {
			sum := sha256.Sum256([]byte(c.From.User + "\x00" + c.From.Session))
			key += "/" + hex.EncodeToString(sum[:12])
		}
		out = append(out, place{limit: limit, key: key})
	}
	return out
}

// A window is the calls of the time that counts.
type window struct {
	Slots []slot    `json:"slots"`
	Until time.Time `json:"until"` // from then on it is empty
}

// A slot is some calls in quick succession, which count until the last of them
// no longer does.
type slot struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	N     int       `json:"n"`
}

// fineSlots is how many calls of a window are kept each on its own; beyond, a
// slot spans up to a part of the window as long as that.
const fineSlots = 64

// room returns how long a call has to wait, at least; zero: it may run.
func (w *window) room(limit *Limit, now time.Time) time.Duration {
	if n := len(w.Slots); n > 0 && now.Before(w.Slots[n-1].Last) {
		now = w.Slots[n-1].Last // another process's clock is ahead
	}
	w.Slots = slices.DeleteFunc(w.Slots, func(s slot) bool { return !s.Last.Add(limit.Window).After(now) })
	total := 0
	for _, s := range w.Slots {
		total += s.N
	}
	for _, s := range w.Slots {
		if total < limit.Calls {
			break
		}
		if total -= s.N; total < limit.Calls {
			return s.Last.Add(limit.Window).Sub(now)
		}
	}
	return 0
}

// add counts a call, and returns the time under which it is counted.
func (w *window) add(limit *Limit, now time.Time) time.Time {
	if n := len(w.Slots); n > 0 {
		last := &w.Slots[n-1]
		if now.Before(last.Last) {
			now = last.Last
		}
		if n >= fineSlots && now.Sub(last.First) < limit.Window/fineSlots {
			last.N++
			last.Last = now
			w.Until = now.Add(limit.Window)
			return now
		}
	}
	w.Slots = append(w.Slots, slot{now, now, 1})
	w.Until = now.Add(limit.Window)
	return now
}

// drop takes out a call that was counted at a time.
func (w *window) drop(at time.Time) {
	i := slices.IndexFunc(w.Slots, func(s slot) bool { return !at.Before(s.First) && !at.After(s.Last) })
	if i < 0 {
		return
	}
	if w.Slots[i].N--; w.Slots[i].N <= 0 {
		w.Slots = slices.Delete(w.Slots, i, i+1)
	}
}

// windowsBucket is where a shared Limiter counts.
const windowsBucket = store.Bucket[window]("windows")

// lockPatience is how long a call waits for what other processes hold.
const lockPatience = 5 * time.Second

// take counts a call in all its places, or in none.
func (l *Limiter) take(ctx context.Context, c *tool.Call, places []place) *tool.Error {
	var full *place
	var wait time.Duration
	try := func(at func(place) (*window, error), put func(place, *window) error) error {
		full, wait = nil, 0
		now := l.now()
		windows := make([]*window, len(places))
		for i, p := range places {
			w, err := at(p)
			if err != nil {
				return err
			}
			if d := w.room(p.limit, now); d > wait {
				full, wait = &places[i], d
			}
			windows[i] = w
		}
		if full != nil {
			return nil
		}
		for i, p := range places {
			places[i].at = windows[i].add(p.limit, now)
			if err := put(p, windows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := l.with(ctx, try); err != nil {
		return tool.Errorf(tool.CodeRateLimited, "%s was not run because its rate limit cannot be told: %v", c.Name, err).Retry()
	}
	if full == nil {
		return nil
	}
	return overLimit(c, full.limit, wait)
}

// with calls try with the windows, which nobody else changes meanwhile.
func (l *Limiter) with(ctx context.Context, try func(at func(place) (*window, error), put func(place, *window) error) error) error {
	if l.shared == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sweep()
		return try(func(p place) (*window, error) {
			if l.windows[p.key] == nil {
				l.windows[p.key] = new(window)
			}
			return l.windows[p.key], nil
		}, func(place, *window) error { return nil })
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return l.shared.Update(ctx, func(tx store.Writer) error {
		return try(func(p place) (*window, error) {
			w, err := windowsBucket.Get(tx, p.key)
			if errors.Is(err, store.ErrNotFound) {
				return new(window), l.sweepStore(tx, p)
			}
			return &w, err
		}, func(p place, w *window) error { return windowsBucket.Put(tx, p.key, *w) })
	})
}

// giveBack takes a call out of its places.
func (l *Limiter) giveBack(ctx context.Context, places []place) {
	_ = l.with(ctx, func(at func(place) (*window, error), put func(place, *window) error) error {
		for _, p := range places {
			w, err := at(p)
			if err != nil {
				return err
			}
			w.drop(p.at)
			if err := put(p, w); err != nil {
				return err
			}
		}
		return nil
	}) // a place that cannot be given back is lost for one window
}

// sweepAt is how many windows there may be before those of past sessions are
// looked for; sweepAtOnce bounds what one call clears away in a store.
const (
	sweepAt     = 1000
	sweepAtOnce = 16
)

func (l *Limiter) sweep() {
	if len(l.windows) < sweepAt {
		return
	}
	now := l.now()
	for k, w := range l.windows {
		if !w.Until.After(now) {
			delete(l.windows, k)
		}
	}
}

// sweepStore clears away windows that are over, when a new one begins: some of
// the neighbours of its key, which are any sessions.
func (l *Limiter) sweepStore(tx store.Writer, p place) error {
	if !p.limit.PerSession {
		return nil
	}
	var over []string
	now, seen := l.now(), 0
	for key, w := range windowsBucket.Scan(tx, p.key[:len(p.key)-23]) {
		if !w.Until.After(now) {
			over = append(over, key)
		}
		if seen++; seen == 20*sweepAtOnce || len(over) == sweepAtOnce {
			break
		}
	}
	for _, key := range over {
		if err := windowsBucket.Delete(tx, key); err != nil {
			return err
		}
	}
	return nil
}

func overLimit(c *tool.Call, l *Limit, wait time.Duration) *tool.Error {
	seconds := math.Max(math.Ceil(wait.Seconds()*10)/10, 0.1)
	whom, what := "", c.Name
	if l.PerSession {
		whom = " in one session"
	}
	if l.Tools != c.Name {
		what = fmt.Sprintf("%s (by the limit for %q)", c.Name, l.Tools)
	}
	return tool.Errorf(tool.CodeRateLimited, "%s may be called %d times in %v%s; wait %v seconds", what, l.Calls, l.Window, whom, seconds).
		With(map[string]any{"wait_seconds": seconds, "calls": l.Calls, "window_seconds": l.Window.Seconds(), "limit": l.Tools}).Retry()
}
