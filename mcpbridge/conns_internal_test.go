//go:build unix

package mcpbridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// speaker is a server that answers the n-th request of all with what say
// writes, and counts its connections.
func speaker(t *testing.T, say func(n int, c net.Conn) (more bool)) (cs *conns, dialled *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var requests atomic.Int32
	dialled = new(atomic.Int32)
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil || !say(int(requests.Add(1)), c) {
						return
					}
				}
			})
		}
	})
	cs = &conns{addr: l.Addr().String(), most: 1 << 20}
	t.Cleanup(func() { l.Close(); cs.close(); all.Wait() })
	return cs, dialled
}

// post makes a request and reads the answer until it ends or, if until is not
// "", until that has come.
func post(ctx context.Context, cs *conns, until string) (string, error) {
	ex := &exchange{}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+cs.addr+"/", strings.NewReader("{}"))
	resp, err := cs.roundTrip(r, ex)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if until == "" {
		data, err := io.ReadAll(resp.Body)
		return string(data), err
	}
	var got strings.Builder
	for p := make([]byte, 1); !strings.Contains(got.String(), until); {
		n, err := resp.Body.Read(p)
		got.Write(p[:n])
		if err != nil && !strings.Contains(got.String(), until) {
			return got.String(), err
		}
	}
	ex.answered = true
	return got.String(), nil
}

const wholeOne = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue"

// What servers may do, and what they may not, with the number of connections
// that twenty requests take, one after the other.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name  string
		say   func(n int, c net.Conn) bool
		until string
		want  string
		fails string
		least int32 // connections
		most  int32
	}{
		{"whole answers", func(_ int, c net.Conn) bool { fmt.Fprint(c, wholeOne); return true }, "", "true", "", 1, 1},
		{"announcements", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+wholeOne)
			return true
		}, "", "true", "", 1, 1},
		{"announcements only", func(_ int, c net.Conn) bool {
			for range 100 {
				fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\n\r\n")
			}
			return true
		}, "", "", "announces its answer again and again", 20, 20},
		{"another protocol", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
			return true
		}, "", "", "another protocol", 20, 20},
		{"closed after each, as announced", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntrue")
			return false
		}, "", "true", "", 20, 20},
		{"ended by the connection's end", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.0 200 OK\r\n\r\ntrue")
			return false
		}, "", "true", "", 20, 20},
		{"more than was asked for", func(_ int, c net.Conn) bool { fmt.Fprint(c, wholeOne+wholeOne); return true }, "", "true", "", 20, 20},
		{"streams that end", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n0\r\n\r\n")
			return true
		}, "true", "true", "", 1, 2},
		{"streams with a little more", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n100\r\n"+strings.Repeat("x", 0x100)+"\r\n0\r\n\r\n")
			return true
		}, "true", "true", "", 1, 2},
		{"streams with much more", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n2000\r\n"+strings.Repeat("x", 0x2000)+"\r\n0\r\n\r\n")
			return true
		}, "true", "true", "", 20, 20},
		{"streams that do not end", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n")
			return true
		}, "true", "true", "", 20, 20},
		{"streams cut off in a chunk", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntr")
			return false
		}, "true", "tr", "unexpected EOF", 20, 20},
		{"too short", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntrue")
			return false
		}, "", "true", "unexpected EOF", 20, 20},
		{"nothing", func(int, net.Conn) bool { return false }, "", "", "closed the connection before it answered", 20, 20},
		{"no HTTP", func(_ int, c net.Conn) bool { fmt.Fprint(c, "hello\r\n\r\n"); return false }, "", "", "malformed HTTP", 20, 20},
		{"endless headers", func(_ int, c net.Conn) bool {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nA: ")
			for range 64 {
				if _, err := c.Write(make64K()); err != nil {
					break
				}
			}
			return false
		}, "", "", "headers of the answer are too large", 20, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs, dialled := speaker(t, c.say)
			for range 20 {
				got, err := post(t.Context(), cs, c.until)
				if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if n := dialled.Load(); n < c.least || n > c.most {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func make64K() []byte { return []byte(strings.Repeat("a", 64<<10)) }

// A server that closes what nobody uses loses no request: the end is seen
// before the connection is used again.
func TestClosedMeanwhile(t *testing.T) {
	closed := make(chan struct{}, 1)
	cs, dialled := speaker(t, func(_ int, c net.Conn) bool {
		fmt.Fprint(c, wholeOne)
		c.Close()
		closed <- struct{}{}
		return false
	})
	for range 50 {
		if got, err := post(t.Context(), cs, ""); got != "true" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		<-closed
	}
	if dialled.Load() != 50 {
		t.Errorf("%d connections", dialled.Load())
	}
}

// However far a request has come when its context ends, it ends then, with the
// context's cause, and its connection is not used again.
func TestEndedRequests(t *testing.T) {
	cause := errors.New("enough")
	for _, parts := range [][]string{{""}, {"HTTP/1.1 200"}, {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"}, {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntr"}} {
		said := make(chan struct{}, 1)
		cs, dialled := speaker(t, func(n int, c net.Conn) bool {
			if n%2 == 0 {
				fmt.Fprint(c, wholeOne)
				return true
			}
			fmt.Fprint(c, parts[0])
			said <- struct{}{}
			return true
		})
		for range 10 {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-said; cancel(cause) }()
			if _, err := post(ctx, cs, ""); err != cause {
				t.Fatalf("after %q: %v", parts[0], err)
			}
			if got, err := post(t.Context(), cs, ""); got != "true" || err != nil {
				t.Fatalf("the next: %q, %v", got, err)
			}
		}
		if n := dialled.Load(); n != 11 { // what was answered is used for the next that fails
			t.Errorf("after %q: %d connections", parts[0], n)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := post(ctx, cs, ""); err == nil {
			t.Error("an ended request was made")
		}
	}
}

// A server that does not begin to answer is not waited for.
func TestLateHeaders(t *testing.T) {
	cs, _ := speaker(t, func(_ int, c net.Conn) bool { return true })
	cs.wait = 20 * time.Millisecond
	if _, err := post(t.Context(), cs, ""); err == nil || !strings.Contains(err.Error(), "has not begun to answer after 20ms") {
		t.Error(err)
	}
}

// Connections that nobody uses are closed, those with an answer that does not
// end first; and all of them at the end, also those in use.
func TestIdleConnections(t *testing.T) {
	cs, dialled := speaker(t, func(n int, c net.Conn) bool {
		if n == 1 {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntrue\r\n")
		} else {
			fmt.Fprint(c, wholeOne)
		}
		return true
	})
	if _, err := post(t.Context(), cs, "true"); err != nil {
		t.Fatal(err)
	}
	if _, err := post(t.Context(), cs, ""); err != nil {
		t.Fatal(err)
	}
	waiting := func(shift time.Duration) int {
		cs.mu.Lock()
		for _, c := range cs.idle {
			c.since = c.since.Add(-shift)
		}
		cs.mu.Unlock()
		cs.sweep()
		cs.mu.Lock()
		defer cs.mu.Unlock()
		return len(cs.idle)
	}
	if n := dialled.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
	if n := waiting(restTime); n != 1 {
		t.Errorf("%d wait after a second", n)
	}
	if n := waiting(idleTime); n != 0 {
		t.Errorf("%d wait after a minute", n)
	}
}
