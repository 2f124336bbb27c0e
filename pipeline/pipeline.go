// Package pipeline carries calls to tools through a chain of named stages, and their results back.
package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/helve-ai/helve/tool"
)

// A Stage intercepts calls on their way to a tool, and results on their way back.
//
// The handler that Wrap is given never panics and never fails: it returns a
// Result, with Err set if the call was refused or failed. The handler that Wrap
// returns may return an error instead of a Result; it is turned into one.
type Stage struct {
	Name string // as it appears in configuration, audits and refusals
	Doc  string // one sentence

	// Judges says that on the way in the stage decides from the call alone and
	// changes nothing in the world, so that explanations go through it too.
	Judges bool
	Wrap   func(next tool.Handler) tool.Handler
}

// An Executor runs calls. It is safe for concurrent use.
type Executor struct {
	tools *tool.Registry
	run   tool.Handler
	judge tool.Handler
}

// New returns an Executor that runs the tools of reg through stages, first to last.
//
// Without stages it resolves names and validates arguments, and no more.
func New(reg *tool.Registry, stages ...Stage) *Executor {
	e := &Executor{tools: reg}
	e.run = wrap(stages, e.serve)
	judges := slices.DeleteFunc(slices.Clone(stages), func(s Stage) bool { return !s.Judges })
	e.judge = wrap(judges, e.pass)
	return e
}

func wrap(stages []Stage, last tool.Handler) tool.Handler {
	run := contain(last)
	for _, s := range slices.Backward(stages) {
		run = contain(s.Wrap(run))
	}
	return run
}

// contain makes a handler keep the promises that Stage makes.
func contain(h tool.Handler) tool.Handler {
	return func(ctx context.Context, c *tool.Call) (res *tool.Result, _ error) {
		defer func() {
			if v := recover(); v != nil {
				slog.Error("panic in a tool call", "tool", c.Name, "call", c.ID, "panic", v, "stack", string(debug.Stack()))
				res = tool.Fail(tool.Errorf(tool.CodeRuntime, "tool %s failed unexpectedly; the operator's log has the details", c.Name))
			}
		}()
		res, err := h(ctx, c)
		switch {
		case err != nil:
			return tool.Fail(tool.AsError(err)), nil
		case res == nil:
			return tool.Fail(tool.Errorf(tool.CodeRuntime, "tool %s returned neither a result nor an error", c.Name)), nil
		}
		return res, nil
	}
}

// Do runs call, which stays the caller's own. It never panics. A caller that
// gives the call a Trail finds there what the stages decided, and in Tool what
// the name meant; nothing that it puts there is read.
//
// Refusals, bad arguments and failures of tools are Results, for the model to
// read. Do returns an error only if ctx ended before the call did. Progress is
// shown by one goroutine at a time, and not after Do has returned.
func (e *Executor) Do(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	c := prepare(call)
	if call.Progress != nil {
		var end func()
		c.Progress, end = until(call.Progress)
		defer end()
	}
	res, _ := e.run(ctx, c)
	if call.Trail != nil {
		*call.Trail, call.Tool = *c.Trail, c.Tool
	}
	if ctx.Err() != nil && res.Err != nil {
		return nil, context.Cause(ctx)
	}
	return res, nil
}

// until returns show as a function that does nothing after end was called. It
// is called by one goroutine at a time, and never when end has returned.
func until(show func(tool.Content)) (progress func(tool.Content), end func()) {
	var mu sync.Mutex
	over := false
	return func(c tool.Content) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				show(c)
			}
		}, func() {
			mu.Lock()
			defer mu.Unlock()
			over = true
		}
}

func prepare(call *tool.Call) *tool.Call {
	c := *call
	c.Trail = &tool.Trail{Decision: tool.Allow}
	if c.ID == "" {
		c.ID = rand.Text()[:16]
	}
	if c.Progress == nil {
		c.Progress = func(tool.Content) {}
	}
	if len(c.Args) == 0 || string(c.Args) == "null" { // clients write no arguments in either way
		c.Args = json.RawMessage("{}")
	}
	return &c
}

// serve is the end of the chain: the tool itself.
func (e *Executor) serve(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	if err := e.settle(c); err != nil {
		return nil, err
	}
	return c.Tool.Handle(ctx, c)
}

// pass is the end of the chain of an explanation.
func (e *Executor) pass(_ context.Context, c *tool.Call) (*tool.Result, error) {
	return &tool.Result{}, e.settle(c)
}

// settle makes sure that the call names a tool and that its arguments suit it,
// whichever stages there were. Arguments that changed after they were judged
// are refused.
func (e *Executor) settle(c *tool.Call) error {
	if c.Tool == nil {
		t, err := e.tools.Set().Resolve(c.Name, nil)
		if err != nil {
			return err
		}
		c.Tool = t
	}
	if judged := c.Trail.Judged; judged != nil {
		if !same(judged, c.Args) {
			return tool.Errorf(tool.CodeRuntime, "the arguments of %s changed after they had been judged", c.Tool.Name)
		}
		return nil
	}
	if problems := c.Tool.Input.Validate(c.Args); len(problems) > 0 {
		return tool.Invalid(c.Tool, problems)
	}
	return nil
}

func same(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// An Explanation is what would become of a call, and why.
type Explanation struct {
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"` // as they would run
	Decision string          `json:"decision"`
	Stage    string          `json:"stage"`
	Reason   string          `json:"reason"`
	Error    *tool.Error     `json:"error,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
	Targets  []Explanation   `json:"targets,omitempty"` // the calls that the call would make

	verdict tool.Verdict
}

// maxDepth bounds how deep an explanation follows calls that make calls.
const maxDepth = 8

// Explain says what Do would decide of call, without running it. A call that
// makes further calls is judged on those too: the most severe verdict wins.
func (e *Executor) Explain(ctx context.Context, call *tool.Call) Explanation {
	c := prepare(call)
	res, _ := e.judge(ctx, c)
	x := Explanation{Tool: c.Name, Args: c.Args, Stage: c.Trail.Stage, Reason: c.Trail.Reason,
		Error: res.Err, Notes: c.Trail.Coercions, verdict: c.Trail.Decision}
	if c.Tool != nil {
		x.Tool = c.Tool.Name
	}
	if res.Err != nil && x.verdict != tool.Deny {
		x.verdict, x.Reason = tool.Deny, res.Err.Message
	}
	if res.Err == nil && c.Tool.Targets != nil {
		e.follow(ctx, c, &x)
	}
	x.Decision = x.verdict.String()
	return x
}

func (e *Executor) follow(ctx context.Context, c *tool.Call, x *Explanation) {
	if len(c.From.Via) >= maxDepth {
		x.verdict, x.Reason = tool.Deny, fmt.Sprintf("calls are nested more than %d deep", maxDepth)
		return
	}
	for _, t := range c.Tool.Targets(c.Args) {
		y := e.Explain(ctx, c.Child("", t.Name, t.Args))
		if y.verdict > x.verdict {
			x.verdict, x.Stage, x.Reason = y.verdict, y.Stage, fmt.Sprintf("%s: %s", y.Tool, y.Reason)
		}
		x.Targets = append(x.Targets, y)
	}
}
