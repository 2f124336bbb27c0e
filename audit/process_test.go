package audit_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/helve-ai/helve/audit"
)

// child is what the test binary does when a test starts it anew.
func child(role string) int {
	dir, name := os.Getenv("AUDIT_TEST_DIR"), os.Getenv("AUDIT_TEST_NAME")
	o := audit.Options{MaxBytes: 300_000}
	if role == "limited" {
		limitFiles()
		o = audit.Options{}
	}
	l, err := audit.Open(dir, o)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer l.Close()
	switch role {
	case "some":
		return appendSome(l, name)
	case "endless":
		return appendEndless(l, name)
	case "limited":
		return appendLimited(l)
	}
	return 2
}

func appendSome(l *audit.Log, name string) int {
	for i := range 500 {
		if err := l.Append(&audit.Entry{Call: fmt.Sprint(name, "-", i)}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

// appendEndless acknowledges each line on standard output. Lines of several
// pages give a kill the chance to tear one.
func appendEndless(l *audit.Log, name string) int {
	reason := strings.Repeat("x", 40_000)
	for i := 0; ; i++ {
		call := fmt.Sprint(name, "-", i)
		if err := l.Append(&audit.Entry{Call: call, Reason: reason[:i*7919%len(reason)]}); err != nil {
			fmt.Println(err)
			return 1
		}
		if _, err := os.Stdout.WriteString(call + "\n"); err != nil {
			return 1
		}
	}
}

func start(t *testing.T, role, dir, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_CHILD="+role, "AUDIT_TEST_DIR="+dir, "AUDIT_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestProcessesShareOneChain(t *testing.T) {
	dir := t.TempDir()
	const processes, each = 4, 500
	var cmds []*exec.Cmd
	var outs []*bufio.Scanner
	for i := range processes {
		cmd, out := start(t, "some", dir, strconv.Itoa(i))
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for range 10 { // what is read meanwhile is whole, too
		if r, err := audit.Verify(dir); err != nil || len(r.Problems) > 0 {
			t.Error(r.Problems, err)
		}
	}
	for i, cmd := range cmds {
		for outs[i].Scan() {
			t.Error(outs[i].Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantClean(t, dir, processes*each)
	next := map[string]int{} // each process's lines stand in its order
	for _, r := range records(t, dir, audit.Filter{}) {
		name, i, _ := strings.Cut(r.Call, "-")
		if i != strconv.Itoa(next[name]) {
			t.Fatalf("line %d is %s, want number %d", r.Seq, r.Call, next[name])
		}
		next[name]++
	}
	for i := range processes {
		if next[strconv.Itoa(i)] != each {
			t.Errorf("process %d has %d lines, want %d", i, next[strconv.Itoa(i)], each)
		}
	}
}

// Two processes at a time append and are killed; the survivor or the next one
// puts in order what they leave.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for round := range 12 {
		var cmds []*exec.Cmd
		var outs []*bufio.Scanner
		for i := range 2 {
			cmd, out := start(t, "endless", dir, fmt.Sprintf("%d.%d", round, i))
			cmds, outs = append(cmds, cmd), append(outs, out)
		}
		for i, cmd := range cmds {
			for range 1 + rand.IntN(150) {
				if !outs[i].Scan() {
					t.Fatal("a child ended too early")
				}
				acknowledged[outs[i].Text()] = true
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for outs[i].Scan() {
				acknowledged[outs[i].Text()] = true
			}
			cmd.Wait() // says that it was killed
		}
	}
	if err := open(t, dir, audit.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	var torn, lines int
	for _, r := range records(t, dir, audit.Filter{}) {
		lines++
		delete(acknowledged, r.Call)
		if r.Kind == audit.Recovered {
			torn++
			if !strings.HasPrefix(r.Reason, "dropped ") || strings.Contains(r.Reason, "found") {
				t.Errorf("line %d: %s", r.Seq, r.Reason)
			}
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged lines are not in the log", len(acknowledged))
	}
	wantClean(t, dir, lines)
	t.Logf("%d lines, %d of them after a torn one", lines, torn)
}
