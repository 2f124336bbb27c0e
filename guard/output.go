package guard

import (
	"context"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Output returns the stage that checks structured results against the schema
// that the tool declares. A result that does not conform keeps its text, loses
// its structure, and says so in a note.
func Output() pipeline.Stage {
	return pipeline.Stage{
		Name: "output", Doc: "validate structured results",
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				res, err := next(ctx, c)
				if err != nil || res.Err != nil || c.Tool == nil || c.Tool.Output == nil || res.Structured == nil {
					return res, err
				}
				if problems := c.Tool.Output.Validate(res.Structured); len(problems) > 0 {
					r := *res
					r.Structured = nil
					r.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)],
						"the structured result does not conform to the tool's output schema: "+problems[0].Pointer+" "+problems[0].Message)
					return &r, nil
				}
				return res, nil
			}
		},
	}
}
