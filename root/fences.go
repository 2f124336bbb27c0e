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
	var f Fenced
	rules := r.current()
	if rules.err != nil {
		return f, badRules(".", rules.err)
	}
	add := func(list *[]string, rel string) error {
		*list = append(*list, r.abs(rel))
		if len(f.Hidden)+len(f.Kept) > most {
			return fmt.Errorf("more than %d files and folders are ignored or protected one by one, the hard links of such files included; name folders rather than files in %s and %s", most, IgnoreFile, ProtectFile)
		}
		if strings.Contains(rel, "/") && rules.placed(rel) {
			f.Placed = append(f.Placed, r.abs(rel))
		}
		return nil
	}
	twin := func(string, fs.FileMode) (hidden, kept bool) { return false, false }
	visit := func(rel string, mode fs.FileMode) (err error) {
		switch base := path.Base(rel); {
		case mode&fs.ModeSymlink != 0:
			return nil // its target is judged where it lies
		case gitsOwn(base):
			err = add(&f.Kept, rel)
		case rules.blocked(rel, mode.IsDir()) != "":
			err = add(&f.Hidden, rel)
		case rules.guarded(rel, mode.IsDir()) != "":
			err = add(&f.Kept, rel)
		default:
			switch hidden, kept := twin(rel, mode); {
			case hidden:
				return add(&f.Hidden, rel)
			case kept:
				return add(&f.Kept, rel)
			}
			return nil
		}
		if err == nil && mode.IsDir() {
			err = fs.SkipDir
		}
		return err
	}
	if rules.ruled() {
		var err error
		if twin, err = r.twinFences(rules); err != nil {
			return f, err
		}
		v := visitor{root: r, ctx: ctx, opts: WalkOptions{Limit: DefaultWalkLimit}, visit: func(e Entry) error {
			if e.Err != nil {
				return add(&f.Hidden, e.Rel) // what cannot be looked through may hold anything
			}
			return visit(e.Rel, e.Mode)
		}}
		err = v.start("")
		return f, err
	}
	if nested {
		v := visitor{root: r, ctx: ctx, opts: WalkOptions{Limit: maxNested}, visit: func(e Entry) error {
			if len(f.Hidden)+len(f.Kept) >= most/2 {
				return fs.SkipAll
			}
			if own := alwaysBlocked(e.Name) && (e.Mode.IsDir() || gitsOwn(e.Name)); e.Err != nil || !own {
				return nil
			}
			return visit(e.Rel, e.Mode)
		}}
		if err := v.start(""); err != nil && !errors.Is(err, ErrTooMany) {
			return f, err
		}
	}
	for _, rel := range rules.always() {
		if rel == "." {
			return f, fmt.Errorf("the root itself is blocked or protected")
		}
		st, err := r.lstat(rel)
		if err != nil || slices.ContainsFunc(slices.Concat(f.Hidden, f.Kept), func(p string) bool { return within(r.abs(rel), p, false) }) {
			continue
		}
		if err := visit(rel, st.mode); err != nil && err != fs.SkipDir {
			return f, err
		}
	}
	return f, nil
}

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
