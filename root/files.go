package root

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// The file operations take what Resolve returned. They judge Path.Rel once more, open it without following any link,
// and ask the kernel, where it can tell, whether what was opened lies where it was judged: nothing depends on the
// folder having stayed as it was since.

func changed(rel string) *Error {
	return refuse(rel, Changed, "it is not where it was when it was judged, because the folder changed meanwhile; try again")
}

// missing names the path in the bare error of a missing file.
func missing(rel string, err error) error {
	if err == fs.ErrNotExist {
		return &fs.PathError{Op: "lstat", Path: rel, Err: err}
	}
	return err
}

// recheck judges p again and returns its inner rel.
func (r *Root) recheck(p Path, asDir bool, access Access) (string, error) {
	rel := clean(p.Rel)
	if rel != "" && (!fs.ValidPath(rel) || !filepath.IsLocal(filepath.FromSlash(rel))) {
		return "", refuse(p.Rel, Invalid, "it is not a resolved path; resolve the name first")
	}
	rules := r.current()
	if rules.err != nil {
		return "", badRules(p.Rel, rules.err)
	}
	return rel, rules.judge(p.Rel, rel, p.Mode, asDir, access)
}

func (r *Root) lstat(rel string) (stat, error) { return r.base.lstat(rel) }

func (r *Root) readlink(rel string) (string, error) { return r.base.readlink(rel) }

// openDir opens the folder rel, where it was judged.
func (r *Root) openDir(rel string) (*dir, error) {
	d, err := r.descend(rel)
	if err != nil {
		if swapped(err) {
			return nil, changed(rel)
		}
		return nil, err
	}
	if err := r.verifyDir(d, rel); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// openFile opens the file rel for an access, where it was judged, if no other name of it forbids that. Truncation waits
// until all of it is certain.
func (r *Root) openFile(rel string, access Access, flag int, perm fs.FileMode) (*os.File, error) {
	d, err := r.openDir(parent(rel))
	if err != nil {
		return nil, err
	}
	defer d.close()
	f, st, err := d.open(path.Base(rel), flag&^os.O_TRUNC, perm)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			refused.Path = rel
		}
		if swapped(err) {
			return nil, changed(rel)
		}
		return nil, err
	}
	if err = r.verifyFile(f, rel); err == nil {
		err = r.judgeTwins(rel, st, access)
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Open opens a file for reading.
func (r *Root) Open(p Path) (*os.File, error) { return r.OpenFile(p, os.O_RDONLY, 0) }

// OpenFile opens a file with the flags of os.OpenFile. Flags that write need a path that may be written. It does not
// open folders, pipes or devices, and never waits.
func (r *Root) OpenFile(p Path, flag int, perm fs.FileMode) (*os.File, error) {
	access := ToRead
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		access = ToWrite
	}
	rel, err := r.recheck(p, false, access)
	if err != nil {
		return nil, err
	}
	if rel == "" || p.Mode.IsDir() {
		return nil, refuse(p.Rel, Invalid, "it is a folder; name a file")
	}
	return r.openFile(rel, access, flag, perm)
}

// ReadFile returns the whole content of a file of at most max bytes; it fails for a larger one. Zero or less is 64 MiB.
func (r *Root) ReadFile(p Path, max int64) ([]byte, error) {
	if max <= 0 {
		max = 64 << 20
	}
	f, err := r.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, fmt.Errorf("path %q: is %d bytes; %d is the most that is read at once: read a part of it", p.Rel, info.Size(), max)
	}
	data := make([]byte, 0, info.Size()+1)
	for limited := io.LimitReader(f, max+1); ; {
		n, err := limited.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("path %q: grew beyond %d bytes, the most that is read at once: read a part of it", p.Rel, max)
	}
	return data, nil
}

// Info is what Stat tells.
type Info struct {
	Mode    fs.FileMode
	Size    int64
	ModTime time.Time
	Stamp   Stamp
}

// Stat tells about p itself, as it stands now; a link (which only ToDelete resolves to) is not followed.
func (r *Root) Stat(p Path) (Info, error) {
	rel, err := r.recheck(p, p.Mode.IsDir(), ToList)
	if err != nil {
		return Info{}, err
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return Info{}, err
	}
	defer d.close()
	base := path.Base(rel)
	if rel == "" {
		base = "."
	}
	st, err := d.lstat(base)
	if err != nil {
		return Info{}, missing(rel, err)
	}
	return Info{Mode: st.mode, Size: st.size, ModTime: time.Unix(0, st.mtime), Stamp: st.stamp()}, nil
}

// WriteFileAtomic puts data in the place of p's content in one step: readers see the old content or the new. It writes
// a hidden file beside p, asks for its content to reach the disk, and renames it; the folder's entry is left to the
// operating system, so that after a crash p holds either content whole. A file that exists keeps its permissions and,
// where the process may give it, its owner; a new one gets perm (0o644 when that is zero) less the umask. The folder of
// p must exist. A file without any write permission is refused.
func (r *Root) WriteFileAtomic(p Path, data []byte, perm fs.FileMode) error {
	rel, err := r.recheck(p, false, ToWrite)
	if err != nil {
		return err
	}
	if rel == "" || p.Mode.IsDir() {
		return refuse(p.Rel, Invalid, "it is a folder; name a file")
	}
	if perm == 0 {
		perm = 0o644
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return err
	}
	defer d.close()
	old, err := replaceable(d, rel)
	if err != nil {
		return err
	}
	if old.known {
		perm = 0o600
	}
	temp, err := r.writeTemp(d, data, perm, old)
	if err != nil {
		return fmt.Errorf("path %q: %w", p.Rel, err)
	}
	if _, err = replaceable(d, rel); err == nil {
		err = r.verifyDir(d, parent(rel))
	}
	if err == nil {
		err = r.rename(d, parent(rel), temp, d, parent(rel), path.Base(rel))
	}
	if err != nil {
		return errors.Join(err, d.remove(temp, false))
	}
	return nil
}

// replaceable returns the file that a write would replace; an unknown stat when there is none.
func replaceable(d *dir, rel string) (stat, error) {
	st, err := d.lstat(path.Base(rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stat{}, nil
	case err != nil:
		return stat{}, err
	case st.mode&fs.ModeSymlink != 0:
		return stat{}, changed(rel)
	case st.mode.IsDir():
		return stat{}, refuse(rel, Invalid, "it is a folder; name a file")
	case !st.mode.IsRegular():
		return stat{}, refuse(rel, Special, "it is %s; only files and folders can be used", kind(st.mode))
	case st.mode.Perm()&0o222 == 0:
		return stat{}, fmt.Errorf("path %q: %w: the file is read-only", rel, fs.ErrPermission)
	}
	return st, nil
}

// writeTemp writes data to a new hidden file in d and returns its name. On failure nothing stays.
func (r *Root) writeTemp(d *dir, data []byte, perm fs.FileMode, old stat) (string, error) {
	return newTemp(d, perm, func(f *os.File) error {
		_, err := f.Write(data)
		if err == nil && old.known {
			err = adopt(f, old)
		}
		return err
	})
}

// temp is writeTemp for what is read from src; perm is what the file has in the end.
func (r *Root) temp(d *dir, src io.Reader, perm fs.FileMode, old stat) (string, error) {
	return newTemp(d, 0o600, func(f *os.File) error {
		_, err := io.Copy(f, src)
		if err == nil && old.known {
			err = adopt(f, old)
		}
		if err == nil {
			err = f.Chmod(perm & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
		}
		return err
	})
}

// newTemp makes a hidden file in d, has it filled and synced, and returns its name.
func newTemp(d *dir, perm fs.FileMode, fill func(*os.File) error) (string, error) {
	var random [8]byte
	rand.Read(random[:])
	name := tempPrefix + hex.EncodeToString(random[:])
	f, _, err := d.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		return "", errors.Join(err, d.remove(name, false))
	}
	return name, nil
}

// Mkdir makes the folder p and the parents that are missing, with perm less the umask. A folder that exists is no error.
func (r *Root) Mkdir(p Path, perm fs.FileMode) error {
	rel, err := r.recheck(p, true, ToWrite)
	if err != nil {
		return err
	}
	d, err := r.openDir("")
	for at, rest := "", rel; rest != "" && err == nil; {
		var component string
		component, rest, _ = strings.Cut(rest, "/")
		var next *dir
		next, err = r.ensure(d, at, component, perm)
		d.close()
		d, at = next, join(at, component)
	}
	if err != nil {
		if swapped(err) {
			return refuse(p.Rel, Invalid, "a file or a link stands where a folder is to be; use another name")
		}
		return err
	}
	return d.close()
}

// ensure opens the folder component in d, which stands at rel, and makes it when it is missing.
func (r *Root) ensure(d *dir, rel, component string, perm fs.FileMode) (*dir, error) {
	next, err := d.child(component)
	if !errors.Is(err, fs.ErrNotExist) {
		return next, err
	}
	if err := r.verifyDir(d, rel); err != nil {
		return nil, err
	}
	if err := d.mkdir(component, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.child(component)
}

// Remove removes a file, a link (not its target) or an empty folder.
func (r *Root) Remove(p Path) error {
	rel, err := r.recheck(p, p.Mode.IsDir(), ToDelete)
	if err != nil {
		return err
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return err
	}
	defer d.close()
	st, err := d.lstat(path.Base(rel))
	if err != nil {
		return missing(rel, err)
	}
	if st.mode.Type() != p.Mode.Type() {
		return changed(p.Rel)
	}
	return d.remove(path.Base(rel), st.mode.IsDir())
}

// RemoveAll removes p with all that lies beneath it. Nothing is removed when something beneath is blocked or protected;
// what becomes so while it works stays, and its error is returned.
func (r *Root) RemoveAll(p Path) error {
	if !p.Mode.IsDir() {
		return r.Remove(p)
	}
	rel, err := r.recheck(p, true, ToDelete)
	if err != nil {
		return err
	}
	if err := r.judgeTree(p.Rel, rel, p.Mode); err != nil {
		return err
	}
	d, err := r.openDir(parent(rel))
	if err != nil {
		return err
	}
	defer d.close()
	return r.removeTree(d, rel, r.current(), 0)
}

// removeTree removes the folder rel, an entry of d, judging each entry before it goes.
func (r *Root) removeTree(d *dir, rel string, rules *rules, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("path %q: lies more than %d folders deep; remove it by hand", rel, maxDepth)
	}
	child, err := d.child(path.Base(rel))
	if err != nil {
		if swapped(err) {
			return changed(rel)
		}
		return err
	}
	defer child.close()
	entries, err := child.list(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := join(rel, e.Name())
		err := rules.judge(name, name, e.Type()&(fs.ModeDir|fs.ModeSymlink), false, ToDelete)
		if err != nil && (e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix)) {
			return err
		}
		if e.IsDir() {
			err = r.removeTree(child, name, rules, depth+1)
		} else {
			err = child.remove(e.Name(), false)
		}
		if err != nil {
			return err
		}
	}
	return d.remove(path.Base(rel), true)
}

// Rename moves from (resolved ToDelete) to the place to (resolved ToWrite), whose folder must exist. A file there is
// replaced; a folder there is refused. A link is moved itself, not its target.
func (r *Root) Rename(from, to Path) error {
	oldRel, err := r.recheck(from, from.Mode.IsDir(), ToDelete)
	if err != nil {
		return err
	}
	newRel, err := r.recheck(to, from.Mode.IsDir(), ToWrite)
	if err != nil {
		return err
	}
	if newRel == "" || to.Mode.IsDir() && to.Exists {
		return refuse(to.Rel, Invalid, "it is a folder that exists; name the new place itself, with its last component")
	}
	if err := r.judgeTree(from.Rel, oldRel, from.Mode); err != nil {
		return err
	}
	source, err := r.openDir(parent(oldRel))
	if err != nil {
		return err
	}
	defer source.close()
	target, err := r.openDir(parent(newRel))
	if err != nil {
		return err
	}
	defer target.close()
	st, err := source.lstat(path.Base(oldRel))
	if err != nil {
		return missing(oldRel, err)
	}
	if st.mode.Type() != from.Mode.Type() {
		return changed(from.Rel)
	}
	if _, err := replaceable(target, newRel); err != nil {
		return err
	}
	return r.rename(source, parent(oldRel), path.Base(oldRel), target, parent(newRel), path.Base(newRel))
}

// readEntries reads at most n entries of an open folder, all of them when n is negative.
func readEntries(f *os.File, n int) ([]fs.DirEntry, error) {
	entries, err := f.ReadDir(n)
	if n >= 0 && err == io.EOF {
		err = nil
	}
	return entries, err
}
