package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// A Glob says which names are looked for.
type Glob struct {
	Pattern string // as doublestar reads it: *, **, ?, [class], {alternatives}
	Path    string // the folder from which it counts; "": "."
	Limit   int    // zero: as many as the Folder allows
}

// Globbed is what a Glob found.
type Globbed struct {
	Paths  []string // sorted; folders end in a slash
	Total  int      // with those beyond the limit
	Capped bool     // there are so many entries that not all were looked at

	pattern string
}

// Glob returns the paths that match a pattern. It follows no links.
func (f *Folder) Glob(ctx context.Context, in Glob) (Globbed, error) {
	p, err := f.Dir(ctx, in.Path)
	if err != nil {
		return Globbed{}, err
	}
	pattern, onlyDirs, err := checkGlob("/pattern", in.Pattern)
	if err != nil {
		return Globbed{}, err
	}
	start, opts := f.globStart(p, pattern)
	if start == "" {
		return Globbed{pattern: pattern}, nil
	}
	g := Globbed{pattern: pattern}
	base := prefix(p.Rel)
	err = f.Root.Walk(ctx, start, opts, func(e root.Entry) error {
		switch {
		case !f.accepts(e):
			return skip(e)
		case e.Err != nil || onlyDirs && !e.Mode.IsDir() || !doublestar.MatchUnvalidated(pattern, strings.TrimPrefix(e.Rel, base)):
			return nil
		}
		name := f.Show(e.Rel)
		if e.Mode.IsDir() {
			name += "/"
		}
		g.Paths = append(g.Paths, name)
		return nil
	})
	if errors.Is(err, root.ErrTooMany) {
		g.Capped, err = true, nil
	}
	slices.Sort(g.Paths)
	g.Total = len(g.Paths)
	g.Paths = g.Paths[:min(g.Total, f.limit(in.Limit))]
	return g, err
}

// checkGlob returns a pattern as it is matched, and whether it asks for folders.
func checkGlob(where, pattern string) (clean string, onlyDirs bool, err error) {
	for strings.HasPrefix(pattern, "./") {
		pattern = pattern[2:]
	}
	clean = strings.TrimRight(pattern, "/")
	switch {
	case strings.HasPrefix(pattern, "/"):
		return "", false, tool.Errorf(tool.CodeValidation, "%s: %q is absolute; a pattern counts from path, as in src/**/*.go", where, pattern)
	case clean == "" || !doublestar.ValidatePattern(clean):
		return "", false, tool.Errorf(tool.CodeValidation, "%s: %q is not a pattern; * stands for any part of a name, ** for any folders, as in src/**/*.{go,md}", where, pattern)
	case slices.Contains(strings.Split(clean, "/"), ".."):
		return "", false, tool.Errorf(tool.CodeValidation, "%s: %q goes up with \"..\"; state the folder in path instead", where, pattern)
	}
	return clean, clean != pattern, nil
}

// globStart returns the folder below p in which every match lies, and how deep;
// "" if it does not exist or may not be seen.
func (f *Folder) globStart(p root.Path, pattern string) (string, root.WalkOptions) {
	fixed, rest := doublestar.SplitPattern(pattern)
	opts := root.WalkOptions{Limit: walkLimit}
	if !strings.Contains(rest, "**") && !strings.ContainsAny(rest, "{\\") {
		opts.Depth = 1 + strings.Count(rest, "/")
	}
	if fixed == "." {
		return p.Rel, opts
	}
	at := path.Join(p.Rel, fixed)
	d, err := f.Root.Resolve(at, root.ToList)
	if err != nil || d.Rel != at || !d.Exists || !d.Mode.IsDir() {
		return "", opts // a link on the way: what it leads to is found at its own place
	}
	return at, opts
}

// each visits the files beneath p, or p itself.
func (f *Folder) each(ctx context.Context, p root.Path, visit func(rel string, size int64) error) error {
	if !p.Mode.IsDir() {
		info, err := f.Root.Stat(p)
		if err != nil {
			return err
		}
		return visit(p.Rel, info.Size)
	}
	return f.Root.Walk(ctx, p.Rel, root.WalkOptions{Limit: walkLimit, Stat: true}, func(e root.Entry) error {
		switch {
		case !f.accepts(e):
			return skip(e)
		case !e.Mode.IsRegular() || e.Err != nil:
			return nil
		}
		return visit(e.Rel, e.Size)
	})
}

// Beneath visits everything in the folder p, links included, that may be seen.
func (f *Folder) Beneath(ctx context.Context, p root.Path, visit func(root.Entry) error) error {
	err := f.Root.Walk(ctx, p.Rel, root.WalkOptions{Limit: walkLimit}, func(e root.Entry) error {
		if e.Err != nil {
			return e.Err
		}
		return visit(e)
	})
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return f.tooMany(p, err)
}

// String is the paths, one to a line, and how many there are.
func (g Globbed) String() string {
	var b strings.Builder
	for _, p := range g.Paths {
		b.WriteString(p + "\n")
	}
	b.WriteString("[" + count(g.Total, "path matches", "paths match"))
	if left := g.Total - len(g.Paths); left > 0 {
		fmt.Fprintf(&b, "; %d of them are not shown: narrow the pattern, or raise limit", left)
	}
	if g.Capped {
		fmt.Fprintf(&b, "; only the first %d entries were looked at: name a smaller folder", walkLimit)
	}
	if g.Total == 0 && !strings.Contains(g.pattern, "/") && !strings.Contains(g.pattern, "**") {
		fmt.Fprintf(&b, "; %s looks only in the folder itself: write **/%s to look beneath it, too", g.pattern, g.pattern)
	}
	return b.String() + "]"
}
