package root

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// foldsNames: whether file systems here take "A" and "a" for one name. Linux's do not, as a rule; the rules find out.
const foldsNames = false

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

// noOpenat2 is set once the kernel or its filter turned out not to know openat2.
var noOpenat2 atomic.Bool

// descend opens the folder rel and follows no link.
func (r *Root) descend(rel string) (*dir, error) {
	if rel == "" || noOpenat2.Load() {
		return r.stepwise(rel)
	}
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd := -1
	var refused bool
	err := r.base.with("open", rel, func(at int) (err error) {
		fd, err = unix.Openat2(at, rel, &how)
		refused = err == unix.ENOSYS || err == unix.EPERM || err == unix.E2BIG
		return err
	})
	if refused {
		noOpenat2.Store(true)
		return r.stepwise(rel)
	}
	if err != nil {
		return nil, err
	}
	return &dir{fd: fd, path: r.abs(rel)}, nil
}

// pathOf asks the kernel for the path of a descriptor.
func pathOf(fd int) (string, bool) {
	var name [32]byte
	var target [maxName + 1]byte
	link := strconv.AppendInt(append(name[:0], "/proc/self/fd/"...), int64(fd), 10)
	n, err := unix.Readlink(string(link), target[:])
	if err != nil || n <= 0 || n > maxName {
		return "", false
	}
	return string(target[:n]), true
}

// verifyDir refuses a folder that is no longer where it was judged, because one of its parents was moved.
func (r *Root) verifyDir(d *dir, rel string) error {
	return d.with("open", rel, func(fd int) error { return r.verify(fd, rel, false) })
}

// verifyFile is verifyDir for an open file, which may have been replaced by another since.
func (r *Root) verifyFile(f *os.File, rel string) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if other := conn.Control(func(fd uintptr) { err = r.verify(int(fd), rel, true) }); other != nil {
		return other
	}
	return err
}

func (r *Root) verify(fd int, rel string, replaced bool) error {
	if !r.proc {
		return nil
	}
	where, ok := pathOf(fd)
	want := r.abs(rel)
	if ok && (where == want || replaced && where == want+" (deleted)") {
		return nil
	}
	return changed(rel)
}
