package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/helve-ai/helve/store"
)

// An Opener opens the store at a place: a path, a URL.
type Opener func(ctx context.Context, place string) (store.Store, error)

// Names of the environment by which a test binary knows that it is a child.
const (
	roleEnv  = "HELVE_STORETEST_ROLE"
	placeEnv = "HELVE_STORETEST_PLACE"
)

// Main is the TestMain of a package whose tests call Durable or Kill, which
// run the test binary once more, as other processes that use the store.
func Main(m *testing.M, open Opener) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	act := map[string]func(context.Context, store.Store) error{"count": countRole, "write": writeRole}[role]
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) // until the parent gives the start
	s, err := open(context.Background(), os.Getenv(placeEnv))
	if err == nil {
		err = act(context.Background(), s)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// perChild is how often a child in the role of count increments.
const perChild = 20

func countRole(ctx context.Context, s store.Store) error {
	for range perChild {
		if _, err := increment(ctx, s, "k"); err != nil {
			return err
		}
	}
	return nil
}

// A child is another process with the store open.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner // its output, from after "ready"
	stdin io.Closer      // the start is given by closing it
}

func startChild(t *testing.T, role, place string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, placeEnv+"="+place)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, bufio.NewScanner(stdout), stdin}
	if !c.lines.Scan() || c.lines.Text() != "ready" {
		t.Fatalf("the child says %q, not that it is ready", c.lines.Text())
	}
	return c
}

// Durable tests what only a store that outlives its process can do. Every
// call of place must name a new place, with nothing at it.
func Durable(t *testing.T, place func(t *testing.T) string, open Opener) {
	must := func(t *testing.T, at string) store.Store {
		t.Helper()
		s, err := open(t.Context(), at)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return s
	}
	t.Run("reopened", func(t *testing.T) {
		at := place(t)
		for i := range 3 {
			s := must(t, at)
			if n, err := increment(t.Context(), s, "k"); n != i+1 || err != nil {
				t.Errorf("increment %d = %d, %v", i+1, n, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	})
	t.Run("two handles", func(t *testing.T) {
		at := place(t)
		a, b := must(t, at), must(t, at)
		defer b.Close()
		set(t, a, "k", "1")
		wantDump(t, b, "k=1")
		parallel(t, 32, func(i int) error {
			for range 4 {
				if _, err := increment(t.Context(), []store.Store{a, b}[i%2], "k"); err != nil {
					return err
				}
			}
			return nil
		})
		wantCount(t, a, "k", 32*4)
		if err := a.Close(); err != nil {
			t.Errorf("Close of one: %v", err)
		}
		set(t, b, "k", "2")
		wantDump(t, b, "k=2")
	})
	t.Run("two handles, cancelled while waiting", func(t *testing.T) {
		at := place(t)
		a, b := must(t, at), must(t, at)
		defer a.Close()
		defer b.Close()
		testCancelledAcross(t, a, b)
	})
	t.Run("processes", func(t *testing.T) {
		at := place(t)
		var children []*child
		for range 4 {
			children = append(children, startChild(t, "count", at))
		}
		for _, c := range children { // all open a place where nothing is, at once
			c.stdin.Close()
		}
		for _, c := range children {
			for c.lines.Scan() {
				t.Errorf("a child says %s", c.lines.Text())
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("a child ends with %v", err)
			}
		}
		s := must(t, at)
		defer s.Close()
		wantCount(t, s, "k", 4*perChild)
	})
}

// writeKeys are written together by a child in the role of write, all with
// the same number, beside one more for each number.
var writeKeys = []string{"a", "b", "c"}

// writeRole prints each number when its Update has returned, until the process
// is killed.
func writeRole(ctx context.Context, s store.Store) error {
	unsynced := store.Unsynced(ctx)
	for i := 0; ; i++ {
		at := ctx
		if i%3 > 0 {
			at = unsynced
		}
		var n int
		err := s.Update(at, func(w store.Writer) error {
			n = 0
			for _, v := range counters.All(w) {
				n = v
			}
			n++
			for _, k := range writeKeys {
				if err := counters.Put(w, k, n); err != nil {
					return err
				}
			}
			return w.Put("log", fmt.Sprintf("%09d", n), make([]byte, 3000))
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// Kill kills a process again and again while it writes at the place, and
// checks that what it had acknowledged is there, and nothing by halves.
func Kill(t *testing.T, place string, open Opener) {
	last := 0
	for round := range 6 {
		acknowledged := killOne(t, place, 1+rand.IntN(40))
		if acknowledged <= last {
			t.Fatalf("round %d: the child acknowledged %d, after %d", round, acknowledged, last)
		}
		s, err := open(t.Context(), place)
		if err != nil {
			t.Fatalf("round %d: open after the kill: %v", round, err)
		}
		view(t, s, func(r store.Reader) error {
			last, err = checkWritten(r, acknowledged)
			return err
		})
		if err := s.Close(); err != nil {
			t.Errorf("round %d: Close: %v", round, err)
		}
	}
	t.Logf("%d writes, 6 kills", last)
}

// killOne kills a child after so many acknowledgements and returns the last
// number it acknowledged.
func killOne(t *testing.T, place string, after int) (last int) {
	t.Helper()
	c := startChild(t, "write", place)
	c.stdin.Close()
	for i := 1; c.lines.Scan(); i++ {
		n, err := strconv.Atoi(c.lines.Text())
		if err != nil {
			t.Fatalf("the child says %s", c.lines.Text())
		}
		last = n
		if i == after {
			c.cmd.Process.Kill()
		}
	}
	c.cmd.Wait() // "killed"
	return last
}

// checkWritten returns the number that was written last: the one acknowledged,
// or the next, if the kill came between.
func checkWritten(r store.Reader, acknowledged int) (last int, err error) {
	found := map[int]int{}
	for _, n := range counters.All(r) {
		found[n]++
		last = n
	}
	if len(found) != 1 || found[last] != len(writeKeys) {
		return 0, fmt.Errorf("written by halves: %v, want one number for %d keys", found, len(writeKeys))
	}
	if last != acknowledged && last != acknowledged+1 {
		return 0, fmt.Errorf("%d was acknowledged, %d is stored", acknowledged, last)
	}
	entries := 0
	for k := range r.Scan("log", "") {
		if entries++; k != fmt.Sprintf("%09d", entries) {
			return 0, fmt.Errorf("log entry %d is missing, %s follows", entries, k)
		}
	}
	if entries != last {
		return 0, fmt.Errorf("%d log entries at number %d", entries, last)
	}
	return last, nil
}
