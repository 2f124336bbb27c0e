package root_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

func TestFences(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".git/config", ".helve/db", "a", "app.yaml", "state/x", "state/y", "sub/key.pem", "sub/.git/config", "dark/one", "dark/two", "kept/a", "deep/er/key.pem"} {
		write(name, "")
	}
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	check := func(what string, want ...[]string) {
		t.Helper()
		f, err := r.Fences(t.Context(), 100)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, list := range [][]string{f.Hidden, f.Kept, f.Placed} {
			for k, p := range list {
				rel, err := filepath.Rel(dir, p)
				if err != nil {
					t.Fatal(err)
				}
				list[k] = filepath.ToSlash(rel)
			}
			slices.Sort(list)
			if !slices.Equal(list, want[i]) {
				t.Errorf("%s: %d: %v, want %v", what, i, list, want[i])
			}
		}
	}
	check("no rules", []string{".helve"}, []string{".git"}, nil)
	r.Block(filepath.Join(dir, "state"))
	r.Protect(filepath.Join(dir, "app.yaml"))
	check("blocked and protected", []string{".helve", "state"}, []string{".git", "app.yaml"}, nil)
	write(root.IgnoreFile, "*.pem\n!sub/other.pem\n/dark/\n")
	write(root.ProtectFile, "kept\n")
	check("rules", []string{".helve", "dark", "deep/er/key.pem", "state", "sub/key.pem"}, []string{".git", ".helveignore", ".helveprotect", "app.yaml", "kept", "sub/.git"},
		[]string{"deep/er/key.pem", "sub/key.pem"}) // what another folder is called may decide
	write(root.IgnoreFile, "*.pem\ndark/\n")
	check("rules of names", []string{".helve", "dark", "deep/er/key.pem", "state", "sub/key.pem"}, []string{".git", ".helveignore", ".helveprotect", "app.yaml", "kept", "sub/.git"}, nil)
	if _, err := r.Fences(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "name folders") {
		t.Errorf("more than the most: %v", err)
	}
	write(root.IgnoreFile, "\x00")
	if _, err := r.Fences(t.Context(), 100); err == nil {
		t.Error("rules that cannot be read fence nothing in")
	}
}
