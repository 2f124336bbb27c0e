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
	if resp.StatusCode != http.StatusOK {
		rest, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s: %s", method, resp.Status, rest)
	}
	return bufio.NewReader(resp.Body)
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
		if limit == 0 {
			close(end)
		}
		again := stream(t, t.Context(), http.MethodGet, url, "", session)
		if limit > 0 {
			close(end)
		}
		for {
			line, err := again.ReadString('\n')
			if strings.Contains(line, "at last") {
				break
			}
			if err == io.EOF { // it was told to come back once more
				again = stream(t, t.Context(), http.MethodGet, url, "", session)
			} else if err != nil {
				t.Fatalf("limit %s: %q, %v", limit, line, err)
			}
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
