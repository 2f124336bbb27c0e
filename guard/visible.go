package guard

import (
	"context"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Visible returns the stage that refuses tools that the caller may not know of.
func Visible(visible Visibility) pipeline.Stage {
	const name = "visible"
	return pipeline.Stage{
		Name: name, Doc: "refuse tools that the caller may not know of", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if visible != nil && !visible(c.From, c.Tool) {
					return nil, c.Trail.Deny(name, tool.Errorf(tool.CodeNotVisible, "the tool %q is not available to this caller", c.Name))
				}
				return next(ctx, c)
			}
		},
	}
}
