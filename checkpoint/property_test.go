package checkpoint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/store/mem"
)

// An action changes the tree as a call of some tool would, and says what the
// call would have declared.
type action struct {
	targets []checkpoint.Target
	do      func() error
}

// names are few, so that actions meet each other.
var names = []string{"a", "b", "d/a", "d/b", "d/e/a", "e", "e/a", "link"}

// draw makes up an action that is possible in dir.
func draw(t *rapid.T, dir string) action {
	at := func(rel string) string { return filepath.Join(dir, filepath.FromSlash(rel)) }
	name := rapid.SampledFrom(names).Draw(t, "name")
	content := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "content")
	mode := fs.FileMode(rapid.SampledFrom([]int{0o644, 0o600, 0o755, 0o444, 0o700}).Draw(t, "mode"))
	switch kind := rapid.SampledFrom([]string{"write", "write", "delete", "move", "chmod", "link", "mkdir"}).Draw(t, "kind"); kind {
	case "write":
		return action{[]checkpoint.Target{file(name)}, func() error { return replace(at(name), content, mode) }}
	case "delete":
		return action{[]checkpoint.Target{folder(name)}, func() error { return os.RemoveAll(at(name)) }}
	case "move":
		to := rapid.SampledFrom(names).Draw(t, "to")
		return action{[]checkpoint.Target{folder(name), file(to)}, func() error {
			if _, err := os.Lstat(at(to)); err == nil {
				return fs.ErrExist
			}
			if err := os.MkdirAll(at(path.Dir(to)), 0o755); err != nil {
				return err
			}
			return os.Rename(at(name), at(to))
		}}
	case "chmod":
		return action{[]checkpoint.Target{file(name)}, func() error {
			info, err := os.Lstat(at(name))
			switch {
			case err != nil || info.Mode()&fs.ModeSymlink != 0:
				return fs.ErrInvalid
			case info.IsDir():
				return os.Chmod(at(name), mode|0o700)
			}
			return os.Chmod(at(name), mode)
		}}
	case "link":
		target := rapid.SampledFrom([]string{"a", "../outside", "/etc/passwd", "nowhere"}).Draw(t, "target")
		return action{[]checkpoint.Target{folder(name)}, func() error {
			if err := os.RemoveAll(at(name)); err != nil {
				return err
			}
			return os.Symlink(target, at(name))
		}}
	default:
		return action{[]checkpoint.Target{file(name)}, func() error { return os.MkdirAll(at(name), mode|0o700) }}
	}
}

// replace writes a file whatever permissions it has, but through no link.
func replace(file string, content []byte, mode fs.FileMode) error {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return fs.ErrInvalid
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(file), ".helve-tmp-test")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(temp, mode); err != nil {
		return err
	}
	return os.Rename(temp, file)
}

// However files were written, moved, deleted, linked and given modes, taking
// back the last calls gives the very tree that was there before them; and
// taking that back gives the tree that was there after.
func TestUndoGivesWhatWas(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are not those of Windows")
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, new(mem.Store), checkpoint.Limits{})
		trees := []map[string]string{tree(t, b.dir)} // before each call that is on record
		last := int64(0)
		for i := range rapid.IntRange(1, 12).Draw(rt, "calls") {
			a := draw(rt, b.dir)
			targets := a.targets
			if linked(b.dir, targets) {
				continue // the pipeline would have resolved them to other places
			}
			before := tree(t, b.dir)
			b.do(t, func() { _ = a.do() }, targets...)
			all := b.list(t, checkpoint.Filter{Limit: 1})
			if len(all) == 1 && all[0].ID != last {
				last = all[0].ID
				trees = append(trees[:len(trees)-1], before, tree(t, b.dir))
			} else if got := tree(t, b.dir); fmt.Sprint(got) != fmt.Sprint(before) {
				rt.Fatalf("action %d changed the tree and left no checkpoint:\n%v\n%v", i, before, got)
			}
		}
		n := len(trees) - 1
		if n == 0 {
			return
		}
		k := rapid.IntRange(1, n).Draw(rt, "undone")
		id, _, err := b.Last(t.Context(), k)
		check(t, err)
		if out := b.restore(t, checkpoint.Selection{ID: id, Since: true}); len(out.Failed) > 0 {
			rt.Fatalf("undo %d: %v", k, out.Failed)
		}
		same(rt, fmt.Sprintf("undo %d of %d", k, n), tree(t, b.dir), trees[n-k])
		if fmt.Sprint(trees[n-k]) == fmt.Sprint(trees[n]) {
			return // nothing had to be done
		}
		undo := b.list(t, checkpoint.Filter{Limit: 1})[0].ID
		if out := b.restore(t, checkpoint.Selection{ID: undo}); len(out.Failed) > 0 {
			rt.Fatalf("redo: %v", out.Failed)
		}
		same(rt, "redo", tree(t, b.dir), trees[n])
		// And once more all the way back.
		id, _, err = b.Last(t.Context(), n)
		check(t, err)
		b.restore(t, checkpoint.Selection{ID: id, Since: true})
		same(rt, "undo all", tree(t, b.dir), trees[0])
	})
}

// linked reports whether a link or a file stands on the way to a target.
func linked(dir string, targets []checkpoint.Target) bool {
	for _, target := range targets {
		for p := path.Dir(target.Path); p != "."; p = path.Dir(p) {
			if info, err := os.Lstat(filepath.Join(dir, p)); err == nil && !info.IsDir() {
				return true
			}
		}
	}
	return false
}

// A folder whose place a link took comes back with all that was in it, and
// goes again.
func TestLinkInAFoldersPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	for _, target := range []string{"a", "nowhere", "../outside", "d"} {
		b := newBench(t, new(mem.Store), checkpoint.Limits{})
		at := func(rel string) string { return filepath.Join(b.dir, filepath.FromSlash(rel)) }
		for _, name := range []string{"a", "d/x", "e/a", "e/f/a"} {
			b.do(t, func() { check(t, replace(at(name), []byte(name), 0o644)) }, file(name))
		}
		before := tree(t, b.dir)
		b.do(t, func() {
			check(t, os.RemoveAll(at("e")))
			check(t, os.Symlink(target, at("e")))
		}, folder("e"))
		after := tree(t, b.dir)
		id, _, err := b.Last(t.Context(), 1)
		check(t, err)
		b.restore(t, checkpoint.Selection{ID: id, Since: true})
		same(t, "undo, link to "+target, tree(t, b.dir), before)
		b.restore(t, checkpoint.Selection{ID: b.list(t, checkpoint.Filter{Limit: 1})[0].ID})
		same(t, "redo, link to "+target, tree(t, b.dir), after)
	}
}
