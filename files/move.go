package files

import (
	"context"
	"strings"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// Moved tells what was moved.
type Moved struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Replaced bool   `json:"replaced,omitempty" jsonschema:"a file at the new place was replaced"`
}

// Move moves a file or folder to a new name. The folders that it needs are
// made. A file at the new place is replaced only if overwrite; a folder never.
func (f *Folder) Move(ctx context.Context, from, to string, overwrite bool) (Moved, error) {
	src, err := f.Resolve(from, root.ToDelete)
	switch {
	case err != nil:
		return Moved{}, err
	case src.Rel == "." || src.Rel == f.Base:
		return Moved{}, tool.Errorf(tool.CodePermission, "%s is the folder itself in which all files lie; it is never moved", f.Show(src.Rel))
	case !src.Exists:
		return Moved{}, f.Missing(ctx, src)
	}
	dst, err := f.Resolve(to, root.ToWrite)
	if err != nil {
		return Moved{}, err
	}
	if err := f.mayMove(ctx, src, dst, overwrite); err != nil {
		return Moved{}, err
	}
	if err := f.parent(dst, true); err != nil {
		return Moved{}, err
	}
	if err := f.Root.Rename(src, dst); err != nil {
		return Moved{}, err
	}
	return Moved{f.Show(src.Rel), f.Show(dst.Rel), dst.Exists}, nil
}

// mayMove refuses a move that cannot be meant, or that would put anything where
// nothing may be written.
func (f *Folder) mayMove(ctx context.Context, src, dst root.Path, overwrite bool) error {
	switch {
	case src.Rel == dst.Rel:
		return tool.Errorf(tool.CodeValidation, "/to: %s is where it is already", f.Show(dst.Rel))
	case strings.HasPrefix(dst.Rel, src.Rel+"/"):
		return tool.Errorf(tool.CodeValidation, "/to: %s lies inside of %s, which cannot be moved into itself", f.Show(dst.Rel), f.Show(src.Rel))
	case dst.Exists && dst.Mode.IsDir():
		return tool.Errorf(tool.CodeRuntime, "%s is a folder that exists; name the new place itself, such as %s", f.Show(dst.Rel), f.Show(prefix(dst.Rel)+lastOf(src.Rel)))
	case dst.Exists && src.Mode.IsDir():
		return tool.Errorf(tool.CodeRuntime, "%s is a file, and a folder cannot take its place; choose another name", f.Show(dst.Rel))
	case dst.Exists && !overwrite:
		return tool.Errorf(tool.CodeRuntime, "%s exists already; choose another name, or set overwrite to true to replace it", f.Show(dst.Rel))
	case !src.Mode.IsDir():
		return nil
	}
	return f.Beneath(ctx, src, func(e root.Entry) error {
		if f.Accept != nil {
			if err := f.Accept(e.Rel, root.ToDelete, e.Mode.IsDir()); err != nil {
				return err
			}
		}
		_, err := f.Root.Resolve(dst.Rel+strings.TrimPrefix(e.Rel, src.Rel), root.ToWrite)
		if err == nil && f.Accept != nil {
			err = f.Accept(dst.Rel+strings.TrimPrefix(e.Rel, src.Rel), root.ToWrite, e.Mode.IsDir())
		}
		return err
	})
}

func lastOf(rel string) string { return rel[strings.LastIndexByte(rel, '/')+1:] }
