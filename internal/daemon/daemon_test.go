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
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/modules/std"
)

// library is an upstream server with one resource and one prompt.
func library(t *testing.T, name string) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	s.AddResource(&mcp.Resource{Name: name + " book", URI: name + "://book"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text of " + name}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello from " + name}}}}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// Resources and prompts of upstream servers are offered to clients; those of a
// server that the policy denies are out of reach on every way.
func TestResourcesObeyThePolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.yaml")
	text := fmt.Sprintf("app: {app_id: demo, name: Demo}\ntools:\n  mcp_servers: {open: {url: %q}, closed: {url: %q}}\n  capabilities: {deny: [{module: mcp.closed}]}\n",
		library(t, "open"), library(t, "closed"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	root := t.TempDir()
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
	d, err := daemon.Listen(daemon.Options{Apps: []*app.Live{live}, Addr: "127.0.0.1:0", Log: log, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.URL() + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "open://book" {
		t.Errorf("resources: %+v, %v", list, err)
	}
	read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "open://book"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "text of open" {
		t.Errorf("read: %+v, %v", read, err)
	}
	for _, uri := range []string{"closed://book", "helve:closed/closed://book"} {
		if read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s of a denied server was read: %+v", uri, read)
		}
	}
	for name, args := range map[string]map[string]any{
		"mcp.read_resource":  {"server": "closed", "uri": "closed://book"},
		"mcp.get_prompt":     {"server": "closed", "name": "greet"},
		"mcp.list_resources": {},
		"mcp.list_prompts":   {},
		"mcp.list_servers":   {},
		"mcp.health":         {},
		"execute_tool":       {"name": "mcp.read_resource", "params": map[string]any{"server": "closed", "uri": "closed://book"}},
	} {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := res.Content[0].(*mcp.TextContent).Text
		if strings.Contains(said, "text of closed") || strings.Contains(said, "hello from closed") || len(args) == 0 && strings.Contains(said, "closed") {
			t.Errorf("%s tells of a denied server: %s", name, said)
		}
		if len(args) == 0 && !strings.Contains(said, "open") {
			t.Errorf("%s does not tell of the other server: %s", name, said)
		}
	}
}
