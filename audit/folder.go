package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	filePrefix = "audit-"
	fileSuffix = ".jsonl"
)

// A fileName is the name of one file of a log, in parts. Its zero value names none.
type fileName struct {
	day string // 2026-11-20
	n   int    // 0 for the first of the day
}

func (f fileName) String() string {
	if f.n == 0 {
		return filePrefix + f.day + fileSuffix
	}
	return filePrefix + f.day + "." + strconv.Itoa(f.n) + fileSuffix
}

func (f fileName) compare(g fileName) int {
	return cmp.Or(strings.Compare(f.day, g.day), cmp.Compare(f.n, g.n))
}

// end returns the moment at which f's day is over.
func (f fileName) end() time.Time {
	day, _ := time.Parse(time.DateOnly, f.day)
	return day.AddDate(0, 0, 1)
}

// parseName reads a file's name; ok is false if String would not give it.
func parseName(name string) (f fileName, ok bool) {
	rest, prefixed := strings.CutPrefix(name, filePrefix)
	rest, suffixed := strings.CutSuffix(rest, fileSuffix)
	if !prefixed || !suffixed {
		return fileName{}, false
	}
	day, digits, numbered := strings.Cut(rest, ".")
	f.day = day
	if numbered {
		f.n, _ = strconv.Atoi(digits)
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil || len(day) != len(time.DateOnly) || f.n < 0 || f.String() != name {
		return fileName{}, false
	}
	return f, true
}

// listFiles returns the files of the log in dir, oldest first.
func listFiles(dir string) ([]fileName, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []fileName
	for _, e := range entries {
		f, ok := parseName(e.Name())
		if !ok {
			continue
		}
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s: is not a regular file; move it away", filepath.Join(dir, e.Name()))
		}
		files = append(files, f)
	}
	slices.SortFunc(files, fileName.compare)
	return files, nil
}

// nextFile returns the name of the file to begin at now, given those there are.
func nextFile(files []fileName, now time.Time) fileName {
	next := fileName{day: now.UTC().Format(time.DateOnly)}
	if len(files) == 0 {
		return next
	}
	if last := files[len(files)-1]; last.day >= next.day {
		return fileName{day: last.day, n: last.n + 1}
	}
	return next
}

// makeFolder makes sure that dir is a folder that nobody else may enter.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// openRegular opens a file of the log, and nothing that only has its name.
func openRegular(path string, flags int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a regular file; move it away", path)
	}
	return os.OpenFile(path, flags|noFollow, 0o600)
}

// sealed reports whether a file is finished; see seal.
func sealed(info fs.FileInfo) bool { return info.Mode().Perm()&0o200 == 0 }

// displaced reports whether path no longer names f.
func displaced(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Lstat(path)
	return err != nil || !os.SameFile(have, named)
}

// explain makes err, met while working on the log in dir, say what to do.
func explain(dir string, err error) error {
	if err == nil {
		return nil
	}
	named := err
	if pathErr := (*fs.PathError)(nil); !errors.As(err, &pathErr) && !strings.Contains(err.Error(), dir) {
		named = fmt.Errorf("%s: %w", dir, err)
	}
	if remedy := remedyFor(err); remedy != "" {
		return fmt.Errorf("audit: %w; %s", named, remedy)
	}
	return fmt.Errorf("audit: %w", named)
}

func remedyFor(err error) string {
	switch {
	case isFull(err):
		return "free some space on its disk, or keep the log elsewhere"
	case isTooLarge(err):
		return "raise the limit on the size of files (ulimit -f)"
	case isReadOnly(err):
		return "mount its disk writable, or keep the log elsewhere"
	case errors.Is(err, fs.ErrPermission):
		return "give this user the right to write the folder and its files"
	case isNoFolder(err):
		return "move away what stands in the folder's place"
	}
	return ""
}
