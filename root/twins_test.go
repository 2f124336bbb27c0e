//go:build unix

package root_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/helve-ai/helve/root"
)

func hardLink(t testing.TB, dir, old, name string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.Link(filepath.Join(dir, old), filepath.Join(dir, name)))
}

// What one name of a file forbids, its other names do not allow.
func TestHardLinks(t *testing.T) {
	for _, tc := range []struct {
		name, ignore, protect, file string
		read, write                 root.Code
	}{
		{"hidden", "*.key\n", "", "a.key", root.Blocked, root.Blocked},
		{"in a hidden folder", "dark/\n", "", "dark/deep/down", root.Blocked, root.Blocked},
		{"in .git, with rules", "x\n", "", "sub/.git/config", root.Blocked, root.Blocked},
		{"in .git, without", "", "", ".git/config", root.Blocked, root.Blocked},
		{"in .helve", "", "", ".helve/helve.db", root.Blocked, root.Blocked},
		{"blocked by Helve", "", "", "state/helve.db", root.Blocked, root.Blocked},
		{"protected", "", "kept/\n", "kept/a", 0, root.Protected},
		{"protected by Helve", "", "", "app.yaml", 0, root.Protected},
		{"the rules", "x\n", "", ".helveignore", 0, root.Protected},
		{"taken back", "*.key\n!a.key\n", "", "a.key", 0, 0},
		{"neither", "dark/\n", "kept/\n", "free", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, dir := newRoot(t)
			r.Block("state")
			r.Protect("app.yaml")
			if tc.ignore != "" {
				put(t, dir, ".helveignore", tc.ignore)
			}
			if tc.protect != "" {
				put(t, dir, ".helveprotect", tc.protect)
			}
			if tc.file != ".helveignore" {
				put(t, dir, tc.file, "s3cret")
			}
			hardLink(t, dir, tc.file, "lib/other")
			for access, want := range map[root.Access]root.Code{root.ToList: 0, root.ToRead: tc.read, root.ToWrite: tc.write, root.ToDelete: tc.write} {
				if _, err := r.Resolve("lib/other", access); root.CodeOf(err) != want || err != nil && want == 0 {
					t.Errorf("%s: %v, want %v", access, err, want)
				}
			}
			// A path that was judged when the file had one name.
			p := root.Path{Rel: "lib/other", Abs: filepath.Join(dir, "lib/other"), Exists: true}
			if data, err := r.ReadFile(p, 0); root.CodeOf(err) != tc.read || err != nil && tc.read == 0 {
				t.Errorf("read: %q %v", data, err)
			}
			f, err := r.OpenFile(p, os.O_WRONLY|os.O_TRUNC, 0)
			if root.CodeOf(err) != tc.write || err != nil && tc.write == 0 {
				t.Errorf("open to write: %v", err)
			}
			if err == nil {
				f.Close()
			} else if info, err := os.Stat(filepath.Join(dir, "lib/other")); err != nil || info.Size() == 0 {
				t.Errorf("what was refused is empty: %v", err)
			}
		})
	}
}

// Files that have many names, as those of package managers do, are read.
func TestHardLinksOfNothingHidden(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, ".helveignore", "dark/\n")
	put(t, filepath.Dir(dir), "store/f", "x")
	must(t, os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755))
	must(t, os.Link(filepath.Join(filepath.Dir(dir), "store/f"), filepath.Join(dir, "node_modules/f")))
	hardLink(t, dir, "node_modules/f", "node_modules/g")
	put(t, dir, "dark/one", "s3cret")
	if data, err := r.ReadFile(resolve(t, r, "node_modules/g", root.ToRead), 0); err != nil || string(data) != "x" {
		t.Errorf("read %q: %v", data, err)
	}
}

// New rules hold at once for the other names, too.
func TestHardLinksWhenTheRulesChange(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "a.key", "s3cret")
	hardLink(t, dir, "a.key", "other")
	resolve(t, r, "other", root.ToRead)
	put(t, dir, ".helveignore", "*.key\n")
	if _, err := r.Resolve("other", root.ToRead); root.CodeOf(err) != root.Blocked {
		t.Errorf("behind a new rule: %v", err)
	}
	put(t, dir, ".helveignore", "*.pem\n")
	resolve(t, r, "other", root.ToRead)
	r.Block("a.key")
	if _, err := r.Resolve("other", root.ToRead); root.CodeOf(err) != root.Blocked {
		t.Errorf("behind a new place: %v", err)
	}
}

// Where nobody can tell which files are hidden, those with several names are refused, and the others read.
func TestHardLinksThatCannotBeTold(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, ".helveignore", "*.key\n")
	put(t, dir, "one", "x")
	hardLink(t, dir, "one", "two")
	put(t, dir, "alone", "x")
	deep := dir
	for range 210 {
		deep += "/d"
	}
	must(t, os.MkdirAll(deep, 0o755))
	if _, err := r.Resolve("two", root.ToRead); root.CodeOf(err) != root.Blocked {
		t.Errorf("a file with two names: %v", err)
	}
	resolve(t, r, "alone", root.ToRead)
	if _, err := r.Fences(t.Context(), 10, false); err == nil {
		t.Error("commands are fenced")
	}
}

// Commands are kept from the other names as well.
func TestHardLinksAreFenced(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, ".helveignore", "*.key\n")
	put(t, dir, ".helveprotect", "*.lock\n")
	put(t, dir, "a.key", "s3cret")
	put(t, dir, "a.lock", "x")
	hardLink(t, dir, "a.key", "lib/seen")
	hardLink(t, dir, "a.lock", "lib/held")
	put(t, dir, "lib/other", "x")
	f, err := r.Fences(t.Context(), 100, false)
	must(t, err)
	for name, list := range map[string][]string{"lib/seen": f.Hidden, "lib/held": f.Kept} {
		if !slices.Contains(list, filepath.Join(dir, name)) {
			t.Errorf("%s is not in %v", name, list)
		}
	}
	if got := slices.Concat(f.Hidden, f.Kept); slices.Contains(got, filepath.Join(dir, "lib/other")) || slices.Contains(got, filepath.Join(dir, "lib")) {
		t.Errorf("what has one name is fenced: %v", got)
	}
	for i := range 20 {
		hardLink(t, dir, "a.key", fmt.Sprintf("lib/more%d", i))
	}
	if _, err := r.Fences(t.Context(), 10, false); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("more than can be fenced: %v", err)
	}
}
