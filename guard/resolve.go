package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// maxNesting bounds how deep calls may be made by calls.
const maxNesting = 8

// Resolve returns the stage that finds the tool that a call names (SPEC T4).
// Names in errors are only of tools that the caller may know of.
func Resolve(reg *tool.Registry, visible Visibility, suggest Suggest, missing Missing) pipeline.Stage {
	const name = "resolve"
	return pipeline.Stage{
		Name: name, Doc: "find the tool that the call names", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if len(c.From.Via) >= maxNesting {
					return nil, c.Trail.Deny(name, tool.Errorf(tool.CodePermission,
						"calls are nested %d deep (%s); at most %d are allowed", len(c.From.Via)+1, strings.Join(c.From.Via, " → "), maxNesting))
				}
				t, err := reg.Set().Resolve(c.Name, visible.to(c.From))
				if err != nil {
					if missing != nil {
						if why := missing(c.From, c.Name); why != nil {
							return nil, c.Trail.Deny(name, why)
						}
					}
					return nil, c.Trail.Deny(name, withSuggestions(ctx, c, err, suggest))
				}
				c.Tool, c.Name = t, t.Name
				return next(ctx, c)
			}
		},
	}
}

// withSuggestions adds what suggest finds to an error that has no near names of its own.
func withSuggestions(ctx context.Context, c *tool.Call, err error, suggest Suggest) *tool.Error {
	var e *tool.Error
	if !errors.As(err, &e) {
		return tool.AsError(err)
	}
	if e.Details != nil || suggest == nil {
		return e
	}
	names := suggest(ctx, c.From, c.Name)
	if len(names) == 0 {
		return e
	}
	names = names[:min(len(names), 5)]
	return tool.Errorf(e.Code, "no tool is named %q; tools that may do it: %s", c.Name, strings.Join(names, ", ")).
		With(map[string][]string{"suggestions": slices.Clip(names)})
}

// to returns the tools that a caller may see as a predicate; nil means all.
func (v Visibility) to(from tool.Origin) func(*tool.Tool) bool {
	if v == nil {
		return nil
	}
	return func(t *tool.Tool) bool { return v(from, t) }
}
