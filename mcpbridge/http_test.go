package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

const pingMessage = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func TestHTTPHygiene(t *testing.T) {
	h := newHouse(t, nil, echo())
	web := h.http(t, "")
	host := strings.TrimPrefix(web.URL, "http://")
	rows := []struct {
		name   string
		body   string
		header []string
		want   int
	}{
		{"plain", pingMessage, nil, 200},
		{"own origin", pingMessage, []string{"Origin", web.URL}, 200},
		{"rebinding", pingMessage, []string{"Host", "evil.example"}, 403},
		{"rebinding with an origin", pingMessage, []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
		{"foreign origin", pingMessage, []string{"Origin", "http://evil.example"}, 403},
		{"other port", pingMessage, []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"null origin", pingMessage, []string{"Origin", "null"}, 403},
		{"cross-site fetch", pingMessage, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"form", pingMessage, []string{"Content-Type", "text/plain"}, 415},
		{"too large", `{"x":"` + strings.Repeat("x", 5<<20) + `"}`, nil, 413},
		{"garbage", `{`, nil, 400},
		{"empty", ``, nil, 400},
		{"unknown session", pingMessage, []string{"Mcp-Session-Id", "nope"}, 404},
		{"unknown revision", pingMessage, []string{"Mcp-Protocol-Version", "2020-01-01"}, 400},
		{"revision without its fields", pingMessage, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}, 400},
	}
	for _, r := range rows {
		status, body, header := post(t, web.URL, r.body, r.header...)
		if status != r.want {
			t.Errorf("%s: status %d, want %d: %.200s", r.name, status, r.want, body)
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins are let in", r.name)
		}
	}
	_ = host
	resp, err := http.Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 && resp.StatusCode != 405 {
		t.Errorf("GET without a session: %d", resp.StatusCode)
	}
}

func TestSessionsBelongToTheirUsers(t *testing.T) {
	h := newHouse(t, func(o *mcpbridge.ServerOptions) {
		o.Caller = func(r *http.Request) mcpbridge.Caller {
			return mcpbridge.Caller{User: r.Header.Get("X-User"), Key: r.Header.Get("X-Key")}
		}
	}, echo())
	url := h.http(t, "").URL
	status, _, header := post(t, url, strings.TrimSpace(strings.ReplaceAll(hello, "VERSION", "2025-06-18")), "X-User", "ann")
	id := header.Get("Mcp-Session-Id")
	if status != 200 || id == "" {
		t.Fatalf("status %d, session %q", status, id)
	}
	say := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"hi"}}}`
	if status, body, _ := post(t, url, say, "X-User", "ann", "Mcp-Session-Id", id, "Helve-Request", "spoof"); status != 200 || !strings.Contains(body, `"hi"`) {
		t.Errorf("the owner got %d %s", status, body)
	}
	if status, _, _ := post(t, url, say, "X-User", "bob", "Mcp-Session-Id", id); status != 404 {
		t.Errorf("another user got %d", status)
	}
	if status, _, _ := post(t, url, say, "X-User", "bob"); status != 200 {
		t.Errorf("a request without a session got %d", status)
	}
	calls := h.seen()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	if f := calls[0].From; f.User != "ann" || f.Session != id || f.Agent != "raw" {
		t.Errorf("the first call came from %+v", f)
	}
	if f := calls[1].From; f.User != "bob" || !strings.HasPrefix(f.Session, "stateless:") {
		t.Errorf("the second call came from %+v", f)
	}
}

func TestDisconnectCancels(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{}, 1)
	wait := handled("test.wait", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	})
	h := newHouse(t, nil, wait)
	url := h.http(t, "").URL
	_, _, header := post(t, url, strings.TrimSpace(strings.ReplaceAll(hello, "VERSION", "2025-06-18")))
	for _, session := range []string{"", header.Get("Mcp-Session-Id")} {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"test__wait"}}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				bufio.NewReader(resp.Body).ReadString(0)
				resp.Body.Close()
			}
		}()
		<-begun
		cancel()
		<-ended // or the test hangs
		<-done
	}
}

func TestPages(t *testing.T) {
	var tools []*tool.Tool
	var want []string
	for i := range 25 {
		tools = append(tools, handled(fmt.Sprintf("many.t%02d", i), tool.Reads,
			func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }))
		want = append(want, fmt.Sprintf("many__t%02d", i))
	}
	h := newHouse(t, func(o *mcpbridge.ServerOptions) { o.PageSize = 10 }, tools...)
	url := h.http(t, inject.Direct).URL
	for _, version := range versions {
		if got := names(t, dial(t, url, nil, version)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", version, got)
		}
	}
	// A list that has changed since can still be read to its end.
	var first struct{ Result struct{ NextCursor string } }
	_, body, _ := post(t, url, pingMessage)
	if err := json.Unmarshal([]byte(body), &first); err != nil || first.Result.NextCursor == "" {
		t.Fatalf("%v: %s", err, body)
	}
	if err := h.reg.Add(echo()); err != nil {
		t.Fatal(err)
	}
	post(t, url, pingMessage)
	_, body, _ = post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"`+first.Result.NextCursor+`"}}`)
	if !strings.Contains(body, "many__t10") || strings.Contains(body, "talk__echo") {
		t.Errorf("the second page of the old list is %.200s", body)
	}
}

func TestEmptyList(t *testing.T) {
	h := newHouse(t, nil)
	if _, body, _ := post(t, h.http(t, "").URL, pingMessage); !strings.Contains(body, `"tools":[]`) {
		t.Errorf("an empty list is %s", body)
	}
}

func TestListChanged(t *testing.T) {
	h := newHouse(t, nil, echo(), meta())
	direct, discovery := h.http(t, inject.Direct).URL, h.http(t, inject.Discovery).URL
	for _, version := range versions {
		told := make(chan string, 10)
		options := func(who string) *mcp.ClientOptions {
			return &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- who }}
		}
		a := dial(t, direct, options("http"), version)
		b := h.pipe(t, inject.Direct, options("stdio"), version)
		c := dial(t, discovery, options("discovery"), version)
		for _, s := range []*mcp.ClientSession{a, b, c} {
			names(t, s)
		}
		if err := h.reg.Add(handled("new."+strings.ReplaceAll(version, "-", "x"), tool.Reads, sum().Handle)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			select {
			case who := <-told:
				if who == "discovery" {
					t.Errorf("%s: the discovery view did not change, but its client was told", version)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: nobody was told", version)
			}
		}
		if got := names(t, a); !slices.Contains(got, "new__"+strings.ReplaceAll(version, "-", "x")) {
			t.Errorf("%s: then the list is %v", version, got)
		}
		a.Close()
		c.Close()
	}
}

func TestCloseAnswersFirst(t *testing.T) {
	for _, version := range versions {
		for _, transport := range []string{"http", "stdio"} {
			begun, release := make(chan struct{}), make(chan struct{})
			slow := handled("test.slow", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
				close(begun)
				select {
				case <-release:
					return tool.Text("done"), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
			h := newHouse(t, nil, slow)
			var s *mcp.ClientSession
			if transport == "http" {
				s = dial(t, h.http(t, "").URL, nil, version)
			} else {
				s = h.pipe(t, "", nil, version)
			}
			got := make(chan string, 1)
			go func() {
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test__slow"})
				if err != nil {
					got <- err.Error()
					return
				}
				got <- text(res)
			}()
			<-begun
			closed := make(chan error, 1)
			go func() { closed <- h.server.Close(t.Context()) }()
			close(release)
			if err := <-closed; err != nil {
				t.Errorf("%s %s: Close: %v", transport, version, err)
			}
			if g := <-got; g != "done" {
				t.Errorf("%s %s: the call in flight got %q", transport, version, g)
			}
		}
	}
}

func TestCloseGivesUp(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	stuck := handled("test.stuck", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	h := newHouse(t, nil, stuck)
	url := h.http(t, "").URL
	s := dial(t, url, nil, "2025-11-25")
	go s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test__stuck"})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.server.Close(ctx); err == nil {
		t.Error("Close says that all calls were answered")
	}
	<-ended // or the test hangs
	if status, _, _ := post(t, url, pingMessage); status != http.StatusServiceUnavailable {
		t.Errorf("a closed server answers with %d", status)
	}
}
