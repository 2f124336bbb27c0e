package credentials

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/helve-ai/helve/internal/filelock"
)

// readPrivate reads a file that only the user may read.
func readPrivate(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; move it away", file)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others than its owner may use %s: chmod 600 %s", file, file)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has more than %d MiB, so it is none of Helve's; move it away", file, maxFile>>20)
	}
	return io.ReadAll(f)
}

// fresh is the name of a file that is being written.
const fresh = ".new-*"

// sweep removes what writers left that were killed. The caller holds the lock.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, fresh)) // the pattern is sound
	for _, f := range left {
		os.Remove(f)
	}
}

// writePrivate puts a file in place of the one that is there, whole or not at
// all. When it returns nil the file is on the disk.
func writePrivate(file string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), fresh) // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

// syncDir puts the names in a folder on the disk.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it does so itself
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// The pauses between two looks at a lock that somebody holds.
const (
	firstLook = 2 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// lock waits for the lock of that name in dir.
func lock(ctx context.Context, dir, name string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := "lock"
	if name != "" {
		sum := sha256.Sum256([]byte(name))
		file = hex.EncodeToString(sum[:12])
	}
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		held, err := filelock.Try(f, false)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s cannot be locked: %w", f.Name(), err)
		}
		if held {
			return func() { f.Close() }, nil // which releases it
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}
