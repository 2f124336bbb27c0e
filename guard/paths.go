package guard

import (
	"context"
	"errors"

	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Paths returns the stage that refuses path arguments that lead out of the
// root, or to where the ignore rules forbid (SPEC A5). Paths are judged where
// they lead after symlinks are resolved. A nil root refuses every path. It
// stands behind Validate, which tells it what the paths are.
func Paths(r *root.Root) pipeline.Stage {
	const name = "paths"
	return pipeline.Stage{
		Name: name, Doc: "hold path arguments to the root and the ignore rules", Judges: true,
		Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				if err := checkPaths(r, c); err != nil {
					return nil, c.Trail.Deny(name, err)
				}
				return next(ctx, c)
			}
		},
	}
}

func checkPaths(r *root.Root, c *tool.Call) *tool.Error {
	for _, v := range c.Trail.Values {
		if !v.Role.IsPath() {
			continue
		}
		if !v.IsString {
			return tool.Errorf(tool.CodePermission, "%s: a path must be a string", v.Pointer)
		}
		if r == nil {
			return tool.Errorf(tool.CodePermission, "%s: there is no root folder, so no path may be used", v.Pointer)
		}
		if _, err := r.Resolve(v.Text, access(v.Role)); err != nil {
			return PathError(v.Pointer, err)
		}
	}
	return nil
}

func access(role schema.Role) root.Access {
	switch role {
	case schema.PathWrite:
		return root.ToWrite
	case schema.PathDelete:
		return root.ToDelete
	}
	return root.ToRead
}

// PathError returns the error that a model reads for a path that was refused;
// where says which argument it was, if not empty.
func PathError(where string, err error) *tool.Error {
	code := tool.CodePermission
	var e *root.Error
	if errors.As(err, &e) && (e.Code == root.Blocked || e.Code == root.Protected) {
		code = tool.CodeIgnoredPath
	}
	if where != "" {
		where += ": "
	}
	return tool.Errorf(code, "%s%v", where, err)
}
