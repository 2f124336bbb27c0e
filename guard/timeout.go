package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// DefaultTimeout is how long a call of a tool that states no timeout may take.
const DefaultTimeout = 60 * time.Second

// Timeout returns the stage that gives up on calls that take longer than the
// tool allows, or than d (zero: DefaultTimeout) where the tool does not say.
// It returns when the time is over even if the tool does not.
func Timeout(d time.Duration) pipeline.Stage {
	if d == 0 {
		d = DefaultTimeout
	}
	return pipeline.Stage{
		Name: "timeout", Doc: "give up on calls that take too long",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				limit := d
				if c.Tool != nil && c.Tool.Timeout > 0 {
					limit = c.Tool.Timeout
				}
				ctx, cancel := within(ctx, c, limit)
				defer cancel()
				if c.Tool != nil && c.Tool.HeedsContext {
					return settle(ctx, c, limit)(next(ctx, c))
				}
				return await(ctx, c, next, limit)
			}
		},
	}
}

// within bounds a call. The time of a tool that makes calls stands still while
// one of these waits for an approval.
func within(ctx context.Context, c *tool.Call, limit time.Duration) (context.Context, context.CancelFunc) {
	if c.Tool == nil || c.Tool.Targets == nil {
		return context.WithTimeoutCause(ctx, limit, errTooLong)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	k := &clock{outer: clockOf(ctx), left: limit, began: time.Now()}
	k.timer = time.AfterFunc(limit, func() { cancel(errTooLong) })
	return context.WithValue(ctx, clockKey{}, k), func() {
		k.timer.Stop()
		cancel(nil)
	}
}

// A clock is the time that is left to a call.
type clock struct {
	outer *clock // of the call that makes this one

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // when it last began
	began time.Time
	held  int // by how many
}

type clockKey struct{}

func clockOf(ctx context.Context) *clock {
	k, _ := ctx.Value(clockKey{}).(*clock)
	return k
}

// hold stops the clocks of the calls that wait for this one, until release.
func hold(ctx context.Context) (release func()) {
	var all []*clock
	for k := clockOf(ctx); k != nil; k = k.outer {
		k.stop()
		all = append(all, k)
	}
	return func() {
		for _, k := range all {
			k.goOn()
		}
	}
}

func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held++; k.held == 1 && k.timer.Stop() {
		k.left -= time.Since(k.began)
	}
}

func (k *clock) goOn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held--; k.held == 0 {
		k.began = time.Now()
		k.timer.Reset(max(k.left, 0))
	}
}

var errTooLong = errors.New("the tool's time is over")

// settle turns the failure of a call whose time is over into a timeout.
func settle(ctx context.Context, c *tool.Call, limit time.Duration) func(*tool.Result, error) (*tool.Result, error) {
	return func(res *tool.Result, err error) (*tool.Result, error) {
		if res != nil && res.Err != nil && errors.Is(context.Cause(ctx), errTooLong) {
			return nil, tooLong(c, limit)
		}
		return res, err
	}
}

// await runs next in a goroutine of its own, so that a handler that does not
// heed its context cannot hold up the caller; its late result is dropped.
func await(ctx context.Context, c *tool.Call, next tool.Handler, limit time.Duration) (*tool.Result, error) {
	type answer struct {
		res *tool.Result
		err error
	}
	done := make(chan answer, 1)
	own := *c
	go func() {
		res, err := next(ctx, &own)
		done <- answer{res, err}
	}()
	select {
	case a := <-done:
		return settle(ctx, c, limit)(a.res, a.err)
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errTooLong) {
			return nil, tooLong(c, limit)
		}
		return nil, tool.Errorf(tool.CodeCancelled, "the call was cancelled: %v", context.Cause(ctx))
	}
}

func tooLong(c *tool.Call, limit time.Duration) *tool.Error {
	return tool.Errorf(tool.CodeTimeout, "%s took longer than %v and was given up; whether it had an effect is unknown", c.Name, limit).Retry()
}
