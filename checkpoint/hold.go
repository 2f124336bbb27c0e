package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/tool"
)

// A Target is a place that a call may change.
type Target struct {
	Path string // from the root, resolved
	Tree bool   // with all that lies beneath
}

func (t Target) meets(u Target) bool {
	return t.Path == u.Path || t.Tree && within(u.Path, t.Path) || u.Tree && within(t.Path, u.Path)
}

// holds keep calls of this process that change the same files apart, from
// before their checkpoint until after they ran: the state before one is then
// the state after the other.
type holds struct {
	mu     sync.Mutex
	news   chan struct{} // closed and replaced when a call has ended
	held   []*hold
	family map[string]string // of calls under way that make calls: the call that made them
}

type hold struct {
	call    string
	targets []Target
}

// patience is how long a call waits for another one. Calls that wait for each
// other, which only nested ones can, end so.
const patience = 30 * time.Second

// take waits until no other call holds any of the targets. A call that was made
// by the holder does not wait for it.
func (h *holds) take(ctx context.Context, c *tool.Call, targets []Target) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		h.mu.Lock()
		other, path := h.conflict(c, targets)
		if other == "" {
			mine := &hold{c.ID, targets}
			h.held = append(h.held, mine)
			h.mu.Unlock()
			return func() { h.drop(mine) }, nil
		}
		news := h.news
		h.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("another call (%s) is changing %s; try again when it has ended: %w", other, path, ctx.Err())
		}
	}
}

func (h *holds) conflict(c *tool.Call, targets []Target) (call, path string) {
	for _, other := range h.held {
		if h.descends(c, other.call) {
			continue
		}
		for _, t := range targets {
			if slices.ContainsFunc(other.targets, t.meets) {
				return other.call, t.Path
			}
		}
	}
	return "", ""
}

// descends reports whether c was made by the call of that id, by way of others perhaps.
func (h *holds) descends(c *tool.Call, id string) bool {
	for at, n := c.From.Parent, 0; at != "" && n < 100; at, n = h.family[at], n+1 {
		if at == id {
			return true
		}
	}
	return false
}

func (h *holds) drop(mine *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = slices.DeleteFunc(h.held, func(o *hold) bool { return o == mine })
	close(h.news)
	h.news = make(chan struct{})
}

// Relate notes, until end is called, that a call which makes further calls was
// made by another, so that those do not wait for the other's files.
func (k *Keeper) Relate(c *tool.Call) (end func()) {
	h := &k.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.family == nil {
		h.family = map[string]string{}
	}
	h.family[c.ID] = c.From.Parent
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.family, c.ID)
	}
}
