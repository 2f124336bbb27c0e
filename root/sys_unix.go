//go:build unix

package root

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// stat is what is known of a file. The zero stat is of nothing.
type stat struct {
	mode         fs.FileMode
	size         int64
	mtime, ctime int64 // nanoseconds since 1970
	dev, ino     uint64
	uid, gid     uint32
	links        uint64 // how many names it has
	known        bool   // all of it was asked for, not the mode alone
}

func (s stat) id() fileID { return fileID{s.dev, s.ino} }

func (s stat) same(t stat) bool { return s.known && t.known && s.dev == t.dev && s.ino == t.ino }

// dir is an open folder. Its lock is held for single system calls, so that a descriptor is never used after close.
type dir struct {
	mu   sync.RWMutex
	fd   int // -1 when closed
	path string
}

func (r *Root) openBase() error {
	fd, err := retry(func() (int, error) {
		return unix.Open(r.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: r.dir, Err: err}
	}
	r.base = &dir{fd: fd, path: r.dir}
	where, ok := pathOf(fd)
	r.proc = ok && where == r.dir
	return nil
}

func (d *dir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd < 0 {
		return os.ErrClosed
	}
	fd := d.fd
	d.fd = -1
	return unix.Close(fd)
}

func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

// with runs one system call on the descriptor.
func (d *dir) with(op, name string, call func(fd int) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return &fs.PathError{Op: op, Path: name, Err: os.ErrClosed}
	}
	for {
		err := call(d.fd)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
}

func (d *dir) lstat(name string) (stat, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return stat{}, &fs.PathError{Op: "lstat", Path: name, Err: os.ErrClosed}
	}
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return statOf(&st), nil
		}
		if err == unix.ENOENT {
			return stat{}, fs.ErrNotExist
		}
		if err != unix.EINTR {
			return stat{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
		}
	}
}

func statOf(st *unix.Stat_t) stat {
	return stat{
		mode: modeOf(uint32(st.Mode)), size: st.Size, mtime: mtime(st), ctime: ctime(st),
		dev: uint64(st.Dev), ino: uint64(st.Ino), uid: st.Uid, gid: st.Gid, links: uint64(st.Nlink), known: true,
	}
}

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	default:
		mode |= fs.ModeIrregular
	}
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func (d *dir) readlink(name string) (target string, err error) {
	err = d.with("readlink", name, func(fd int) error {
		buf := make([]byte, maxName+1)
		n, err := unix.Readlinkat(fd, name, buf)
		target = string(buf[:max(n, 0)])
		return err
	})
	return target, err
}

// open opens one entry and follows no link. It does not wait for the other end of a pipe.
func (d *dir) open(name string, flag int, perm fs.FileMode) (*os.File, stat, error) {
	fd := -1
	err := d.with("open", name, func(at int) (err error) {
		fd, err = unix.Openat(at, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, stat{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if mode := modeOf(uint32(st.Mode)); !mode.IsRegular() {
		unix.Close(fd)
		if mode.IsDir() {
			return nil, stat{}, &fs.PathError{Op: "open", Path: name, Err: unix.EISDIR}
		}
		return nil, stat{}, refuse(name, Special, "it is %s; only files and folders can be used", kind(mode))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, stat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), d.path+"/"+name), statOf(&st), nil
}

// child opens a folder in this one and follows no link.
func (d *dir) child(name string) (*dir, error) {
	fd := -1
	err := d.with("open", name, func(at int) (err error) {
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dir{fd: fd, path: d.path + "/" + name}, nil
}

// list returns at most n entries, all of them when n is negative.
func (d *dir) list(n int) ([]fs.DirEntry, error) {
	fd := -1
	err := d.with("open", d.path, func(at int) (err error) {
		fd, err = unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	return readEntries(f, n)
}

func (d *dir) mkdir(name string, perm fs.FileMode) error {
	return d.with("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, uint32(perm.Perm())) })
}

func (d *dir) symlink(target, name string) error {
	return d.with("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

func (d *dir) chmod(perm fs.FileMode) error {
	return d.with("chmod", d.path, func(fd int) error { return unix.Fchmod(fd, bitsOf(perm)) })
}

// bitsOf is what the kernel calls the permissions of mode.
func bitsOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		bits |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// remove removes one entry, a link and not its target.
func (d *dir) remove(name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	return d.with("remove", name, func(fd int) error { return unix.Unlinkat(fd, name, flags) })
}

// rename moves an entry of one folder into another, replacing a file of that name.
func (r *Root) rename(from *dir, _, old string, to *dir, _, name string) error {
	if from == to {
		return from.with("rename", old, func(fd int) error { return unix.Renameat(fd, old, fd, name) })
	}
	return from.with("rename", old, func(a int) error {
		return to.with("rename", name, func(b int) error { return unix.Renameat(a, old, b, name) })
	})
}

// adopt gives f the permissions of the file that it is about to replace, and its owner where the process may give it.
func adopt(f *os.File, st stat) error {
	if os.Geteuid() == 0 {
		if err := f.Chown(int(st.uid), int(st.gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return f.Chmod(st.mode.Perm())
}

// stepwise opens the folder rel one component after the other and follows no link.
func (r *Root) stepwise(rel string) (*dir, error) {
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
	d.path = r.abs(rel)
	return d, nil
}

// swapped reports whether a system call failed because a link or a file stands where a folder or a file was judged.
func swapped(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EMLINK) ||
		errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EAGAIN)
}

func isAbs(name string) bool { return len(name) > 0 && name[0] == '/' }

func isLocal(string) bool { return true }
