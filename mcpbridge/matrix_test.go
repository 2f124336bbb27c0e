package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
)

// revisions are all of the protocol, the oldest first.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

const (
	stateless   = "2026-07-28"
	withAsking  = "2025-06-18" // the first in which servers ask
	matrixTools = 31           // of each server, beside those that do something; two on a page
)

// speaksOnly has a server speak one revision: it neither knows the methods of
// others nor agrees to them.
func speaksOnly(s *mcp.Server, version string) {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "server/discover" && version < stateless || method == "initialize" && version >= stateless {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no " + method}
			}
			if r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams]); ok {
				r.Params.ProtocolVersion = version
			}
			return next(ctx, method, req)
		}
	})
}

// richContent is of every kind that there is.
func richContent() []mcp.Content {
	return []mcp.Content{
		&mcp.TextContent{Text: "text \u2028 <&>", Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: 0.25}},
		&mcp.ImageContent{Data: []byte{0, 1, 0xff}, MIMEType: "image/png", Meta: mcp.Meta{"x/y": "z"}},
		&mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
		&mcp.ResourceLink{URI: "file:///a b", Name: "n", Title: "t", MIMEType: "text/x", Size: new(int64(7))},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://1", MIMEType: "text/plain", Text: "inside"}},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem://2", MIMEType: "x/y", Blob: []byte{9, 8}}},
	}
}

// richContentFor is what a client gets of that: what its revision does not have
// comes as what it has.
func richContentFor(version string) []mcp.Content {
	all := richContent()
	if version < "2025-03-26" {
		all[2] = &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "helve:result", MIMEType: "audio/wav", Blob: []byte("wav")}}
	}
	if version < "2025-06-18" {
		all[3] = &mcp.TextContent{Text: "[link to n: file:///a b]"}
	}
	return all
}

// matrixServer is a server that has everything, and speaks one revision.
func matrixServer(name, version string) *mcp.Server {
	anything := json.RawMessage(`{"type":"object"}`)
	return offering(name, func(s *mcp.Server) {
		speaksOnly(s, version)
		for i := range matrixTools {
			nopTool(s, fmt.Sprintf("get_%02d", i))
		}
		s.AddTool(&mcp.Tool{Name: "get_rich", InputSchema: json.RawMessage(strange), OutputSchema: json.RawMessage(strange)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: richContent(), StructuredContent: json.RawMessage(`{"z":12345678901234567890}`), Meta: mcp.Meta{"k/v": "w"}}, nil
			})
		s.AddTool(&mcp.Tool{Name: "get_steps", InputSchema: anything}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, step := range []string{"one", "two", "three"} {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: step}); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{}, nil
		})
		s.AddTool(&mcp.Tool{Name: "get_late", InputSchema: anything}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			conn := dialHome("late")
			gone, _ := ctx.Value(goneKey{}).(<-chan struct{}) // nil but for stateless HTTP
			select {
			case <-ctx.Done():
			case <-gone:
			}
			fmt.Fprint(conn, "!")
			return nil, context.Canceled
		})
		s.AddTool(&mcp.Tool{Name: "get_touched", InputSchema: anything}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: name + "://own"})
		})
		s.AddTool(&mcp.Tool{Name: "get_logs", InputSchema: anything}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "of " + name})
		})
		s.AddTool(&mcp.Tool{Name: "get_grown", InputSchema: anything}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ As string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			nopTool(s, "get_"+in.As)
			addResource(s, name, name+"://"+in.As)
			s.AddPrompt(&mcp.Prompt{Name: in.As}, nil)
			return &mcp.CallToolResult{}, nil
		})
		if version >= stateless {
			asksByReturning(s)
		} else {
			asksByItself(s)
		}
	})
}

type goneKey struct{}

// tellsOfEnds tells tools when the request that calls them has ended, which is
// how calls are cancelled without sessions: the library does not tell them.
func tellsOfEnds(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), goneKey{}, r.Context().Done())))
	})
}

// serveStateless serves over HTTP without sessions.
func serveStateless(t *testing.T, s *mcp.Server) mcpbridge.Upstream {
	web := httptest.NewServer(tellsOfEnds(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return mcpbridge.Upstream{URL: web.URL, CallTimeout: 20 * time.Second}
}

// matrixChild is such a server over stdin and stdout.
func matrixChild() *mcp.Server {
	return matrixServer(os.Getenv("HELVE_TEST_NAME"), os.Getenv("HELVE_TEST_REVISION"))
}

// matrixUpstreams are servers of every revision, over every transport that the
// revision has; their names begin with that of the transport.
func matrixUpstreams(t *testing.T) (ups []mcpbridge.Upstream, revisionOf map[string]string) {
	revisionOf = map[string]string{}
	add := func(transport, version string, up func(name string) mcpbridge.Upstream) {
		name := transport + strings.ReplaceAll(version, "-", "")
		revisionOf[name] = version
		ups = append(ups, rename(up(name), name))
	}
	for _, version := range revisions {
		add("pipe", version, func(name string) mcpbridge.Upstream {
			up := self("matrix")
			up.Env["HELVE_TEST_NAME"], up.Env["HELVE_TEST_REVISION"], up.Env["HELVE_TEST_ADDR"] = name, version, os.Getenv("HELVE_TEST_ADDR")
			return up
		})
		if version == revisions[0] {
			add("sse", version, func(name string) mcpbridge.Upstream { return serveOld(t, matrixServer(name, version), "/sse") })
		} else {
			add("web", version, func(name string) mcpbridge.Upstream {
				if version >= stateless {
					return serveStateless(t, matrixServer(name, version))
				}
				return serveHTTP(t, matrixServer(name, version), false)
			})
		}
	}
	return ups, revisionOf
}

// A matrixClient is a client of one revision, and what it was told.
type matrixClient struct {
	*mcp.ClientSession
	version string
	heard   chan string
}

func newMatrixClient(t *testing.T, h *house, web, version string) *matrixClient {
	c := &matrixClient{version: version, heard: make(chan string, 1000)}
	o := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.heard <- "step " + r.Params.Message
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			c.heard <- "updated " + r.Params.URI
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			c.heard <- fmt.Sprint("log ", r.Params.Logger, " ", r.Params.Data)
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { c.heard <- "tools" },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { c.heard <- "resources" },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { c.heard <- "prompts" },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
	}
	if web == "" {
		c.ClientSession = h.pipe(t, "direct", o, version)
	} else {
		c.ClientSession = dial(t, web, o, version)
	}
	if got := c.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the client speaks %s, not %s", got, version)
	}
	return c
}

// Every revision of clients meets every revision of servers, each over all of
// its transports.
func TestMatrix(t *testing.T) {
	home := newHome(t)
	t.Setenv("HELVE_TEST_ADDR", home.Addr().String())
	ups, revisionOf := matrixUpstreams(t)
	h, g := gateway(t, func(o *mcpbridge.ServerOptions) { o.PageSize = 100 }, ups...)
	for _, st := range g.ups.Status() {
		if st.Protocol != revisionOf[st.Name] || st.Error != "" || len(st.LeftOut) > 0 {
			t.Fatalf("%s: %+v", st.Name, st)
		}
	}
	for _, version := range revisions {
		for _, web := range []string{"", h.http(t, "direct").URL} {
			transport := "web"
			if web == "" {
				transport = "pipe"
			}
			t.Run(transport+" "+version, func(t *testing.T) {
				c := newMatrixClient(t, h, web, version)
				c.lists(t, revisionOf)
				for name, theirs := range revisionOf {
					t.Run(name, func(t *testing.T) { c.meet(t, home, name, theirs) })
				}
			})
		}
	}
	for i, version := range []string{"2025-06-18", stateless} {
		t.Run("news "+version, func(t *testing.T) {
			c := newMatrixClient(t, h, h.http(t, "direct").URL, version)
			for name := range revisionOf {
				c.news(t, name, fmt.Sprintf("new%d", i))
			}
		})
	}
}

// lists holds that every tool, resource, template and prompt is listed, with
// its schemas.
func (c *matrixClient) lists(t *testing.T, revisionOf map[string]string) {
	t.Helper()
	tools := map[string]*mcp.Tool{}
	for tl, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools[tl.Name] = tl
	}
	addresses, prompts := uris(t, c.ClientSession), promptNames(t, c.ClientSession)
	for name := range revisionOf {
		for i := range matrixTools {
			if tools[fmt.Sprintf("%s__get_%02d", "mcp__"+name, i)] == nil {
				t.Errorf("%s: tool %d is not listed", name, i)
			}
		}
		rich := tools["mcp__"+name+"__get_rich"]
		if rich == nil || !sameJSON(t, rich.InputSchema, strange) || !sameJSON(t, rich.OutputSchema, strange) {
			t.Errorf("%s: get_rich is listed as %+v", name, rich)
		}
		for _, uri := range []string{name + "://own", name + "://blob", name + "://item/{id}", "helve:" + name + "/note://same"} {
			if !slices.Contains(addresses, uri) {
				t.Errorf("%s is not listed", uri)
			}
		}
		if !slices.Contains(prompts, name+"__greet") {
			t.Errorf("%s__greet is not listed", name)
		}
	}
}

// sameJSON compares what the library decoded with a text, as it would decode it.
func sameJSON(t *testing.T, got any, want string) bool {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(want), &v); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(got, v)
}

// meet does with one server what clients do.
func (c *matrixClient) meet(t *testing.T, home *home, name, theirs string) {
	tool := func(own string) string { return "mcp__" + name + "__" + own }
	rich := call(t, c.ClientSession, tool("get_rich"), nil)
	if diff := cmp.Diff(richContentFor(c.version), rich.Content); diff != "" || rich.IsError || rich.Meta["k/v"] != "w" {
		t.Errorf("the contents (-want +got):\n%s\n%v", diff, rich.Meta)
	}
	if !sameJSON(t, rich.StructuredContent, `{"z":12345678901234567890}`) {
		t.Errorf("structured: %v", rich.StructuredContent)
	}
	steps := &mcp.CallToolParams{Name: tool("get_steps")}
	steps.SetProgressToken("p")
	if res, err := c.CallTool(t.Context(), steps); err != nil || res.IsError {
		t.Errorf("get_steps: %v, %+v", err, res)
	}
	for _, step := range []string{"one", "two", "three"} {
		await(t, c.heard, "step "+step)
	}
	c.cancels(t, home, tool("get_late"))
	c.offers(t, name)
	if theirs >= withAsking && c.version >= withAsking {
		if got := text(call(t, c.ClientSession, tool("get_name"), nil)); got != "accept Ann" {
			t.Errorf("asked: %q", got)
		}
	}
	uri := name + "://own"
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Errorf("subscribing: %v", err)
	} else {
		tellUntil(t, c.heard, "updated "+uri, func() { call(t, c.ClientSession, tool("get_touched"), nil) })
		if err := c.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
			t.Errorf("unsubscribing: %v", err)
		}
	}
	if theirs < stateless && c.version < stateless { // later the level goes with each request
		if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Errorf("the level: %v", err)
		}
		tellUntil(t, c.heard, "log "+name+" of "+name, func() { call(t, c.ClientSession, tool("get_logs"), nil) })
	}
}

// cancels holds that a call which the client gives up ends at the server.
func (c *matrixClient) cancels(t *testing.T, home *home, tool string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool})
		done <- err
	}()
	role, conn := home.await(t)
	cancel()
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 1 || role != "late" {
		t.Errorf("the server does not hear that the call of %s is cancelled: %v", tool, err)
	}
	if err := <-done; err == nil {
		t.Error("a cancelled call has a result")
	}
}

// offers reads, gets and completes.
func (c *matrixClient) offers(t *testing.T, name string) {
	t.Helper()
	for uri, want := range map[string]string{name + "://own": name + " has " + name + "://own", name + "://item/7": name + " has " + name + "://item/7",
		"helve:" + name + "/note://same": name + " has note://same"} {
		if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want || res.Contents[0].URI != uri {
			t.Errorf("%s: %v, %+v", uri, err, res)
		}
	}
	blob, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: name + "://blob"})
	if err != nil || string(blob.Contents[0].Blob) != "\x00\x01\xff" || blob.Contents[0].Meta["x/y"] != "z" {
		t.Errorf("the blob: %v, %+v", err, blob)
	}
	res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name + "__greet", Arguments: map[string]string{"who": "W"}})
	if err != nil || len(res.Messages) != 2 || res.Messages[0].Content.(*mcp.TextContent).Text != name+" greets W" {
		t.Errorf("the prompt: %v, %+v", err, res)
	}
	_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name + "__only_" + name})
	if err == nil || !strings.Contains(err.Error(), "luck") {
		t.Errorf("the prompt that fails: %v", err)
	}
	found, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: name + "__greet"},
		Argument: mcp.CompleteParamsArgument{Name: "who", Value: "W"}})
	if err != nil || !slices.Equal(found.Completion.Values, []string{name + " greet W"}) {
		t.Errorf("completing: %v, %+v", err, found)
	}
}

// news holds that a client hears what a server has got, and then sees it.
func (c *matrixClient) news(t *testing.T, name, as string) {
	t.Helper()
	call(t, c.ClientSession, "mcp__"+name+"__get_grown", map[string]any{"as": as})
	for what, listed := range map[string]func() bool{
		"tools":     func() bool { return slices.Contains(names(t, c.ClientSession), "mcp__"+name+"__get_"+as) },
		"resources": func() bool { return slices.Contains(uris(t, c.ClientSession), name+"://"+as) },
		"prompts":   func() bool { return slices.Contains(promptNames(t, c.ClientSession), name+"__"+as) },
	} {
		for !listed() { // the first news may be of another server
			select {
			case <-c.heard:
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: the client does not hear of new %s", name, what)
			}
		}
	}
}
