//go:build unix

package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// measure returns the size of f, and whether it may grow: it still has a name
// and is not sealed.
func measure(f *os.File) (size int64, growing bool, err error) {
	var st unix.Stat_t
	for {
		err = unix.Fstat(int(f.Fd()), &st)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, false, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return st.Size, st.Nlink > 0 && st.Mode&unix.S_IWUSR != 0, nil
}

// seal marks f as finished, for all processes that have it open.
func seal(f *os.File) error { return f.Chmod(0o400) }

// unseal undoes seal.
func unseal(f *os.File) error { return f.Chmod(0o600) }

// truncate cuts f to size, and gives back what was reserved beyond.
func truncate(f *os.File, size int64) error { return f.Truncate(size) }

// spaceFor reports whether the file system of f has n bytes left for this user.
func spaceFor(f *os.File, n int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "statfs", Path: f.Name(), Err: err}
	}
	if uint64(st.Bavail)*uint64(st.Bsize) < uint64(n) {
		return &os.PathError{Op: "reserve", Path: f.Name(), Err: unix.ENOSPC}
	}
	return nil
}

func isFull(err error) bool     { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
func isTooLarge(err error) bool { return errors.Is(err, unix.EFBIG) }
func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }
func isNoFolder(err error) bool { return errors.Is(err, unix.ENOTDIR) }
