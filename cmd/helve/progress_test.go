package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const steps = 5 // that each call reports before its result

// countingTools are one that reports progress up to its very end, one that
// lasts until it is cancelled, and one that says how many of those there were.
func countingTools(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "count_steps", InputSchema: json.RawMessage(anything)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range steps {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
				Message: fmt.Sprintf("%s step %d", r.Params.Arguments, i+1), Progress: float64(i + 1), Total: steps}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	var begun, cancelled atomic.Int64
	s.AddTool(&mcp.Tool{Name: "wait_long", InputSchema: json.RawMessage(anything)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		begun.Add(1)
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "begun", Progress: 1})
		select {
		case <-ctx.Done():
			cancelled.Add(1)
			return nil, ctx.Err()
		case <-time.After(5 * time.Minute):
			return nil, fmt.Errorf("nobody cancelled the call")
		}
	})
	addTool(s, "get_counts", anything, func(context.Context, json.RawMessage) string {
		return fmt.Sprintf("%d of %d", cancelled.Load(), begun.Load())
	})
}

// onlyOld has a server know no revision without sessions.
func onlyOld(s *mcp.Server) *mcp.Server {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "server/discover" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no " + method}
			}
			return next(ctx, method, req)
		}
	})
	return s
}

// A said is a message to a client, as it comes.
type said struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Message  string          `json:"message"`
	} `json:"params"`
	Result *struct {
		Content []struct{ Text string }
		IsError bool
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// A rawClient speaks the protocol as it stands on the wire. talk sends a
// message; what comes is heard by hear, in order, and over HTTP until the
// request is answered.
type rawClient struct {
	version string
	talk    func(ctx context.Context, msg string, hear func(said)) error
	over    string // which transport
}

// request returns a message that calls a method, with an id, and more params and meta.
func (c *rawClient) request(id, method, params, meta string) string {
	if c.version == "2026-07-28" {
		about := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
		if meta != "" {
			about += "," + meta
		}
		meta = about
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s,"_meta":{%s}}}`, id, method, params, meta)
}

func (c *rawClient) call(ctx context.Context, id, tool, args string, hear func(said)) error {
	return c.talk(ctx, c.request(id, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args), `"progressToken":`+id), hear)
}

// rawStdio starts helve mcp. The ear is told of all that comes.
func rawStdio(t *testing.T, dir, version string) *rawClient {
	t.Helper()
	cmd := exec.Command(raced, "mcp", "--app", "app.yaml", "--present", "full")
	cmd.Dir, cmd.Env = dir, environ()
	errs := new(buffer)
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ears := map[string]func(said){} // by id, which is the token
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m said
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			id := string(m.ID)
			if m.Method != "" {
				id = string(m.Params.Token)
			}
			mu.Lock()
			ear := ears[id]
			mu.Unlock()
			if ear != nil {
				ear(m)
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("helve mcp: %v\n%s", err, errs)
		}
	})
	c := &rawClient{version: version, over: "stdio"}
	c.talk = func(ctx context.Context, msg string, hear func(said)) error {
		var head said
		if err := json.Unmarshal([]byte(msg), &head); err != nil {
			return err
		}
		answered := make(chan struct{})
		if head.ID != nil {
			mu.Lock()
			ears[string(head.ID)] = func(m said) {
				hear(m)
				if m.Method == "" {
					close(answered)
				}
			}
			mu.Unlock()
		}
		mu.Lock()
		_, err := io.WriteString(in, msg+"\n")
		mu.Unlock()
		if err != nil || head.ID == nil {
			return err
		}
		select {
		case <-answered:
			return nil
		case <-ctx.Done(): // which is how this client cancels
			mu.Lock()
			_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", head.ID)
			mu.Unlock()
			return err
		}
	}
	if version < "2026-07-28" {
		c.hello(t)
	}
	return c
}

func (c *rawClient) hello(t *testing.T) {
	t.Helper()
	err := c.talk(t.Context(), c.request(`"hello"`, "initialize", fmt.Sprintf(`"protocolVersion":%q,"clientInfo":{"name":"raw","version":"1"},"capabilities":{}`, c.version), ""), func(m said) {
		if m.Error != nil {
			t.Errorf("initialize: %s", m.Error)
		}
	})
	if err == nil {
		err = c.talk(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rawHTTP speaks to a helve serve. A stream that ends before the answer is an error.
func rawHTTP(t *testing.T, d *daemon, version string) *rawClient {
	t.Helper()
	c := &rawClient{version: version, over: "http"}
	var session atomic.Value
	c.talk = func(ctx context.Context, msg string, hear func(said)) error {
		var head struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal([]byte(msg), &head); err != nil {
			return err
		}
		life := ctx
		if _, ok := session.Load().(string); ok && head.ID != nil { // the end of a connection cancels no call of a session
			life = t.Context()
			defer context.AfterFunc(ctx, func() {
				_ = c.talk(life, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, head.ID), nil)
			})()
		}
		r, err := http.NewRequestWithContext(life, http.MethodPost, d.URL+"/mcp/full", strings.NewReader(msg))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if version == "2026-07-28" {
			r.Header.Set("Mcp-Method", head.Method)
			r.Header.Set("Mcp-Name", head.Params.Name)
		}
		if id, ok := session.Load().(string); ok {
			r.Header.Set("Mcp-Session-Id", id)
		}
		if head.Method != "initialize" {
			r.Header.Set("Mcp-Protocol-Version", version)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session.Store(id)
		}
		if head.ID == nil {
			return nil
		}
		answered := false
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data := bytes.TrimPrefix(lines.Bytes(), []byte("data:"))
			if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
				continue
			}
			var m said
			if err := json.Unmarshal(data, &m); err != nil {
				return err
			}
			hear(m)
			answered = answered || m.Method == ""
		}
		if err := lines.Err(); err != nil {
			return err
		}
		if !answered {
			return fmt.Errorf("status %d, and no answer", resp.StatusCode)
		}
		return nil
	}
	if version < "2026-07-28" {
		c.hello(t)
	}
	return c
}

// countingServers are upstream servers of all kinds of ways, by name.
func countingServers(t *testing.T) object {
	served := func(s *mcp.Server) string {
		countingTools(s)
		return theirHTTP(t, s)
	}
	all := object{"pipe": child(t, "counting"), "oldpipe": child(t, "old", "counting"), "web": object{"url": served(onlyOld(theirServer()))}, "new": object{"url": served(theirServer())}}
	for _, s := range all {
		s.(object)["trusted"] = true
	}
	return all
}

// everyWay calls f with clients of each kind, at an app with these servers.
func everyWay(t *testing.T, servers object, f func(t *testing.T, c *rawClient)) {
	dir := folder(t)
	write(t, dir+"/app.yaml", serversApp(t, servers, object{"capabilities": object{"default_policy": "auto", "max_risk_level": "high"}}))
	d := serve(t, dir, "--app", "app.yaml")
	eventually(t, func() bool {
		for _, is := range d.states(t, dir) {
			if is != "started" {
				return false
			}
		}
		return true
	})
	for _, version := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		t.Run("stdio "+version, func(t *testing.T) { f(t, rawStdio(t, dir, version)) })
		t.Run("http "+version, func(t *testing.T) { f(t, rawHTTP(t, d, version)) })
	}
}

// atOnce does something so many times, some of it at one time.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	next := atomic.Int64{}
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				do(i)
			}
		})
	}
	all.Wait()
}

// Every report of progress comes, in order, and before the result of its call.
func TestProgressUnderLoad(t *testing.T) {
	servers := countingServers(t)
	calls := 250
	if testing.Short() {
		calls = 25
	}
	everyWay(t, servers, func(t *testing.T, c *rawClient) {
		for server := range servers {
			bad := atomic.Int64{}
			atOnce(calls, func(i int) {
				id, args := fmt.Sprintf(`"%s-%d"`, server, i), fmt.Sprintf(`{"call":"%s %d"}`, server, i)
				var mu sync.Mutex
				var heard []string
				err := c.call(t.Context(), id, "mcp__"+server+"__count_steps", args, func(m said) {
					mu.Lock()
					defer mu.Unlock()
					switch {
					case m.Method == "notifications/progress":
						heard = append(heard, fmt.Sprintf("%g %s", m.Params.Progress, m.Params.Message))
					case m.Result != nil && !m.Result.IsError && len(m.Result.Content) > 0:
						heard = append(heard, m.Result.Content[0].Text)
					default:
						heard = append(heard, fmt.Sprintf("%+v", m))
					}
				})
				want := []string{}
				for s := range steps {
					want = append(want, fmt.Sprintf("%d %s step %d", s+1, args, s+1))
				}
				want = append(want, args)
				mu.Lock()
				defer mu.Unlock()
				if got := strings.Join(heard, "\n"); err != nil || got != strings.Join(want, "\n") {
					if bad.Add(1) <= 3 {
						t.Errorf("%s: %v\n%s", server, err, got)
					}
				}
			})
			if n := bad.Load(); n > 0 {
				t.Errorf("%s: %d of %d calls", server, n, calls)
			}
		}
	})
}

// Calls that clients give up are given up at the servers, each and at once,
// and nothing is sent about them.
func TestCancellingUnderLoad(t *testing.T) {
	servers := countingServers(t)
	calls := 100
	if testing.Short() {
		calls = 20
	}
	everyWay(t, servers, func(t *testing.T, c *rawClient) {
		for server := range servers {
			atOnce(calls, func(i int) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_ = c.call(ctx, fmt.Sprintf(`"%s-%d"`, server, i), "mcp__"+server+"__wait_long", "{}", func(m said) {
					if m.Method != "" {
						cancel() // the server has begun
					} else if c.over == "stdio" || m.Error == nil && !m.Result.IsError { // the streams of sessions end with an answer
						t.Errorf("%s: a call that was cancelled is answered with %+v", server, m.Result)
					}
				})
			})
			want := ""
			got := ""
			eventually(t, func() bool {
				_ = c.call(t.Context(), fmt.Sprintf(`"%s-%d"`, server, time.Now().UnixNano()), "mcp__"+server+"__get_counts", "{}", func(m said) {
					if m.Result != nil && len(m.Result.Content) > 0 {
						got = m.Result.Content[0].Text
					}
				})
				var a, b int
				if n, _ := fmt.Sscanf(got, "%d of %d", &a, &b); n != 2 {
					return false
				}
				want = fmt.Sprintf("%d of %d", b, b)
				return got == want && b >= calls
			})
		}
	})
}
