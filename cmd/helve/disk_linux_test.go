package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk stops writes, with an error that says so, and not the process.
func TestFullDisk(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", granted)
	state := t.TempDir()
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be mounted here (run as root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(state, syscall.MNT_DETACH) })
	d := serve(t, dir, "--app", "app.yaml", "--state", state, "--store", "memory")
	s := d.connect(t, "/mcp")
	if got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "one"}); got.IsError {
		t.Fatalf("at first: %+v", got)
	}
	filler := filepath.Join(state, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is larger than thought")
	}
	refused := false
	for range 400 { // what is reserved is used up first
		before := read(t, filepath.Join(dir, "b.txt"))
		got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": before + strings.Repeat("x", 50)})
		if !got.IsError {
			continue
		}
		refused = true
		unsaved := strings.Contains(got.Text, "audit") || strings.Contains(got.Text, "could not be saved first")
		if !unsaved || !strings.Contains(got.Text, "space") {
			t.Errorf("the refusal says %+v", got)
		}
		if read(t, filepath.Join(dir, "b.txt")) != before {
			t.Error("what was refused took place")
		}
		break
	}
	if !refused {
		t.Error("writes went on while the disk was full")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "again"}); got.IsError {
		t.Errorf("with room again: %+v", got)
	}
	verified(t, dir, "--state", state)
}
