package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A crowd is many clients with many calls at a time.
type crowd struct {
	done  context.Context // when it is enough
	right atomic.Int64    // answers to calls of the server that stays
	back  atomic.Int64    // and of the one that falls and comes back
	down  atomic.Int64    // calls that it did not answer
	wrong chan string
}

const (
	crowdClients = 20
	crowdEach    = 10 // calls of one client at a time
)

// asks makes calls, one after the other, and holds each answer to its call.
func (c *crowd) asks(s *mcp.ClientSession, who string) {
	for n := 0; c.done.Err() == nil; n++ {
		name := "mcp.sound.get_before"
		if n%3 == 2 {
			name = "mcp.weak.get_before"
		}
		args := fmt.Sprintf(`{"who":%q,"n":%d}`, who, n)
		res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		switch {
		case err != nil:
			c.complain("%s: %s: %v", who, name, err)
		case replyOf(res).Text == args:
			if name == "mcp.weak.get_before" {
				c.back.Add(1)
			} else {
				c.right.Add(1)
			}
		case name == "mcp.weak.get_before" && replyOf(res).Code == "external_service_error":
			c.down.Add(1)
		default:
			c.complain("%s asked %s for %s and got %+v", who, name, args, replyOf(res))
		}
	}
}

func (c *crowd) complain(format string, args ...any) {
	select {
	case c.wrong <- fmt.Sprintf(format, args...):
	default: // enough is known
	}
}

// Two hundred calls are in flight from clients of two revisions while a server
// crashes again and again: each answer is the one that was asked for, nothing
// that was begun is left, and the memory stays what it is.
func TestCrowd(t *testing.T) {
	length := 3 * time.Second
	if d, err := time.ParseDuration(os.Getenv("HELVE_TEST_CROWD")); err == nil && d > 0 {
		length = d
	}
	sound := theirServer()
	changingTools(sound)
	dir := folder(t, "app.yaml", serversApp(t, object{"sound": object{"url": theirHTTP(t, sound)}, "weak": child(t, "change", "crash")}))
	quiet := serve(t, dir, "--app", "app.yaml", "--state", "quiet")
	d := serve(t, dir, "--app", "app.yaml")
	for _, one := range []*daemon{quiet, d} { // each has begun what a call begins
		s := one.connect(t, "/mcp/full")
		call(t, s, "mcp.sound.get_before", nil)
		call(t, s, "mcp.weak.get_before", nil)
		s.Close()
	}

	c := &crowd{wrong: make(chan string, 10)}
	var enough context.CancelFunc
	c.done, enough = context.WithCancel(t.Context())
	var all sync.WaitGroup
	var sessions []*mcp.ClientSession
	for i := range crowdClients {
		s, err := dialVersion(t, d.URL+"/mcp/full", []string{"", "2025-11-25"}[i%2], nil)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
		for j := range crowdEach {
			all.Go(func() { c.asks(s, fmt.Sprintf("%d.%d", i, j)) })
		}
	}
	middle := c.crashes(t, d, length)
	enough()
	all.Wait()
	for _, s := range sessions {
		s.Close()
	}
	close(c.wrong)
	for why := range c.wrong {
		t.Error(why)
	}
	t.Logf("%d answers, %d of the server that crashes, which left %d calls unanswered", c.right.Load(), c.back.Load(), c.down.Load())
	if c.right.Load() == 0 || c.back.Load() == 0 || c.down.Load() == 0 {
		t.Error("nothing was tried")
	}
	if end := d.resident(t); length >= time.Minute && end > middle+middle/5 {
		t.Errorf("it held %d kB in the middle, and %d kB in the end", middle, end)
	} else {
		t.Logf("%d kB in the middle, %d kB in the end; one that nobody has used holds %d kB", middle, end, quiet.resident(t))
	}
	// The clients' connections end; of those to the server 64 wait for more.
	eventually(t, func() bool { return d.files(t) <= quiet.files(t)+64+16 })
	// Workers wait for more, as many as one may have at a time.
	if had, has := quiet.goroutines(t), d.goroutines(t); has > had+48 {
		t.Errorf("%d goroutines run, and %d in one that nobody has used:\n%s", has, had, d.errs.String())
	}
	verified(t, dir)
}

// crashes has the weak server crash twelve times in that time, or a few times if
// it takes longer, and returns what memory was held in the middle.
func (c *crowd) crashes(t *testing.T, d *daemon, length time.Duration) (middle int) {
	s := d.connect(t, "/mcp/full")
	defer s.Close()
	tick := time.NewTicker(length / 12)
	defer tick.Stop()
	end := time.Now().Add(length)
	for n := 0; n < 3 || time.Now().Before(end); n++ {
		<-tick.C
		if middle == 0 && time.Until(end) < length/2 {
			middle = d.resident(t)
		}
		if got := call(t, s, "mcp.weak.get_crash", nil); got.Code != "external_service_error" {
			c.complain("the server that should crash answered %+v", got)
		}
	}
	return middle
}

// files returns how many files and connections a daemon has open, 0 where that
// is not told.
func (d *daemon) files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), "fd"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return len(all)
}

// resident returns how many kB of memory a daemon holds, 0 where that is not told.
func (d *daemon) resident(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), "status"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	n, bad := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	return n
}

// goroutines ends a daemon and returns how many goroutines it had.
func (d *daemon) goroutines(t *testing.T) int {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	d.wait()
	n := strings.Count(d.errs.String(), "\ngoroutine ")
	if n == 0 {
		t.Fatalf("it did not tell: %s", d.errs.String())
	}
	return n
}
