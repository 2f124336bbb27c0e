//go:build !unix

package root

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// foldsNames: Windows takes "A" and "a" for one name.
const foldsNames = true

// stat is what is known of a file. The zero stat is of nothing.
type stat struct {
	mode         fs.FileMode
	size         int64
	mtime, ctime int64 // nanoseconds since 1970
	dev, ino     uint64
	links        uint64 // zero: how many names a file has is not asked here
	known        bool
	info         fs.FileInfo
}

func (s stat) id() fileID { return fileID{s.dev, s.ino} }

func (s stat) same(t stat) bool { return s.known && t.known && os.SameFile(s.info, t.info) }

func statOf(info fs.FileInfo) stat {
	t := info.ModTime().UnixNano()
	return stat{mode: info.Mode(), size: info.Size(), mtime: t, ctime: t, ino: 1, known: true, info: info}
}

// dir is an open folder.
type dir struct {
	root *os.Root
	path string
}

func (r *Root) openBase() error {
	base, err := r.handle.OpenRoot(".")
	if err != nil {
		return err
	}
	r.base = &dir{root: base, path: r.dir}
	return nil
}

func (d *dir) close() error { return d.root.Close() }

func (d *dir) lstat(name string) (stat, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

func (d *dir) readlink(name string) (string, error) { return d.root.Readlink(name) }

// open opens one entry and refuses it when it is a link, or not the file that stands there.
func (d *dir) open(name string, flag int, perm fs.FileMode) (*os.File, stat, error) {
	before, err := d.root.Lstat(name)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || flag&os.O_CREATE == 0) {
		return nil, stat{}, err
	}
	if err == nil && before.IsDir() {
		return nil, stat{}, &fs.PathError{Op: "open", Path: name, Err: errors.New("is a folder")}
	}
	if err == nil && !before.Mode().IsRegular() {
		return nil, stat{}, refuse(name, Special, "it is %s; only files and folders can be used", kind(before.Mode()))
	}
	f, err := d.root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, stat{}, err
	}
	info, err := f.Stat()
	if err == nil {
		before, err = d.root.Lstat(name)
	}
	if err == nil && !(info.Mode().IsRegular() && os.SameFile(before, info)) {
		err = changed(name)
	}
	if err != nil {
		f.Close()
		return nil, stat{}, err
	}
	return f, statOf(info), nil
}

// child opens a folder in this one and refuses it when it is a link.
func (d *dir) child(name string) (*dir, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, changed(name)
	}
	child, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if info, err := child.Stat("."); err != nil || !os.SameFile(before, info) {
		child.Close()
		return nil, changed(name)
	}
	return &dir{root: child, path: filepath.Join(d.path, name)}, nil
}

// list returns at most n entries, all of them when n is negative.
func (d *dir) list(n int) ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readEntries(f, n)
}

func (d *dir) mkdir(name string, perm fs.FileMode) error { return d.root.Mkdir(name, perm) }

func (d *dir) symlink(target, name string) error { return d.root.Symlink(target, name) }

func (d *dir) chmod(perm fs.FileMode) error { return d.root.Chmod(".", perm.Perm()) }

// remove removes one entry, a link and not its target.
func (d *dir) remove(name string, _ bool) error { return d.root.Remove(name) }

// rename moves an entry of one folder into another, replacing a file of that name.
func (r *Root) rename(from *dir, fromRel, old string, to *dir, toRel, name string) error {
	if from == to {
		return from.root.Rename(old, name)
	}
	return r.handle.Rename(join(fromRel, old), join(toRel, name))
}

// adopt gives f the permissions of the file that it is about to replace.
func adopt(f *os.File, st stat) error { return f.Chmod(st.mode.Perm()) }

// descend opens the folder rel one component after the other and follows no link.
func (r *Root) descend(rel string) (*dir, error) {
	d, err := r.base.child(".")
	for rest := rel; rest != "" && err == nil; {
		var component string
		component, rest, _ = strings.Cut(rest, "/")
		var next *dir
		next, err = d.child(component)
		d.close()
		d = next
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (r *Root) verifyDir(*dir, string) error { return nil }

func (r *Root) verifyFile(*os.File, string) error { return nil }

func swapped(error) bool { return false }

func isAbs(name string) bool {
	return strings.HasPrefix(name, "/") || filepath.VolumeName(filepath.FromSlash(name)) != ""
}

// isLocal refuses device names, streams, and names that lose their end when they are used.
func isLocal(component string) bool {
	if strings.ContainsAny(component, `:<>"|?*\`) || strings.TrimRight(component, ". ") != component {
		return false
	}
	return filepath.IsLocal(component)
}
