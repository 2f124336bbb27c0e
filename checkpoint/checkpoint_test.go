package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// A bench is a keeper with a root to work in.
type bench struct {
	*checkpoint.Keeper
	dir, state string
	root       *root.Root
	store      store.Store
	calls      int
}

func newBench(t testing.TB, s store.Store, limits checkpoint.Limits) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir, state: t.TempDir(), store: s}
	if b.root, err = root.Open(b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.root.Close() })
	b.Keeper = b.keeper(limits)
	t.Cleanup(func() { b.Close() })
	return b
}

// keeper returns another keeper of the same checkpoints, as another process has it.
func (b *bench) keeper(limits checkpoint.Limits) *checkpoint.Keeper {
	return checkpoint.New(checkpoint.Options{Dir: b.state, Store: b.store, Root: b.root, App: "app", Limits: limits})
}

func (b *bench) path(rel string) string { return filepath.Join(b.dir, filepath.FromSlash(rel)) }

// do makes a call that changes targets.
func (b *bench) do(t testing.TB, change func(), targets ...checkpoint.Target) *checkpoint.Pending {
	t.Helper()
	b.calls++
	c := &tool.Call{ID: fmt.Sprint("call-", b.calls), Name: "test.write", From: tool.Origin{App: "app", Session: "s"}}
	p, err := b.Begin(t.Context(), c, targets)
	if err != nil {
		t.Fatal(err)
	}
	change()
	p.Done(t.Context())
	return p
}

// restore makes a call that restores.
func (b *bench) restore(t testing.TB, s checkpoint.Selection) *checkpoint.Restored {
	t.Helper()
	out, err := b.tryRestore(t.Context(), b.Keeper, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *bench) tryRestore(ctx context.Context, k *checkpoint.Keeper, s checkpoint.Selection) (*checkpoint.Restored, error) {
	b.calls++
	c := &tool.Call{ID: fmt.Sprint("call-", b.calls), Name: "checkpoint.restore", From: tool.Origin{App: "app"}}
	plan, err := k.Plan(ctx, s)
	if err != nil {
		return nil, err
	}
	p, err := k.Begin(ctx, c, plan.Touches())
	if err != nil {
		return nil, err
	}
	defer p.Done(ctx)
	s.Call = c.ID
	if plan, err = k.Plan(ctx, s); err != nil {
		return nil, err
	}
	return k.Restore(ctx, c.ID, plan)
}

func (b *bench) list(t testing.TB, f checkpoint.Filter) []checkpoint.Checkpoint {
	t.Helper()
	all, err := b.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ids(all []checkpoint.Checkpoint) (out []int64) {
	for _, c := range all {
		out = append(out, c.ID)
	}
	return out
}

func (b *bench) write(t testing.TB, rel, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(b.path(rel)), 0o755))
	check(t, os.WriteFile(b.path(rel), []byte(text), 0o644))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns all that a folder holds: kinds, modes, contents, targets.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, file)
		switch info.Mode().Type() {
		case fs.ModeDir:
			out[rel] = info.Mode().String()
		case fs.ModeSymlink:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			out[rel] = "-> " + target
		default:
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			out[rel] = info.Mode().String() + " " + string(data)
		}
		return nil
	})
	check(t, err)
	return out
}

func same(t interface {
	Helper()
	Fatalf(string, ...any)
}, what string, got, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func file(rel string) checkpoint.Target   { return checkpoint.Target{Path: rel} }
func folder(rel string) checkpoint.Target { return checkpoint.Target{Path: rel, Tree: true} }

func TestWriteAndUndo(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a.txt", "one\x00\xff")
	check(t, os.Chmod(b.path("a.txt"), 0o751))
	before := tree(t, b.dir)
	b.do(t, func() { b.write(t, "a.txt", "two") }, file("a.txt"))
	b.do(t, func() { b.write(t, "new/deep/b.txt", "b") }, file("new/deep/b.txt"))
	after := tree(t, b.dir)
	all := b.list(t, checkpoint.Filter{})
	if got := ids(all); !slices.Equal(got, []int64{2, 1}) {
		t.Fatalf("checkpoints %v", got)
	}
	if c := all[1]; c.Tool != "test.write" || c.Call != "call-1" || c.Session != "s" || c.Open || c.Files != 1 || c.Bytes != 5 {
		t.Errorf("the first: %+v", c)
	}
	if d := cmp.Diff([]string{"new", "new/deep", "new/deep/b.txt"}, sorted(all[0].Paths)); d != "" {
		t.Errorf("paths of the second:\n%s", d)
	}
	out := b.restore(t, checkpoint.Selection{ID: 1, Since: true})
	if len(out.Failed) > 0 || len(out.Restored) != 4 {
		t.Errorf("restored: %+v", out)
	}
	same(t, "undone", tree(t, b.dir), before)
	if id, n, err := b.Last(t.Context(), 1); id != 0 || n != 0 || err != nil {
		t.Errorf("after all was undone, the last call is %d (%d, %v)", id, n, err)
	}
	b.restore(t, checkpoint.Selection{ID: 3}) // which undoes the undoing
	same(t, "redone", tree(t, b.dir), after)
	if id, _, _ := b.Last(t.Context(), 2); id != 1 {
		t.Errorf("after it was redone, the last call but one is %d", id)
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

func TestCallThatChangesNothing(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a.txt", "one")
	b.do(t, func() {}, file("a.txt"), file("none.txt"))
	b.do(t, func() { b.write(t, "a.txt", "one") }, file("a.txt"))
	if all := b.list(t, checkpoint.Filter{}); len(all) != 0 {
		t.Errorf("checkpoints %+v", all)
	}
}

func TestConflicts(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a.txt", "one")
	b.do(t, func() { b.write(t, "a.txt", "two") }, file("a.txt"))
	b.do(t, func() { b.write(t, "a.txt", "three") }, file("a.txt"))
	plan := func(s checkpoint.Selection) string {
		p, err := b.Plan(t.Context(), s)
		check(t, err)
		return strings.Join(p.Conflicts(), "; ")
	}
	if got := plan(checkpoint.Selection{ID: 1}); !strings.Contains(got, "checkpoint 2 (test.write)") {
		t.Errorf("a call before another one: %q", got)
	}
	if got := plan(checkpoint.Selection{ID: 1, Since: true}); got != "" {
		t.Errorf("both: %q", got)
	}
	b.write(t, "a.txt", "by hand")
	for _, s := range []checkpoint.Selection{{ID: 2}, {ID: 1, Since: true}} {
		if got := plan(s); got != "a.txt was changed by others since" {
			t.Errorf("%+v: %q", s, got)
		}
		if out := b.restore(t, s); len(out.Restored) > 0 {
			t.Errorf("%+v restored %v", s, out.Restored)
		}
	}
	b.do(t, func() { b.write(t, "a.txt", "four") }, file("a.txt"))
	if got := plan(checkpoint.Selection{ID: 2, Since: true}); !strings.Contains(got, "by others between the calls 2 and 3") {
		t.Errorf("a change by hand in between: %q", got)
	}
	b.restore(t, checkpoint.Selection{ID: 1, Since: true, Force: true})
	if got := tree(t, b.dir)["a.txt"]; got != "-rw-r--r-- one" {
		t.Errorf("forced: %q", got)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{MaxFile: 10, MaxCall: 15})
	b.write(t, "large", "12345678901")
	b.write(t, "d/a", "1234567890")
	b.write(t, "d/b", "123456")
	var limit *checkpoint.LimitError
	for _, target := range []checkpoint.Target{file("large"), folder("d")} {
		_, err := b.Begin(t.Context(), &tool.Call{ID: "x"}, []checkpoint.Target{target})
		if !errors.As(err, &limit) {
			t.Errorf("%v: %v", target, err)
		}
	}
	if all := b.list(t, checkpoint.Filter{}); len(all) != 0 {
		t.Errorf("checkpoints %+v", all)
	}
	b.Keeper = b.keeper(checkpoint.Limits{MaxFile: 10, RunUnsaved: true})
	p := b.do(t, func() { b.write(t, "large", "") }, file("large"))
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "cannot be restored") {
		t.Errorf("notes %q", p.Notes)
	}
	plan, err := b.Plan(t.Context(), checkpoint.Selection{ID: 1})
	check(t, err)
	if got := plan.Skipped(); len(got) != 1 || !strings.Contains(got[0], "too large") {
		t.Errorf("skipped %q", got)
	}
}

func TestUnreadableFileIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read every file; run the tests as another user")
	}
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a", "x")
	check(t, os.Chmod(b.path("a"), 0))
	if _, err := b.Begin(t.Context(), &tool.Call{ID: "x"}, []checkpoint.Target{file("a")}); err == nil || !strings.Contains(err.Error(), "a cannot be saved") {
		t.Errorf("error %v", err)
	}
}

func TestIgnoredNow(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a.txt", "one")
	b.write(t, "dark/x", "one")
	b.do(t, func() { b.write(t, "a.txt", "two"); b.write(t, "dark/x", "two") }, file("a.txt"), file("dark/x"))
	b.write(t, ".helveignore", "dark/\n")
	check(t, b.root.Close())
	r, err := root.Open(b.dir)
	check(t, err)
	b.root = r
	t.Cleanup(func() { r.Close() })
	b.Keeper = b.keeper(checkpoint.Limits{})
	if all := b.list(t, checkpoint.Filter{}); len(all) != 1 || !slices.Equal(all[0].Paths, []string{"a.txt"}) {
		t.Errorf("listed %+v", all)
	}
	if all := b.list(t, checkpoint.Filter{Path: "dark"}); len(all) != 0 {
		t.Errorf("listed by an ignored path: %+v", all)
	}
	if _, files, err := b.Get(t.Context(), 1); err != nil || len(files) != 1 {
		t.Errorf("shown %+v, %v", files, err)
	}
	b.restore(t, checkpoint.Selection{ID: 1})
	got := tree(t, b.dir)
	if got["a.txt"] != "-rw-r--r-- one" || got["dark/x"] != "-rw-r--r-- two" {
		t.Errorf("restored %v", got)
	}
}

func TestFolderThatOthersUse(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.do(t, func() { b.write(t, "new/a", "a") }, file("new/a"))
	b.write(t, "new/theirs", "x")
	out := b.restore(t, checkpoint.Selection{ID: 1})
	if !slices.Equal(out.Kept, []string{"new"}) || len(out.Failed) > 0 {
		t.Errorf("restored %+v", out)
	}
	if got := slices.Sorted(maps.Keys(tree(t, b.dir))); !slices.Equal(got, []string{".", "new", "new/theirs"}) {
		t.Errorf("left %v", got)
	}
}

// Calls that are made at one time, and both make a folder, can be taken back
// one by one and together.
func TestFolderMadeTogether(t *testing.T) {
	for since, want := range map[int64][]string{1: {"."}, 2: {".", "new", "new/a"}} {
		b := newBench(t, new(mem.Store), checkpoint.Limits{})
		b.do(t, func() {
			b.do(t, func() { b.write(t, "new/b", "b") }, file("new/b"))
			b.write(t, "new/a", "a")
		}, file("new/a"))
		b.restore(t, checkpoint.Selection{ID: since, Since: true})
		if got := slices.Sorted(maps.Keys(tree(t, b.dir))); !slices.Equal(got, want) {
			t.Errorf("since %d: left %v", since, got)
		}
	}
}

func TestFilters(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	for i := range 3 {
		b.do(t, func() { b.write(t, fmt.Sprintf("d%d/a", i), "x") }, file(fmt.Sprintf("d%d/a", i)))
	}
	for _, c := range []struct {
		f    checkpoint.Filter
		want []int64
	}{
		{checkpoint.Filter{Limit: 2}, []int64{3, 2}},
		{checkpoint.Filter{Path: "d1"}, []int64{2}},
		{checkpoint.Filter{Path: "d1/a"}, []int64{2}},
		{checkpoint.Filter{Path: "d"}, nil},
		{checkpoint.Filter{Session: "s"}, []int64{3, 2, 1}},
		{checkpoint.Filter{Session: "t"}, nil},
		{checkpoint.Filter{Tool: "test.write", Limit: 1}, []int64{3}},
		{checkpoint.Filter{Tool: "test"}, nil},
		{checkpoint.Filter{Since: time.Now().Add(time.Hour)}, nil},
	} {
		if got := ids(b.list(t, c.f)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.f, got, c.want)
		}
	}
	other := checkpoint.New(checkpoint.Options{Dir: b.state, Store: b.store, Root: b.root, App: "other"})
	if all, err := other.List(t.Context(), checkpoint.Filter{}); len(all) != 0 || err != nil {
		t.Errorf("another app sees %v, %v", all, err)
	}
	if _, err := other.Plan(t.Context(), checkpoint.Selection{ID: 1}); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("another app may restore: %v", err)
	}
}

func TestDiff(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a.txt", "one\ntwo\nthree\n")
	b.write(t, "bin", "\x00\x01")
	b.write(t, "gone", "x\n")
	b.do(t, func() {
		b.write(t, "a.txt", "one\n2\nthree\n")
		b.write(t, "bin", "\x00\x01\x02")
		check(t, os.Remove(b.path("gone")))
		b.write(t, "new", "n\n")
		check(t, os.Chmod(b.path("a.txt"), 0o600))
	}, file("a.txt"), file("bin"), file("gone"), file("new"))
	plan, err := b.Plan(t.Context(), checkpoint.Selection{ID: 1})
	check(t, err)
	got, err := b.DiffSince(t.Context(), plan, 10_000)
	check(t, err)
	want := `diff a/a.txt b/a.txt
old mode 100644
new mode 100600
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff a/bin b/bin
Binary or very large files differ: 2 and 3 bytes
diff a/gone b/gone
deleted file, mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff a/new b/new
new file, mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+n
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("since (-want +got):\n%s", d)
	}
	back, err := b.Diff(t.Context(), plan, 10_000)
	check(t, err)
	if !strings.Contains(back, "-2\n+two\n") || !strings.Contains(back, "+++ b/gone\n@@ -0,0 +1 @@\n+x\n") {
		t.Errorf("back:\n%s", back)
	}
	if short, err := b.DiffSince(t.Context(), plan, 50); err != nil || !strings.Contains(short, "more files are left out") {
		t.Errorf("bounded: %q, %v", short, err)
	}
}

// Calls on the same file are kept apart, so that what was before one is what
// was after the other; taking them all back gives the first content.
func TestCallsOnOneFile(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	b.write(t, "a", "start")
	const calls = 40
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			p, err := b.Begin(t.Context(), &tool.Call{ID: fmt.Sprint("c", i), Name: "w"}, []checkpoint.Target{file("a")})
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Done(t.Context())
			if err := os.WriteFile(b.path("a"), []byte(fmt.Sprint("content ", i)), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all := b.list(t, checkpoint.Filter{})
	if len(all) != calls {
		t.Fatalf("%d checkpoints", len(all))
	}
	contents := []string{}
	for _, c := range all {
		_, files, err := b.Get(t.Context(), c.ID)
		check(t, err)
		data, err := b.Content(t.Context(), files[0].Before, 100)
		check(t, err)
		contents = append(contents, string(data))
		b.calls = 1000 + int(c.ID)
		if out := b.restore(t, checkpoint.Selection{ID: c.ID}); len(out.Restored) != 1 {
			t.Fatalf("%d: %+v", c.ID, out)
		}
		if now, _ := os.ReadFile(b.path("a")); string(now) != string(data) {
			t.Fatalf("%d: %q, want %q", c.ID, now, data)
		}
	}
	if contents[calls-1] != "start" {
		t.Errorf("the first call found %q", contents[calls-1])
	}
	if slices.Sort(contents); len(slices.Compact(contents)) != calls {
		t.Errorf("some calls found the same content")
	}
}

// A call does not wait for the one that made it.
func TestNestedCalls(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	outer := &tool.Call{ID: "outer", Name: "script"}
	p, err := b.Begin(t.Context(), outer, []checkpoint.Target{folder(".")})
	check(t, err)
	defer p.Done(t.Context())
	middle := outer.Child("middle", "execute_tool", nil)
	defer b.Relate(middle)()
	inner := middle.Child("inner", "write", nil)
	q, err := b.Begin(t.Context(), inner, []checkpoint.Target{file("a")})
	check(t, err)
	defer q.Done(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Begin(ctx, &tool.Call{ID: "stranger"}, []checkpoint.Target{file("a")}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "is changing a") {
		t.Errorf("a stranger: %v", err)
	}
}
