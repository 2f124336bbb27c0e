package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/sqlite"
	"github.com/helve-ai/helve/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, sqlite.Open) }

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "helve.db") }

func open(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func Test(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newPath(t)) })
}

func TestDurable(t *testing.T) {
	storetest.Durable(t, func(t *testing.T) string { return newPath(t) }, sqlite.Open)
}

func TestKill(t *testing.T) { storetest.Kill(t, newPath(t), sqlite.Open) }

func Benchmark(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store { return open(b, newPath(b)) })
}

func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	for name, at := range map[string]func() string{
		"old": func() string { return path },
		"new": func() string { return newPath(b) },
	} {
		b.Run(name, func(b *testing.B) {
			open(b, at()).Close()
			for b.Loop() {
				s, err := sqlite.Open(b.Context(), at())
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}
