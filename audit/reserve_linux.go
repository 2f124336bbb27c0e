package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve sets n bytes of the disk aside for f, beyond off, without making it longer.
func reserve(f *os.File, off, n int64) error {
	for {
		switch err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL:
			return spaceFor(f, n)
		default:
			return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
		}
	}
}
