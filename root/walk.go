package root

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// DefaultWalkLimit is the most entries that a walk visits when its options state no limit.
const DefaultWalkLimit = 1_000_000

// maxDepth bounds the depth of a walk, and so its open folders.
const maxDepth = 200

// WalkOptions bound a walk. The zero value visits everything down to 200 folders deep, up to DefaultWalkLimit.
type WalkOptions struct {
	Depth int  // 1: only the folder's own entries; 2: theirs as well; 0: all
	Limit int  // the most entries to visit; 0 is DefaultWalkLimit
	Stat  bool // fill in Size, ModTime, Stamp and the permission bits of Mode
	All   bool // visit what the rules hide, too, and links wherever they lead: for what saves and puts back whole trees
}

// Entry is one file, folder or link that a walk visits.
type Entry struct {
	Rel     string // from the root, separated by slashes
	Name    string // the last component of Rel
	Mode    fs.FileMode
	Depth   int    // 1 for the folder's own entries
	Link    string // for a link: the place in the root that it leads to
	Size    int64
	ModTime time.Time
	Stamp   Stamp
	Err     error // why the content of this folder is not visited; nil when it is
}

// Walk visits what is visible beneath rel, a folder as Resolve returns it, each folder before its content and in the
// order of the names. It never goes through a link, so that it ends whatever the links are; links that lead out of the
// root or to what is blocked are not visited. Blocked folders are not read. visit may return fs.SkipDir to leave a
// folder (or, for a file, the rest of its folder) and fs.SkipAll to end; any other error ends the walk and is returned.
// A folder that cannot be read is visited once more with Err set. A walk that meets more entries than its limit ends
// with an error that wraps [ErrTooMany].
func (r *Root) Walk(ctx context.Context, rel string, opts WalkOptions, visit func(Entry) error) error {
	rules := r.current()
	if rules.err != nil {
		return badRules(rel, rules.err)
	}
	start := clean(rel)
	if why := rules.blocked(start, true); why != "" {
		return refuse(rel, Blocked, "%s", why)
	}
	if opts.Limit <= 0 {
		opts.Limit = DefaultWalkLimit
	}
	if st, err := r.lstat(path.Join(".", start)); err == nil && !st.mode.IsDir() {
		return refuse(rel, Invalid, "it is %s, not a folder; name a folder", kind(st.mode))
	}
	v := visitor{root: r, rules: rules, ctx: ctx, opts: opts, visit: visit}
	if opts.All {
		v.rules = nil
	}
	return v.start(start)
}

// eachBeneath visits all that lies beneath rel, whatever the rules say.
func (r *Root) eachBeneath(ctx context.Context, rel string, visit func(Entry) error) error {
	v := visitor{root: r, ctx: ctx, opts: WalkOptions{Limit: maxDelete + 1}, visit: visit}
	return v.start(rel)
}

// visitor is one walk under way.
type visitor struct {
	root  *Root
	rules *rules // nil: everything is visited
	ctx   context.Context
	opts  WalkOptions
	visit func(Entry) error
	seen  int
}

func (v *visitor) start(rel string) error {
	d, err := v.root.openDir(rel)
	if err != nil {
		return err
	}
	defer d.close()
	err = v.folder(d, rel, 1)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// folder visits the entries of one open folder.
func (v *visitor) folder(d *dir, rel string, depth int) error {
	listed, err := d.list(v.opts.Limit + 1)
	if err != nil {
		if depth == 1 {
			return fmt.Errorf("path %q: %w", rel, err)
		}
		return v.visit(Entry{Rel: rel, Name: path.Base(rel), Mode: fs.ModeDir, Depth: depth - 1, Err: err})
	}
	slices.SortFunc(listed, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, item := range listed {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		entry, ok := v.entry(d, rel, item, depth)
		if !ok {
			continue
		}
		if v.seen++; v.seen > v.opts.Limit {
			return fmt.Errorf("path %q: %w: more than %d; walk a smaller folder", rel, ErrTooMany, v.opts.Limit)
		}
		if err := v.visit(entry); err != nil {
			if !errors.Is(err, fs.SkipDir) {
				return err
			}
			if entry.Mode.IsDir() {
				continue
			}
			return nil
		}
		if err := v.descend(d, entry); err != nil {
			return err
		}
	}
	return nil
}

// descend visits the content of a folder that was just visited itself.
func (v *visitor) descend(d *dir, entry Entry) error {
	if !entry.Mode.IsDir() || v.opts.Depth > 0 && entry.Depth >= v.opts.Depth {
		return nil
	}
	if entry.Depth >= maxDepth {
		entry.Err = fmt.Errorf("folders more than %d deep are not visited", maxDepth)
		return v.again(entry)
	}
	child, err := d.child(entry.Name)
	if err != nil {
		entry.Err = err
		return v.again(entry)
	}
	defer child.close()
	return v.folder(child, entry.Rel, entry.Depth+1)
}

// again tells about a folder whose content is not visited.
func (v *visitor) again(entry Entry) error {
	if err := v.visit(entry); err != nil && !errors.Is(err, fs.SkipDir) {
		return err
	}
	return nil
}

// entry makes the entry of one listed name; it is not ok when it is not visible, or is gone.
func (v *visitor) entry(d *dir, rel string, item fs.DirEntry, depth int) (Entry, bool) {
	e := Entry{Rel: join(rel, item.Name()), Name: item.Name(), Mode: item.Type(), Depth: depth}
	if v.rules != nil && !v.rules.visible(e.Rel, e.Name, e.Mode.IsDir()) {
		return e, false
	}
	if v.opts.Stat {
		st, err := d.lstat(e.Name)
		if err != nil || st.mode.Type() != e.Mode.Type() {
			return e, false
		}
		e.Mode, e.Size, e.ModTime, e.Stamp = st.mode, st.size, time.Unix(0, st.mtime), st.stamp()
	}
	if v.rules != nil && e.Mode&fs.ModeSymlink != 0 {
		w := walker{root: v.root, rules: v.rules, name: e.Rel}
		if w.walk() != nil || w.rules.blocked(w.rel, w.st.mode.IsDir()) != "" {
			return e, false
		}
		e.Link = w.path().Rel
	}
	return e, true
}
