package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever is done to the lines of the audit log, helve audit verify finds it.
func TestAuditVerifyFindsDamage(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	for range 4 {
		if _, errs, code := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`); code != 0 {
			t.Fatal(errs)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, ".helve", "audit", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	if len(lines) < 4 {
		t.Fatalf("%d lines", len(lines))
	}
	for name, damage := range map[string]func() []string{
		"edited":        func() []string { l := slices.Clone(lines); l[1] = strings.Replace(l[1], "a.txt", "b.txt", 1); return l },
		"reordered":     func() []string { l := slices.Clone(lines); l[1], l[2] = l[2], l[1]; return l },
		"missing":       func() []string { return slices.Delete(slices.Clone(lines), 1, 2) },
		"missing first": func() []string { return slices.Clone(lines[1:]) },
		"cut off":       func() []string { return slices.Clone(lines[:len(lines)-1]) },
		"truncated":     func() []string { l := slices.Clone(lines); l[3] = l[3][:len(l[3])/2]; return l },
		"twice":         func() []string { return slices.Insert(slices.Clone(lines), 2, lines[1]) },
		"empty":         func() []string { return nil },
	} {
		if err := os.WriteFile(files[0], []byte(strings.Join(damage(), "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := run(t, dir, "", "audit", "verify"); code != 1 || errs == "" {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := run(t, dir, "", "audit", "verify"); code != 1 || errs == "" {
		t.Errorf("the file is gone: exit %d: %s%s", code, out, errs)
	}
	if err := os.WriteFile(files[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := run(t, dir, "", "audit", "verify"); code != 0 {
		t.Errorf("as it was: exit %d: %s%s", code, out, errs)
	}
}
