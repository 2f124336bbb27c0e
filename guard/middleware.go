package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A Middleware works on calls that the guards have let pass, and on their
// results (SPEC X5). Each function may be nil. They may be called concurrently.
// Calls that only make further calls (execute_tool, run_parallel) pass by: it
// sees their targets.
//
// The call that they are given is a copy: what they do to it changes nothing.
// So a middleware can neither grant a call, nor change who makes it, nor what
// runs; only Rewrite can change arguments, before they are validated and judged.
// A panic is an error of that call.
type Middleware struct {
	Name   string
	Module string // only calls of this module's tools; "": of all

	// Rewrite returns the arguments to be used in place of the call's. Its
	// error refuses the call.
	Rewrite func(ctx context.Context, c *tool.Call) (json.RawMessage, error)

	// Pre may end the call before the tool runs: its error is the reason, an
	// *tool.Error keeps its code, any other is permission_denied.
	Pre func(ctx context.Context, c *tool.Call) error

	// Around runs the call by run, as often as it sees fit, and returns its
	// result or another. What costs money (SPEC M1) runs once at most.
	Around func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error)

	// Post may return another result. Its error is logged and the result stays
	// as it was; so it does if Post returns nil.
	Post func(ctx context.Context, c *tool.Call, res *tool.Result) (*tool.Result, error)
}

func (m *Middleware) covers(t *tool.Tool) bool {
	return t.Targets == nil && (m.Module == "" || m.Module == t.ModuleName())
}

// copyOf returns a copy of a call, of which nothing is shared that matters.
func copyOf(c *tool.Call) *tool.Call {
	d := *c
	d.Args = slices.Clone(c.Args)
	d.From.Via = slices.Clone(c.From.Via)
	trail := *c.Trail
	trail.Judged, trail.Values = nil, slices.Clone(trail.Values)
	d.Trail = &trail
	if c.Tool != nil {
		t := *c.Tool
		t.Handle, t.Targets = nil, nil
		d.Tool = &t
	}
	return &d
}

// Rewrite returns the stage in which those middlewares that change arguments
// do so, in order. It stands before validation: what is judged is what runs.
func Rewrite(all []Middleware) pipeline.Stage {
	const name = "rewrite"
	rewriters := slices.DeleteFunc(slices.Clone(all), func(m Middleware) bool { return m.Rewrite == nil })
	return pipeline.Stage{
		Name: name, Doc: "let middleware change arguments before they are judged", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			if len(rewriters) == 0 {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				for i := range rewriters {
					m := &rewriters[i]
					if !m.covers(c.Tool) {
						continue
					}
					args, err := m.Rewrite(ctx, copyOf(c))
					if err != nil {
						return nil, c.Trail.Deny(name, reasonOf(m.Name, err))
					}
					if !bytes.Equal(args, c.Args) {
						c.Args = slices.Clone(args) // which nobody else holds
					}
				}
				return next(ctx, c)
			}
		},
	}
}

// reasonOf returns why a middleware ended a call.
func reasonOf(name string, err error) *tool.Error {
	var e *tool.Error
	if errors.As(err, &e) {
		return e
	}
	return tool.Errorf(tool.CodePermission, "%s: %v", name, err)
}

// Around returns the stage in which middlewares work on calls and results; the
// first is the outermost. It stands behind all that judges. Changes are told
// of calls that may change something; they and the log may be nil.
func Around(all []Middleware, changes *Changes, log *slog.Logger) pipeline.Stage {
	const name = "middleware"
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	workers := slices.DeleteFunc(slices.Clone(all), func(m Middleware) bool { return m.Pre == nil && m.Around == nil && m.Post == nil })
	return pipeline.Stage{
		Name: name, Doc: "let middleware work on the call and its result",
		Wrap: func(next tool.Handler) tool.Handler {
			if len(workers) == 0 {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				var ran atomic.Bool
				run := func(ctx context.Context) *tool.Result {
					ran.Store(true)
					return changes.around(c.Tool, func() *tool.Result {
						res, _ := next(ctx, c)
						return res
					})
				}
				for i := range workers {
					if m := &workers[len(workers)-1-i]; m.covers(c.Tool) {
						run = m.wrap(c, run, log)
					}
				}
				res := run(ctx)
				if !ran.Load() && res != nil && res.Err != nil {
					c.Trail.Deny(name, res.Err)
				}
				return res, nil
			}
		},
	}
}

// wrap returns run with m around it.
func (m *Middleware) wrap(c *tool.Call, run func(context.Context) *tool.Result, log *slog.Logger) func(context.Context) *tool.Result {
	return func(ctx context.Context) *tool.Result {
		if m.Pre != nil {
			if err := m.Pre(ctx, copyOf(c)); err != nil {
				return tool.Fail(reasonOf(m.Name, err))
			}
		}
		var res *tool.Result
		if m.Around == nil {
			res = run(ctx)
		} else {
			var err error
			switch res, err = m.Around(ctx, copyOf(c), run); {
			case err != nil:
				return tool.Fail(tool.AsError(err))
			case res == nil:
				return tool.Fail(tool.Errorf(tool.CodeRuntime, "the middleware %s returned neither a result nor an error", m.Name))
			}
		}
		if m.Post != nil {
			res = m.after(ctx, c, res, log)
		}
		return res
	}
}

// after lets Post have its say. Whatever goes wrong in it, res stays as it was.
func (m *Middleware) after(ctx context.Context, c *tool.Call, res *tool.Result, log *slog.Logger) (out *tool.Result) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic in middleware; the result stays as it was", "middleware", m.Name, "tool", c.Name, "call", c.ID, "panic", v, "stack", string(debug.Stack()))
			out = res
		}
	}()
	other, err := m.Post(ctx, copyOf(c), copyResult(res))
	if err != nil {
		log.Warn("middleware failed after a call; its result stays as it was", "middleware", m.Name, "tool", c.Name, "call", c.ID, "error", err)
		return res
	}
	if other == nil {
		return res
	}
	return other
}

func copyResult(res *tool.Result) *tool.Result {
	r := *res
	r.Content = slices.Clone(res.Content)
	for i := range r.Content {
		r.Content[i].Data, r.Content[i].Raw = slices.Clone(r.Content[i].Data), slices.Clone(r.Content[i].Raw)
	}
	r.Structured, r.Meta, r.Notes = slices.Clone(res.Structured), slices.Clone(res.Meta), slices.Clone(res.Notes)
	if res.Err != nil {
		e := *res.Err
		e.Details = slices.Clone(e.Details)
		r.Err = &e
	}
	return &r
}

// A MiddlewareKind makes middleware of its name, as an app file declares it.
type MiddlewareKind struct {
	Name     string
	Doc      string         // one sentence
	Settings *schema.Schema // of what stands in the file

	build func(json.RawMessage, MiddlewareHost) (Middleware, error)
}

// A MiddlewareHost is what a middleware may use of the app.
type MiddlewareHost struct {
	Module   string // whose calls it will see; "": all
	Log      *slog.Logger
	Now      func() time.Time
	Redactor *Redactor
	Folder   string // where files of its own may be written
	Changes  *Changes
}

// NewMiddleware returns a MiddlewareKind. Its settings are a C, which starts
// as defaults; a key that C lacks is an error, and so is a C whose Validate
// method says so.
func NewMiddleware[C any](name, doc string, defaults C, build func(C, MiddlewareHost) (Middleware, error)) *MiddlewareKind {
	initial, err := json.Marshal(defaults)
	if err != nil {
		panic(fmt.Sprintf("middleware %s: %v", name, err))
	}
	return &MiddlewareKind{Name: name, Doc: doc, Settings: schema.For[C]().Optional(),
		build: func(raw json.RawMessage, host MiddlewareHost) (m Middleware, err error) {
			var c C
			for _, data := range [][]byte{initial, raw} {
				if err := strictly(data, &c); err != nil {
					return m, err
				}
			}
			if v, ok := any(c).(interface{ Validate() error }); ok {
				if err := v.Validate(); err != nil {
					return m, err
				}
			}
			if m, err = build(c, host); err != nil {
				return m, err
			}
			m.Name, m.Module = name, host.Module
			return m, nil
		}}
}

func strictly(data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Build makes middleware of this kind with settings in JSON; none mean the
// defaults. What the host leaves out is made up: nothing is logged.
func (k *MiddlewareKind) Build(settings json.RawMessage, host MiddlewareHost) (Middleware, error) {
	if host.Log == nil {
		host.Log = slog.New(slog.DiscardHandler)
	}
	if host.Now == nil {
		host.Now = time.Now
	}
	if host.Redactor == nil {
		host.Redactor = NewRedactor()
	}
	if host.Changes == nil {
		host.Changes = new(Changes)
	}
	m, err := k.build(settings, host)
	if err != nil {
		return m, fmt.Errorf("middleware %s: %w", k.Name, err)
	}
	return m, nil
}

// MiddlewareKinds returns the kinds that there are without anyone's doing.
func MiddlewareKinds() []*MiddlewareKind {
	return []*MiddlewareKind{auditSink(), cache(), circuitBreaker(), redaction(), retry(), timeLimit()}
}
