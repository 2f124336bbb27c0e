package root_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

func walked(t *testing.T, r *root.Root, rel string, opts root.WalkOptions) []string {
	t.Helper()
	var found []string
	must(t, r.Walk(context.Background(), rel, opts, func(e root.Entry) error {
		if e.Err != nil {
			return e.Err
		}
		name := e.Rel
		if e.Mode.IsDir() {
			name += "/"
		}
		if e.Link != "" {
			name += "->" + e.Link
		}
		found = append(found, name)
		return nil
	}))
	return found
}

func TestWalk(t *testing.T) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	put(t, outer, "secret.txt", "outside")
	put(t, dir, root.IgnoreFile, "*.key\nbuild/\n!keep.key\n")
	for _, name := range []string{"b.txt", "a/x.txt", "a/y.key", "a/keep.key", "a/deep/z", "build/out", ".git/config", ".helve/db", "a/.git", ".helve-tmp-1", "c.key"} {
		put(t, dir, name, "x")
	}
	for name, target := range map[string]string{"l-in": "a", "l-file": "b.txt", "a/l-up": "..", "l-out": outer, "l-out-file": "../secret.txt", "l-git": ".git", "l-key": "c.key", "l-loop": "l-loop", "l-none": "none", "l-abs": filepath.Join(dir, "a/x.txt")} {
		link(t, dir, target, name)
	}
	all := []string{".helveignore", "a/", "a/deep/", "a/deep/z", "a/keep.key", "a/l-up->.", "a/x.txt", "b.txt", "l-abs->a/x.txt", "l-file->b.txt", "l-in->a", "l-none->none"}
	if got := walked(t, r, ".", root.WalkOptions{}); !slices.Equal(got, all) {
		t.Errorf("all: %q\nwant %q", got, all)
	}
	flat := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return strings.HasPrefix(s, "a/") && s != "a/" })
	if got := walked(t, r, ".", root.WalkOptions{Depth: 1, Stat: true}); !slices.Equal(got, flat) {
		t.Errorf("one deep: %q\nwant %q", got, flat)
	}
	if got, want := walked(t, r, "a/deep", root.WalkOptions{}), []string{"a/deep/z"}; !slices.Equal(got, want) {
		t.Errorf("beneath: %q, want %q", got, want)
	}
	for rel, code := range map[string]root.Code{"build": root.Blocked, ".git": root.Blocked, "b.txt": root.Invalid, "l-in": root.Invalid} {
		if err := r.Walk(context.Background(), rel, root.WalkOptions{}, func(root.Entry) error { return nil }); root.CodeOf(err) != code {
			t.Errorf("walk of %s: %v; want %s", rel, err, code)
		}
	}
}

func TestWalkIsBounded(t *testing.T) {
	r, dir := newRoot(t)
	for i := range 30 {
		put(t, dir, fmt.Sprintf("d%d/f", i), "x")
	}
	err := r.Walk(context.Background(), ".", root.WalkOptions{Limit: 20}, func(root.Entry) error { return nil })
	if !errors.Is(err, root.ErrTooMany) {
		t.Errorf("60 entries with a limit of 20: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	seen := 0
	err = r.Walk(ctx, ".", root.WalkOptions{}, func(root.Entry) error { seen++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("cancelled: %d entries, %v", seen, err)
	}
}

func TestWalkObeysTheVisitor(t *testing.T) {
	r, dir := newRoot(t)
	for _, name := range []string{"a/1", "a/2", "b/1", "b/2", "c/1"} {
		put(t, dir, name, "x")
	}
	for _, c := range []struct {
		at, want string
		answer   error
	}{
		{"a", "a b b/1 b/2 c c/1", fs.SkipDir}, {"b/1", "a a/1 a/2 b b/1 c c/1", fs.SkipDir}, {"b/1", "a a/1 a/2 b b/1", fs.SkipAll},
	} {
		var seen []string
		err := r.Walk(context.Background(), ".", root.WalkOptions{}, func(e root.Entry) error {
			seen = append(seen, e.Rel)
			if e.Rel == c.at {
				return c.answer
			}
			return nil
		})
		if got := strings.Join(seen, " "); err != nil || got != c.want {
			t.Errorf("%v at %s: %q, %v; want %q", c.answer, c.at, got, err, c.want)
		}
	}
	stop := errors.New("stop")
	if err := r.Walk(context.Background(), ".", root.WalkOptions{}, func(root.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("another error: %v", err)
	}
}

func TestWalkTellsOfUnreadableFolders(t *testing.T) {
	if os.Getuid() == 0 || os.PathSeparator != '/' {
		t.Skip("root reads everything")
	}
	r, dir := newRoot(t)
	put(t, dir, "shut/x", "x")
	put(t, dir, "zz", "x")
	must(t, os.Chmod(filepath.Join(dir, "shut"), 0))
	defer os.Chmod(filepath.Join(dir, "shut"), 0o755)
	var seen []string
	must(t, r.Walk(context.Background(), ".", root.WalkOptions{}, func(e root.Entry) error {
		seen = append(seen, fmt.Sprint(e.Rel, e.Err != nil))
		return nil
	}))
	if want := []string{"shutfalse", "shuttrue", "zzfalse"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}
