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
	for _, name := range []string{".git/config", ".helve/db", "a", "app.yaml", "state/x", "state/y", "sub/key.pem", "sub/.git/config", "dark/one", "dark/two", "kept/a", "deep/er/key.pem", "other/.helve/db", "tree/.git", "tree/.helve-tmp-1"} {
		write(name, "")
	}
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	check := func(what string, want ...[]string) {
		t.Helper()
		f, err := r.Fences(t.Context(), 100, false)
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
	f, err := r.Fences(t.Context(), 100, true)
	if err != nil || !slices.Equal(f.Hidden, []string{filepath.Join(dir, ".helve"), filepath.Join(dir, "other/.helve")}) || !slices.Equal(f.Kept, []string{filepath.Join(dir, ".git"), filepath.Join(dir, "sub/.git"), filepath.Join(dir, "tree/.git")}) {
		t.Errorf("no rules, nested: %v %v", f, err)
	}
	if f, err := r.Fences(t.Context(), 4, true); err != nil || len(f.Hidden)+len(f.Kept) != 2 {
		t.Errorf("no rules, more than half of the most: %v %v", f, err)
	}
	r.Block(filepath.Join(dir, "state"))
	r.Protect(filepath.Join(dir, "app.yaml"))
	check("blocked and protected", []string{".helve", "state"}, []string{".git", "app.yaml"}, nil)
	write(root.IgnoreFile, "*.pem\n!sub/other.pem\n/dark/\n")
	write(root.ProtectFile, "kept\n")
	check("rules", []string{".helve", "dark", "deep/er/key.pem", "other/.helve", "state", "sub/key.pem", "tree/.helve-tmp-1"}, []string{".git", ".helveignore", ".helveprotect", "app.yaml", "kept", "sub/.git", "tree/.git"},
		[]string{"deep/er/key.pem", "sub/key.pem"}) // what another folder is called may decide
	write(root.IgnoreFile, "*.pem\ndark/\n")
	check("rules of names", []string{".helve", "dark", "deep/er/key.pem", "other/.helve", "state", "sub/key.pem", "tree/.helve-tmp-1"}, []string{".git", ".helveignore", ".helveprotect", "app.yaml", "kept", "sub/.git", "tree/.git"}, nil)
	if _, err := r.Fences(t.Context(), 5, false); err == nil || !strings.Contains(err.Error(), "name folders") {
		t.Errorf("more than the most: %v", err)
	}
	write(root.IgnoreFile, "\x00")
	if _, err := r.Fences(t.Context(), 100, false); err == nil {
		t.Error("rules that cannot be read fence nothing in")
	}
}
