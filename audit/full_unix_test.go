//go:build unix

package audit_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/helve-ai/helve/audit"
)

const fileLimit = 2000

// limitFiles makes writes beyond fileLimit fail, half-way if need be.
func limitFiles() {
	signal.Ignore(syscall.SIGXFSZ)
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &r); err != nil {
		panic(err)
	}
	r.Cur = fileLimit
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &r); err != nil {
		panic(err)
	}
}

// appendLimited appends until it fails twice, is refused by Reserve, and goes
// on when the limit is lifted.
func appendLimited(l *audit.Log) int {
	n := 0
	for ; n < 100; n++ {
		if err := l.Append(&audit.Entry{Call: fmt.Sprint("c", n)}); err != nil {
			fmt.Println("append:", err)
			break
		}
	}
	fmt.Println("appended:", n)
	fmt.Println("append:", l.Append(&audit.Entry{Call: "lost too", Reason: strings.Repeat("x", 300)}))
	fmt.Println("reserve:", l.Reserve())
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &r); err != nil {
		panic(err)
	}
	r.Cur = r.Max
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &r); err != nil {
		panic(err)
	}
	fmt.Println("reserve:", l.Reserve())
	fmt.Println("append:", l.Append(&audit.Entry{Call: "after"}))
	return 0
}

func TestFileLimit(t *testing.T) {
	dir := t.TempDir()
	cmd, out := start(t, "limited", dir, "")
	var got []string
	for out.Scan() {
		got = append(got, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	want := []string{"append: audit: write ", "appended: ", "append: audit: write ", "reserve: audit: write ", "reserve: <nil>", "append: <nil>"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q…", got[i], want[i])
		}
	}
	if !strings.Contains(got[0], dir) || !strings.HasSuffix(got[0], "; raise the limit on the size of files (ulimit -f)") {
		t.Errorf("error %q names neither file nor remedy", got[0])
	}
	var n int
	fmt.Sscanf(got[1], "appended: %d", &n)
	list := records(t, dir, audit.Filter{})
	wantClean(t, dir, n+2)
	if tail := calls(list[n:]); n == 0 || !strings.HasPrefix(tail, "(lines that could not be written: 2; the first: audit: write ") || !strings.HasSuffix(tail, ") after") {
		t.Errorf("after %d lines: %s", n, tail)
	}
}

// tinyDisk mounts a file system of 1 MiB.
func tinyDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := mountTmpfs(dir); err != nil {
		t.Skip("needs to mount a small file system: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	disk := tinyDisk(t)
	dir := filepath.Join(disk, "audit")
	now := noon
	l, err := audit.Open(dir, audit.Options{Now: clock(&now)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Reserve(); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk did not fill")
	}
	// What was reserved is there although the disk is full, and a new day
	// without room for a new file does not lose a line.
	now = now.Add(24 * time.Hour)
	n := 0
	for ; l.Reserve() == nil; n++ {
		if err := l.Append(&audit.Entry{Call: "reserved", Reason: strings.Repeat("x", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if n < 100 {
		t.Errorf("%d lines fitted, want a hundred at least", n)
	}
	if err := l.Reserve(); err == nil || !strings.Contains(err.Error(), dir) || !strings.HasSuffix(err.Error(), "free some space on its disk, or keep the log elsewhere") {
		t.Errorf("Reserve on a full disk: %v", err)
	}
	// The calls under way when it got full have 64 KiB.
	for range 50 {
		if err := l.Append(&audit.Entry{Call: "under way", Reason: strings.Repeat("x", 1000)}); err != nil {
			t.Fatal(err)
		}
		n++
	}
	for err = nil; err == nil && n < 10_000; n++ {
		err = l.Append(&audit.Entry{Call: "too much", Reason: strings.Repeat("x", 5000)})
	}
	if n--; err == nil || !strings.Contains(err.Error(), "audit-2026-11-20.jsonl") || !strings.HasSuffix(err.Error(), "free some space on its disk, or keep the log elsewhere") {
		t.Errorf("Append on a full disk: %v", err)
	}
	wantClean(t, dir, n)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := l.Reserve(); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1, 1)
	if tail := calls(records(t, dir, audit.Filter{})[n:]); !strings.HasPrefix(tail, "(lines that could not be written: 1; ") || !strings.HasSuffix(tail, " c1") {
		t.Errorf("after the full disk: %s", tail)
	}
	wantClean(t, dir, n+2)
}

func TestModes(t *testing.T) {
	dir := filled(t)
	for name, want := range map[string]os.FileMode{
		dir: 0o700, path(dir, 0): 0o400, path(dir, 1): 0o400, path(dir, 2): 0o600, filepath.Join(dir, "head"): 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir, audit.Options{})
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder kept mode %o", info.Mode().Perm())
	}
}

// The folder is taken away under an open log, and a file put in its place.
func TestFolderReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	now := noon
	l := open(t, dir, audit.Options{Now: clock(&now)})
	appendCalls(t, l, 1, 3)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	for what, err := range map[string]error{"Append": l.Append(&audit.Entry{Call: "c4"}), "Append again": l.Append(&audit.Entry{Call: "c5"}), "Reserve": l.Reserve()} {
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "move away what stands in the folder's place") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".old", dir); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 6, 6)
	wantClean(t, dir, 5)
	if got := calls(records(t, dir, audit.Filter{})); !strings.HasPrefix(got, "c1 c2 c3 (lines that could not be written: 2; ") || !strings.HasSuffix(got, " c6") {
		t.Error(got)
	}
}

// A file that is removed under an open log is missed at once.
func TestFileRemoved(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	appendCalls(t, l, 1, 3)
	if err := os.Remove(path(dir, 0)); err != nil {
		t.Fatal(err)
	}
	if err := l.Reserve(); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 4, 4)
	wantProblems(t, dir, "lines 1 to 3 are missing before it")
}

func TestNoPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, audit.Options{})
	appendCalls(t, l, 1, 1)
	if err := os.Chmod(path(dir, 0), 0o400); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Reserve": l.Reserve(), "Append": l.Append(&audit.Entry{})} {
		if err == nil || !strings.Contains(err.Error(), path(dir, 0)) || !strings.Contains(err.Error(), "give this user the right to write") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Lines do not go on in a finished file, even if the one after it is gone.
func TestFinishedFilesStayFinished(t *testing.T) {
	dir := filled(t)
	finished := string(read(t, path(dir, 1)))
	if err := os.Remove(path(dir, 2)); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir, audit.Options{})
	appendCalls(t, l, 10, 10)
	if string(read(t, path(dir, 1))) != finished {
		t.Error("a finished file has changed")
	}
	if r := records(t, dir, audit.Filter{Newest: true, Limit: 1})[0]; r.Call != "c10" || r.File != filepath.Base(path(dir, 2)) {
		t.Errorf("the last line is %s in %s", r.Call, r.File)
	}
}
