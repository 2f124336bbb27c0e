package guard

import (
	"context"
	"errors"
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
				ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
				defer cancel()
				if c.Tool != nil && c.Tool.HeedsContext {
					return settle(ctx, c, limit)(next(ctx, c))
				}
				return await(ctx, c, next, limit)
			}
		},
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
