package clientconf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// maxFile bounds a file, in bytes. Claude Code keeps its history in the same
// file as its servers.
const maxFile = 64 << 20

// BackupSuffix is what the name of a backup ends with.
const BackupSuffix = ".helve-backup"

// A File is a file that is to be changed, as it was when it was opened.
type File struct {
	Path   string // as it was named
	Data   []byte // nil: there was no file
	Exists bool

	real string // what Path links to
	mode fs.FileMode
}

// Open reads a file. One that is not there is no error: Replace makes it.
func Open(path string) (*File, error) {
	f := &File{Path: path, real: path, mode: 0o600}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s: the link leads to nothing", path)
		}
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: the file is larger than %d bytes", path, maxFile)
	}
	f.real, f.mode, f.Exists = real, info.Mode().Perm(), true
	if f.Data, err = os.ReadFile(real); err == nil && f.Data == nil {
		f.Data = []byte{}
	}
	return f, err
}

// unchanged returns an error if the file is no longer what was read.
func (f *File) unchanged() error {
	now, err := os.ReadFile(f.real)
	if errors.Is(err, fs.ErrNotExist) && !f.Exists {
		return nil
	}
	if err != nil {
		return err
	}
	if !f.Exists || !bytes.Equal(now, f.Data) {
		return fmt.Errorf("%s: the file was changed by another program meanwhile; nothing was written, run the command again", f.Path)
	}
	return nil
}

// Replace writes the file anew, all of it or nothing, with the permissions
// that it has; a new one is the user's alone. It refuses if the file is no
// longer what was read.
func (f *File) Replace(data []byte) error {
	if f.Exists {
		if err := writable(f.real); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(f.real), 0o700); err != nil {
		return err
	}
	tmp, err := f.writeTemp(f.real, data)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := os.Rename(tmp, f.real); err != nil {
		return err
	}
	f.Data, f.Exists = data, true
	return nil
}

// Remove removes the file, unless it is no longer what was read.
func (f *File) Remove() error {
	if err := f.unchanged(); err != nil {
		return err
	}
	return os.Remove(f.real)
}

// writable returns an error if a file may not be written: to put another in its
// place is to write it.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	var at *fs.PathError
	switch {
	case errors.As(err, &at):
		return fmt.Errorf("it cannot be written: %w", at.Err)
	case err != nil:
		return err
	}
	return f.Close()
}

// writeTemp writes a file of the same owner and permissions beside another.
func (f *File) writeTemp(beside string, data []byte) (string, error) {
	tmp, err := os.CreateTemp(filepath.Dir(beside), "."+filepath.Base(beside)+".*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) { // the name that was tried tells nothing
			err = at.Err
		}
		return "", fmt.Errorf("%s: no file can be made in its folder: %w", beside, err)
	}
	if f.Exists {
		sameOwner(tmp, f.real)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(f.mode), tmp.Sync(), tmp.Close())
	if err != nil {
		os.Remove(tmp.Name())
		return "", err
	}
	return tmp.Name(), nil
}

// BackupPath returns where the file's backup is.
func (f *File) BackupPath() string { return f.Path + BackupSuffix }

// Backup copies what was read beside the file, and returns the copy's path; ""
// if there was no file. An earlier backup with other content is kept under a
// name with a number.
func (f *File) Backup() (string, error) { return f.BackupAs(f.Data) }

// BackupAs is Backup, with a text in place of what was read.
func (f *File) BackupAs(data []byte) (string, error) {
	if !f.Exists {
		return "", nil
	}
	path := f.BackupPath()
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return path, nil
	}
	if err == nil {
		for i := 1; ; i++ {
			aside := path + "." + strconv.Itoa(i)
			if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
				if err := os.Rename(path, aside); err != nil {
					return "", err
				}
				break
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	tmp, err := f.writeTemp(path, data)
	if err != nil {
		return "", err
	}
	return path, os.Rename(tmp, path)
}
