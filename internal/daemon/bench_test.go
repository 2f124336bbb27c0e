package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/modules/std"
)

// upstream is an MCP server over HTTP with n tools and an echo.
func upstream(b *testing.B, n int) string {
	b.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	echo := func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	}
	input := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"what to say"},"limit":{"type":"integer"}}}`)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Say it again.", InputSchema: input}, echo)
	verbs := []string{"create", "list", "get", "update", "delete", "search", "export", "share", "archive", "count"}
	nouns := []string{"event", "message", "ticket", "invoice", "file", "release", "dashboard", "channel", "page", "contact"}
	for i := range n - 1 {
		v, o := verbs[i%10], nouns[i/10%10]
		s.AddTool(&mcp.Tool{Name: fmt.Sprintf("%s_%s_%d", v, o, i), Description: fmt.Sprintf("%s a %s of service %d, by id or by filter.", v, o, i/100), InputSchema: input}, echo)
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	b.Cleanup(web.Close)
	return web.URL
}

// gateway serves an app with that upstream, and returns its address.
func gateway(b *testing.B, upstream string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "app.yaml")
	text := fmt.Sprintf("app: {app_id: bench, name: Bench}\ntools:\n  mcp_servers: {up: {url: %q}}\n  capabilities: {default_policy: auto, max_risk_level: high}\n", upstream)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	live, err := app.OpenLive(b.Context(), log, func(ctx context.Context) (*app.App, error) {
		cfg, err := app.Load(file, app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv})
		if err != nil {
			return nil, err
		}
		return app.Open(context.WithoutCancel(ctx), app.Options{Config: cfg, File: file, Modules: std.Modules(), Root: b.TempDir()})
	})
	if err != nil {
		b.Fatal(err)
	}
	d, err := daemon.Listen(daemon.Options{Apps: []*app.Live{live}, Addr: "127.0.0.1:0", Log: log, Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := live.Close(); err != nil {
			b.Error(err)
		}
	})
	live.App().WaitUpstreams(b.Context())
	return d.URL() + "/mcp"
}

func client(b *testing.B, url string) *mcp.ClientSession {
	b.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := c.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// calls makes the call again and again and reports its quantiles.
func calls(b *testing.B, s *mcp.ClientSession, p *mcp.CallToolParams) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		res, err := s.CallTool(b.Context(), p)
		took = append(took, time.Since(start))
		if err != nil || res.IsError {
			b.Fatal(res, err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// BenchmarkGateway compares a call made straight to an upstream server over
// HTTP with the same call through Helve, audit on, and a search over MCP.
func BenchmarkGateway(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		up := upstream(b, n)
		straight, through := client(b, up), client(b, gateway(b, up))
		b.Run(fmt.Sprintf("%d/straight", n), func(b *testing.B) {
			calls(b, straight, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
		})
		b.Run(fmt.Sprintf("%d/through", n), func(b *testing.B) {
			calls(b, through, &mcp.CallToolParams{Name: "mcp__up__echo", Arguments: map[string]any{"text": "hello"}})
		})
		b.Run(fmt.Sprintf("%d/search", n), func(b *testing.B) {
			calls(b, through, &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "share an invoice with somebody"}})
		})
	}
}

// BenchmarkStart measures the real binary from its start to the answer to the
// first tools/list over stdio, built-in modules open.
func BenchmarkStart(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "helve")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/helve-ai/helve/cmd/helve").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	dir := b.TempDir()
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command(bin, "mcp", "--root", dir)
		s, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.ListTools(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		s.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "first-list-ms")
}
