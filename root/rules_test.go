package root_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

func codes(t *testing.T, r *root.Root, name string) (read, write, remove root.Code) {
	t.Helper()
	_, a := r.Resolve(name, root.ToRead)
	_, b := r.Resolve(name, root.ToWrite)
	_, c := r.Resolve(name, root.ToDelete)
	return root.CodeOf(a), root.CodeOf(b), root.CodeOf(c)
}

func TestRules(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, root.IgnoreFile, "*.pem\n/secrets/\n!public.pem\nlogs/*\n!logs/keep\n")
	put(t, dir, root.ProtectFile, "go.mod\ndocs/**\n!docs/draft.md\n")
	for _, name := range []string{"key.pem", "public.pem", "secrets/public.pem", "secrets/x", "sub/secrets/x", "logs/a", "logs/keep", "go.mod", "docs/a.md", "docs/draft.md", "open/file", "mixed/go.mod", "mixed2/key.pem"} {
		put(t, dir, name, "x")
	}
	link(t, dir, "key.pem", "alias")
	link(t, dir, "open/file", "alias.pem")
	link(t, dir, "go.mod", "mod")
	const ok, blocked, protected = root.Code(0), root.Blocked, root.Protected
	for _, c := range []struct {
		name                string
		read, write, remove root.Code
	}{
		{"key.pem", blocked, blocked, blocked}, {"new.pem", blocked, blocked, blocked}, {"public.pem", ok, ok, ok}, {"secrets/public.pem", blocked, blocked, blocked},
		{"secrets", blocked, blocked, blocked}, {"secrets/none/x", blocked, blocked, blocked}, {"secrets/x/y", blocked, blocked, blocked}, {"secrets/../open/file", blocked, blocked, blocked},
		{"sub/secrets/x", ok, ok, ok}, {"logs/a", blocked, blocked, blocked}, {"logs/keep", ok, ok, ok}, {"logs", ok, ok, blocked},
		{"alias", blocked, blocked, blocked}, {"alias.pem", blocked, blocked, blocked}, {"mod", ok, protected, ok},
		{"go.mod", ok, protected, protected}, {"docs/a.md", ok, protected, protected}, {"docs/new.md", ok, protected, protected}, {"docs/draft.md", ok, ok, ok}, {"docs", ok, ok, protected},
		{"mixed", ok, ok, protected}, {"mixed2", ok, ok, blocked}, {"open", ok, ok, ok}, {"open/file", ok, ok, ok},
		{root.IgnoreFile, ok, protected, protected}, {root.ProtectFile, ok, protected, protected}, {".HELVEIGNORE", ok, protected, protected}, {"helvep~1", ok, protected, protected}, {".helveignore. ", ok, protected, protected},
		{"sub/.helveignore", ok, ok, ok}, {".", ok, ok, protected},
	} {
		if read, write, remove := codes(t, r, c.name); read != c.read || write != c.write || remove != c.remove {
			t.Errorf("%s: read %s, write %s, delete %s; want %s, %s, %s", c.name, read, write, remove, c.read, c.write, c.remove)
		}
	}
	_, err := r.Resolve("key.pem", root.ToRead)
	if err == nil || !strings.Contains(err.Error(), "line 1 of .helveignore (*.pem)") {
		t.Errorf("the refusal does not name the rule: %v", err)
	}
}

func TestRulesAreReadAgain(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, "a.txt", "x")
	file := filepath.Join(dir, root.IgnoreFile)
	for i, step := range []struct {
		rules string
		want  root.Code
	}{{"a.txt", root.Blocked}, {"b.txt", 0}, {"a.*xt", root.Blocked}, {"", 0}, {"a.txt", root.Blocked}} {
		must(t, os.WriteFile(file, []byte(step.rules), 0o644))
		if read, _, _ := codes(t, r, "a.txt"); read != step.want {
			t.Errorf("step %d, rules %q: %s, want %s", i, step.rules, read, step.want)
		}
	}
	must(t, os.Remove(file))
	if read, _, _ := codes(t, r, "a.txt"); read != 0 {
		t.Errorf("after the rule file went: %s", read)
	}
}

func TestUnreadableRulesDenyEverything(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir, file string){
		"a folder":  func(t *testing.T, dir, file string) { must(t, os.Mkdir(filepath.Join(dir, file), 0o755)) },
		"a link":    func(t *testing.T, dir, file string) { link(t, dir, "a.txt", file) },
		"dangling":  func(t *testing.T, dir, file string) { link(t, dir, "nothing", file) },
		"too large": func(t *testing.T, dir, file string) { put(t, dir, file, strings.Repeat("x\n", 1<<20)) },
		"not UTF-8": func(t *testing.T, dir, file string) { put(t, dir, file, "caf\xe9") },
		"NUL":       func(t *testing.T, dir, file string) { put(t, dir, file, "a\x00b") },
		"no right to read": func(t *testing.T, dir, file string) {
			if os.Getuid() == 0 || runtime.GOOS == "windows" {
				t.Skip("root reads everything")
			}
			put(t, dir, file, "a")
			must(t, os.Chmod(filepath.Join(dir, file), 0))
		},
	} {
		for _, file := range []string{root.IgnoreFile, root.ProtectFile} {
			t.Run(name+" "+file, func(t *testing.T) {
				r, dir := newRoot(t)
				put(t, dir, "a.txt", "x")
				p, err := r.Resolve("a.txt", root.ToWrite)
				must(t, err)
				spoil(t, dir, file)
				for _, access := range []root.Access{root.ToList, root.ToRead, root.ToWrite, root.ToDelete} {
					_, err := r.Resolve("a.txt", access)
					if root.CodeOf(err) != root.BadRules || !strings.Contains(err.Error(), file) {
						t.Errorf("%s: %v; want everything denied, naming %s", access, err, file)
					}
				}
				if r.Visible("a.txt", false) {
					t.Error("still visible")
				}
				if err := r.Walk(context.Background(), ".", root.WalkOptions{}, func(root.Entry) error { return nil }); root.CodeOf(err) != root.BadRules {
					t.Errorf("walk: %v", err)
				}
				if _, err := r.ReadFile(p, 0); root.CodeOf(err) != root.BadRules {
					t.Errorf("read of a path judged before: %v", err)
				}
				if err := r.WriteFileAtomic(p, nil, 0); root.CodeOf(err) != root.BadRules {
					t.Errorf("write of a path judged before: %v", err)
				}
				must(t, os.RemoveAll(filepath.Join(dir, file)))
				if _, err := r.Resolve("a.txt", root.ToRead); err != nil {
					t.Errorf("after the repair: %v", err)
				}
			})
		}
	}
}

func TestProtectAndBlock(t *testing.T) {
	r, dir := newRoot(t)
	for _, name := range []string{"app.yaml", "conf/real.yaml", "state/db", "stateful", "other/x"} {
		put(t, dir, name, "x")
	}
	link(t, dir, "conf/real.yaml", "linked.yaml")
	link(t, dir, "state", "door")
	r.Protect(filepath.Join(dir, "app.yaml"), filepath.Join(dir, "linked.yaml"), filepath.Join(dir, "future/app.yaml"), "/elsewhere/app.yaml")
	r.Block(filepath.Join(dir, "state"))
	const ok, blocked, protected = root.Code(0), root.Blocked, root.Protected
	for _, c := range []struct {
		name                string
		read, write, remove root.Code
	}{
		{"app.yaml", ok, protected, protected}, {"conf/real.yaml", ok, protected, protected}, {"linked.yaml", ok, protected, protected}, {"conf", ok, ok, protected},
		{"future/app.yaml", ok, protected, protected}, {"future", ok, ok, ok}, {"state", blocked, blocked, blocked}, {"state/db", blocked, blocked, blocked}, {"door/db", blocked, blocked, blocked},
		{"stateful", ok, ok, ok}, {"other", ok, ok, ok},
	} {
		if read, write, remove := codes(t, r, c.name); read != c.read || write != c.write || remove != c.remove {
			t.Errorf("%s: read %s, write %s, delete %s; want %s, %s, %s", c.name, read, write, remove, c.read, c.write, c.remove)
		}
	}
	if r.Visible("state/db", false) || !r.Visible("app.yaml", false) {
		t.Error("what is blocked is visible, or what is protected is not")
	}
}

func TestVisible(t *testing.T) {
	r, dir := newRoot(t)
	put(t, dir, root.IgnoreFile, "build/\n*.key\n")
	for _, c := range []struct {
		rel   string
		isDir bool
		want  bool
	}{
		{".", true, true}, {"a.txt", false, true}, {"build", true, false}, {"build", false, true}, {"build/x", false, false}, {"a.key", false, false},
		{".git", true, false}, {"x/.git/y", false, false}, {".helve", true, false}, {root.IgnoreFile, false, true}, {"../x", false, false}, {"/etc", true, false}, {"a//b", false, false}, {"bad\nname", false, false}, {".helve-tmp-1", false, false},
	} {
		if got := r.Visible(c.rel, c.isDir); got != c.want {
			t.Errorf("%q (folder: %v): visible %v, want %v", c.rel, c.isDir, got, c.want)
		}
	}
}
