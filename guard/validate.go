package guard

import (
	"context"
	"strings"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Validate returns the stage that makes arguments fit the tool's schema where
// that is safe, and refuses those that do not (SPEC X3). Each change is a note
// of the result. No stage after it may change the arguments.
func Validate() pipeline.Stage {
	const name = "validate"
	return pipeline.Stage{
		Name: name, Doc: "coerce and validate arguments", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				problems := c.Tool.Input.Validate(c.Args)
				if len(problems) > 0 {
					args, notes := c.Tool.Input.Coerce(c.Args)
					if len(notes) > 0 {
						c.Args, c.Trail.Coercions = args, notes
						problems = c.Tool.Input.Validate(args)
					}
				}
				if len(problems) > 0 {
					err := c.Trail.Deny(name, tool.Invalid(c.Tool, problems))
					c.Trail.Reason = brief(problems) // the caller reads the schema, the record need not
					return nil, err
				}
				if c.Tool.Input.HasRoles() {
					values, err := c.Tool.Input.Values(c.Args)
					if err != nil {
						return nil, c.Trail.Deny(name, tool.Errorf(tool.CodePermission, "the roles of the arguments cannot be told: %v", err))
					}
					c.Trail.Values = values
				}
				c.Trail.Judged = c.Args
				res, err := next(ctx, c)
				if len(c.Trail.Coercions) > 0 && res != nil {
					r := *res
					r.Notes = append(append([]string(nil), c.Trail.Coercions...), r.Notes...)
					res = &r
				}
				return res, err
			}
		},
	}
}

// brief says what is wrong with arguments, in a line.
func brief(problems []schema.Problem) string {
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = strings.TrimSpace(p.Pointer + " " + p.Message)
	}
	return "the arguments are not right: " + strings.Join(parts, "; ")
}
