package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const defaultServer = "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"

// postgresPlace returns a URL with a schema of its own, dropped at the end.
// Without a server the test is skipped, unless it is required.
func postgresPlace(t *testing.T) string {
	t.Helper()
	at := os.Getenv("HELVE_TEST_POSTGRES")
	if at == "" {
		at = defaultServer
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		fail := t.Skipf
		if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "postgres") {
			fail = t.Fatalf
		}
		fail("no PostgreSQL server for this test: %v\nInstall one (Debian: apt-get install postgresql) "+
			"and name a database of it for tests: HELVE_TEST_POSTGRES=%s", err, defaultServer)
	}
	schema := "helve_test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		defer conn.Close(context.Background())
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
	u.RawQuery = q.Encode()
	return u.String()
}

// keepsResults holds that what one command spilled the next can read.
func keepsResults(t *testing.T, store string) {
	t.Helper()
	dir := folder(t, "long.txt", strings.Repeat("all work and no play\n", 3000)+"the end")
	store = strings.ReplaceAll(store, "DIR", dir)
	args := []string{"--store", store}
	out := must(t, dir, append([]string{"tools", "call", "filesystem.read", `{"path":"long.txt"}`}, args...)...)
	id := idIn(t, out)
	out = must(t, dir, append([]string{"tools", "call", "results.read", `{"id":"` + id + `","search":"the end"}`}, args...)...)
	if !strings.Contains(out, "1 places contain") {
		t.Errorf("the next command reads %s", out)
	}
	out = must(t, dir, append([]string{"doctor", "--json"}, args...)...)
	if !strings.Contains(out, "written and read") {
		t.Errorf("helve doctor: %s", out)
	}
	s := stdio(t, dir, args...)
	got := call(t, s, "filesystem.read", object{"path": "long.txt"})
	if again := call(t, s, "results.read", object{"id": idIn(t, got.Text), "search": "the end"}); !strings.Contains(again.Text, "1 places contain") {
		t.Errorf("the session reads %+v", again)
	}
	if other := call(t, s, "results.read", object{"id": id}); !other.IsError {
		t.Error("the session reads the result of another")
	}
	verified(t, dir)
}

func TestStores(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { keepsResults(t, "") })
	t.Run("file", func(t *testing.T) { keepsResults(t, "DIR/.helve/other.db") })
	t.Run("postgres", func(t *testing.T) {
		place := postgresPlace(t)
		keepsResults(t, place)
		dir := folder(t, "a.txt", "hello")
		meets(t, serve(t, dir, "--store", place).connect(t, "/mcp"))
		if exists(filepath.Join(dir, ".helve", "helve.db")) {
			t.Error("an embedded store was made beside the other")
		}
	})
}

func TestStoresThatCannotBeUsed(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "file", "not a database, but a text that is long enough to be taken for one "+strings.Repeat("x", 4096))
	for store, want := range map[string]string{
		"nonsense://x": "postgres://…, a file, or memory",
		"postgres://me:hunter2hunter2@127.0.0.1:1/none": "127.0.0.1:1",
		"file": "file",
	} {
		out, errs, code := run(t, dir, "", "doctor", "--store", store)
		if code != 1 || !strings.Contains(out, want) || strings.Contains(out+errs, "hunter2") {
			t.Errorf("helve doctor --store %s: exit code %d\n%s%s", store, code, out, errs)
		}
	}
	for _, store := range []string{"nonsense://x", "postgres://me:hunter2hunter2@127.0.0.1:1/none"} {
		_, errs, code := run(t, dir, "", "serve", "--addr", "127.0.0.1:0", "--store", store)
		if code != 1 || !strings.Contains(errs, "error:") || strings.Contains(errs, "hunter2") {
			t.Errorf("helve serve --store %s: exit code %d: %s", store, code, errs)
		}
	}
}

// The app file is followed: a good change is taken up, a bad one is not.
func TestAppFileIsFollowed(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", granted)
	d := serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp")
	writes := func() bool { return !call(t, s, "filesystem.write", object{"path": "b.txt", "content": "x"}).IsError }
	if !writes() {
		t.Fatal("what is granted is refused")
	}
	file := filepath.Join(dir, "app.yaml")
	write(t, file, strings.Replace(granted, "grant: [filesystem.*]", "deny: [filesystem.write]", 1))
	eventually(t, func() bool { return !writes() })
	write(t, file, "nonsense: 1\n")
	eventually(t, func() bool { return strings.Contains(d.errs.String(), "nonsense") })
	if writes() {
		t.Error("a bad file put the old rules out of force")
	}
	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); got.IsError {
		t.Errorf("with a bad file: %+v", got)
	}
	write(t, file, granted)
	eventually(t, writes)
	verified(t, dir, "--state", filepath.Join(dir, ".helve"))
}

// What does not load says so; the rest serves.
func TestModulesThatDoNotLoad(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", `
app: {app_id: half, name: Half}
tools:
  modules:
    filesystem: {}
    workspace:
      setup: [{action: read, params: {path: none.md}}]
`)
	out, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`, "--app", "app.yaml")
	if code != 0 || out != "hello\n" && out != "hello" || !strings.Contains(errs, "workspace did not load") || !strings.Contains(errs, "setup step 1 (read)") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	d := serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp")
	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); got.IsError {
		t.Errorf("another module: %+v", got)
	}
	if got := call(t, s, "workspace.read", object{"path": "x"}); got.Code != "tool_not_found" {
		t.Errorf("a tool of the module that did not load: %+v", got)
	}
	if !strings.Contains(d.errs.String(), "workspace did not load") {
		t.Errorf("helve serve did not say so: %s", d.errs.String())
	}
	out, _, code = run(t, dir, "", "doctor", "--app", "app.yaml", "--json")
	if code != 1 || !strings.Contains(out, "module workspace") || !strings.Contains(out, "none.md") {
		t.Errorf("helve doctor: exit code %d\n%s", code, out)
	}
}

// A state folder that cannot be written is told at the start.
func TestStateThatCannotBeWritten(t *testing.T) {
	dir := folder(t, "a.txt", "hello", ".helve", "a file where the folder should be")
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"mcp"}, {"tools", "call", "filesystem.read", `{"path":"a.txt"}`}} {
		out, errs, code := run(t, dir, "", args...)
		if code != 1 || out != "" || !strings.Contains(errs, ".helve") || !strings.Contains(errs, "error:") {
			t.Errorf("helve %v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	if _, errs, code := run(t, dir, "", "tools", "list"); code != 0 {
		t.Errorf("looking needs no state: exit code %d\n%s", code, errs)
	}
	if _, errs, code := run(t, filepath.Join(dir), "", "serve", "--root", "nowhere"); code != 1 || !strings.Contains(errs, "nowhere") {
		t.Errorf("a root that does not exist: exit code %d\n%s", code, errs)
	}
}
