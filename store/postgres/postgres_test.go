package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/postgres"
	"github.com/helve-ai/helve/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, postgres.Open) }

const defaultServer = "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"

// server returns the URL of the server for tests, and a connection to it.
// Without one the test is skipped, unless it is required.
func server(t testing.TB) (string, *pgx.Conn) {
	t.Helper()
	at := os.Getenv("HELVE_TEST_POSTGRES")
	if at == "" {
		at = defaultServer
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
		return at, conn
	}
	fail := t.Skipf
	if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "postgres") {
		fail = t.Fatalf
	}
	fail("no PostgreSQL server for this test: %v\nInstall one (Debian: apt-get install postgresql) "+
		"and name a database of it for tests: HELVE_TEST_POSTGRES=%s", err, defaultServer)
	panic("not reached")
}

// newPlace returns a URL with a schema of its own, dropped at the end.
func newPlace(t testing.TB) string {
	t.Helper()
	at, conn := server(t)
	schema := "helve test " + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("helve_schema", schema)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

func open(t testing.TB, place string) store.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func Test(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newPlace(t)) })
}

func TestDurable(t *testing.T) {
	storetest.Durable(t, func(t *testing.T) string { return newPlace(t) }, postgres.Open)
}

func TestKill(t *testing.T) { storetest.Kill(t, newPlace(t), postgres.Open) }

func Benchmark(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store { return open(b, newPlace(b)) })
}
