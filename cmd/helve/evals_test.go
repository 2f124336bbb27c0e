package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// evals returns a folder of the evaluation data, or skips the test.
func evals(t *testing.T, part string) string {
	t.Helper()
	folder := os.Getenv("HELVE_EVALS")
	if folder == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	return filepath.Join(folder, part)
}

func rows[T any](t *testing.T, file string) []T {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rows", file)
	}
	return all
}

type pathRow struct{ Path, Expect, Why, Setup string }

// A field is the root of the path rows, with what lies around it. The rows
// speak of a root called /ws.
type field struct{ outer, ws, state string }

func newField(t *testing.T) field {
	outer := folder(t)
	f := field{filepath.Join(outer, "world"), filepath.Join(outer, "world", "ws"), filepath.Join(outer, "state")}
	write(t, filepath.Join(f.outer, "secret.txt"), "OUTSIDE")
	write(t, filepath.Join(f.outer, "ws-evil", "s.txt"), "OUTSIDE")
	f.reset(t, "")
	return f
}

// reset makes the inside of the root anew, as a row wants it.
func (f field) reset(t *testing.T, setup string) {
	t.Helper()
	old, _ := filepath.Glob(filepath.Join(f.ws, "*"))
	dots, _ := filepath.Glob(filepath.Join(f.ws, ".*"))
	for _, name := range append(old, dots...) {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.txt", "sub/b.txt", "x y.txt", "ünï.txt", "..data/c.txt", "...", "sub/..b", "a..txt", ".git/config"} {
		write(t, filepath.Join(f.ws, name), "inside")
	}
	if setup == "" {
		return
	}
	cmd := exec.Command("sh", "-c", f.moved(setup))
	cmd.Dir = f.ws
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("setup %q: %v\n%s", setup, err, out)
	}
}

// moved puts what a row says of /ws and what lies beside it where they are.
func (f field) moved(text string) string {
	text = strings.ReplaceAll(text, "/secret.txt", f.outer+"/secret.txt")
	return strings.ReplaceAll(text, "/ws", f.outer+"/ws")
}

// outside tells what lies beside the root, so that a change is seen.
func (f field) outside(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(f.outer, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == f.ws {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			b.WriteString(name + ": " + read(t, name) + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var refusals = []string{"permission_denied", "ignored_path", "validation_error"}

func TestEvalsPaths(t *testing.T) {
	needsUnix(t)
	all := rows[pathRow](t, filepath.Join(evals(t, "safety"), "paths.jsonl"))
	f := newField(t)
	app := filepath.Join(folder(t, "app.yaml", granted), "app.yaml")
	s := stdio(t, f.ws, "--app", app, "--state", f.state)
	before, refused := f.outside(t), 0
	for _, row := range all {
		name := row.Path
		if strings.HasPrefix(name, "/ws") {
			name = f.outer + name
		}
		for _, c := range []struct {
			tool string
			args object
		}{
			{"filesystem.read", object{"path": name}},
			{"filesystem.write", object{"path": name, "content": "WRITTEN"}},
		} {
			f.reset(t, row.Setup)
			got := call(t, s, c.tool, c.args)
			special := strings.Contains(row.Setup, "mkfifo") // a failure, not a refusal
			switch {
			case row.Expect == "refuse" && (!got.IsError || !special && !slices.Contains(refusals, got.Code)):
				t.Errorf("%s %q: %+v; want it refused: %s", c.tool, row.Path, got, row.Why)
			case row.Expect == "allow" && slices.Contains(refusals, got.Code):
				t.Errorf("%s %q: %+v; want it allowed: %s", c.tool, row.Path, got, row.Why)
			}
			if strings.Contains(got.Text, "OUTSIDE") || strings.Contains(got.Text, "root:x:0") {
				t.Errorf("%s %q: gives away what lies outside: %.200s", c.tool, row.Path, got.Text)
			}
			if after := f.outside(t); after != before {
				t.Errorf("%s %q: what lies outside changed from\n%s to\n%s", c.tool, row.Path, before, after)
				before = after
			}
			if slices.Contains(refusals, got.Code) {
				refused++
			}
		}
	}
	onRecord := 0
	for _, l := range audited(t, f.ws, "--state", f.state) {
		if l.Decision == "deny" && slices.Contains(refusals, l.Error) {
			onRecord++
		}
	}
	if onRecord != refused {
		t.Errorf("%d of %d refusals are on record", onRecord, refused)
	}
	t.Logf("%d rows, %d refusals", len(all), refused)
	verified(t, f.ws, "--state", f.state)
}

type urlRow struct{ URL, Expect, Why, Needs string }

func TestEvalsURLs(t *testing.T) {
	all := rows[urlRow](t, filepath.Join(evals(t, "safety"), "urls.jsonl"))
	dir := folder(t, "app.yaml", "app: {app_id: web, name: Web}\ntools: {modules: {http: {config: {timeout: 1}}}}\n")
	s := stdio(t, dir, "--app", "app.yaml")
	refused := 0
	for _, row := range all {
		if row.Needs != "" {
			continue
		}
		got := call(t, s, "http.get", object{"url": row.URL})
		unresolved := got.Code == "external_service_error" && strings.Contains(got.Text, "there is no host") // without a network
		switch {
		case row.Expect == "refuse" && !unresolved && got.Code != "permission_denied":
			t.Errorf("%q: %+v; want it refused: %s", row.URL, got, row.Why)
		case row.Expect == "refuse" && unresolved && !strings.HasSuffix(strings.TrimSuffix(row.URL, "/"), "nip.io") && !strings.Contains(row.URL, "localtest"):
			t.Errorf("%q was looked up: %+v", row.URL, got)
		case row.Expect == "allow" && got.Code == "permission_denied":
			t.Errorf("%q: %+v; want it allowed", row.URL, got)
		}
		if got.Code == "permission_denied" {
			refused++
		}
	}
	if got := audited(t, dir, "--app", "app.yaml", "--error", "permission_denied"); len(got) != refused {
		t.Errorf("%d of %d refusals are on record", len(got), refused)
	}
	t.Logf("%d refusals", refused)
}

func TestEvalsSchemas(t *testing.T) {
	file := filepath.Join(evals(t, "schema"), "real-schemas.jsonl")
	schemas, err := schemasOf(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, "app.yaml", serversApp(t, object{"real": child(t, "schemas="+file)}))
	d := serve(t, dir, "--app", "app.yaml")
	want := map[string]string{}
	for i, schema := range schemas {
		want[fmt.Sprintf("get_%04d", i)] = string(schema)
	}
	sameSchemas(t, d, "real", want)
	t.Logf("%d schemas", len(want))
}
