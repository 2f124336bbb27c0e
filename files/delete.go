package files

import (
	"context"
	"io/fs"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// Deleted tells what was deleted.
type Deleted struct {
	Path    string `json:"path"`
	Kind    string `json:"kind" enum:"file,folder,link"`
	Entries int    `json:"entries,omitempty" jsonschema:"how many files and folders went with it"`
}

// Delete removes a file, a link (not what it leads to) or a folder; one that
// holds anything only if recursive.
func (f *Folder) Delete(ctx context.Context, name string, recursive bool) (Deleted, error) {
	p, err := f.Resolve(name, root.ToDelete)
	switch {
	case err != nil:
		return Deleted{}, err
	case p.Rel == "." || p.Rel == f.Base:
		return Deleted{}, tool.Errorf(tool.CodePermission, "%s is the folder itself in which all files lie; it is never deleted", f.Show(p.Rel))
	case !p.Exists:
		return Deleted{}, f.Missing(ctx, p)
	}
	defer lock(p)()
	out := Deleted{Path: f.Show(p.Rel), Kind: "file"}
	switch {
	case p.Mode&fs.ModeSymlink != 0:
		out.Kind = "link"
	case p.Mode.IsDir():
		out.Kind = "folder"
		if out.Entries, err = f.deletable(ctx, p); err != nil {
			return Deleted{}, err
		}
		if out.Entries > 0 && !recursive {
			return Deleted{}, tool.Errorf(tool.CodeRuntime, "%s is a folder that is not empty: it holds %s; set recursive to true to delete it with all of them",
				out.Path, count(out.Entries, "entry", "entries"))
		}
	}
	if recursive {
		return out, f.Root.RemoveAll(p)
	}
	return out, f.Root.Remove(p)
}

// deletable counts what lies in a folder, and refuses if any of it may not be deleted.
func (f *Folder) deletable(ctx context.Context, p root.Path) (n int, err error) {
	err = f.Beneath(ctx, p, func(e root.Entry) error {
		n++
		if f.Accept == nil {
			return nil
		}
		return f.Accept(e.Rel, root.ToDelete, e.Mode.IsDir())
	})
	return n, err
}
