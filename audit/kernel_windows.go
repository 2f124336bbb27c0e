package audit

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const noFollow = 0

func measure(f *os.File) (size int64, growing bool, err error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 0, false, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow), info.NumberOfLinks > 0 && info.FileAttributes&windows.FILE_ATTRIBUTE_READONLY == 0, nil
}

func seal(f *os.File) error   { return os.Chmod(f.Name(), 0o400) }
func unseal(f *os.File) error { return os.Chmod(f.Name(), 0o600) }

// truncate opens the file anew: a handle that appends may not cut.
func truncate(f *os.File, size int64) error { return os.Truncate(f.Name(), size) }

func spaceFor(f *os.File, n int64) error {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, nil, nil); err != nil {
		return &os.PathError{Op: "measure the disk of", Path: f.Name(), Err: err}
	}
	if free < uint64(n) {
		return &os.PathError{Op: "reserve", Path: f.Name(), Err: windows.ERROR_DISK_FULL}
	}
	return nil
}

func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
func isTooLarge(err error) bool { return errors.Is(err, windows.ERROR_FILE_TOO_LARGE) }
func isReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }
func isNoFolder(err error) bool { return errors.Is(err, windows.ERROR_DIRECTORY) }
