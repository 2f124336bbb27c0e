package mcpbridge_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// stream sends a request of a session and returns the events that answer it.
func stream(t *testing.T, ctx context.Context, method, url, body string, header map[string]string) *bufio.Reader {
	t.Helper()
	for {
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		switch resp.StatusCode {
		case http.StatusOK:
			return bufio.NewReader(resp.Body)
		case http.StatusConflict: // the server has yet to notice that the connection is lost
		default:
			rest, _ := io.ReadAll(resp.Body)
			t.Fatalf("%s: %s: %s", method, resp.Status, rest)
		}
	}
}

// nextField returns the value of the next such field of a stream.
func nextField(t *testing.T, from *bufio.Reader, name string) string {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
		if err != nil {
			t.Fatalf("no %s: %v", name, err)
		}
	}
}

const callWait = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"test__wait"}}`

func TestLostConnectionsAreResumed(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Millisecond} {
		begun, end := make(chan struct{}, 1), make(chan struct{})
		h := newHouse(t, func(o *mcpbridge.ServerOptions) { o.StreamLimit = limit },
			handled("test.wait", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
				begun <- struct{}{}
				select {
				case <-end:
					return tool.Text("at last"), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}))
		url := h.http(t, "").URL
		_, _, header := post(t, url, strings.TrimSpace(strings.ReplaceAll(hello, "VERSION", "2025-11-25")))
		session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
		ctx, cancel := context.WithCancel(t.Context())
		events := stream(t, ctx, http.MethodPost, url, callWait, session)
		id := nextField(t, events, "id")
		<-begun
		if limit == 0 {
			cancel() // the connection is lost
		} else if retry := nextField(t, events, "retry"); retry != "500" {
			t.Errorf("told to come back in %s", retry)
		}
		session["Last-Event-ID"] = id
		close(end)
		if again := stream(t, t.Context(), http.MethodGet, url, "", session); !strings.Contains(nextField(t, again, "data"), "at last") {
			t.Errorf("limit %s: it is not the answer that comes", limit)
		}
		cancel()
		session["Last-Event-ID"] = "nobody_0"
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		req.Header.Set("Accept", "text/event-stream")
		for k, v := range session {
			req.Header.Set(k, v)
		}
		if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode < 400 {
			t.Errorf("a stream that never was: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
	}
}

// A call that was left alone ends with its session, and with the server.
func TestLeftCallsEnd(t *testing.T) {
	for _, how := range []string{"the session ends", "the server ends"} {
		begun, ended := make(chan struct{}), make(chan struct{})
		h := newHouse(t, nil, handled("test.wait", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
			close(begun)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}))
		url := h.http(t, "").URL
		_, _, header := post(t, url, strings.TrimSpace(strings.ReplaceAll(hello, "VERSION", "2025-11-25")))
		session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
		ctx, cancel := context.WithCancel(t.Context())
		stream(t, ctx, http.MethodPost, url, callWait, session)
		<-begun
		cancel()
		if how == "the server ends" {
			if err := h.server.Close(t.Context()); err != nil {
				t.Error(err)
			}
		} else {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
			for k, v := range session {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		<-ended // or the test hangs
	}
}
