package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// byHeader takes the caller from headers, as a test's gate.
func byHeader(r *http.Request) mcpbridge.Caller {
	return mcpbridge.Caller{User: r.Header.Get("X-User"), Key: r.Header.Get("X-Key")}
}

func helloOf(version string) string {
	return strings.TrimSpace(strings.ReplaceAll(hello, "VERSION", version))
}

// beginSession begins a session and returns its id.
func beginSession(t testing.TB, url string, header ...string) string {
	t.Helper()
	status, body, h := post(t, url, helloOf("2025-11-25"), header...)
	if id := h.Get("Mcp-Session-Id"); status == 200 && len(id) >= 26 {
		return id
	}
	t.Fatalf("no session: %d %s %q", status, body, h.Get("Mcp-Session-Id"))
	return ""
}

const sayHi = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"hi"}}}`

// until waits until ok, at most a minute.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: it never became so", what)
		}
	}
}

// A session is nobody's but its beginner's: not of another user, not of
// another token of a user of the same name, not at another view, and not of
// another server.
func TestSessionsAreNotShared(t *testing.T) {
	change := func(o *mcpbridge.ServerOptions) { o.Caller = byHeader }
	h, other := newHouse(t, change, echo()), newHouse(t, change, echo())
	url, full := h.http(t, "").URL, h.http(t, inject.Direct).URL
	ann := []string{"X-User", "token:ci", "X-Key", "1"}
	id := beginSession(t, url, ann...)
	for name, r := range map[string]struct {
		url    string
		header []string
		want   int
	}{
		"the beginner":         {url, ann, 200},
		"another user":         {url, []string{"X-User", "token:cd", "X-Key", "1"}, 404},
		"another token":        {url, []string{"X-User", "token:ci", "X-Key", "2"}, 404},
		"nobody in particular": {url, nil, 404},
		"another view":         {full, ann, 404},
		"another server":       {other.http(t, "").URL, ann, 404},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if method != "POST" && r.want == 200 {
				continue
			}
			status := ask(t, method, r.url, sayHi, append(r.header, "Mcp-Session-Id", id)...)
			if status != r.want {
				t.Errorf("%s by %s: %d, want %d", method, name, status, r.want)
			}
		}
	}
	if status, _, _ := post(t, url, sayHi, append(ann, "Mcp-Session-Id", id)...); status != 200 {
		t.Errorf("then the beginner gets %d", status)
	}
	// A session cannot be begun under an id of the client's choice.
	if status, _, _ := post(t, url, helloOf("2025-11-25"), append(ann, "Mcp-Session-Id", "mine")...); status != 404 {
		t.Errorf("an id of the client's own: %d", status)
	}
}

func ask(t testing.TB, method, url, body string, header ...string) int {
	t.Helper()
	if method == http.MethodPost {
		status, _, _ := post(t, url, body, header...)
		return status
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// An ending notes which sessions have ended.
type ending struct {
	mu  sync.Mutex
	all map[string]tool.Origin
}

func (e *ending) note(from tool.Origin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]tool.Origin{}
	}
	e.all[from.Session] = from
}

func (e *ending) of(id string) (tool.Origin, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from, ok := e.all[id]
	return from, ok
}

func (e *ending) len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

func TestSessionsEnd(t *testing.T) {
	var ends ending
	h := newHouse(t, func(o *mcpbridge.ServerOptions) {
		o.Caller, o.Ended, o.Profile = byHeader, ends.note, "read"
	}, echo())
	url := h.http(t, "").URL
	a, b, c := beginSession(t, url, "X-User", "ann"), beginSession(t, url, "X-User", "bob"), beginSession(t, url, "X-User", "ann", "X-Key", "k")
	if status := ask(t, "DELETE", url, "", "X-User", "ann", "Mcp-Session-Id", a); status != 204 {
		t.Errorf("DELETE: %d", status)
	}
	until(t, "DELETE", func() bool { _, ok := ends.of(a); return ok })
	if from, _ := ends.of(a); from.User != "ann" || from.Agent != "raw" || from.Profile != "read" || from.Kind != tool.KindMCP {
		t.Errorf("the session that ended was that of %+v", from)
	}
	h.server.End("k")
	until(t, "End", func() bool { _, ok := ends.of(c); return ok })
	for id, want := range map[string]int{a: 404, c: 404} {
		if status, _, _ := post(t, url, sayHi, "X-User", "ann", "Mcp-Session-Id", id); status != want {
			t.Errorf("a session that has ended: %d", status)
		}
	}
	if status, _, _ := post(t, url, sayHi, "X-User", "bob", "Mcp-Session-Id", b); status != 200 {
		t.Errorf("the other session: %d", status)
	}
	s := h.pipe(t, "", nil, "2025-11-25")
	before := ends.len()
	s.Close()
	until(t, "stdio", func() bool { return ends.len() > before })
}

func TestSessionBounds(t *testing.T) {
	var ends ending
	perUser := 2
	limits := &mcpbridge.Limits{Most: 3}
	change := func(o *mcpbridge.ServerOptions) {
		o.Caller, o.Ended, o.Limits = byHeader, ends.note, limits
		o.SessionsPerUser = func() int { return perUser }
	}
	url := newHouse(t, change, echo()).http(t, "").URL
	second := newHouse(t, change, echo()).http(t, "").URL // of the same daemon
	first := beginSession(t, url, "X-User", "ann")
	beginSession(t, url, "X-User", "ann")
	status, body, header := post(t, url, helloOf("2025-11-25"), "X-User", "ann")
	if status != 429 || header.Get("Retry-After") == "" || header.Get("Mcp-Session-Id") != "" ||
		!strings.Contains(body, `"jsonrpc"`) || !strings.Contains(body, "this user has 2 sessions") {
		t.Errorf("a session too many: %d %s", status, body)
	}
	beginSession(t, url, "X-User", "bob")
	if status, body, _ := post(t, second, helloOf("2025-11-25"), "X-User", "eve"); status != 429 || !strings.Contains(body, "there are 3 sessions") {
		t.Errorf("a session too many for all: %d %s", status, body)
	}
	// What needs no session is served.
	if status, _, _ := post(t, url, sayHi, "X-User", "ann"); status != 200 {
		t.Errorf("a call without a session: %d", status)
	}
	ask(t, "DELETE", url, "", "X-User", "ann", "Mcp-Session-Id", first)
	until(t, "DELETE", func() bool { _, ok := ends.of(first); return ok })
	beginSession(t, url, "X-User", "ann")
	perUser = 1 // as after a change of the app file
	if status, _, _ := post(t, url, helloOf("2025-11-25"), "X-User", "bob"); status != 429 {
		t.Errorf("after the bound was lowered: %d", status)
	}
	// A session that could not begin takes no room.
	perUser = 5
	limits.Most = 4
	for range 5 {
		post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`, "X-User", "ann")
	}
	beginSession(t, url, "X-User", "ann")
}

// world serves h's tools over pipes, in a bubble whose time is not ours.
func world(t *testing.T, h *house) *http.Client {
	l := &pipes{conns: make(chan net.Conn), quit: make(chan struct{})}
	server := &http.Server{Handler: h.server.Handler("")}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(l)
	}()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial(), nil }}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
		<-ended
		h.server.Close(context.Background())
	})
	return client
}

type pipes struct {
	conns chan net.Conn
	quit  chan struct{}
	once  sync.Once
}

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.quit:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.quit) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func do(t *testing.T, c *http.Client, method, body, id string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://127.0.0.1/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A session ends when it was idle for long: counted from its last request, and
// not while a stream is open.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends ending
		h := newHouse(t, func(o *mcpbridge.ServerOptions) { o.Ended = ends.note }, echo())
		c := world(t, h)
		open := func() string {
			resp := do(t, c, "POST", helloOf("2025-11-25"), "")
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return resp.Header.Get("Mcp-Session-Id")
		}
		quiet, busy, listening := open(), open(), open()
		stream := do(t, c, "GET", "", listening)
		for range 3 {
			time.Sleep(mcpbridge.DefaultSessionIdle - time.Minute)
			resp := do(t, c, "POST", sayHi, busy)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("the busy session got %d", resp.StatusCode)
			}
		}
		synctest.Wait()
		if _, ended := ends.of(quiet); !ended || ends.len() != 1 {
			t.Errorf("%d sessions have ended, the quiet one: %v", ends.len(), ended)
		}
		stream.Body.Close()
		time.Sleep(mcpbridge.DefaultSessionIdle + time.Minute)
		synctest.Wait()
		if ends.len() != 3 {
			t.Errorf("in the end %d of 3 sessions have ended", ends.len())
		}
		resp := do(t, c, "POST", sayHi, listening)
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("a session that has ended answers %d", resp.StatusCode)
		}
	})
}

// A client that does not send what it announced is not waited for.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, echo())
		l := &pipes{conns: make(chan net.Conn), quit: make(chan struct{})}
		server := &http.Server{Handler: h.server.Handler("")}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			server.Serve(l)
		}()
		conn := l.dial()
		began := time.Now()
		go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); resp.StatusCode != 408 || took != time.Minute {
			t.Errorf("answered with %d after %v", resp.StatusCode, took)
		}
		conn.Close()
		server.Close()
		<-ended
		h.server.Close(context.Background())
	})
}

// Thousands of sessions that are begun and left alone leave nothing behind.
func TestAbandonedSessionsLeaveNothing(t *testing.T) {
	const n = 3000
	var ends ending
	h := newHouse(t, func(o *mcpbridge.ServerOptions) {
		o.Ended = ends.note
		o.Limits = &mcpbridge.Limits{Most: n + 10, Idle: time.Second}
		o.SessionsPerUser = func() int { return n + 10 }
	}, echo())
	url := h.http(t, "").URL
	for range 10 { // what is made once
		beginSession(t, url)
	}
	until(t, "the first sessions end", func() bool { return ends.len() == 10 })
	memory := func() (uint64, int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	before, routines := memory()
	for range n {
		beginSession(t, url)
	}
	until(t, "all sessions end", func() bool { return ends.len() == n+10 })
	ends.mu.Lock()
	ends.all = nil
	ends.mu.Unlock()
	const slack = 8 << 20 // a kilobyte of each session, and what the runtime keeps
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() < routines+50 })
	until(t, "memory returns", func() bool { after, _ := memory(); return after < before+slack })
}

// Calls without a session have one all the same: that of their caller and of
// the client as it describes itself.
func TestStatelessIdentity(t *testing.T) {
	h := newHouse(t, func(o *mcpbridge.ServerOptions) { o.Caller = byHeader }, echo())
	url := h.http(t, "").URL
	say := func(client, version string, header ...string) string {
		t.Helper()
		info, err := json.Marshal(map[string]string{"name": client, "version": version})
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":%s,"io.modelcontextprotocol/clientCapabilities":{}}}}`, info)
		header = append(header, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "talk__echo")
		if status, answer, _ := post(t, url, body, header...); status != 200 || !strings.Contains(answer, `"hi"`) {
			t.Fatalf("%d %s", status, answer)
		}
		calls := h.seen()
		from := calls[len(calls)-1].From
		if from.Agent != client {
			t.Errorf("%s is taken for %s", client, from.Agent)
		}
		return from.Session
	}
	base := say("a", "1", "X-User", "u", "X-Key", "k")
	if again := say("a", "1", "X-User", "u", "X-Key", "k"); again != base || !strings.HasPrefix(base, "stateless:") {
		t.Errorf("the same client is known as %s and as %s", base, again)
	}
	seen := map[string]string{base: "the first"}
	for name, got := range map[string]string{
		"another client":  say("b", "1", "X-User", "u", "X-Key", "k"),
		"another version": say("a", "2", "X-User", "u", "X-Key", "k"),
		"another token":   say("a", "1", "X-User", "u", "X-Key", "l"),
		"another user":    say("a", "1", "X-User", "v", "X-Key", "k"),
		"shifted names":   say("a\x001", "\x00", "X-User", "u", "X-Key", "k"),
	} {
		if was, taken := seen[got]; taken {
			t.Errorf("%s has the session of %s", name, was)
		}
		seen[got] = name
	}
	// A session id means nothing to revisions without sessions.
	if got := say("a", "1", "X-User", "u", "X-Key", "k", "Mcp-Session-Id", "mine"); got != base {
		t.Errorf("with a session id the client is known as %s", got)
	}
}
