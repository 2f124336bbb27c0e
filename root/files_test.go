package root_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

func resolve(t testing.TB, r *root.Root, name string, access root.Access) root.Path {
	t.Helper()
	p, err := r.Resolve(name, access)
	must(t, err)
	return p
}

func content(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return string(data)
}

// temps counts the hidden files that a write left behind.
func temps(t *testing.T, dir string) (n int) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), ".helve-tmp-") {
			n++
		}
		return err
	}))
	return n
}

func TestReadFile(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "a.txt", "hello")
	put(t, dir, "empty", "")
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	for _, c := range []struct {
		name string
		max  int64
		want string
	}{{"a.txt", 0, "hello"}, {"a.txt", 5, "hello"}, {"empty", 1, ""}} {
		if data, err := r.ReadFile(resolve(t, r, c.name, root.ToRead), c.max); err != nil || string(data) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, data, err, c.want)
		}
	}
	if _, err := r.ReadFile(resolve(t, r, "a.txt", root.ToRead), 4); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a file above the limit: %v", err)
	}
	if _, err := r.ReadFile(resolve(t, r, "folder", root.ToRead), 0); root.CodeOf(err) != root.Invalid {
		t.Errorf("a folder: %v", err)
	}
	if _, err := r.ReadFile(resolve(t, r, "none/none", root.ToRead), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestWriteFileAtomic(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "run.sh", "old")
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o751))
	link(t, dir, "run.sh", "link")
	for _, c := range []struct{ name, file string }{{"run.sh", "run.sh"}, {"link", "run.sh"}, {"new.txt", "new.txt"}} {
		must(t, r.WriteFileAtomic(resolve(t, r, c.name, root.ToWrite), []byte("by "+c.name), 0))
		if got := content(t, dir, c.file); got != "by "+c.name {
			t.Errorf("%s holds %q", c.file, got)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if runtime.GOOS != "windows" {
		if info, _ := os.Stat(filepath.Join(dir, "run.sh")); info.Mode().Perm() != 0o751 {
			t.Errorf("the permissions became %v", info.Mode())
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	put(t, dir, "fixed", "old")
	must(t, os.Chmod(filepath.Join(dir, "fixed"), 0o444))
	for name, is := range map[string]func(error) bool{
		"folder":   func(err error) bool { return root.CodeOf(err) == root.Invalid },
		"newdir/":  func(err error) bool { return root.CodeOf(err) == root.Invalid },
		".":        func(err error) bool { return root.CodeOf(err) == root.Invalid },
		"none/x":   func(err error) bool { return errors.Is(err, fs.ErrNotExist) },
		"fixed":    func(err error) bool { return errors.Is(err, fs.ErrPermission) },
		"fixed/..": nil,
	} {
		p, err := r.Resolve(name, root.ToWrite)
		if is == nil {
			if err == nil {
				t.Errorf("%s resolves to %q", name, p.Rel)
			}
			continue
		}
		must(t, err)
		if err := r.WriteFileAtomic(p, []byte("x"), 0); !is(err) {
			t.Errorf("write %s: %v", name, err)
		}
	}
	if n := temps(t, dir); n != 0 {
		t.Errorf("%d hidden files are left", n)
	}
}

// What was judged is written and read, not what stands in its place by then.
func TestSwappedMeanwhile(t *testing.T) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	put(t, outer, "away/f", "outside")
	put(t, dir, ".git/f", "blocked")
	for _, target := range []string{filepath.Join(outer, "away"), ".git"} {
		for _, swap := range []string{"sub", "sub/f"} {
			put(t, dir, "sub/f", "inside")
			read, write := resolve(t, r, "sub/f", root.ToRead), resolve(t, r, "sub/f", root.ToWrite)
			gone, fresh := resolve(t, r, "sub/f", root.ToDelete), resolve(t, r, "sub/new/x/", root.ToWrite)
			must(t, os.RemoveAll(filepath.Join(dir, swap)))
			if to := target; swap == "sub" {
				link(t, dir, to, swap)
			} else {
				link(t, dir, filepath.Join(dir, to, "f"), swap)
			}
			if data, err := r.ReadFile(read, 0); root.CodeOf(err) != root.Changed {
				t.Errorf("%s -> %s: read %q, %v; want it refused as changed", swap, target, data, err)
			}
			if err := r.WriteFileAtomic(write, []byte("bad"), 0); root.CodeOf(err) != root.Changed {
				t.Errorf("%s -> %s: write: %v; want it refused as changed", swap, target, err)
			}
			if f, err := r.OpenFile(write, os.O_WRONLY|os.O_TRUNC|os.O_CREATE, 0o644); root.CodeOf(err) != root.Changed {
				t.Errorf("%s -> %s: open: %v, %v; want it refused as changed", swap, target, f, err)
			}
			if err := r.Remove(gone); root.CodeOf(err) != root.Changed {
				t.Errorf("%s -> %s: remove: %v; want it refused as changed", swap, target, err)
			}
			if swap == "sub" {
				if err := r.Mkdir(fresh, 0o755); err == nil {
					t.Errorf("%s -> %s: a folder was made", swap, target)
				}
			}
			must(t, os.RemoveAll(filepath.Join(dir, "sub")))
		}
	}
	if got := content(t, outer, "away/f") + content(t, dir, ".git/f"); got != "outsideblocked" {
		t.Errorf("the content became %q", got)
	}
	if entries, _ := os.ReadDir(filepath.Join(outer, "away")); len(entries) != 1 {
		t.Errorf("the folder outside holds %v", entries)
	}
}

// A rule that is written after a path was judged applies to it all the same.
func TestRuleMeanwhile(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "sub/f", "x")
	p, target := resolve(t, r, "sub/f", root.ToDelete), resolve(t, r, "g", root.ToWrite)
	put(t, dir, root.IgnoreFile, "sub/\n")
	if _, err := r.ReadFile(p, 0); root.CodeOf(err) != root.Blocked {
		t.Errorf("read: %v", err)
	}
	if err := r.WriteFileAtomic(p, nil, 0); root.CodeOf(err) != root.Blocked {
		t.Errorf("write: %v", err)
	}
	if err := r.Remove(p); root.CodeOf(err) != root.Blocked {
		t.Errorf("remove: %v", err)
	}
	if err := r.Rename(p, target); root.CodeOf(err) != root.Blocked {
		t.Errorf("rename: %v", err)
	}
	if _, err := r.Stat(p); root.CodeOf(err) != root.Blocked {
		t.Errorf("stat: %v", err)
	}
}

// A root that is moved elsewhere is no longer the folder that calls may touch.
func TestRootMovedAway(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells where an open folder lies")
	}
	r, dir := newRoot(t)
	put(t, dir, "sub/f", "x")
	p := resolve(t, r, "sub/f", root.ToWrite)
	must(t, os.Rename(dir, dir+".moved"))
	if data, err := r.ReadFile(p, 0); root.CodeOf(err) != root.Changed {
		t.Errorf("read %q, %v; want it refused as changed", data, err)
	}
	if err := r.WriteFileAtomic(p, []byte("y"), 0); root.CodeOf(err) != root.Changed {
		t.Errorf("write: %v; want it refused as changed", err)
	}
}

func TestOpenFile(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "a.txt", "hello")
	put(t, dir, root.ProtectFile, "fixed")
	put(t, dir, "fixed", "x")
	f, err := r.OpenFile(resolve(t, r, "a.txt", root.ToWrite), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = io.WriteString(f, " world")
	must(t, errors.Join(err, f.Close()))
	f, err = r.Open(resolve(t, r, "a.txt", root.ToRead))
	must(t, err)
	data, err := io.ReadAll(f)
	must(t, errors.Join(err, f.Close()))
	if string(data) != "hello world" {
		t.Errorf("appended to %q", data)
	}
	f, err = r.OpenFile(resolve(t, r, "a.txt", root.ToWrite), os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	must(t, f.Close())
	if got := content(t, dir, "a.txt"); got != "" {
		t.Errorf("truncated to %q", got)
	}
	fixed := resolve(t, r, "fixed", root.ToRead)
	for _, flag := range []int{os.O_WRONLY, os.O_RDWR, os.O_CREATE, os.O_TRUNC, os.O_APPEND} {
		if f, err := r.OpenFile(fixed, flag, 0o644); root.CodeOf(err) != root.Protected {
			t.Errorf("flag %#x on a protected file: %v, %v", flag, f, err)
		}
	}
	for _, rel := range []string{"../x", "/etc/passwd", "a/../b", "", ".git/config", "sub//x"} {
		if f, err := r.Open(root.Path{Rel: rel}); err == nil || root.CodeOf(err) == 0 {
			t.Errorf("a path made by hand, %q: %v, %v", rel, f, err)
		}
	}
}

func TestMkdir(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, root.IgnoreFile, "build/\n")
	put(t, dir, "file", "x")
	link(t, dir, "file", "link")
	must(t, r.Mkdir(resolve(t, r, "x/y/z/", root.ToWrite), 0o755))
	must(t, r.Mkdir(resolve(t, r, "x/y/z", root.ToWrite), 0o755))
	must(t, r.Mkdir(resolve(t, r, ".", root.ToWrite), 0o755))
	if info, err := os.Stat(filepath.Join(dir, "x/y/z")); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if err := r.Mkdir(resolve(t, r, "build", root.ToWrite), 0o755); root.CodeOf(err) != root.Blocked {
		t.Errorf("a folder that a rule for folders blocks: %v", err)
	}
	if err := r.Mkdir(resolve(t, r, "file", root.ToWrite), 0o755); err == nil {
		t.Error("a file became a folder")
	}
}

func TestRemoveAll(t *testing.T) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	put(t, outer, "away/f", "outside")
	put(t, dir, "tree/a/b/c", "x")
	put(t, dir, "tree/.helve-tmp-00", "left behind")
	put(t, dir, "kept/.git/config", "x")
	put(t, dir, "kept/file", "x")
	must(t, os.Symlink(filepath.Join(outer, "away"), filepath.Join(dir, "tree/a/out")))
	must(t, r.RemoveAll(resolve(t, r, "tree", root.ToDelete)))
	if _, err := os.Lstat(filepath.Join(dir, "tree")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if got := content(t, outer, "away/f"); got != "outside" {
		t.Errorf("the file behind the link: %q", got)
	}
	kept := resolve(t, r, "kept", root.ToWrite)
	if err := r.RemoveAll(kept); root.CodeOf(err) != root.Blocked {
		t.Errorf("a folder with a repository in it: %v", err)
	}
	content(t, dir, "kept/file")
	if err := r.RemoveAll(resolve(t, r, ".", root.ToWrite)); root.CodeOf(err) != root.Protected {
		t.Errorf("the root itself: %v", err)
	}
}

func TestRemove(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "full/file", "x")
	if err := r.Remove(resolve(t, r, "full", root.ToDelete)); err == nil {
		t.Error("a folder with content was removed")
	}
	must(t, r.Remove(resolve(t, r, "full/file", root.ToDelete)))
	must(t, r.Remove(resolve(t, r, "full", root.ToDelete)))
	if err := r.Remove(resolve(t, r, "full", root.ToDelete)); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "full") {
		t.Errorf("what is gone: %v", err)
	}
}

func TestRename(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, root.IgnoreFile, "hidden/\n")
	for _, name := range []string{"a", "b", "tree/x", "dir/y", "held/.git/config"} {
		put(t, dir, name, name)
	}
	move := func(from, to string) error {
		source, err := r.Resolve(from, root.ToDelete)
		if err != nil {
			return err
		}
		target, err := r.Resolve(to, root.ToWrite)
		if err != nil {
			return err
		}
		return r.Rename(source, target)
	}
	must(t, move("a", "b"))
	must(t, move("tree", "dir/tree"))
	if got := content(t, dir, "b") + content(t, dir, "dir/tree/x"); got != "atree/x" {
		t.Errorf("moved content: %q", got)
	}
	for _, c := range []struct {
		from, to string
		code     root.Code
	}{
		{"b", "dir", root.Invalid}, {"dir", "hidden", root.Blocked}, {"dir", ".git", root.Blocked}, {"held", "free", root.Blocked}, {"b", root.IgnoreFile, root.Protected}, {root.IgnoreFile, "c", root.Protected}, {"b", "../c", root.Outside},
	} {
		if err := move(c.from, c.to); root.CodeOf(err) != c.code {
			t.Errorf("%s to %s: %v; want %s", c.from, c.to, err, c.code)
		}
	}
	if err := move("dir", "dir/tree/dir"); err == nil {
		t.Error("a folder was moved into itself")
	}
	if err := move("none", "c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestStat(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "sub/a.txt", "hello")
	info, err := r.Stat(resolve(t, r, "sub/a.txt", root.ToList))
	want, _ := os.Stat(filepath.Join(dir, "sub/a.txt"))
	if err != nil || info.Size != 5 || info.Mode != want.Mode() || !info.ModTime.Equal(want.ModTime()) {
		t.Errorf("%+v, %v; want %v", info, err, want)
	}
	if info, err := r.Stat(resolve(t, r, ".", root.ToList)); err != nil || !info.Mode.IsDir() {
		t.Errorf("the root: %+v, %v", info, err)
	}
	if _, err := r.Stat(root.Path{Rel: "none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
