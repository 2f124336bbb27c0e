package checkpoint_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/store/postgres"
	"github.com/helve-ai/helve/store/sqlite"
	"github.com/helve-ai/helve/tool"
)

// onPostgres returns a store in a schema of its own, dropped at the end.
func onPostgres(t *testing.T) store.Store {
	t.Helper()
	at := os.Getenv("HELVE_TEST_POSTGRES")
	if at == "" {
		at = "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		fail := t.Skipf
		if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "postgres") {
			fail = t.Fatalf
		}
		fail("no PostgreSQL server for this test: %v\nInstall one (Debian: apt-get install postgresql) and name a database of it for tests: HELVE_TEST_POSTGRES", err)
	}
	schema := "checkpoint_test_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		conn.Close(context.Background())
	})
	u, err := url.Parse(at)
	check(t, err)
	q := u.Query()
	q.Set("helve_schema", schema)
	u.RawQuery = q.Encode()
	s, err := postgres.Open(t.Context(), u.String())
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Several keepers of the same checkpoints, as several processes have them,
// write, restore and prune at once: what is kept can be restored.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"mem": func(*testing.T) store.Store { return new(mem.Store) },
		"sqlite": func(t *testing.T) store.Store {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
			check(t, err)
			t.Cleanup(func() { s.Close() })
			return s
		},
		"postgres": onPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, open(t), checkpoint.Limits{})
			shared(t, b)
		})
	}
}

func shared(t *testing.T, b *bench) {
	const writers, each = 4, 12
	var calls, all sync.WaitGroup
	stop, wrote := make(chan struct{}), make(chan struct{}, 1)
	all.Go(func() { // prunes again and again, but leaves the writers a turn: it works alone
		k := b.keeper(checkpoint.Limits{})
		for {
			select {
			case <-stop:
				return
			case <-wrote:
			}
			if _, err := k.Prune(t.Context(), checkpoint.Pruning{MaxAge: time.Hour, MaxBytes: -1}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for w := range writers {
		calls.Go(func() {
			k := b.keeper(checkpoint.Limits{})
			rel := fmt.Sprintf("w%d/a", w)
			for i := range each {
				c := &tool.Call{ID: fmt.Sprintf("%d-%d", w, i), Name: "test.write"}
				p, err := k.Begin(t.Context(), c, []checkpoint.Target{file(rel)})
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.MkdirAll(b.path(filepath.Dir(rel)), 0o755); err != nil {
					t.Error(err)
				}
				// Few contents, so that pruning meets what is just wanted again.
				if err := os.WriteFile(b.path(rel), []byte(fmt.Sprint("content ", i%3)), 0o644); err != nil {
					t.Error(err)
				}
				p.Done(t.Context())
				select {
				case wrote <- struct{}{}:
				default:
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	all.Wait()
	list := b.list(t, checkpoint.Filter{})
	if len(list) != writers*each {
		t.Fatalf("%d checkpoints, want %d", len(list), writers*each)
	}
	for i, c := range list {
		if c.ID != int64(len(list)-i) || c.Open {
			t.Fatalf("checkpoint %d of %d: %+v", i, len(list), c)
		}
	}
	out := b.restore(t, checkpoint.Selection{ID: 1, Since: true})
	if got := tree(t, b.dir); len(out.Failed) > 0 || len(got) != 1 {
		t.Errorf("after all was taken back: %v, %v", got, out.Failed)
	}
	got, err := b.Prune(t.Context(), checkpoint.Pruning{MaxAge: -1, MaxBytes: 0})
	check(t, err)
	if got.Kept != 0 || got.KeptBytes != 0 {
		t.Errorf("pruned to nothing: %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(b.state, "*", "blobs", "*", "*")); len(left) > 0 {
		t.Errorf("contents left: %v", left)
	}
}

func TestPruneByAgeAndSize(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{})
	noise := make([]byte, 5000)
	for i := range 4 {
		rand.Read(noise)
		b.write(t, "a", string(noise))
		b.do(t, func() { b.write(t, "a", fmt.Sprint(i)) }, file("a"))
	}
	dry, err := b.Prune(t.Context(), checkpoint.Pruning{MaxAge: -1, MaxBytes: 11_000, DryRun: true})
	check(t, err)
	if dry.Checkpoints != 2 || dry.Kept != 2 || dry.KeptBytes < 10_000 {
		t.Errorf("would drop %+v", dry)
	}
	if n := len(b.list(t, checkpoint.Filter{})); n != 4 {
		t.Errorf("a dry run left %d checkpoints", n)
	}
	got, err := b.Prune(t.Context(), checkpoint.Pruning{MaxAge: -1, MaxBytes: 11_000})
	check(t, err)
	if got != dry {
		t.Errorf("dropped %+v, and said it would %+v", got, dry)
	}
	if kept := ids(b.list(t, checkpoint.Filter{})); !slices.Equal(kept, []int64{4, 3}) {
		t.Errorf("kept %v", kept)
	}
	b.restore(t, checkpoint.Selection{ID: 4})
	if data, _ := os.ReadFile(b.path("a")); string(data) != string(noise) {
		t.Error("what was kept cannot be restored")
	}
	if got, err := b.Prune(t.Context(), checkpoint.Pruning{MaxAge: 0, MaxBytes: -1}); err != nil || got.Kept != 0 {
		t.Errorf("by age: %+v, %v", got, err)
	}
}

func TestSnapshot(t *testing.T) {
	b := newBench(t, new(mem.Store), checkpoint.Limits{MaxSnapshot: 1000})
	b.write(t, "a", "one")
	b.write(t, "d/b", "b")
	b.write(t, "large", strings.Repeat("x", 2000))
	b.write(t, "node_modules/m", "m")
	before := tree(t, b.dir)
	run := func(id string, finish bool, change func()) []string {
		s, err := b.Snapshot(t.Context(), &tool.Call{ID: id, Name: "shell.run"}, "make")
		check(t, err)
		change()
		if finish {
			s.Done(t.Context())
		}
		return s.Notes
	}
	change := func() {
		b.write(t, "a", "two") // as long as before, perhaps within the same tick
		check(t, os.RemoveAll(b.path("d")))
		b.write(t, "made/c", "c")
		check(t, os.Symlink("a", b.path("link")))
		b.write(t, "node_modules/m", "changed")
	}
	if notes := run("1", true, change); len(notes) != 1 || !strings.Contains(notes[0], "max_snapshot") {
		t.Errorf("notes %q", notes)
	}
	run("2", true, func() {}) // changes nothing
	all := b.list(t, checkpoint.Filter{})
	if len(all) != 1 || all[0].Detail != "make" || all[0].Files != 6 {
		t.Fatalf("checkpoints %+v", all)
	}
	b.restore(t, checkpoint.Selection{ID: 1})
	before["node_modules/m"] = "-rw-r--r-- changed"
	same(t, "undone", tree(t, b.dir), before)

	// One that is cut short can be taken back, too.
	run("3", false, change)
	again := b.keeper(checkpoint.Limits{})
	last := b.list(t, checkpoint.Filter{Limit: 1})[0]
	if !last.Open {
		t.Errorf("cut short: %+v", last)
	}
	if _, err := again.Prune(t.Context(), checkpoint.Pruning{MaxAge: time.Hour, MaxBytes: -1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.tryRestore(t.Context(), again, checkpoint.Selection{ID: last.ID}); err != nil {
		t.Fatal(err)
	}
	same(t, "undone after it was cut short", tree(t, b.dir), before)
}

func BenchmarkWrite(b *testing.B) {
	w := newBench(b, new(mem.Store), checkpoint.Limits{})
	content := make([]byte, 4<<10)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rand.Read(content)
		w.do(b, func() { w.write(b, "a", string(content)) }, file("a"))
	}
}
