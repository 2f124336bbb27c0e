package root

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Fences lists what programs must be kept from that do not ask Resolve: hidden
// is what is blocked, kept what may be read but not written. Git's own folders
// are kept rather than hidden, since git reads them. All are absolute places
// without links; what lies beneath one of them is not listed. More than most of
// them are an error, and so is a folder too large to look through, which is
// done only if a rule file has rules.
func (r *Root) Fences(ctx context.Context, most int) (hidden, kept []string, err error) {
	rules := r.current()
	if rules.err != nil {
		return nil, nil, badRules(".", rules.err)
	}
	add := func(list *[]string, rel string) error {
		*list = append(*list, r.abs(rel))
		if len(hidden)+len(kept) > most {
			return fmt.Errorf("more than %d files and folders are ignored or protected one by one; name folders rather than files in %s and %s", most, IgnoreFile, ProtectFile)
		}
		return nil
	}
	visit := func(rel string, mode fs.FileMode) (err error) {
		switch base := path.Base(rel); {
		case mode&fs.ModeSymlink != 0:
			return nil // its target is judged where it lies
		case gitsOwn(base):
			err = add(&kept, rel)
		case rules.blocked(rel, mode.IsDir()) != "":
			err = add(&hidden, rel)
		case rules.guarded(rel, mode.IsDir()) != "":
			err = add(&kept, rel)
		default:
			return nil
		}
		if err == nil && mode.IsDir() {
			err = fs.SkipDir
		}
		return err
	}
	if len(rules.ignore.patterns)+len(rules.protect.patterns) > 0 {
		v := visitor{root: r, ctx: ctx, opts: WalkOptions{Limit: DefaultWalkLimit}, visit: func(e Entry) error {
			if e.Err != nil {
				return add(&hidden, e.Rel) // what cannot be looked through may hold anything
			}
			return visit(e.Rel, e.Mode)
		}}
		err = v.start("")
		return hidden, kept, err
	}
	places := slices.Concat([]string{gitDir, StateDir, IgnoreFile, ProtectFile}, rules.blocks, rules.protected)
	slices.Sort(places)
	for _, rel := range slices.Compact(places) {
		if rel == "." {
			return nil, nil, fmt.Errorf("the root itself is blocked or protected")
		}
		st, err := r.lstat(rel)
		if err != nil || slices.ContainsFunc(append(hidden, kept...), func(p string) bool { return within(r.abs(rel), p, false) }) {
			continue
		}
		if err := visit(rel, st.mode); err != nil && err != fs.SkipDir {
			return nil, nil, err
		}
	}
	return hidden, kept, nil
}

// gitsOwn reports whether a component is git's own folder, or the file that leads to it.
func gitsOwn(component string) bool { return strings.EqualFold(diskName(component), gitDir) }
