package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/audit"
)

// earlier writes calls into dir's audit log as of the given time, in files of
// at most max bytes.
func earlier(t *testing.T, dir string, at time.Time, max int64, calls ...string) {
	t.Helper()
	l, err := audit.Open(filepath.Join(dir, ".helve", "audit"), audit.Options{MaxBytes: max, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if err := l.Append(&audit.Entry{Time: at, Session: "old", Call: c, Tool: "clock.now", Decision: "allow"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func auditFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".helve", "audit", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Days and sizes begin new files. Questions are answered from all of them, and
// what is done to an old one is found.
func TestAuditOverManyFiles(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	long := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	earlier(t, dir, long, 800, "c1", "c2", "c3", "c4", "c5", "c6", "c7")
	earlier(t, dir, long.Add(24*time.Hour), 0, "c8", "c9", "c10")
	for range 2 {
		if _, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`); code != 0 {
			t.Fatal(errs)
		}
	}
	files := auditFiles(t, dir)
	if len(files) < 5 { // three of the first day, one of the second, and that of the calls
		t.Fatalf("files %v", files)
	}
	of := func(name string) string { return filepath.Join(dir, ".helve", "audit", name) }
	old, middle, next := of("audit-2026-01-02.jsonl"), of("audit-2026-01-02.1.jsonl"), of("audit-2026-01-03.jsonl")

	ask := func(want []int, args ...string) {
		t.Helper()
		out, errs, code := run(t, dir, "", append([]string{"audit", "--json", "--limit", "0"}, args...)...)
		var records []struct{ Seq int }
		if err := json.Unmarshal([]byte(out), &records); code != 0 || err != nil {
			t.Fatalf("%v: exit %d: %v: %s%s", args, code, err, out, errs)
		}
		var got []int
		for _, r := range records {
			got = append(got, r.Seq)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", args, got, want)
		}
	}
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	ask(all)
	ask(all[:10], "--session", "old")
	ask(all[:10], "--tool", "clock.*")
	ask(all[10:], "--tool", "filesystem.read")
	ask(all[:7], "--until", "2026-01-03")
	ask(all[7:10], "--since", "2026-01-03", "--until", "2026-01-04")

	verify := func() (string, int) {
		out, errs, code := run(t, dir, "", "audit", "verify")
		return out + errs, code
	}
	if said, code := verify(); code != 0 || !strings.Contains(said, "12 lines") {
		t.Fatalf("exit %d: %s", code, said)
	}
	edit := func(change func([]string) []string) func(string) error {
		return func(file string) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			lines := strings.SplitAfter(string(b), "\n")
			return os.WriteFile(file, []byte(strings.Join(change(lines[:len(lines)-1]), "")), 0o600)
		}
	}
	edited := edit(func(l []string) []string { l[1] = strings.Replace(l[1], "clock.now", "clock.set", 1); return l })
	for name, damage := range map[string]func(string) error{
		"edited":    edited,
		"reordered": edit(func(l []string) []string { l[0], l[1] = l[1], l[0]; return l }),
		"removed":   edit(func(l []string) []string { return append(l[:1], l[2:]...) }),
		"cut off":   edit(func(l []string) []string { return l[:len(l)-1] }),
		"truncated": edit(func(l []string) []string { n := len(l) - 1; l[n] = l[n][:len(l[n])/2]; return l }),
		"emptied":   edit(func([]string) []string { return nil }),
		"gone":      os.Remove,
	} {
		for _, file := range []string{old, middle, next} {
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
			if said, code := verify(); code != 1 || !strings.Contains(said, ".jsonl") {
				t.Errorf("%s, %s: exit %d: %s", name, filepath.Base(file), code, said)
			}
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Calls go on after damage, which they do not hide.
	if err := edited(old); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`); code != 0 {
		t.Fatal(errs)
	}
	if said, code := verify(); code != 1 || !strings.Contains(said, "audit-2026-01-02.jsonl:2") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// A file that is full is followed by another, with one chain through both.
func TestAuditFileIsFull(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	call := func() {
		t.Helper()
		if _, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`); code != 0 {
			t.Fatal(errs)
		}
	}
	call()
	l, err := audit.Open(filepath.Join(dir, ".helve", "audit"), audit.Options{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for range 32 {
		if err := l.Append(&audit.Entry{Call: "big", Tool: "clock.now", Decision: "allow", Reason: strings.Repeat("x", 2<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before := len(auditFiles(t, dir))
	call()
	if files := auditFiles(t, dir); len(files) != before+1 {
		t.Errorf("files %v, want one more than %d", files, before)
	}
	out, errs, code := run(t, dir, "", "audit", "verify")
	if code != 0 || !strings.Contains(out, "34 lines") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
