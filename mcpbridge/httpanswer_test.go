package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// A moody server speaks an old revision over HTTP, with sessions, and answers
// calls of its one tool as its script says.
type moody struct {
	script func(w http.ResponseWriter, r *http.Request, id json.RawMessage) // of a call; nil: it is done

	mu       sync.Mutex
	session  int // the one that is known
	sessions int // that were begun
	done     int // calls that had their effect
	unknown  func(w http.ResponseWriter)
	given    chan string // takes the ids of calls that are said to be cancelled
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct{ RequestID json.RawMessage }
	}
	json.Unmarshal(body, &msg)
	m.mu.Lock()
	if msg.Method == "notifications/cancelled" && m.given != nil {
		m.given <- string(msg.Params.RequestID)
	}
	lost := r.Header.Get("Mcp-Session-Id") != fmt.Sprint(m.session)
	m.mu.Unlock()
	if lost && msg.Method != "initialize" && msg.Method != "server/discover" {
		m.unknown(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case msg.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case msg.Method == "initialize":
		m.mu.Lock()
		m.sessions++
		m.session = m.sessions
		w.Header().Set("Mcp-Session-Id", fmt.Sprint(m.session))
		m.mu.Unlock()
		io.WriteString(w, reply(oldServer)(msg.ID, nil))
	case msg.Method == "tools/list":
		io.WriteString(w, reply(`{"tools":[{"name":"send_mail"}]}`)(msg.ID, nil))
	case msg.Method == "tools/call" && m.script != nil:
		m.script(w, r, msg.ID)
	case msg.Method == "tools/call":
		m.do(w, msg.ID)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, msg.ID)
	}
}

// do has the effect that the call asks for.
func (m *moody) do(w http.ResponseWriter, id json.RawMessage) {
	m.mu.Lock()
	m.done++
	m.mu.Unlock()
	io.WriteString(w, reply(`{"content":[{"type":"text","text":"sent"}]}`)(id, nil))
}

// next counts calls.
func (m *moody) next() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	return m.done
}

func (m *moody) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = -1
}

func (m *moody) counts() (sessions, done int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions, m.done
}

func (m *moody) open(t *testing.T) *guest {
	web := httptest.NewServer(m)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return open(t, mcpbridge.Upstream{Name: "web", URL: web.URL, CallTimeout: 20 * time.Second})
}

// A call in a session that the server forgot is made once more, in a new one,
// and has its effect once: however the server says so.
func TestForgottenSessions(t *testing.T) {
	for how, unknown := range map[string]func(http.ResponseWriter){
		"404":             func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"404 with a page": func(w http.ResponseWriter) { http.Error(w, "<h1>nothing here</h1>", http.StatusNotFound) },
		"404 with a message": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"400 with a message": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		m := &moody{unknown: unknown}
		g := m.open(t)
		for n := range 2 {
			m.forget()
			if res := g.call(t, "mcp.web.send_mail", `{}`); res.JoinText() != "sent" || res.Err != nil {
				if n == 1 && res.Err != nil && res.Err.Retryable {
					continue // it forgets too often: there is a pause first
				}
				t.Errorf("%s: call %d: %+v", how, n, res)
			}
			if sessions, done := m.counts(); sessions != n+2 || done != n+1 {
				t.Errorf("%s: %d sessions were begun, and %d calls had their effect", how, sessions, done)
			}
		}
	}
}

// What is wrong with the answer to one call concerns that call alone: one that
// is in flight at the same time is answered.
func TestOneBadAnswer(t *testing.T) {
	page := func(status int, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, "<html>oh no</html>")
		}
	}
	for _, row := range []struct {
		bad       func(http.ResponseWriter)
		retryable bool
		says      string
	}{
		{page(500), false, "HTTP status 500 Internal Server Error"},
		{page(502), true, "HTTP status 502 Bad Gateway"},
		{page(503, "Retry-After", "3600"), true, "HTTP status 503 Service Unavailable; it is to be called again in 3600 s"},
		{page(413), false, "HTTP status 413"},
		{page(200), false, "text/html, which is no message"},
		{func(w http.ResponseWriter) { w.Header().Del("Content-Type"); w.WriteHeader(202) }, false, "no message of the protocol (HTTP status 202"},
		{func(w http.ResponseWriter) { io.WriteString(w, `{"jsonrpc":"2.0","id":`) }, false, "no JSON"},
		{func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); io.WriteString(w, `{"jsonrpc":`) }, false, "unexpected EOF"},
		{func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat(" ", 65<<20)) }, false, "more than 64 MiB"},
	} {
		arrived, release := make(chan struct{}), make(chan struct{})
		first := true
		m := &moody{unknown: page(404)}
		m.script = func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			m.mu.Lock()
			slow := first
			first = false
			m.mu.Unlock()
			if !slow {
				row.bad(w)
				return
			}
			close(arrived)
			<-release
			m.do(w, id)
		}
		g := m.open(t)
		other := make(chan *tool.Result, 1)
		go func() { other <- g.call(t, "mcp.web.send_mail", `{}`) }()
		<-arrived
		res := g.call(t, "mcp.web.send_mail", `{}`)
		if res.Err == nil || res.Err.Code != tool.CodeExternal || res.Err.Retryable != row.retryable || !strings.Contains(res.Err.Message, row.says) {
			t.Errorf("want %q: %+v", row.says, res.Err)
		}
		close(release)
		if res := <-other; res.JoinText() != "sent" {
			t.Errorf("%s: the call beside it: %+v", row.says, res.Err)
		}
		if sessions, done := m.counts(); sessions != 1 || done != 1 {
			t.Errorf("%s: %d sessions, %d effects", row.says, sessions, done)
		}
	}
}

// A server that says when to come back is called again then, but not for ever.
func TestRetryAfter(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		for refusals, ok := range map[int]bool{1: true, 2: true, 3: false} {
			left := refusals
			m := &moody{unknown: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }}
			m.script = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				m.mu.Lock()
				left--
				refuse := left >= 0
				m.mu.Unlock()
				if refuse {
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(status)
					return
				}
				m.do(w, id)
			}
			g := m.open(t)
			res := g.call(t, "mcp.web.send_mail", `{}`)
			_, done := m.counts()
			if ok != (res.JoinText() == "sent") || ok != (done == 1) || !ok && !res.Err.Retryable {
				t.Errorf("%d refusals with %d: %+v, %d effects", refusals, status, res, done)
			}
		}
	}
}

// A server that drips its answer byte by byte is given up in time.
func TestSlowAnswer(t *testing.T) {
	ended := make(chan struct{})
	m := &moody{unknown: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }}
	m.script = func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		defer close(ended)
		for {
			if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
	web := httptest.NewServer(m)
	defer web.Close()
	g := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL, CallTimeout: 200 * time.Millisecond})
	if res := g.call(t, "mcp.web.send_mail", `{}`); res.Err == nil || res.Err.Code != tool.CodeTimeout {
		t.Errorf("%+v", res)
	}
	g.ups.Close()
	<-ended
}

// An answer is given as soon as it is there, the end of its stream is read
// behind it, and the connection serves other calls.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	const calls = 20
	answered := make(chan struct{})
	var from []string
	m := &moody{script: func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		from = append(from, r.RemoteAddr)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", reply(`{"content":[{"type":"text","text":"sent"}]}`)(id, nil))
		w.(http.Flusher).Flush()
		<-answered // the stream ends after the call
	}}
	g := m.open(t)
	for range calls {
		if res := g.call(t, "mcp.web.send_mail", `{}`); res.JoinText() != "sent" {
			t.Fatalf("answered %v", res.Err)
		}
		answered <- struct{}{}
	}
	slices.Sort(from)
	if n := len(slices.Compact(from)); n > calls/2 {
		t.Errorf("%d connections for %d calls one after the other", n, calls)
	}
}

// A server with sessions is told of every call that is cancelled: the end of
// the request does not say so.
func TestEveryCancelledCallIsTold(t *testing.T) {
	t.Parallel()
	const calls = 300
	begun := make(chan string)
	m := &moody{given: make(chan string, 2*calls), script: func(_ http.ResponseWriter, r *http.Request, id json.RawMessage) {
		begun <- string(id)
		<-r.Context().Done()
	}}
	g := m.open(t)
	untold := map[string]bool{}
	for range calls {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = g.run.Do(ctx, &tool.Call{Name: "mcp.web.send_mail", Args: json.RawMessage(`{}`)}) // it is cancelled
		}()
		untold[<-begun] = true
		cancel()
		<-done
	}
	late := time.After(20 * time.Second)
	for len(untold) > 0 { // what is told comes behind the calls, and twice
		select {
		case id := <-m.given:
			delete(untold, id)
		case <-late:
			t.Fatalf("of %d calls that were cancelled the server never heard of %d", calls, len(untold))
		}
	}
}
