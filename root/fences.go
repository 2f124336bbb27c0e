package root

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Fenced is what programs must be kept from that do not ask Resolve. All are
// absolute places without links; what lies beneath one of them is not listed.
type Fenced struct {
	Hidden []string // what is blocked
	Kept   []string // what may be read but not written; git's own folders, which git reads, too
	Placed []string // of both, those that would be neither if a folder above them had another name
}

// maxNested bounds the entries that are looked at for what is git's or Helve's
// own beneath the top of a root without rules.
const maxNested = 200_000

// Fences lists what programs must be kept from. More than most of them are an
// error, and so is a folder too large to look through. If no rule file has
// rules, what git and Helve keep elsewhere than at the top is looked for only
// if nested is true, until half of most are found or the folder is too large.
func (r *Root) Fences(ctx context.Context, most int, nested bool) (Fenced, error) {
	f := &fencing{root: r, rules: r.current(), most: most}
	if f.rules.err != nil {
		return f.found, badRules(".", f.rules.err)
	}
	err := f.look(ctx, nested)
	return f.found, err
}

// A fencing is one search for what programs must be kept from.
type fencing struct {
	root  *Root
	rules *rules
	most  int
	twin  func(rel string, mode fs.FileMode) (hidden, kept bool) // by the other names of a file; nil: none has any
	found Fenced
}

func (f *fencing) look(ctx context.Context, nested bool) error {
	if f.rules.ruled() {
		return f.ruled(ctx)
	}
	if nested {
		if err := f.own(ctx); err != nil {
			return err
		}
	}
	return f.always()
}

// ruled looks at everything, since the rules may concern it.
func (f *fencing) ruled(ctx context.Context) (err error) {
	if f.twin, err = f.root.twinFences(f.rules); err != nil {
		return err
	}
	v := visitor{root: f.root, ctx: ctx, opts: WalkOptions{Limit: DefaultWalkLimit}, visit: func(e Entry) error {
		if e.Err != nil {
			return f.add(&f.found.Hidden, e.Rel) // what cannot be looked through may hold anything
		}
		return f.visit(e.Rel, e.Mode)
	}}
	return v.start("")
}

// own looks for what git and Helve keep, as far as that can be done in short.
func (f *fencing) own(ctx context.Context) error {
	v := visitor{root: f.root, ctx: ctx, opts: WalkOptions{Limit: maxNested}, visit: func(e Entry) error {
		if f.count() >= f.most/2 {
			return fs.SkipAll
		}
		if own := alwaysBlocked(e.Name) && (e.Mode.IsDir() || gitsOwn(e.Name)); e.Err != nil || !own {
			return nil
		}
		return f.visit(e.Rel, e.Mode)
	}}
	if err := v.start(""); err != nil && !errors.Is(err, ErrTooMany) {
		return err
	}
	return nil
}

// always looks at what is blocked or protected whatever the rules say.
func (f *fencing) always() error {
	for _, rel := range f.rules.always() {
		if rel == "." {
			return fmt.Errorf("the root itself is blocked or protected")
		}
		st, err := f.root.lstat(rel)
		if err != nil || slices.ContainsFunc(slices.Concat(f.found.Hidden, f.found.Kept), func(p string) bool { return within(f.root.abs(rel), p, false) }) {
			continue
		}
		if err := f.visit(rel, st.mode); err != nil && err != fs.SkipDir {
			return err
		}
	}
	return nil
}

// visit adds what lies at rel, if programs must be kept from it; then nothing
// beneath it is of interest.
func (f *fencing) visit(rel string, mode fs.FileMode) (err error) {
	switch base := path.Base(rel); {
	case mode&fs.ModeSymlink != 0:
		return nil // its target is judged where it lies
	case gitsOwn(base):
		err = f.add(&f.found.Kept, rel)
	case f.rules.blocked(rel, mode.IsDir()) != "":
		err = f.add(&f.found.Hidden, rel)
	case f.rules.guarded(rel, mode.IsDir()) != "":
		err = f.add(&f.found.Kept, rel)
	default:
		return f.visitTwin(rel, mode)
	}
	if err == nil && mode.IsDir() {
		err = fs.SkipDir
	}
	return err
}

// visitTwin adds a file of which another name is hidden or kept.
func (f *fencing) visitTwin(rel string, mode fs.FileMode) error {
	if f.twin == nil {
		return nil
	}
	switch hidden, kept := f.twin(rel, mode); {
	case hidden:
		return f.add(&f.found.Hidden, rel)
	case kept:
		return f.add(&f.found.Kept, rel)
	}
	return nil
}

func (f *fencing) add(list *[]string, rel string) error {
	*list = append(*list, f.root.abs(rel))
	if f.count() > f.most {
		return fmt.Errorf("more than %d files and folders are ignored or protected one by one, the hard links of such files included; name folders rather than files in %s and %s", f.most, IgnoreFile, ProtectFile)
	}
	if strings.Contains(rel, "/") && f.rules.placed(rel) {
		f.found.Placed = append(f.found.Placed, f.root.abs(rel))
	}
	return nil
}

func (f *fencing) count() int { return len(f.found.Hidden) + len(f.found.Kept) }

// placed reports whether what is blocked or guarded may owe that to where it
// lies, and not to its own name alone.
func (s *rules) placed(rel string) bool {
	base := path.Base(rel)
	return !alwaysBlocked(base) && (s.under(s.blocks, rel) || s.under(s.protected, rel) || s.ignore.places() || s.protect.places())
}

// places reports whether any pattern looks at more than the last component.
func (m *matcher) places() bool {
	return m != nil && slices.ContainsFunc(m.patterns, func(p pattern) bool { return !p.basename })
}

// gitsOwn reports whether a component is git's own folder, or the file that leads to it.
func gitsOwn(component string) bool { return strings.EqualFold(diskName(component), gitDir) }
