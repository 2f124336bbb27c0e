package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/textedit"
)

// The bounds of a preview.
const (
	maxPreview   = 16 << 10 // bytes of the diff
	maxCompared  = 2 << 20  // bytes of a file that is compared
	maxPreviewed = 100      // entries of a folder
)

// PreviewWrite returns what Write would change, as a unified diff.
func (f *Folder) PreviewWrite(ctx context.Context, in Write) (string, error) {
	p, err := f.target(in.Path)
	if err != nil {
		return "", err
	}
	if err := f.expect(ctx, p, in.Expected); err != nil {
		return "", err
	}
	return f.compare(p, func([]byte) ([]byte, error) { return []byte(in.Content), nil })
}

// PreviewAppend returns what Append would change, as a unified diff.
func (f *Folder) PreviewAppend(_ context.Context, name, content string) (string, error) {
	p, err := f.target(name)
	if err != nil {
		return "", err
	}
	return f.compare(p, func(old []byte) ([]byte, error) { return f.appended(p, old, content) })
}

// PreviewEdit returns what Edit would change, as a unified diff.
func (f *Folder) PreviewEdit(ctx context.Context, in Edit) (string, error) {
	p, err := f.File(ctx, in.Path, root.ToWrite)
	if err != nil {
		return "", err
	}
	e, err := f.edited(p, in)
	if err != nil {
		return "", err
	}
	return textedit.Bound(e.diff(f.Show(p.Rel)), maxPreview), nil
}

// PreviewDelete returns what Delete would remove, as a unified diff; of a
// folder, the names of what it holds.
func (f *Folder) PreviewDelete(ctx context.Context, name string) (string, error) {
	p, err := f.Resolve(name, root.ToDelete)
	switch {
	case err != nil:
		return "", err
	case !p.Exists:
		return "", f.Missing(ctx, p)
	}
	return f.gone(ctx, p)
}

// PreviewMove returns what Move would change, as git shows a renaming.
func (f *Folder) PreviewMove(ctx context.Context, from, to string) (string, error) {
	src, err := f.Resolve(from, root.ToDelete)
	if err != nil {
		return "", err
	}
	dst, err := f.Resolve(to, root.ToWrite)
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("rename from %s\nrename to %s\n", f.Show(src.Rel), f.Show(dst.Rel))
	if !dst.Exists {
		return out, nil
	}
	lost, err := f.gone(ctx, dst)
	return out + lost, err
}

// compare returns the difference between a file and what change makes of its content.
func (f *Folder) compare(p root.Path, change func(old []byte) ([]byte, error)) (string, error) {
	name := f.Show(p.Rel)
	oldName := "/dev/null"
	var old []byte
	if p.Exists {
		oldName = "a/" + name
		info, err := f.Root.Stat(p)
		if err != nil {
			return "", err
		}
		if info.Size > maxCompared {
			return fmt.Sprintf("%s has %d bytes, too many to be compared\n", name, info.Size), nil
		}
		if old, err = f.Root.ReadFile(p, maxCompared); err != nil {
			return "", err
		}
	}
	data, err := change(old)
	if err != nil {
		return "", err
	}
	before, _, ok := Decode(old)
	after, _, also := Decode(data)
	if len(old) > 0 && !ok || !also {
		return fmt.Sprintf("%s is binary: its %d bytes become %d\n", name, len(old), len(data)), nil
	}
	return textedit.Bound(textedit.Diff(oldName, "b/"+name, before, after), maxPreview), nil
}

// gone returns the removal of what stands at p.
func (f *Folder) gone(ctx context.Context, p root.Path) (string, error) {
	name := f.Show(p.Rel)
	switch {
	case p.Mode&fs.ModeSymlink != 0:
		return fmt.Sprintf("deleted link %s\n", name), nil
	case p.Mode.IsDir():
		return f.goneFolder(ctx, p)
	}
	info, err := f.Root.Stat(p)
	if err != nil {
		return "", err
	}
	if info.Size > maxCompared {
		return fmt.Sprintf("deleted file %s (%d bytes)\n", name, info.Size), nil
	}
	old, err := f.Root.ReadFile(p, maxCompared)
	if err != nil {
		return "", err
	}
	text, _, ok := Decode(old)
	if !ok || text == "" {
		return fmt.Sprintf("deleted file %s (%d bytes)\n", name, info.Size), nil
	}
	return textedit.Bound(textedit.Diff("a/"+name, "/dev/null", text, ""), maxPreview), nil
}

func (f *Folder) goneFolder(ctx context.Context, p root.Path) (string, error) {
	var out strings.Builder
	n := 0
	fmt.Fprintf(&out, "deleted folder %s\n", f.Show(p.Rel))
	err := f.Beneath(ctx, p, func(e root.Entry) error {
		if n++; n <= maxPreviewed {
			fmt.Fprintf(&out, "deleted %s\n", f.Show(e.Rel))
		}
		return nil
	})
	if left := n - maxPreviewed; left > 0 {
		fmt.Fprintf(&out, "[and %d more]\n", left)
	}
	return out.String(), err
}
