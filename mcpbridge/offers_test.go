package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// gateway returns a house that offers what upstream servers have.
func gateway(t testing.TB, change func(*mcpbridge.ServerOptions), ups ...mcpbridge.Upstream) (*house, *guest) {
	t.Helper()
	g := open(t, ups...)
	g.withModule(t)
	var h *house
	h = newHouse(t, func(o *mcpbridge.ServerOptions) {
		o.Upstreams = func() *mcpbridge.Upstreams { return g.ups }
		o.View = func(m inject.Mode) inject.View { return inject.Present(g.reg.Set(), inject.Options{Force: m}) }
		o.Changed = func() <-chan struct{} { return g.reg.Set().Superseded() }
		o.Resolve = func(_ tool.Origin, name string) *tool.Tool { tl, _ := g.reg.Set().Resolve(name, nil); return tl }
		o.Do = func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			h.mu.Lock()
			h.calls = append(h.calls, c)
			h.mu.Unlock()
			return g.run.Do(ctx, c)
		}
		if change != nil {
			change(o)
		}
	})
	return h, g
}

// offering returns a server with resources, a template and prompts, whose texts name it.
func offering(name string, change func(*mcp.Server)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{PageSize: 2,
		Capabilities:       &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
				Values: []string{name + " " + r.Params.Ref.Name + r.Params.Ref.URI + " " + r.Params.Argument.Value}}}, nil
		},
	})
	addResource(s, name, "note://same")
	addResource(s, name, name+"://own")
	s.AddResource(&mcp.Resource{Name: "blob", URI: name + "://blob", MIMEType: "image/png"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "image/png",
				Blob: []byte{0, 1, 0xff}, Meta: mcp.Meta{"x/y": "z"}}}}, nil
		})
	for _, uri := range []string{"note://{id}", name + "://item/{id}"} {
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "items", URITemplate: uri}, reads(name))
	}
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "d", Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: name + " greets " + r.Params.Arguments["who"]}},
				{Role: "assistant", Content: &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "only_" + name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, &jsonrpc.Error{Code: -32050, Message: "no\x1b[31m luck", Data: json.RawMessage(`{"a":1}`)}
	})
	if change != nil {
		change(s)
	}
	return s
}

func reads(name string) mcp.ResourceHandler {
	return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: name + " has " + r.Params.URI}}}, nil
	}
}

func addResource(s *mcp.Server, name, uri string) {
	s.AddResource(&mcp.Resource{Name: "r", URI: uri}, reads(name))
}

func twoServers(t testing.TB) (a, b *mcp.Server, ups []mcpbridge.Upstream) {
	a, b = offering("a", nil), offering("b", nil)
	return a, b, []mcpbridge.Upstream{rename(serveHTTP(t, a, false), "a"), rename(serveHTTP(t, b, true), "b")}
}

func uris(t testing.TB, s *mcp.ClientSession) (all []string) {
	t.Helper()
	for r, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.URI)
	}
	for r, err := range s.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.URITemplate)
	}
	slices.Sort(all)
	return all
}

func promptNames(t testing.TB, s *mcp.ClientSession) (all []string) {
	t.Helper()
	for p, err := range s.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return all
}

func TestOffersOfTwoServers(t *testing.T) {
	_, _, ups := twoServers(t)
	h, _ := gateway(t, func(o *mcpbridge.ServerOptions) { o.PageSize = 3 }, ups...)
	web := h.http(t, "").URL
	for _, version := range versions {
		for _, s := range []*mcp.ClientSession{h.pipe(t, "", nil, version), dial(t, web, nil, version)} {
			if got, want := uris(t, s), []string{"a://blob", "a://item/{id}", "a://own", "b://blob", "b://item/{id}", "b://own",
				"helve:a/note://same", "helve:a/note://{id}", "helve:b/note://same", "helve:b/note://{id}"}; !slices.Equal(got, want) {
				t.Errorf("%s: listed\n%q, want\n%q", version, got, want)
			}
			if got, want := promptNames(t, s), []string{"a__greet", "a__only_a", "b__greet", "b__only_b"}; !slices.Equal(got, want) {
				t.Errorf("%s: prompts %q, want %q", version, got, want)
			}
			checkReads(t, s)
			checkPrompts(t, s)
		}
	}
	names := map[string]bool{}
	for _, c := range h.seen() {
		names[c.Name] = true
		if c.From.Kind != tool.KindMCP || c.From.Agent != "tester" || c.From.Session == "" {
			t.Fatalf("a call came from %+v", c.From)
		}
	}
	if !names["mcp.read_resource"] || !names["mcp.get_prompt"] {
		t.Errorf("the pipeline saw %v", names)
	}
}

func checkReads(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	for uri, want := range map[string]string{
		"a://own": "a has a://own", "b://own": "b has b://own", "helve:b/b://own": "b has b://own",
		"helve:a/note://same": "a has note://same", "helve:b/note://same": "b has note://same",
		"helve:b/note://x": "b has note://x", "a://item/7": "a has a://item/7",
	} {
		res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want || res.Contents[0].URI != uri || res.Contents[0].MIMEType != "text/plain" {
			t.Errorf("%s: %v, %+v; want %q", uri, err, res, want)
		}
	}
	res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "b://blob"})
	if err != nil || string(res.Contents[0].Blob) != "\x00\x01\xff" || res.Contents[0].MIMEType != "image/png" || res.Contents[0].Meta["x/y"] != "z" {
		t.Errorf("the blob: %v, %+v", err, res)
	}
	for uri, want := range map[string]string{"note://same": "helve:a/note://same or helve:b/note://same", "note://new": "helve:a/note://new or",
		"nobody://x": "not found", "helve:c/a://own": "not found", "a://unknown": "not found"} {
		_, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, want) {
			t.Errorf("%s: %v; want …%s…", uri, err, want)
		}
	}
	for ref, want := range map[mcp.CompleteReference]string{
		{Type: "ref/prompt", Name: "b__greet"}:             "b greet W",
		{Type: "ref/resource", URI: "a://item/{id}"}:       "a a://item/{id} W",
		{Type: "ref/resource", URI: "helve:b/note://{id}"}: "b note://{id} W",
	} {
		res, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &ref, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "W"}})
		if err != nil || !slices.Equal(res.Completion.Values, []string{want}) {
			t.Errorf("completing %+v: %v, %+v", ref, err, res)
		}
	}
}

func checkPrompts(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	for _, name := range []string{"a__greet", "mcp.a.greet"} {
		res, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"who": "W"}})
		if err != nil || res.Description != "d" || len(res.Messages) != 2 || res.Messages[0].Role != "user" || res.Messages[1].Role != "assistant" {
			t.Errorf("%s: %v, %+v", name, err, res)
			continue
		}
		text, _ := res.Messages[0].Content.(*mcp.TextContent)
		image, _ := res.Messages[1].Content.(*mcp.ImageContent)
		if text == nil || text.Text != "a greets W" || image == nil || string(image.Data) != "\x01" {
			t.Errorf("%s: %+v, %+v", name, text, image)
		}
	}
	for name, want := range map[string]string{"greet": "mcp.a.greet or mcp.b.greet", "c__greet": "no prompt", "only_b": "refused the call: no luck (code -32050)"} {
		_, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || !strings.Contains(wire.Message, want) {
			t.Errorf("%s: %v; want …%s…", name, err, want)
		} else if name == "only_b" && (wire.Code != -32050 || string(wire.Data) != `{"a":1}`) {
			t.Errorf("%s: %+v", name, wire)
		}
	}
}

func TestNamesThatCouldMeanTwo(t *testing.T) {
	prompt := func(name string) func(*mcp.Server) {
		return func(s *mcp.Server) {
			s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}, Description: name}, nil
			})
		}
	}
	h, _ := gateway(t, nil, rename(serveHTTP(t, sdkServer(prompt("b__c")), false), "a"), rename(serveHTTP(t, sdkServer(prompt("c")), false), "a__b"))
	s := h.pipe(t, "", nil, "")
	got := promptNames(t, s)
	if want := []string{"mcp.a.b__c", "mcp.a__b.c"}; !slices.Equal(got, want) {
		t.Fatalf("prompts %q, want %q", got, want)
	}
	for name, want := range map[string]string{"mcp.a.b__c": "b__c", "mcp.a__b.c": "c"} {
		if res, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name}); err != nil || res.Description != want {
			t.Errorf("%s: %v, %+v", name, err, res)
		}
	}
}

func TestHiddenServersOfferNothing(t *testing.T) {
	_, _, ups := twoServers(t)
	h, g := gateway(t, func(o *mcpbridge.ServerOptions) {
		o.Shows = func(_ tool.Origin, server string) bool { return server != "a" }
	}, ups...)
	s := h.pipe(t, "", nil, "2025-11-25")
	if got, want := uris(t, s), []string{"b://blob", "b://item/{id}", "b://own", "note://same", "note://{id}"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if got := promptNames(t, s); !slices.Equal(got, []string{"b__greet", "b__only_b"}) {
		t.Errorf("prompts %q", got)
	}
	if res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://same"}); err != nil || res.Contents[0].Text != "b has note://same" {
		t.Errorf("%v, %+v", err, res)
	}
	before := len(h.seen())
	if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "helve:a/a://own"}); err == nil {
		t.Error("a hidden server's resource was read")
	}
	if _, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "a__greet", Arguments: map[string]string{"who": "W"}}); err == nil {
		t.Error("a hidden server's prompt was got")
	}
	if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "helve:a/a://own"}); err == nil {
		t.Error("a hidden server's resource is followed")
	}
	if n := len(h.seen()); n != before {
		t.Errorf("%d calls were made", n-before)
	}
	// A caller that may not use the tools gets nothing by the methods either.
	if err := g.reg.Replace("mcp"); err != nil {
		t.Fatal(err)
	}
	if got := append(uris(t, s), promptNames(t, s)...); len(got) > 0 {
		t.Errorf("without the tools: %q", got)
	}
}

func TestRefusedReads(t *testing.T) {
	_, _, ups := twoServers(t)
	h, _ := gateway(t, func(o *mcpbridge.ServerOptions) {
		o.Do = func(context.Context, *tool.Call) (*tool.Result, error) {
			return tool.Fail(tool.Errorf(tool.CodePermission, "the policy says no")), nil
		}
	}, ups...)
	s := h.pipe(t, "", nil, "")
	_, read := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "a://own"})
	_, got := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "a__greet"})
	for _, err := range []error{read, got} {
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || !strings.Contains(wire.Message, "permission_denied: the policy says no") || !strings.Contains(string(wire.Data), `"helve/error"`) {
			t.Errorf("refused with %v", err)
		}
	}
}

func TestCapabilitiesFollowTheServers(t *testing.T) {
	with, _ := gateway(t, nil, rename(serveHTTP(t, offering("a", nil), false), "a"))
	without, _ := gateway(t, nil)
	for _, version := range versions {
		caps := with.pipe(t, "", nil, version).InitializeResult().Capabilities
		if caps.Resources == nil || !caps.Resources.ListChanged || !caps.Resources.Subscribe || caps.Prompts == nil || !caps.Prompts.ListChanged ||
			caps.Completions == nil || caps.Logging == nil || caps.Tools == nil {
			t.Errorf("%s: with a server %+v", version, caps)
		}
		caps = without.pipe(t, "", nil, version).InitializeResult().Capabilities
		if caps.Resources != nil || caps.Prompts != nil || caps.Completions != nil || caps.Logging != nil || caps.Tools == nil {
			t.Errorf("%s: without %+v", version, caps)
		}
	}
}

// await waits until something is told.
func await(t *testing.T, news <-chan string, want string) {
	t.Helper()
	tellUntil(t, news, want, func() {})
}

// tellUntil tells again and again until it is heard: the library says of
// subscriptions of the newest revision that they are made before they are.
func tellUntil(t *testing.T, news <-chan string, want string, tell func()) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		tell()
		again := time.After(100 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case got := <-news:
				if got == want {
					return
				}
			case <-again:
				waiting = false
			case <-late:
				t.Fatalf("%s was never told", want)
			}
		}
	}
}

func TestNewsReachClients(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			a, b, ups := twoServers(t)
			h, _ := gateway(t, nil, ups...)
			for _, overHTTP := range []bool{false, true} {
				news := make(chan string, 100)
				o := &mcp.ClientOptions{
					ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { news <- "resources" },
					PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { news <- "prompts" },
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
						news <- r.Params.URI
					},
				}
				var s *mcp.ClientSession
				if overHTTP {
					s = dial(t, h.http(t, "").URL, o, version)
				} else {
					s = h.pipe(t, "", o, version)
				}
				uris(t, s)
				for i, server := range []*mcp.Server{a, b} {
					name := fmt.Sprintf("%c://new-%v", 'a'+i, overHTTP)
					addResource(server, name, name)
					// The first news may be of the connection to the server.
					for listed := false; !listed; listed = slices.Contains(uris(t, s), name) {
						await(t, news, "resources")
					}
					server.RemovePrompts("greet")
					server.AddPrompt(&mcp.Prompt{Name: "greet"}, nil)
					await(t, news, "prompts")
				}
				for uri, update := range map[string]*mcp.Server{"helve:a/note://same": a, "b://own": b} {
					if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
					own := uri[max(strings.Index(uri, "/note")+1, 0):]
					tellUntil(t, news, uri, func() {
						update.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: own})
					})
					if err := s.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestLogsReachClients(t *testing.T) {
	loud := func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "get_logs", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for _, level := range []mcp.LoggingLevel{"debug", "warning"} {
					r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "db", Data: map[string]any{"n": 1}})
				}
				return &mcp.CallToolResult{}, nil
			})
	}
	h, _ := gateway(t, func(o *mcpbridge.ServerOptions) {
		o.Shows = func(_ tool.Origin, server string) bool { return server != "b" }
	}, rename(serveHTTP(t, offering("a", loud), false), "a"), rename(serveHTTP(t, offering("b", loud), false), "b"))
	logs := make(chan string, 100)
	client := func() *mcp.ClientSession {
		return h.pipe(t, "", &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			data, _ := json.Marshal(r.Params)
			logs <- string(data)
		}}, "2025-11-25")
	}
	s, silent := client(), client()
	if err := silent.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	call(t, s, "mcp__b__get_logs", nil) // is hidden: what it logs is too
	call(t, s, "mcp__a__get_logs", nil)
	if got, want := <-logs, `{"data":{"n":1},"level":"warning","logger":"a/db"}`; got != want {
		t.Errorf("logged %s, want %s", got, want)
	}
	if len(logs) > 0 {
		t.Errorf("logged more: %s", <-logs)
	}
	if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		t.Fatal(err)
	}
	call(t, silent, "mcp__a__get_logs", nil)
	for _, level := range []string{"debug", "warning"} {
		if got := <-logs; !strings.Contains(got, `"level":"`+level+`"`) {
			t.Errorf("logged %s, want %s", got, level)
		}
	}
}

func TestFollowingOutlastsTheConnection(t *testing.T) {
	s := offering("a", nil)
	up := rename(serveHTTP(t, s, false), "a")
	h, g := gateway(t, nil, up)
	news := make(chan string, 100)
	c := h.pipe(t, "", &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		news <- r.Params.URI
	}}, "2025-11-25")
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "a://own"}); err != nil {
		t.Fatal(err)
	}
	for session := range s.Sessions() {
		session.Close()
	}
	tellUntil(t, news, "a://own", func() {
		s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "a://own"})
		g.call(t, "mcp.read_resource", `{"server":"a","uri":"a://own"}`) // notices that the connection is lost
	})
}
