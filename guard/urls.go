package guard

import (
	"context"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// URLs returns the stage that refuses URL arguments that are not absolute http
// or https URLs of public hosts (SPEC S5). What a name resolves to is checked
// again when it is dialled.
func URLs(p egress.Policy) pipeline.Stage {
	const name = "urls"
	return pipeline.Stage{
		Name: name, Doc: "hold URL arguments to public hosts", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if err := checkURLs(p, c); err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				return next(ctx, c)
			}
		},
	}
}

func checkURLs(p egress.Policy, c *tool.Call) *tool.Error {
	for _, v := range c.Trail.Values {
		if v.Role != schema.URL {
			continue
		}
		if !v.IsString {
			return tool.Errorf(tool.CodePermission, "%s: a URL must be a string", v.Pointer)
		}
		if _, err := p.CheckURL(v.Text); err != nil {
			return tool.Errorf(tool.CodePermission, "%s: %v", v.Pointer, err)
		}
	}
	return nil
}
