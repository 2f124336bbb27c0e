package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// A house is a small world of tools with a server before it.
type house struct {
	reg    *tool.Registry
	server *mcpbridge.Server

	mu    sync.Mutex
	calls []*tool.Call
	views map[viewKey]inject.View
}

type viewKey struct {
	set  *tool.Set
	mode inject.Mode
}

func (h *house) view(mode inject.Mode) inject.View {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := viewKey{h.reg.Set(), mode}
	v, ok := h.views[k]
	if !ok {
		v = inject.Present(k.set, inject.Options{Force: mode})
		h.views[k] = v
	}
	return v
}

func (h *house) seen() []*tool.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func newHouse(t testing.TB, change func(*mcpbridge.ServerOptions), tools ...*tool.Tool) *house {
	h := &house{reg: new(tool.Registry), views: map[viewKey]inject.View{}}
	if err := h.reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	run := pipeline.New(h.reg)
	o := mcpbridge.ServerOptions{
		Name: "test", Version: "1", App: "app", Instructions: "Use the tools.",
		View:    h.view,
		Changed: func() <-chan struct{} { return h.reg.Set().Superseded() },
		Do: func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			h.mu.Lock()
			h.calls = append(h.calls, c)
			h.mu.Unlock()
			return run.Do(ctx, c)
		},
		Resolve: func(_ tool.Origin, name string) *tool.Tool {
			t, _ := h.reg.Set().Resolve(name, nil)
			return t
		},
	}
	if change != nil {
		change(&o)
	}
	h.server = mcpbridge.NewServer(o)
	t.Cleanup(func() { h.server.Close(context.Background()) })
	return h
}

type echoIn struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func echo() *tool.Tool {
	return tool.New(tool.Definition{Name: "talk.echo", Title: "Echo", Description: "Say a text again.", Effect: tool.Reads},
		func(_ context.Context, in echoIn) (string, error) { return in.Text, nil })
}

func sum() *tool.Tool {
	return tool.New(tool.Definition{Name: "math.sum", Description: "Add two numbers.", Effect: tool.Reads},
		func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil })
}

func handled(name string, effect tool.Effect, h tool.Handler) *tool.Tool {
	return &tool.Tool{Definition: tool.Definition{Name: name, Description: "Test " + name + ".", Effect: effect,
		Input: schema.Must(`{"type":"object"}`)}, Handle: h}
}

func failing() *tool.Tool {
	return handled("test.fail", tool.Writes, func(context.Context, *tool.Call) (*tool.Result, error) {
		return nil, tool.Errorf(tool.CodeExternal, "the printer is on fire").Retry()
	})
}

func meta() *tool.Tool {
	t := handled("execute_tool", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text("ran"), nil })
	t.Meta = true
	t.Targets = func(json.RawMessage) []tool.Target { return nil }
	return t
}

// pipe connects a client of the library to the server over a stdio-like pair of pipes.
func (h *house) pipe(t testing.TB, mode inject.Mode, o *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	return h.pipeOf(t, mode, mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "0"}, o), version)
}

// pipeOf is pipe for a client that was made.
func (h *house) pipeOf(t testing.TB, mode inject.Mode, c *mcp.Client, version string) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- h.server.ServeStdio(context.Background(), fromClient, toClient, mode)
		toClient.Close()
	}()
	session, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		toServer.Close()
		if err := <-ended; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return session
}

func (h *house) http(t testing.TB, mode inject.Mode) *httptest.Server {
	s := httptest.NewServer(h.server.Handler(mode))
	t.Cleanup(s.Close)
	return s
}

func dial(t testing.TB, url string, o *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "0"}, o)
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

func names(t testing.TB, s *mcp.ClientSession) []string {
	t.Helper()
	var all []string
	for tl, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tl.Name)
	}
	return all
}

func call(t testing.TB, s *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			b.WriteString(c.Text + "\n")
		default:
			fmt.Fprintf(&b, "%T\n", c)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestRevisions(t *testing.T) {
	h := newHouse(t, nil, echo(), sum(), failing(), meta())
	web := h.http(t, "")
	for _, version := range versions {
		for name, s := range map[string]*mcp.ClientSession{
			"stdio": h.pipe(t, "", nil, version),
			"http":  dial(t, web.URL, nil, version),
		} {
			t.Run(name+" "+version, func(t *testing.T) {
				r := s.InitializeResult()
				if r.ProtocolVersion != version || r.ServerInfo.Name != "test" || r.Instructions != "Use the tools." {
					t.Errorf("started as %+v", r)
				}
				if got := names(t, s); !slices.Equal(got, []string{"execute_tool", "math__sum", "talk__echo", "test__fail"}) {
					t.Errorf("listed %v", got)
				}
				if got := text(call(t, s, "talk__echo", echoIn{"hi"})); got != "hi" {
					t.Errorf("echo said %q", got)
				}
				res := call(t, s, "math__sum", sumIn{2, 40})
				if data, _ := json.Marshal(res.StructuredContent); string(data) != `{"sum":42}` || res.IsError {
					t.Errorf("the sum is %s, error %v", data, res.IsError)
				}
				res = call(t, s, "test__fail", nil)
				if got := text(res); !res.IsError || got != "external_service_error: the printer is on fire" {
					t.Errorf("failure: %v %q", res.IsError, got)
				}
				if data, _ := json.Marshal(res.Meta["helve/error"]); !strings.Contains(string(data), `"retryable":true`) {
					t.Errorf("the error in _meta is %s", data)
				}
			})
		}
	}
	for _, c := range h.seen() {
		if c.From.Agent != "tester" || c.From.Kind != tool.KindMCP || c.From.App != "app" || c.From.User != "local" || c.From.Session == "" {
			t.Fatalf("a call came from %+v", c.From)
		}
	}
}

func TestModes(t *testing.T) {
	deferred := sum()
	deferred.Deferred = true
	h := newHouse(t, nil, echo(), deferred, meta())
	for mode, want := range map[inject.Mode][]string{
		inject.Direct:    {"execute_tool", "math__sum", "talk__echo"},
		inject.Compact:   {"execute_tool", "math__sum", "talk__echo"},
		inject.Discovery: {"execute_tool"},
	} {
		s := h.pipe(t, mode, nil, "")
		if got := names(t, s); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", mode, got, want)
		}
		// What is not shown, or not in full, can be called all the same.
		if got := text(call(t, s, "talk.echo", echoIn{"hi"})); got != "hi" {
			t.Errorf("%s: echo said %q", mode, got)
		}
		if got := text(call(t, s, "math__sum", sumIn{1, 2})); got != `{"sum":3}` {
			t.Errorf("%s: the sum is %q", mode, got)
		}
		res := call(t, s, "talk__echo", map[string]any{"txt": 1})
		if got := text(res); !res.IsError || !strings.HasPrefix(got, "validation_error: ") || !strings.Contains(got, "what to say") {
			t.Errorf("%s: wrong arguments are answered with %q", mode, got)
		}
		res = call(t, s, "talk__ecko", nil)
		if got := text(res); !res.IsError || !strings.HasPrefix(got, "tool_not_found: ") || !strings.Contains(got, "talk.echo") {
			t.Errorf("%s: an unknown tool is answered with %q", mode, got)
		}
	}
}

func TestStructuredOnlyWhereListed(t *testing.T) {
	list := sum()
	list.Name = "math.list"
	list.Output = schema.Must(`{"type":"array"}`)
	words := handled("math.words", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(` {"sum":2} `), nil })
	words.Output = sum().Output
	h := newHouse(t, nil, sum(), list, words)
	for mode, want := range map[inject.Mode]bool{inject.Direct: true, inject.Compact: false} {
		s := h.pipe(t, mode, nil, "2025-06-18")
		for tl, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			res := call(t, s, tl.Name, sumIn{1, 1})
			if (tl.OutputSchema != nil) != (want && tl.Name != "math__list") || (res.StructuredContent != nil) != (tl.OutputSchema != nil) {
				t.Errorf("%s %s: output schema %v, structured %v", mode, tl.Name, tl.OutputSchema, res.StructuredContent)
			}
		}
	}
}

func TestEverySchemaSaysObject(t *testing.T) {
	var tools []*tool.Tool
	for name, in := range map[string]string{"a.true": `true`, "a.empty": ` { } `, "a.untyped": ` { "properties":{"x":{"$ref":"#/$defs/y"}},"$defs":{"y":{}}}`} {
		tl := handled(name, tool.Reads, echo().Handle)
		tl.Input = schema.Must(in)
		tools = append(tools, tl)
	}
	h := newHouse(t, nil, tools...)
	_, body, _ := post(t, h.http(t, inject.Direct).URL, pingMessage)
	for _, want := range []string{`"name":"a__true","description":"Test a.true.","inputSchema":{"type":"object"}`,
		`"name":"a__empty","description":"Test a.empty.","inputSchema":{"type":"object"}`,
		`"inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/y"}},"$defs":{"y":{}}}`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

func TestAnnotations(t *testing.T) {
	nop := func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }
	web := handled("web.get", tool.Reads, nop)
	web.Needs = tool.NeedsNetwork
	h := newHouse(t, nil, meta(), handled("a.read", tool.Reads, nop), handled("a.write", tool.Writes, nop),
		handled("a.destroy", tool.Destroys, nop), handled("a.unknown", tool.Unknown, nop), web)
	want := map[string]string{
		"execute_tool": "ro=false destructive=true open=true",
		"a__read":      "ro=true destructive=unsaid open=false",
		"a__write":     "ro=false destructive=false open=false",
		"a__destroy":   "ro=false destructive=true open=false",
		"a__unknown":   "ro=false destructive=true open=false",
		"web__get":     "ro=true destructive=unsaid open=true",
	}
	for tl, err := range h.pipe(t, inject.Direct, nil, "").Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		destructive := "unsaid"
		if d := tl.Annotations.DestructiveHint; d != nil {
			destructive = fmt.Sprint(*d)
		}
		got := fmt.Sprintf("ro=%v destructive=%s open=%v", tl.Annotations.ReadOnlyHint, destructive, *tl.Annotations.OpenWorldHint)
		if got != want[tl.Name] {
			t.Errorf("%s: %s, want %s", tl.Name, got, want[tl.Name])
		}
	}
}

// post sends one JSON-RPC message and returns the status and the message in the answer.
func post(t testing.TB, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := string(data)
	if _, rest, ok := strings.Cut(out, "data: "); ok {
		out, _, _ = strings.Cut(rest, "\n")
	}
	return resp.StatusCode, out, resp.Header
}
