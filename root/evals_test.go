package root_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

type evalRow struct {
	Path, Expect, Why, Setup string
}

// TestEvals runs the path rows of the evaluation data, which assume a root called /ws, in a root elsewhere.
func TestEvals(t *testing.T) {
	folder := os.Getenv("HELVE_EVALS")
	if folder == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the rows assume a Unix system")
	}
	f, err := os.Open(filepath.Join(folder, "safety", "paths.jsonl"))
	must(t, err)
	defer f.Close()
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
		var row evalRow
		must(t, json.Unmarshal(lines.Bytes(), &row))
		t.Run("", func(t *testing.T) { runEval(t, row) })
	}
	if rows == 0 {
		t.Fatal("no rows")
	}
	t.Logf("%d rows", rows)
}

// elsewhere moves what a row says about /ws and its sibling into outer.
func elsewhere(outer, text string) string {
	text = strings.ReplaceAll(text, "/secret.txt", outer+"/secret.txt")
	return strings.ReplaceAll(text, "/ws", outer+"/ws")
}

func runEval(t *testing.T, row evalRow) {
	r, dir := newRoot(t)
	outer := filepath.Dir(dir)
	for _, name := range []string{"a.txt", "sub/b.txt", "x y.txt", "ünï.txt", "..data/c.txt", "...", "sub/..b", "a..txt"} {
		put(t, dir, name, "inside")
	}
	put(t, outer, "secret.txt", "outside")
	put(t, outer, "ws-evil/s.txt", "outside")
	if row.Setup != "" {
		cmd := exec.Command("sh", "-c", elsewhere(outer, row.Setup))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("setup %q: %v\n%s", row.Setup, err, out)
		}
	}
	name := row.Path
	if strings.HasPrefix(name, "/ws") {
		name = outer + name
	}
	for _, access := range []root.Access{root.ToList, root.ToRead, root.ToWrite, root.ToDelete} {
		p, err := r.Resolve(name, access)
		switch {
		case row.Expect == "allow" && err != nil && root.CodeOf(err) != root.Protected:
			t.Errorf("%s %q: %v; want it allowed: %s", access, row.Path, err, row.Why)
		case row.Expect == "refuse" && err == nil:
			t.Errorf("%s %q: allowed as %s; want it refused: %s", access, row.Path, p.Rel, row.Why)
		case err == nil:
			contained(t, r, dir, p, access)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(outer, "secret.txt")); string(data) != "outside" {
		t.Errorf("%q: the file outside was written", row.Path)
	}
}

// contained uses the path and checks that nothing but the inside is touched.
func contained(t *testing.T, r *root.Root, dir string, p root.Path, access root.Access) {
	t.Helper()
	if rel, err := filepath.Rel(dir, p.Abs); err != nil || !filepath.IsLocal(rel) {
		t.Errorf("%q resolves to %q, outside of the root", p.Rel, p.Abs)
	}
	if p.Exists && p.Mode.IsRegular() {
		if data, err := r.ReadFile(p, 0); err != nil || string(data) != "inside" && string(data) != "written" {
			t.Errorf("read %q: %q, %v", p.Rel, data, err)
		}
	}
	if access == root.ToWrite && !p.Mode.IsDir() {
		if err := r.WriteFileAtomic(p, []byte("written"), 0); err == nil {
			if data, err := os.ReadFile(filepath.Join(dir, p.Rel)); err != nil || string(data) != "written" {
				t.Errorf("write %q did not arrive inside: %q, %v", p.Rel, data, err)
			}
		}
	}
}
