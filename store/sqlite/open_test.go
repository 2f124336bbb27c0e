package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/sqlite"
)

// put commits n values of 3,000 bytes.
func put(t *testing.T, s store.Store, n int) {
	t.Helper()
	err := s.Update(t.Context(), func(w store.Writer) error {
		for i := range n {
			w.Put("b", fmt.Sprintf("%04d", i), bytes.Repeat([]byte{'v'}, 3000))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// size counts the values.
func size(ctx context.Context, s store.Store) (n int, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		n = 0
		for range r.Scan("b", "") {
			n++
		}
		return nil
	})
	return n, err
}

// run runs statements on a database file, as another program would.
func run(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode bits here")
	}
	path := filepath.Join(t.TempDir(), "new", "newer", "helve.db")
	s := open(t, path)
	put(t, s, 1)
	for name, want := range map[string]os.FileMode{
		filepath.Dir(filepath.Dir(path)): 0o700, filepath.Dir(path): 0o700,
		path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
	}
	s.Close()
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("after Close there are %q, want one file", left)
	}
}

func TestOddPaths(t *testing.T) {
	names := []string{"a b", "100%", "50%20x", "#1", "é;&=+", "file:x", "'q'"}
	if runtime.GOOS == "windows" {
		names = []string{"a b", "100%", "50%20x", "#1", "é;&=+", "'q'"}
	} else {
		names = append(names, "what?mode=memory", `back\slash`, `"q"`)
	}
	for _, name := range names {
		path := filepath.Join(t.TempDir(), name, name)
		s := open(t, path)
		put(t, s, 1)
		s.Close()
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not where the store is: %v", name, err)
		}
		if n, err := size(t.Context(), open(t, path)); n != 1 || err != nil {
			t.Errorf("%q holds %d values when opened again, %v", name, n, err)
		}
	}
	t.Chdir(t.TempDir())
	open(t, "relative.db")
	if _, err := os.Stat("relative.db"); err != nil {
		t.Error(err)
	}
}

// TestRefused has files that Open must refuse, and leave as they are.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"newer": {
			func(t *testing.T, path string) {
				open(t, path).Close()
				run(t, path, "PRAGMA user_version = 7")
			},
			"was written by a newer Helve (schema 7, this one knows 1)",
		},
		"another program's": {
			func(t *testing.T, path string) { run(t, path, "CREATE TABLE theirs (x)", "PRAGMA user_version = 1") },
			"is a database of another program",
		},
		"not a database": {
			func(t *testing.T, path string) {
				if err := os.WriteFile(path, bytes.Repeat([]byte("text, not a database\n"), 500), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"is damaged: ",
		},
		"damaged header": {
			func(t *testing.T, path string) {
				open(t, path).Close()
				damage(t, path, 0, 100)
			},
			"is damaged: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "helve.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := sqlite.Open(t.Context(), path)
			if err == nil || !strings.Contains(err.Error(), "store "+path+" "+c.want) {
				t.Errorf("Open = %v, want store %s %s...", err, path, c.want)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("a file that was refused has been changed")
			}
		})
	}
}

// damage overwrites n bytes of a file.
func damage(t *testing.T, path string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, n), at); err != nil {
		t.Fatal(err)
	}
}

// Damage that Open does not look for is found when it is read, and is an
// error, not fewer values.
func TestDamagedInside(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	put(t, s, 200)
	s.Close()
	damage(t, path, 40<<10, 200<<10)
	n, err := size(t.Context(), open(t, path))
	if err == nil || !strings.Contains(err.Error(), "store "+path+" is damaged: ") {
		t.Errorf("View = %v after %d of 200 values", err, n)
	}
}

func TestNoPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(file, "helve.db"), ""} {
		s, err := sqlite.Open(t.Context(), path)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Open(%q) = %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Open(ctx, newPath(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v in a context that has ended", err)
	}
}

// All of many handles that are opened on nothing at once find the same store.
func TestOpenAtOnce(t *testing.T) {
	path := newPath(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			s, err := sqlite.Open(t.Context(), path)
			if err == nil {
				err = s.Update(t.Context(), func(w store.Writer) error { return w.Put("b", fmt.Sprint(i), nil) })
				err = errors.Join(err, s.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, err := size(t.Context(), open(t, path)); n != 16 || err != nil {
		t.Errorf("%d values, %v, want 16", n, err)
	}
}

// More Views than there are connections take turns; one whose context ends
// does not wait.
func TestManyViews(t *testing.T) {
	s := open(t, newPath(t))
	put(t, s, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var inside, all sync.WaitGroup
	release := make(chan struct{})
	inside.Add(8)
	for range 8 {
		all.Go(func() {
			s.View(t.Context(), func(store.Reader) error {
				inside.Done()
				<-release
				return nil
			})
		})
	}
	inside.Wait()
	all.Go(func() {
		if _, err := size(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("View = %v, waiting in a context that ended", err)
		}
	})
	cancel()
	for range 20 {
		all.Go(func() {
			if n, err := size(t.Context(), s); n != 3 || err != nil {
				t.Errorf("View sees %d values, %v", n, err)
			}
		})
	}
	close(release)
	all.Wait()
}
