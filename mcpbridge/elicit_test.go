package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string"}}}`

// asksByItself adds a tool that asks its client during the call.
func asksByItself(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "get_name", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who\x1b[31m?", RequestedSchema: json.RawMessage(nameForm)})
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", res.Action, res.Content["name"])}}}, nil
		})
}

// asksByReturning adds a tool that wants to be called again with the answer.
func asksByReturning(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "get_name", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{RequestState: "s1", InputRequests: mcp.InputRequestMap{
					"q": &mcp.ElicitParams{Message: "Who\x1b[31m?", RequestedSchema: json.RawMessage(nameForm)}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", res.Action, res.Content["name"])}}}, nil
		})
}

func TestServersAskClients(t *testing.T) {
	h, g := gateway(t, nil, rename(serveHTTP(t, sdkServer(asksByItself), false), "old"), rename(serveHTTP(t, sdkServer(asksByReturning), true), "new"))
	web := h.http(t, "").URL
	o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if !strings.HasSuffix(r.Params.Message, " asks: Who?") {
			return nil, fmt.Errorf("asked %q", r.Params.Message)
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
	}}
	for _, server := range []string{"old", "new"} {
		tool := "mcp__" + server + "__get_name"
		for name, s := range map[string]*mcp.ClientSession{"stdio": h.pipe(t, "", o, "2025-11-25"), "http": dial(t, web, o, "2025-11-25"),
			"stdio in turns": h.pipe(t, "", o, "2026-07-28"), "http in turns": dial(t, web, o, "2026-07-28")} {
			if got := text(call(t, s, tool, nil)); got != "accept Ann" {
				t.Errorf("%s over %s: %q", server, name, got)
			}
		}
		for name, row := range map[string]struct {
			s    *mcp.ClientSession
			want string
		}{
			"a client that cannot": {h.pipe(t, "", nil, "2025-11-25"), "it does not support elicitation"},
		} {
			if res := call(t, row.s, tool, nil); !res.IsError || !strings.Contains(text(res), row.want) {
				t.Errorf("%s, %s: %q", server, name, text(res))
			}
		}
		if res := g.call(t, "mcp."+server+".get_name", `{}`); res.Err == nil || !strings.Contains(res.Err.Message, "not made by a client of MCP") {
			t.Errorf("%s, without a client: %+v", server, res)
		}
	}
}

func TestNobodyElseIsAsked(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	server := func() *mcp.Server {
		return sdkServer(func(s *mcp.Server) {
			asksByItself(s)
			s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					close(begun)
					<-end
					return &mcp.CallToolResult{}, nil
				})
		})
	}
	h, _ := gateway(t, nil, rename(serveOld(t, server(), "/sse"), "old"), rename(serveHTTP(t, server(), false), "web"))
	asked := make(chan string, 2)
	as := func(name string) *mcp.ClientOptions {
		return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- name
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}
	}
	ann, bob := h.pipe(t, "", as("ann"), "2025-11-25"), h.pipe(t, "", as("bob"), "2025-11-25")
	done := make(chan struct{})
	go func() {
		defer close(done)
		ann.CallTool(context.Background(), &mcp.CallToolParams{Name: "mcp__old__wait"})
	}()
	<-begun
	if res := call(t, bob, "mcp__old__get_name", nil); !res.IsError || !strings.Contains(text(res), "calls of several clients are in flight") {
		t.Errorf("while another calls: %q", text(res))
	}
	close(end)
	<-done
	if len(asked) > 0 {
		t.Error("somebody was asked")
	}
	if got := text(call(t, bob, "mcp__old__get_name", nil)); got != "decline <nil>" || <-asked != "bob" {
		t.Errorf("alone: %q", got)
	}
	// Where every call has a stream of its own, it is known whose question it is.
	begun, end, done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ann.CallTool(context.Background(), &mcp.CallToolParams{Name: "mcp__web__wait"})
	}()
	<-begun
	if got := text(call(t, bob, "mcp__web__get_name", nil)); got != "decline <nil>" || <-asked != "bob" {
		t.Errorf("on a stream of its own: %q", got)
	}
	close(end)
	<-done
	if len(asked) > 0 {
		t.Error("somebody else was asked")
	}
}

// A question that its server takes back is taken back at the client, while
// the call goes on.
func TestQuestionsAreTakenBack(t *testing.T) {
	asked, withdrawn := make(chan struct{}, 1), make(chan struct{}, 1)
	server := func() *mcp.Server {
		return sdkServer(func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "get_name", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					on, cancel := context.WithCancel(ctx)
					go func() {
						<-asked
						cancel()
					}()
					_, err := r.Session.Elicit(on, &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(nameForm)})
					if err == nil {
						return nil, errors.New("it was answered")
					}
					select {
					case <-withdrawn:
						return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "withdrawn"}}}, nil
					case <-time.After(15 * time.Second):
						return nil, errors.New("the person still sees the question")
					}
				})
		})
	}
	h, _ := gateway(t, nil, rename(serveOld(t, server(), "/sse"), "old"), rename(serveHTTP(t, server(), false), "web"))
	o := &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		<-ctx.Done()
		withdrawn <- struct{}{}
		return nil, ctx.Err()
	}}
	web := h.http(t, "").URL
	for name, s := range map[string]*mcp.ClientSession{"stdio": h.pipe(t, "", o, "2025-11-25"), "http": dial(t, web, o, "2025-11-25")} {
		for _, server := range []string{"old", "web"} {
			if got := text(call(t, s, "mcp__"+server+"__get_name", nil)); got != "withdrawn" {
				t.Errorf("%s over %s: %q", server, name, got)
			}
		}
	}
}

func TestTurns(t *testing.T) {
	h, _ := gateway(t, nil, rename(serveHTTP(t, sdkServer(asksByItself), false), "old"))
	s := h.pipe(t, "", &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }}, "2026-07-28")
	const name = "mcp__old__get_name"
	asked := call(t, s, name, nil)
	q, _ := asked.InputRequests["question"].(*mcp.ElicitParams)
	if !asked.NeedsInput() || q == nil || q.Message != "old asks: Who?" || asked.RequestState == "" {
		t.Fatalf("answered with %+v", asked)
	}
	again := &mcp.CallToolParams{Name: name, RequestState: asked.RequestState,
		InputResponses: mcp.InputResponseMap{"question": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}}}
	other, forged := *again, *again
	other.Name, forged.RequestState = "mcp.list_servers", "forged"
	for _, p := range []*mcp.CallToolParams{&other, &forged} {
		if res, err := s.CallTool(t.Context(), p); err == nil || !strings.Contains(err.Error(), "requestState: ") {
			t.Errorf("%s, %s: %+v, %v", p.Name, p.RequestState, res, err)
		}
	}
	if res, err := s.CallTool(t.Context(), again); err != nil || text(res) != "accept Ann" {
		t.Errorf("with the answer: %+v, %v", res, err)
	}
	if _, err := s.CallTool(t.Context(), again); err == nil {
		t.Error("the same answer was taken twice")
	}
	// A call that waits does not hold up the end of the server.
	if !call(t, s, name, nil).NeedsInput() {
		t.Error("the second call does not ask")
	}
	if err := h.server.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}
