package root_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

// furnished is a root with files, folders, and links of every kind.
func furnished(t *testing.T) (*root.Root, string) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	put(t, outer, "secret.txt", "outside")
	put(t, outer, "ws-evil/s.txt", "outside")
	for _, name := range []string{"a.txt", "sub/b.txt", "sub/deep/c.txt", "x y.txt", "ünï.txt", "..data/c.txt", "...", "sub/..b", ".git/config", "sub/.helve/db", "vendor/.git"} {
		put(t, dir, name, "inside")
	}
	link(t, dir, "sub", "in")
	link(t, dir, filepath.Join(dir, "sub"), "in-abs")
	link(t, dir, "in/deep", "in2")
	link(t, dir, "../a.txt", "sub/up")
	link(t, dir, outer, "out")
	link(t, dir, "..", "parent")
	link(t, dir, "../ws/a.txt", "round")
	link(t, dir, "/", "slash")
	link(t, dir, "loop", "loop")
	link(t, dir, "ping", "pong")
	link(t, dir, "pong", "ping")
	link(t, dir, "nothing", "dangling")
	link(t, dir, filepath.Join(outer, "nothing"), "dangling-out")
	link(t, dir, ".git", "to-git")
	link(t, dir, "a.txt", "to-file")
	link(t, dir, "sub/", "to-sub-slash")
	link(t, dir, ".", "self")
	return r, dir
}

func TestResolveArrives(t *testing.T) {
	r, dir := furnished(t)
	for _, c := range []struct{ name, want string }{
		{"a.txt", "a.txt"}, {"./a.txt", "a.txt"}, {"sub//b.txt", "sub/b.txt"}, {"sub/./b.txt", "sub/b.txt"}, {"sub/../a.txt", "a.txt"},
		{".", "."}, {"./", "."}, {"sub/..", "."}, {"sub/", "sub"}, {"sub/.", "sub"}, {"sub/deep/..", "sub"}, {"sub/..b", "sub/..b"}, {"...", "..."}, {"..data/c.txt", "..data/c.txt"},
		{"x y.txt", "x y.txt"}, {"ünï.txt", "ünï.txt"}, {"~", "~"}, {"~backup", "~backup"}, {"./~/x", "~/x"}, {"new/file.txt", "new/file.txt"}, {"new/folder/", "new/folder"},
		{"in/b.txt", "sub/b.txt"}, {"in-abs/b.txt", "sub/b.txt"}, {"in2/c.txt", "sub/deep/c.txt"}, {"in2/../b.txt", "sub/b.txt"}, {"sub/up", "a.txt"}, {"to-file", "a.txt"},
		{"to-sub-slash/b.txt", "sub/b.txt"}, {"self/self/self/a.txt", "a.txt"}, {"dangling", "nothing"}, {"in/", "sub"}, {"in/new.txt", "sub/new.txt"},
		{dir, "."}, {dir + "/", "."}, {dir + "/a.txt", "a.txt"}, {dir + "//sub/./b.txt", "sub/b.txt"}, {"/" + dir + "/a.txt", "a.txt"}, {dir + "/in/b.txt", "sub/b.txt"},
		{filepath.Dir(dir) + "/./ws/a.txt", "a.txt"},
	} {
		for _, access := range []root.Access{root.ToList, root.ToRead, root.ToWrite} {
			p, err := r.Resolve(c.name, access)
			if err != nil || p.Rel != c.want {
				t.Errorf("%s %q = %q, %v; want %q", access, c.name, p.Rel, err, c.want)
				continue
			}
			if want := filepath.Join(dir, c.want); p.Abs != want {
				t.Errorf("%s %q: absolute %q, want %q", access, c.name, p.Abs, want)
			}
			info, err := os.Lstat(p.Abs)
			if p.Exists != (err == nil) || p.Exists && p.Mode != info.Mode() {
				t.Errorf("%s %q: exists %v with mode %v; the disk says %v, %v", access, c.name, p.Exists, p.Mode, info, err)
			}
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the names mean other things on Windows")
	}
	r, dir := furnished(t)
	outer := filepath.Dir(dir)
	for _, c := range []struct {
		name string
		code root.Code
	}{
		{"..", root.Outside}, {"../", root.Outside}, {"../a.txt", root.Outside}, {"../../secret.txt", root.Outside}, {"sub/../../secret.txt", root.Outside}, {"./../ws/a.txt", root.Outside},
		{"../ws/a.txt", root.Outside}, {"/etc/passwd", root.Outside}, {"//etc/passwd", root.Outside}, {"/", root.Outside}, {outer, root.Outside}, {outer + "/ws-evil/s.txt", root.Outside},
		{dir + "/../secret.txt", root.Outside}, {dir + "/../ws/a.txt", root.Outside}, {outer + "/ws-evil/../ws/a.txt", root.Outside}, {dir + "x", root.Outside}, {dir + "/.././", root.Outside},
		{"out", root.Outside}, {"out/secret.txt", root.Outside}, {"out/ws/a.txt", root.Outside}, {"parent/secret.txt", root.Outside}, {"parent/ws/a.txt", root.Outside}, {"round", root.Outside},
		{"slash/etc/passwd", root.Outside}, {"in/../../secret.txt", root.Outside}, {"in-abs/../../secret.txt", root.Outside}, {"dangling-out", root.Outside}, {"dangling-out/x", root.Outside},
		{"/proc/self/root/etc/passwd", root.Outside}, {"/proc/self/cwd/a.txt", root.Outside}, {"/dev/null", root.Outside}, {"/dev/fd/0", root.Outside},
		{"", root.Invalid}, {"a\x00b", root.Invalid}, {"a.txt\x00.png", root.Invalid}, {"\n../secret.txt", root.Invalid}, {"a\tb", root.Invalid}, {"a\x7fb", root.Invalid}, {"a\x1b[0m", root.Invalid}, {"\xff\xfe", root.Invalid}, {"a/\xc0\xaf/b", root.Invalid},
		{"~/x", root.Invalid}, {"~root/x", root.Invalid}, {"~/", root.Invalid}, {strings.Repeat("a", 256), root.Invalid}, {strings.Repeat("a/", 2049), root.Invalid}, {strings.Repeat("../", 2000), root.Invalid},
		{"loop", root.Invalid}, {"ping/x", root.Invalid}, {"a.txt/", root.Invalid}, {"a.txt/.", root.Invalid}, {"a.txt/..", root.Invalid}, {"a.txt/../sub/b.txt", root.Invalid}, {"a.txt/x", root.Invalid}, {"to-file/", root.Invalid}, {"new/../a.txt", root.Invalid}, {"dangling/../a.txt", root.Invalid},
		{".git", root.Blocked}, {".git/", root.Blocked}, {".git/config", root.Blocked}, {".git/hooks/pre-commit", root.Blocked}, {".GIT/config", root.Blocked}, {".Git", root.Blocked}, {"sub/.git", root.Blocked}, {"vendor/.git", root.Blocked},
		{"git~1/config", root.Blocked}, {"GIT~1", root.Blocked}, {".git./config", root.Blocked}, {".git /config", root.Blocked}, {".git. . ", root.Blocked}, {".git::$INDEX_ALLOCATION/config", root.Blocked}, {".git:x", root.Blocked}, {`.git\config`, root.Blocked},
		{".g\u200cit/config", root.Blocked}, {"\u200b.git", 0}, {"\ufeff.git/config", root.Blocked}, {".gi\u206ft", root.Blocked}, {".HELVE/db", root.Blocked}, {".helve", root.Blocked}, {"sub/.helve/db", root.Blocked}, {"helve~1/db", root.Blocked}, {".helve-tmp-0123", root.Blocked},
		{"to-git", root.Blocked}, {"to-git/config", root.Blocked}, {".git/../a.txt", root.Blocked}, {".git/none/../..", root.Blocked}, {"in/.git/x", root.Blocked},
		{".gitignore", 0}, {".github/x", 0}, {"git", 0}, {"x.git/config", 0}, {".helver", 0}, {"git~2", 0},
	} {
		for _, access := range []root.Access{root.ToList, root.ToRead, root.ToWrite, root.ToDelete} {
			p, err := r.Resolve(c.name, access)
			if got := root.CodeOf(err); got != c.code {
				t.Errorf("%s %q = %q, %v (%s); want %s", access, c.name, p.Rel, err, got, c.code)
			}
			if err != nil && p != (root.Path{}) {
				t.Errorf("%s %q: a path comes with the refusal: %+v", access, c.name, p)
			}
		}
	}
}

func TestResolveNeedsAnAccess(t *testing.T) {
	r, _ := newRoot(t)
	for _, access := range []root.Access{0, -1, root.ToDelete + 1} {
		if _, err := r.Resolve(".", access); root.CodeOf(err) != root.Invalid {
			t.Errorf("access %d: %v; want it refused as invalid", access, err)
		}
	}
}

// The kernel is the oracle: what it opens by a name, Resolve must find, and nothing else.
func TestResolveAgreesWithTheKernel(t *testing.T) {
	r, dir := furnished(t)
	parts := []string{"a.txt", "sub", "deep", "..", ".", "in", "in2", "in-abs", "b.txt", "c.txt", "to-file", "self", "up", "none", "dangling", "to-sub-slash", ""}
	var names []string
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				names = append(names, strings.TrimPrefix(a+"/"+b+"/"+c, "/"))
			}
		}
	}
	compared := 0
	for _, name := range names {
		p, err := r.Resolve(name, root.ToRead)
		want, statErr := os.Stat(dir + "/" + name)
		switch {
		case root.CodeOf(err) == root.Outside || name == "":
			continue
		case statErr == nil && (err != nil || !p.Exists):
			t.Errorf("%q: %+v, %v; the kernel finds it", name, p, err)
		case statErr != nil && err == nil && p.Exists:
			t.Errorf("%q: found as %q; the kernel says %v", name, p.Rel, statErr)
		case statErr == nil:
			got, err := os.Lstat(p.Abs)
			if err != nil || !os.SameFile(got, want) {
				t.Errorf("%q resolves to %q, which is not what the kernel opens (%v)", name, p.Rel, err)
			}
		}
		compared++
	}
	if compared < 1000 {
		t.Fatalf("only %d names were compared", compared)
	}
}

func TestDeleteIsOfTheLinkItself(t *testing.T) {
	r, dir := furnished(t)
	p, err := r.Resolve("to-file", root.ToDelete)
	must(t, err)
	if p.Rel != "to-file" || p.Mode&fs.ModeSymlink == 0 {
		t.Fatalf("resolved to %+v, want the link", p)
	}
	must(t, r.Remove(p))
	if _, err := os.Lstat(filepath.Join(dir, "to-file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
		t.Errorf("its target went as well: %v", err)
	}
	if _, err := r.Resolve("in/", root.ToDelete); root.CodeOf(err) != root.Invalid {
		t.Errorf("a link with a slash: %v; want it refused", err)
	}
	if p, err := r.Resolve("in/deep", root.ToDelete); err != nil || p.Rel != "sub/deep" {
		t.Errorf("beneath a link: %q, %v; want sub/deep", p.Rel, err)
	}
}

func TestOpenByALink(t *testing.T) {
	_, dir := furnished(t)
	alias := filepath.Join(filepath.Dir(dir), "alias")
	must(t, os.Symlink(dir, alias))
	r, err := root.Open(alias)
	must(t, err)
	defer r.Close()
	if r.Dir() != dir {
		t.Errorf("the folder is %q, want it without links: %q", r.Dir(), dir)
	}
	for _, name := range []string{alias + "/a.txt", dir + "/a.txt", "a.txt"} {
		if p, err := r.Resolve(name, root.ToRead); err != nil || p.Rel != "a.txt" {
			t.Errorf("%q = %q, %v; want a.txt", name, p.Rel, err)
		}
	}
	must(t, os.Remove(alias))
	must(t, os.Symlink(filepath.Dir(dir), alias))
	if p, err := r.Resolve(alias+"/secret.txt", root.ToRead); err == nil && p.Exists {
		t.Errorf("a link that was moved since leads to %q", p.Abs)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, dir := furnished(t)
	for _, name := range []string{filepath.Join(dir, "a.txt"), filepath.Join(dir, "none"), filepath.Join(dir, "loop")} {
		if r, err := root.Open(name); err == nil {
			r.Close()
			t.Errorf("%s was opened as a root", name)
		}
	}
}

func TestClosed(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "a.txt", "x")
	p, err := r.Resolve("a.txt", root.ToRead)
	must(t, err)
	must(t, r.Close())
	if _, err := r.Resolve("a.txt", root.ToRead); err == nil {
		t.Error("a closed root resolves")
	}
	if _, err := r.ReadFile(p, 0); err == nil {
		t.Error("a closed root reads")
	}
}

// Whatever the name, what Resolve returns lies in the root, is free of links and stays what it is.
func FuzzResolve(f *testing.F) {
	outer, err := filepath.EvalSymlinks(f.TempDir())
	must(f, err)
	dir := filepath.Join(outer, "ws")
	put(f, outer, "secret.txt", "outside")
	put(f, dir, "a/b/c", "x")
	put(f, dir, "d", "x")
	link(f, dir, "a/b", "l")
	link(f, dir, "..", "up")
	link(f, dir, "../d", "a/u")
	link(f, dir, dir, "r")
	r, err := root.Open(dir)
	must(f, err)
	f.Cleanup(func() { r.Close() })
	for _, name := range []string{"a/b/c", "l/../u", "up/ws/d", "r/l/c", "../ws", "a//b/./..", "r/r/../secret.txt", "~/x", "a/none/../x", "\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := r.Resolve(name, root.ToWrite)
		if err != nil {
			return
		}
		if !fs.ValidPath(p.Rel) || p.Abs != filepath.Join(dir, p.Rel) {
			t.Fatalf("%q: %+v lies outside, or is not clean", name, p)
		}
		if real, err := filepath.EvalSymlinks(p.Abs); p.Exists && (err != nil || real != p.Abs) {
			t.Fatalf("%q: %q still goes through a link, to %q (%v)", name, p.Abs, real, err)
		}
		again, err := r.Resolve("./"+p.Rel, root.ToWrite)
		if again.Mode = p.Mode; err != nil || again != p {
			t.Fatalf("%q: %+v resolves again to %+v, %v", name, p, again, err)
		}
	})
}
