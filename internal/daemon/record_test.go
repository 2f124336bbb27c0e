package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/modules/std"
)

// archive is an upstream server that completes, and tells changes and logs.
func archive(t *testing.T, name string) string {
	t.Helper()
	nop := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler: nop, UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"from " + name}}}, nil
		},
	})
	s.AddResource(&mcp.Resource{Name: name, URI: name + "://book"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// Requests that reach upstream servers are on record, as are those that a
// policy keeps from reaching them, also where they are no calls of tools.
func TestRequestsAreOnRecord(t *testing.T) {
	file, root := filepath.Join(t.TempDir(), "app.yaml"), t.TempDir()
	text := fmt.Sprintf("app: {app_id: demo, name: Demo}\ntools:\n  mcp_servers: {open: {url: %q}, closed: {url: %q}}\n  capabilities: {deny: [{module: mcp.closed}]}\n",
		archive(t, "open"), archive(t, "closed"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	live, err := app.OpenLive(t.Context(), log, func(ctx context.Context) (*app.App, error) {
		cfg, err := app.Load(file, app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(context.WithoutCancel(ctx), app.Options{Config: cfg, File: file, Modules: std.Modules(), Root: root})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	d, err := daemon.Listen(daemon.Options{Apps: []*app.Live{live}, Addr: "127.0.0.1:0", Log: log, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: d.URL() + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	complete := func(server string) error {
		_, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "mcp." + server + ".greet"},
			Argument: mcp.CompleteParamsArgument{Name: "who", Value: "sk-" + strings.Repeat("a", 30)}})
		return err
	}
	steps := []struct {
		tool, decision string
		do             func() error
	}{
		{"mcp.complete", "allow", func() error { return complete("open") }},
		{"mcp.complete", "deny", func() error { return complete("closed") }},
		{"mcp.subscribe", "allow", func() error { return s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "open://book"}) }},
		{"mcp.subscribe", "deny", func() error { return s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "helve:closed/closed://book"}) }},
		{"mcp.unsubscribe", "allow", func() error { return s.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "open://book"}) }},
		//lint:ignore SA1019 clients of the older revisions set it
		{"mcp.set_log_level", "allow", func() error { return s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "error"}) }},
	}
	for _, step := range steps {
		if err := step.do(); (err == nil) != (step.decision == "allow") {
			t.Errorf("%s, to be %s: %v", step.tool, step.decision, err)
		}
	}
	id := s.ID()
	s.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	at := 0
	for r, err := range audit.Query(live.App().AuditDir(), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if at == len(steps) {
			t.Fatalf("one line too many: %+v", r)
		}
		want := steps[at]
		at++
		if r.Tool != want.tool || r.Decision != want.decision || r.Session != id || r.User != "local" || r.Agent != "test" || r.Kind != "mcp" || r.App != "demo" {
			t.Errorf("want %s %s, the line is %+v", want.tool, want.decision, r.Entry)
		}
		if strings.Contains(string(r.Args), "sk-a") || want.tool == "mcp.subscribe" && !strings.Contains(string(r.Args), "://book") {
			t.Errorf("%s: the arguments on record are %s", r.Tool, r.Args)
		}
	}
	if at != len(steps) {
		t.Errorf("%d of %d requests are on record", at, len(steps))
	}
}
