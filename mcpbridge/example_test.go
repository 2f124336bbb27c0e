package mcpbridge_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// Tools of one's own are served to MCP clients, every call through the guards.
func Example() {
	type input struct {
		City string `json:"city" jsonschema:"the city to look up"`
	}
	var reg tool.Registry
	err := reg.Add(tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather in a city.", Effect: tool.Reads},
		func(ctx context.Context, in input) (string, error) { return "sunny in " + in.City, nil }))
	if err != nil {
		panic(err)
	}
	rules := new(guard.Rules)
	exec := pipeline.New(&reg, guard.Standard(guard.Options{
		Tools: &reg, Visible: rules.Visible, Policies: []guard.Policy{rules.Judge},
	})...)

	srv := mcpbridge.NewServer(mcpbridge.ServerOptions{
		Name:    "weather",
		View:    func(m inject.Mode) inject.View { return inject.Present(reg.Set(), inject.Options{Force: m}) },
		Do:      exec.Do,
		Resolve: func(_ tool.Origin, name string) *tool.Tool { t, _ := reg.Set().Resolve(name, nil); return t },
	})
	defer srv.Close(context.Background())
	web := httptest.NewServer(srv.Handler(inject.Direct)) // or srv.ServeStdio(ctx, os.Stdin, os.Stdout, inject.Direct)
	defer web.Close()

	ctx := context.Background()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "example"}, nil).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL}, nil)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "weather__now", Arguments: map[string]any{"city": "Paris"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	// Output: sunny in Paris
}
