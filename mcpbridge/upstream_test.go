package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// The test binary can be run as a server of several kinds.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "__watch" {
		dialHome("watchdog")
		if err := mcpbridge.Watch(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if kind := os.Getenv("HELVE_TEST_CHILD"); kind != "" {
		child(kind)
		return
	}
	os.Exit(m.Run())
}

func self(kind string) mcpbridge.Upstream {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return mcpbridge.Upstream{Name: "kid", Command: exe, Env: map[string]string{"HELVE_TEST_CHILD": kind}, CallTimeout: 20 * time.Second}
}

// A guest is a registry with the tools of upstream servers in it.
type guest struct {
	reg tool.Registry
	run *pipeline.Executor
	ups *mcpbridge.Upstreams
}

func open(t testing.TB, ups ...mcpbridge.Upstream) *guest {
	t.Helper()
	g := &guest{}
	g.run = pipeline.New(&g.reg)
	g.ups = mcpbridge.OpenUpstreams(t.Context(), ups, mcpbridge.UpstreamOptions{Publish: g.reg.Replace, Root: t.TempDir(), Version: "test"})
	t.Cleanup(func() { g.ups.Close() })
	g.ups.Wait(t.Context())
	return g
}

func (g *guest) call(t testing.TB, name, args string) *tool.Result {
	t.Helper()
	res, err := g.run.Do(t.Context(), &tool.Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func (g *guest) status(t testing.TB) mcpbridge.ServerStatus {
	t.Helper()
	all := g.ups.Status()
	if len(all) != 1 {
		t.Fatalf("%d servers", len(all))
	}
	return all[0]
}

// until waits for the registry to change until ok holds of it.
func (g *guest) until(t testing.TB, ok func(*tool.Set) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		set := g.reg.Set()
		if ok(set) {
			return
		}
		select {
		case <-set.Superseded():
		case <-ctx.Done():
			t.Fatalf("the tools never became as expected; the servers are %+v", g.ups.Status())
		}
	}
}

func sdkServer(change func(*mcp.Server)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "theirs", Version: "7"}, &mcp.ServerOptions{PageSize: 100,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
	if change != nil {
		change(s)
	}
	return s
}

func serveHTTP(t testing.TB, s *mcp.Server, stateless bool) mcpbridge.Upstream {
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return mcpbridge.Upstream{Name: "web", URL: web.URL, CallTimeout: 20 * time.Second}
}

func nopTool(s *mcp.Server, name string) {
	s.AddTool(&mcp.Tool{Name: name, Description: "Do " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
}

func TestManyPages(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		s := sdkServer(func(s *mcp.Server) {
			for i := range 2500 {
				nopTool(s, fmt.Sprintf("get_%04d", i))
			}
		})
		g := open(t, serveHTTP(t, s, stateless))
		if st := g.status(t); st.State != mcpbridge.Started || st.Tools != 2500 || st.Server != "theirs" || st.Version != "7" || st.Error != "" {
			t.Fatalf("stateless %v: the server is %+v", stateless, st)
		}
		if n := g.reg.Set().Len(); n != 2500 {
			t.Fatalf("stateless %v: %d tools", stateless, n)
		}
		if res := g.call(t, "mcp.web.get_2499", `{}`); res.JoinText() != "get_2499" {
			t.Errorf("stateless %v: the last tool says %+v", stateless, res)
		}
		g.ups.Close()
	}
}

func TestListChanges(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		s := sdkServer(func(s *mcp.Server) { nopTool(s, "get_a"); nopTool(s, "get_b") })
		g := open(t, serveHTTP(t, s, stateless))
		kept, _ := g.reg.Set().Lookup("mcp.web.get_b")
		nopTool(s, "get_c")
		s.RemoveTools("get_a")
		g.until(t, func(set *tool.Set) bool {
			_, a := set.Lookup("mcp.web.get_a")
			_, c := set.Lookup("mcp.web.get_c")
			return !a && c
		})
		if now, _ := g.reg.Set().Lookup("mcp.web.get_b"); now != kept || kept == nil {
			t.Errorf("stateless %v: a tool that stayed is not the same", stateless)
		}
		g.ups.Close()
	}
}

// strange is a schema that no decoding into Go values brings back.
const strange = `{"type":"object","zeta":1,"properties":{"z":{"$ref":"#/$defs/d"},"a":{"oneOf":[{"const":12345678901234567890},{"type":"string","x-vendor":{"b":1,"a":[1.50,1E+2]}}]}},"$defs":{"d":{"type":"integer","maximum":123456789012345678901234567890}},"additionalProperties":false,"$comment":"<&>"}`

func TestSchemasPassUnchanged(t *testing.T) {
	add := func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "get_strange", InputSchema: json.RawMessage(strange), OutputSchema: json.RawMessage(strange)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}},
					StructuredContent: json.RawMessage(`{"z":12345678901234567890}`)}, nil
			})
	}
	for _, stateless := range []bool{false, true} {
		g := open(t, serveHTTP(t, sdkServer(add), stateless))
		tl, ok := g.reg.Set().Lookup("mcp.web.get_strange")
		if !ok {
			t.Fatalf("no tool; %+v", g.ups.Status())
		}
		if got := tl.Input.String(); got != strange {
			t.Errorf("the schema came as\n%s\nnot as\n%s", got, strange)
		}
		if got := tl.Output.String(); got != strange {
			t.Errorf("the output schema came as\n%s", got)
		}
		// And so it goes out again, to our own clients.
		h := newHouse(t, nil, tl)
		_, listed, _ := post(t, h.http(t, "direct").URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if !strings.Contains(listed, `"inputSchema":`+strange) || !strings.Contains(listed, `"outputSchema":`+strange) {
			t.Errorf("it is listed as\n%s", listed)
		}
		res := g.call(t, "mcp.web.get_strange", `{"a":12345678901234567890}`)
		if res.JoinText() != `{"a":12345678901234567890}` || string(res.Structured) != `{"z":12345678901234567890}` {
			t.Errorf("the call came back as %s, %s", res.JoinText(), res.Structured)
		}
		g.ups.Close()
	}
}

// child serves over stdin and stdout in one of several ways.
func child(kind string) {
	if script := hostiles[kind]; script != nil {
		script.serve(os.Stdin, os.Stdout)
		if kind == "family" {
			select {} // it does not end with its input either
		}
		return
	}
	s := sdkServer(nil)
	switch kind {
	case "env":
		s.AddTool(&mcp.Tool{Name: "get_env", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(os.Environ(), "\n")}}}, nil
			})
	case "crash":
		nopTool(s, "get_pid")
		s.AddTool(&mcp.Tool{Name: "pid", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(os.Getpid())}}}, nil
			})
		s.AddTool(&mcp.Tool{Name: "crash", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				fmt.Fprintln(os.Stderr, "I \x1b[31mdie\x1b[0m")
				os.Exit(3)
				return nil, nil
			})
	case "serve":
		serveHouse()
		return
	case "hold":
		hold(os.Getenv("HELVE_TEST_ROLE"))
		return
	case "helve":
		actAsHelve()
		return
	case "matrix":
		s = matrixChild()
	case "counted":
		counted(s)
	case "silent":
		io.Copy(io.Discard, os.Stdin)
		return
	case "refuses":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(9)
	}
	s.Run(context.Background(), &mcp.StdioTransport{})
}

func TestCrashAndReturn(t *testing.T) {
	g := open(t, self("crash"))
	if st := g.status(t); st.State != mcpbridge.Started || st.Tools != 3 {
		t.Fatalf("the server is %+v", st)
	}
	first := g.call(t, "mcp.kid.pid", `{}`).JoinText()
	res := g.call(t, "mcp.kid.crash", `{}`)
	if res.Err == nil || res.Err.Code != tool.CodeExternal || !res.Err.Retryable || !strings.Contains(res.Err.Message, "exit status 3") || !strings.Contains(res.Err.Message, "I die") {
		t.Errorf("the crash is answered with %+v", res.Err)
	}
	if n := g.reg.Set().Len(); n != 3 {
		t.Errorf("%d tools stay listed", n)
	}
	// The next call starts the server at once.
	second := g.call(t, "mcp.kid.pid", `{}`)
	if second.Err != nil || second.JoinText() == first || second.JoinText() == "" {
		t.Errorf("after the crash: %q, before: %q, error %v", second.JoinText(), first, second.Err)
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	silent := self("silent")
	silent.StartTimeout = 300 * time.Millisecond
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ill" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/mum" {
			w.Header()["Content-Type"] = nil
		}
		io.WriteString(w, "<p>Hello")
	}))
	defer web.Close()
	g := open(t, mcpbridge.Upstream{Name: "none", Command: "no-such-command-at-all"},
		rename(self("refuses"), "refuses"), rename(silent, "silent"),
		mcpbridge.Upstream{Name: "off", Command: "x", Disabled: true}, mcpbridge.Upstream{Name: "bad name", Command: "x"},
		mcpbridge.Upstream{Name: "both", Command: "x", URL: "http://x"}, mcpbridge.Upstream{Name: "off", URL: "http://127.0.0.1:1"},
		mcpbridge.Upstream{Name: "homeless", Command: "go", Cwd: "/no/such/folder"},
		mcpbridge.Upstream{Name: "mum", URL: web.URL + "/mum"},
		mcpbridge.Upstream{Name: "away", URL: "http://127.0.0.1:1"},
		mcpbridge.Upstream{Name: "page", URL: web.URL}, mcpbridge.Upstream{Name: "ill", URL: web.URL + "/ill"})
	want := map[string]string{
		"none": "failed no-such-command-at-all", "refuses": "failed no licence", "silent": "failed not ready within 300ms",
		"off": "stopped another", "bad name": "stopped letters, digits", "both": "stopped both", "away": "failed refused",
		"homeless": "failed its folder (cwd) /no/such/folder is not there", "mum": "failed what answers at the url does not say what it sends",
		"page": "failed what answers at the url sends text/html, which no MCP server does: is the url right?", "ill": "failed it answers with HTTP status 500 Internal Server Error",
	}
	for _, st := range g.ups.Status() {
		state, part, _ := strings.Cut(want[st.Name], " ")
		if string(st.State) != state || !strings.Contains(st.Error, part) && st.Error != "" {
			t.Errorf("%s is %s: %s; want %s: …%s…", st.Name, st.State, st.Error, state, part)
		}
	}
}

func rename(u mcpbridge.Upstream, name string) mcpbridge.Upstream {
	u.Name = name
	return u
}

func TestModuleWithoutServers(t *testing.T) {
	var none *mcpbridge.Upstreams
	for _, u := range []*mcpbridge.Upstreams{none, mcpbridge.OpenUpstreams(t.Context(), nil, mcpbridge.UpstreamOptions{})} {
		tools, err := u.Module().Describe(t.Context())
		if err != nil || len(tools) != 6 {
			t.Fatalf("%d tools, %v", len(tools), err)
		}
		ts, err := u.Module().Open(t.Context(), seesAll, nil)
		if err != nil {
			t.Fatal(err)
		}
		reg := &tool.Registry{}
		if err := reg.Add(ts.Tools...); err != nil {
			t.Fatal(err)
		}
		run := pipeline.New(reg)
		for _, tl := range ts.Tools {
			args := json.RawMessage(`{}`)
			if len(tl.Input.Example()) > 0 {
				args = tl.Input.Example()
			}
			res, err := run.Do(t.Context(), &tool.Call{Name: tl.Name, Args: args})
			if err != nil {
				t.Fatal(err)
			}
			if needs := strings.Contains(string(args), "server"); needs != (res.Err != nil) {
				t.Errorf("%s(%s): %s, %v", tl.Name, args, res.JoinText(), res.Err)
			}
		}
		u.Wait(t.Context())
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestArgumentsInHeaders(t *testing.T) {
	got := make(chan string, 1)
	s := sdkServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "get_row", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
			`"at":{"type":"object","properties":{"line":{"type":"integer","x-mcp-header":"Line"}}},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}`)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				h := r.GetExtra().Header
				got <- strings.Join([]string{h.Get("Mcp-Method"), h.Get("Mcp-Name"), h.Get("Mcp-Param-Region"), h.Get("Mcp-Param-Line"), h.Get("Mcp-Param-Dry")}, " ")
				return &mcp.CallToolResult{}, nil
			})
	})
	g := open(t, serveHTTP(t, s, true))
	for args, want := range map[string]string{ // the library's server compares them with the arguments
		`{"region":"eu west","at":{"line":42},"dry":true}`: "tools/call get_row eu west 42 true",
		`{"region":"Zürich"}`:                              "tools/call get_row =?base64?WsO8cmljaA==?=  ",
		`{"region":"=?base64?x?="}`:                        "tools/call get_row =?base64?PT9iYXNlNjQ/eD89?=  ",
		`{}`:                                               "tools/call get_row   ",
	} {
		if res := g.call(t, "mcp.web.get_row", args); res.Err != nil {
			t.Errorf("%s: %v", args, res.Err)
		} else if sent := <-got; sent != want {
			t.Errorf("%s went with %q, not %q", args, sent, want)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer(nil) }, nil))
	ups := mcpbridge.OpenUpstreams(t.Context(), []mcpbridge.Upstream{self("crash"), rename(self("refuses"), "refuses"),
		{Name: "web", URL: web.URL}, {Name: "away", URL: "http://127.0.0.1:1"}}, mcpbridge.UpstreamOptions{})
	ups.Wait(t.Context())
	if err := ups.Close(); err != nil {
		t.Error(err)
	}
	for _, st := range ups.Status() {
		if st.State != mcpbridge.Stopped {
			t.Errorf("%s is %s", st.Name, st.State)
		}
	}
	web.Close()
	http.DefaultClient.CloseIdleConnections()
}

func TestServerForgetsItsSessions(t *testing.T) {
	var now atomic.Pointer[http.Handler]
	fresh := func(name string) {
		var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
			return sdkServer(func(s *mcp.Server) { nopTool(s, "get_same"); nopTool(s, name) })
		}, nil)
		now.Store(&h)
	}
	fresh("get_old")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	g := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL})
	g.ok(t, "mcp.web.get_same", `{}`, "get_same")
	fresh("get_new")
	web.CloseClientConnections() // as a restart does
	lost := g.call(t, "mcp.web.get_same", `{}`)
	if lost.Err != nil && (lost.Err.Code != tool.CodeExternal || !lost.Err.Retryable) {
		t.Errorf("the first call after the restart: %+v", lost.Err)
	}
	g.ok(t, "mcp.web.get_same", `{}`, "get_same")
	g.until(t, func(set *tool.Set) bool {
		_, old := set.Lookup("mcp.web.get_old")
		_, new := set.Lookup("mcp.web.get_new")
		return new && !old
	})
}
