package root_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/root"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRoot opens a fresh folder called ws, beside which tests may put what must stay out of reach.
func newRoot(t testing.TB) (*root.Root, string) {
	t.Helper()
	outer, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir := filepath.Join(outer, "ws")
	must(t, os.Mkdir(dir, 0o755))
	r, err := root.Open(dir)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, dir
}

// put writes a file and the folders above it.
func put(t testing.TB, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o644))
}

func link(t testing.TB, dir, target, name string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.Symlink(target, filepath.Join(dir, name)))
}
