package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// A List says which folder is to be listed, and how far.
type List struct {
	Path   string // "": "."
	Depth  int    // levels; zero: 1
	Hidden bool   // show names that begin with a dot
	Limit  int    // entries; zero: as many as the Folder allows
}

// A Listing is what a folder holds.
type Listing struct {
	Entries []Listed
	Total   int      // of the entries that would be shown without a limit
	Hidden  int      // entries left out because their names begin with a dot, without what lies beneath
	Unread  []string // folders that could not be read
}

// Listed is one entry of a Listing.
type Listed struct {
	Path  string // from the folder that was listed
	IsDir bool
	Size  int64  // of a file
	Link  string // for a link: where it leads
}

// walkLimit bounds the entries that one call looks at.
const walkLimit = 200_000

// List lists a folder, in the order of the names, each folder before its content.
func (f *Folder) List(ctx context.Context, in List) (Listing, error) {
	p, err := f.Dir(ctx, in.Path)
	if err != nil {
		return Listing{}, err
	}
	var l Listing
	limit := f.limit(in.Limit)
	opts := root.WalkOptions{Depth: max(in.Depth, 1), Limit: walkLimit, Stat: true}
	err = f.Root.Walk(ctx, p.Rel, opts, func(e root.Entry) error {
		rel := strings.TrimPrefix(e.Rel, prefix(p.Rel))
		switch {
		case !f.accepts(e):
			return skip(e)
		case e.Err != nil:
			l.Unread = append(l.Unread, rel)
			return nil
		case !in.Hidden && strings.HasPrefix(e.Name, "."):
			l.Hidden++
			return skip(e)
		}
		if l.Total++; l.Total <= limit {
			entry := Listed{Path: rel, IsDir: e.Mode.IsDir(), Size: e.Size}
			if e.Link != "" {
				entry.Link = f.Show(e.Link)
			}
			l.Entries = append(l.Entries, entry)
		}
		return nil
	})
	if err := f.tooMany(p, err); err != nil {
		return Listing{}, err
	}
	return l, nil
}

// skip leaves out an entry and, if it is a folder, what lies beneath.
func skip(e root.Entry) error {
	if e.Mode.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (f *Folder) tooMany(p root.Path, err error) error {
	if errors.Is(err, root.ErrTooMany) {
		return tool.Errorf(tool.CodeRuntime, "%s holds more than %d entries; name a smaller folder", f.Show(p.Rel), walkLimit)
	}
	return err
}

// Dir resolves a name that must be that of a folder which exists; "" is ".".
func (f *Folder) Dir(ctx context.Context, name string) (root.Path, error) {
	if name == "" {
		name = "."
	}
	p, err := f.Resolve(name, root.ToList)
	switch {
	case err != nil:
		return p, err
	case !p.Exists:
		return p, f.Missing(ctx, p)
	case !p.Mode.IsDir():
		return p, tool.Errorf(tool.CodeRuntime, "%s is a file, not a folder; read it instead", f.Show(p.Rel))
	}
	return p, nil
}

// String is the edit's answer: what was done, the new digest and the diff.
func (e Edited) String() string {
	return fmt.Sprintf("%s: %s replaced, sha256 %s\n%s", e.Path, plural(e.Replaced, "passage"), e.SHA256, e.Diff)
}
