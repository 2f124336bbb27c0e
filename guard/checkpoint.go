package guard

import (
	"context"
	"errors"
	"slices"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Checkpoint returns the stage that saves the files which a call may change,
// before it runs (SPEC K1): those of its arguments that are written or deleted,
// by their roles, and those that the tool says it touches. A call whose files
// cannot be saved is refused. Reads pass. A nil keeper saves nothing.
func Checkpoint(k *checkpoint.Keeper, r *root.Root) pipeline.Stage {
	const name = "checkpoint"
	return pipeline.Stage{
		Name: name, Doc: "save the files that the call may change",
		Wrap: func(next tool.Handler) tool.Handler {
			if k == nil {
				return next
			}
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if c.From.Parent != "" && (c.Tool.Targets != nil || !c.Tool.IsRead()) {
					defer k.Relate(c)()
				}
				if c.Tool.IsRead() {
					return next(ctx, c)
				}
				p, err := begin(ctx, k, r, c)
				if err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				defer p.Done(ctx)
				res, failed := next(ctx, c)
				if p != nil && len(p.Notes) > 0 && res != nil {
					own := *res
					own.Notes = slices.Concat(p.Notes, res.Notes)
					res = &own
				}
				return res, failed
			}
		},
	}
}

func begin(ctx context.Context, k *checkpoint.Keeper, r *root.Root, c *tool.Call) (*checkpoint.Pending, *tool.Error) {
	targets, err := targetsOf(ctx, r, c)
	if err != nil {
		var known *tool.Error
		if errors.As(err, &known) {
			return nil, known
		}
		return nil, tool.Errorf(tool.CodeRuntime, "%s was not run because it cannot be told which files it may change: %v", c.Name, err)
	}
	p, err := k.Begin(ctx, c, targets)
	if err != nil {
		return nil, SaveError(c.Name, err)
	}
	return p, nil
}

// SaveError returns the error about a call that was not run because its files
// could not be saved before.
func SaveError(name string, err error) *tool.Error {
	var limit *checkpoint.LimitError
	if errors.As(err, &limit) {
		return tool.Errorf(tool.CodePermission, "%s was not run because its files cannot be saved first: %v; the operator raises the limit under runtime.checkpoints in the app file, or sets runtime.checkpoints.over_limit to run", name, err)
	}
	if e := (*root.Error)(nil); errors.As(err, &e) {
		return PathError("", err)
	}
	return tool.Errorf(tool.CodeRuntime, "%s was not run because its files could not be saved first: %v", name, err)
}

// targetsOf returns the places that a call may change.
func targetsOf(ctx context.Context, r *root.Root, c *tool.Call) ([]checkpoint.Target, error) {
	var targets []checkpoint.Target
	for _, v := range c.Trail.Values {
		if v.Role != schema.PathWrite && v.Role != schema.PathDelete {
			continue
		}
		if r == nil || !v.IsString {
			return nil, tool.Errorf(tool.CodePermission, "%s: it is no path that could be saved", v.Pointer)
		}
		p, err := r.Resolve(v.Text, access(v.Role))
		if err != nil {
			return nil, PathError(v.Pointer, err)
		}
		targets = append(targets, checkpoint.Target{Path: p.Rel, Tree: v.Role == schema.PathDelete})
	}
	if c.Tool.Touches == nil {
		return targets, nil
	}
	touched, err := c.Tool.Touches(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, abs := range touched {
		if r == nil {
			return nil, tool.Errorf(tool.CodePermission, "there is no root folder, so nothing may be written")
		}
		p, err := r.Place(abs, root.ToList)
		if err != nil {
			return nil, PathError("", err)
		}
		targets = append(targets, checkpoint.Target{Path: p.Rel, Tree: true})
	}
	return targets, nil
}
