package mcpbridge_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// Servers that answer with tasks serve clients that know none.
func TestTasksOfServersAreAwaited(t *testing.T) {
	wait, release, begun, givenUp := waiting("test.wait")
	fail := handled("test.crash", tool.Reads, echo().Handle)
	inner, g := gateway(t, func(o *mcpbridge.ServerOptions) {
		patient(new(mem.Store), func(l *mcpbridge.LongCalls) {
			l.As = func(*tool.Call) mcpbridge.AsTask { return mcpbridge.Required }
		})(o)
		do := o.Do
		o.Do = func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			if strings.HasSuffix(c.Name, "crash") {
				panic("as the test wants it")
			}
			return do(ctx, c)
		}
	}, rename(serveHTTP(t, inquisitive(), true), "asking"))
	if err := g.reg.Replace("house", wait, fail, failing()); err != nil {
		t.Fatal(err)
	}
	outer, o := gateway(t, nil, mcpbridge.Upstream{Name: "inner", URL: inner.http(t, "direct").URL, CallTimeout: 30 * time.Second})
	progress := make(chan string, 10)
	client := &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Message
		}}
	old := outer.pipe(t, "direct", client, "2025-06-18")

	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "mcp.inner.test__wait"}
		p.SetProgressToken("x")
		_, err := old.CallTool(ctx, p)
		gone <- err
	}()
	<-begun
	<-progress // of the task
	cancel()
	if err := <-gone; err == nil {
		t.Error("the call that was cancelled returned")
	}
	<-givenUp // the server was told

	answer := make(chan string, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "mcp.inner.test__wait"}
		p.SetProgressToken("x")
		res, err := old.CallTool(t.Context(), p)
		answer <- fmt.Sprint(text(res), err)
	}()
	<-begun
	if got := <-progress; got != "working on it" {
		t.Errorf("progress: %q", got)
	}
	release()
	if got := <-answer; got != "done at last<nil>" {
		t.Errorf("answered %q", got)
	}
	if got := text(call(t, old, "mcp.inner.mcp__asking__multi_input", nil)); !strings.Contains(got, "first: accept map[name:inner asks: asking asks: first?]. second: accept map[name:inner asks: asking asks: second?]") {
		t.Errorf("what asks answered %q", got)
	}
	if res := call(t, old, "mcp.inner.test__fail", nil); !res.IsError || !strings.Contains(text(res), "the printer is on fire") {
		t.Errorf("what fails answered %q", text(res))
	}
	if res := call(t, old, "mcp.inner.test__crash", nil); !res.IsError || !strings.Contains(text(res), "internal error") {
		t.Errorf("what crashes answered %q", text(res))
	}
	if res := o.call(t, "mcp.inner.mcp__asking__multi_input", `{}`); res.Err == nil || !strings.Contains(res.Err.Message, "wants input") {
		t.Errorf("what asks without a client: %+v", res)
	}
}

// What is cancelled while the answer that names a task is on its way does not
// run on.
func TestTasksThatNobodyHearsOfAreCancelled(t *testing.T) {
	mcpbridge.Linger(t, time.Hour)
	wait, _, begun, givenUp := waiting("test.wait")
	inner, g := gateway(t, patient(new(mem.Store), func(l *mcpbridge.LongCalls) {
		l.As = func(*tool.Call) mcpbridge.AsTask { return mcpbridge.Required }
	}))
	if err := g.reg.Replace("house", wait); err != nil {
		t.Fatal(err)
	}
	server := inner.server.Handler("direct")
	answered, cancelled := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			server.ServeHTTP(w, r)
			return
		}
		kept := httptest.NewRecorder()
		server.ServeHTTP(kept, r.WithContext(context.WithoutCancel(r.Context())))
		close(answered)
		<-cancelled
		maps.Copy(w.Header(), kept.Header())
		w.WriteHeader(kept.Code)
		w.Write(kept.Body.Bytes())
	}))
	t.Cleanup(web.Close)
	_, o := gateway(t, nil, mcpbridge.Upstream{Name: "inner", URL: web.URL})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		res, err := o.run.Do(ctx, &tool.Call{Name: "mcp.inner.test__wait", Args: []byte("{}")})
		if err == nil && res.Err != nil {
			err = res.Err
		}
		gone <- err
	}()
	<-begun
	<-answered
	cancel()
	close(cancelled)
	if err := <-gone; err == nil {
		t.Error("the call that was cancelled returned")
	}
	<-givenUp
}
