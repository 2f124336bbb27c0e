package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/textedit"
)

// maxDiffed bounds the bytes of a file that is compared line by line.
const maxDiffed = 2 << 20

// Diff returns what a plan would change, as a unified diff of at most about
// most bytes: from what there is to what there was.
func (k *Keeper) Diff(ctx context.Context, p *Plan, most int) (string, error) {
	return k.diff(ctx, p.Changes, false, most)
}

// DiffSince returns what has changed since the states of a plan, as a unified
// diff of at most about most bytes: from what there was to what there is.
func (k *Keeper) DiffSince(ctx context.Context, p *Plan, most int) (string, error) {
	return k.diff(ctx, p.Changes, true, most)
}

func (k *Keeper) diff(ctx context.Context, changes []Change, forward bool, most int) (string, error) {
	var out strings.Builder
	for i, c := range changes {
		if out.Len() > most {
			fmt.Fprintf(&out, "[%d more files are left out]\n", len(changes)-i)
			break
		}
		old, new := version{c.Now, k.present(c.Path)}, version{c.Then, k.saved(ctx, c.Then)}
		if forward {
			old, new = new, old
		}
		text, err := diffOf(c.Path, old, new)
		if err != nil {
			return "", err
		}
		out.WriteString(textedit.Bound(text, max(most-out.Len(), 400)))
	}
	return out.String(), nil
}

// A version is one of the two sides of a diff.
type version struct {
	State
	open func() (io.ReadCloser, error)
}

func (k *Keeper) present(rel string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		return k.opts.Root.Open(root.Path{Rel: rel, Exists: true})
	}
}

func (k *Keeper) saved(ctx context.Context, s State) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if err := k.depot.open(ctx); err != nil {
			return nil, err
		}
		return k.depot.get(s.Digest)
	}
}

// Content returns what a saved file held, cut to most bytes.
func (k *Keeper) Content(ctx context.Context, s State, most int64) ([]byte, error) {
	if s.Kind != Regular {
		return nil, fmt.Errorf("there was %s", s)
	}
	r, err := k.saved(ctx, s)()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

// Text reports whether data is text that can be shown.
func Text(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// text returns what a version has in lines: the content of a file, the target
// of a link. It is not ok for what is binary or too large.
func (v version) text() (text string, ok bool, err error) {
	switch v.Kind {
	case Link:
		return v.Target, true, nil
	case Regular:
	default:
		return "", v.Kind != Unsaved, nil
	}
	if v.Size > maxDiffed {
		return "", false, nil
	}
	r, err := v.open()
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxDiffed+1))
	if err != nil || len(data) > maxDiffed || !Text(data) {
		return "", false, err
	}
	return string(data), true, nil
}

func (v version) mode() string {
	switch v.Kind {
	case Link:
		return "120000"
	case Folder:
		return fmt.Sprintf("040%03o", v.Mode&fs.ModePerm)
	}
	return fmt.Sprintf("100%03o", v.Mode&fs.ModePerm)
}

func (v version) name(side, rel string) string {
	if v.Kind == Absent || v.Kind == Folder {
		return "/dev/null"
	}
	return side + "/" + rel
}

// diffOf writes the difference of one path as git does.
func diffOf(rel string, old, new version) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "diff a/%s b/%s\n", rel, rel)
	switch {
	case old.Kind == Absent:
		fmt.Fprintf(&out, "new %s, mode %s\n", word(new.Kind), new.mode())
	case new.Kind == Absent:
		fmt.Fprintf(&out, "deleted %s, mode %s\n", word(old.Kind), old.mode())
	case old.mode() != new.mode():
		fmt.Fprintf(&out, "old mode %s\nnew mode %s\n", old.mode(), new.mode())
	}
	a, ok1, err := old.text()
	if err != nil {
		return "", err
	}
	b, ok2, err := new.text()
	if err != nil {
		return "", err
	}
	switch {
	case ok1 && ok2:
		out.WriteString(textedit.Diff(old.name("a", rel), new.name("b", rel), a, b))
	case old.Kind == Unsaved || new.Kind == Unsaved:
		fmt.Fprintf(&out, "What %s held was not saved\n", rel)
	case old.Digest != new.Digest:
		fmt.Fprintf(&out, "Binary or very large files differ: %d and %d bytes\n", old.Size, new.Size)
	}
	return out.String(), nil
}

func word(k Kind) string {
	if k == Unsaved {
		return string(Regular)
	}
	return string(k)
}
