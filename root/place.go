package root

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// A Stamp tells whether a file may have changed: as long as it is the same, and so are mode and size, the content is.
type Stamp struct {
	Inode    uint64 `json:"i"`
	Modified int64  `json:"m"` // nanoseconds since 1970
	Changed  int64  `json:"c"` // of the content or of what is known of the file; not for a program to set
}

func (s stat) stamp() Stamp { return Stamp{s.ino, s.mtime, s.ctime} }

// At judges the place rel itself, a path from the root such as Resolve returns: unlike Resolve it follows no link,
// neither on the way, which is refused, nor at the end. What is missing is no error.
func (r *Root) At(rel string, access Access) (Path, error) {
	rules := r.current()
	if rules.err != nil {
		return Path{}, badRules(rel, rules.err)
	}
	if err := checkName(rel); err != nil {
		return Path{}, err
	}
	inner := clean(rel)
	if inner != "" && (!fs.ValidPath(inner) || !filepath.IsLocal(filepath.FromSlash(inner))) {
		return Path{}, refuse(rel, Invalid, "it is not a place in the root; resolve the name first")
	}
	p := Path{Rel: rel, Abs: r.abs(inner)}
	st, err := r.lstatAt(inner)
	switch {
	case err == nil:
		p.Exists, p.Mode = true, st.mode
	case !errors.Is(err, fs.ErrNotExist):
		return Path{}, err
	}
	return p, rules.judge(rel, inner, p.Mode, false, access)
}

// Place is At for an absolute path beneath the root, as Path.Abs is.
func (r *Root) Place(abs string, access Access) (Path, error) {
	rel, err := filepath.Rel(r.dir, abs)
	if err != nil || !filepath.IsAbs(abs) || !filepath.IsLocal(rel) {
		return Path{}, refuse(abs, Outside, "it does not lie in the root")
	}
	return r.At(filepath.ToSlash(rel), access)
}

// lstatAt is lstat for a place that no link may lead to. What lies beneath a file is missing.
func (r *Root) lstatAt(inner string) (stat, error) {
	if inner == "" {
		return r.lstat(".")
	}
	for i := 0; i < len(inner); i++ { // a file on the way is no swap: there is nothing beneath it
		if inner[i] != '/' {
			continue
		}
		st, err := r.lstat(inner[:i])
		if err != nil {
			return stat{}, err
		}
		if st.mode.IsRegular() {
			return stat{}, fs.ErrNotExist
		}
	}
	d, err := r.openDir(parent(inner))
	if err != nil {
		return stat{}, err
	}
	defer d.close()
	return d.lstat(path.Base(inner))
}

// Readlink returns the target of the link p, as it is written.
func (r *Root) Readlink(p Path) (string, error) {
	rel, err := r.recheck(p, false, ToList)
	if err != nil {
		return "", err
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return "", err
	}
	defer d.close()
	return d.readlink(path.Base(rel))
}

// Symlink makes the link p, which must not exist. Its target is not judged: who follows the link is.
func (r *Root) Symlink(p Path, target string) error {
	return r.entry(p, func(d *dir, name string) error { return d.symlink(target, name) })
}

// Chmod gives the folder p exactly the permissions perm.
func (r *Root) Chmod(p Path, perm fs.FileMode) error {
	return r.entry(p, func(d *dir, name string) error {
		child, err := d.child(name)
		if err != nil {
			return err
		}
		defer child.close()
		return child.chmod(perm)
	})
}

// entry calls change with the folder in which p lies, and p's name in it.
func (r *Root) entry(p Path, change func(d *dir, name string) error) error {
	rel, err := r.recheck(p, p.Mode.IsDir(), ToWrite)
	if err != nil {
		return err
	}
	if rel == "" {
		return refuse(p.Rel, Invalid, "it is the root itself, which stays as it is")
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return err
	}
	defer d.close()
	return change(d, path.Base(rel))
}

// Put puts what src holds in the place of p's content in one step, as WriteFileAtomic does, with exactly the
// permissions perm. A file that is read-only is replaced, too. What ends src early, other than io.EOF, leaves p as it
// was.
func (r *Root) Put(p Path, src io.Reader, perm fs.FileMode) error {
	if p.Mode.IsDir() {
		return refuse(p.Rel, Invalid, "it is a folder; name a file")
	}
	return r.entry(p, func(d *dir, name string) error {
		old, err := d.lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			old = stat{}
		case err != nil:
			return err
		case !old.mode.IsRegular():
			return changed(p.Rel)
		}
		temp, err := r.temp(d, src, perm, old)
		if err != nil {
			return err
		}
		dirRel := parent(strings.TrimPrefix(p.Rel, "./"))
		if err = r.verifyDir(d, dirRel); err == nil {
			err = r.rename(d, dirRel, temp, d, dirRel, name)
		}
		if err != nil {
			return errors.Join(err, d.remove(temp, false))
		}
		return nil
	})
}
