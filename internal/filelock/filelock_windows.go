package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Locks of Windows keep others from reading what is locked; this one lies
// where no file will ever have bytes.
const offsetHigh = 1 << 30

// Try takes the lock on f, shared or exclusive, if it is free. It is the open
// file's: closing f gives it back.
func Try(f *os.File, shared bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := windows.Overlapped{OffsetHigh: offsetHigh}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}

// Release gives the lock on f back.
func Release(f *os.File) {
	at := windows.Overlapped{OffsetHigh: offsetHigh}
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// SyncFolder has nothing to do: NTFS keeps names in its journal.
func SyncFolder(string) error { return nil }
