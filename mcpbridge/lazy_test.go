package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/tool"
)

// counted is a server that writes down that it was started, and then is as
// its environment says.
func counted(s *mcp.Server) {
	if f, err := os.OpenFile(os.Getenv("HELVE_TEST_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	dialHome("server")
	if why := os.Getenv("HELVE_TEST_REFUSAL"); why != "" {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(9)
	}
	for _, name := range strings.Split(os.Getenv("HELVE_TEST_TOOLS"), ",") {
		nopTool(s, name)
	}
	for _, name := range strings.Fields(os.Getenv("HELVE_TEST_OFFERS")) {
		addResource(s, "counted", name+"://one")
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: name + "://{id}"}, reads("counted"))
		s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "of " + name}, nil
		})
	}
	s.AddTool(&mcp.Tool{Name: "get_slowly", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if conn := dialHome("call"); conn != nil {
				conn.Read(make([]byte, 1)) // until the test says so
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "at last"}}}, nil
		})
}

// dialHome opens a connection to the test, which ends with this process.
func dialHome(role string) net.Conn {
	addr := os.Getenv("HELVE_TEST_ADDR")
	if addr == "" {
		return nil
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	fmt.Fprintf(conn, "%-15s\n", role)
	calls = append(calls, conn)
	return conn
}

var calls []net.Conn // keeps them from being closed as garbage

// A home is where the processes of a test call.
type home struct{ net.Listener }

func newHome(t testing.TB) *home {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &home{l}
}

// await returns the connection of the next process that calls, and its role.
func (h *home) await(t testing.TB) (string, net.Conn) {
	t.Helper()
	h.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second))
	conn, err := h.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	role := make([]byte, 16)
	if _, err := conn.Read(role); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(role)), conn
}

// gone waits for the end of the process behind a connection.
func gone(t testing.TB, who string, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); os.IsTimeout(err) {
		t.Errorf("the %s lives on", who)
	}
}

// A lazy house has one counted server, or more, and a store.
type lazy struct {
	log   string // a line for each start
	store store.Store
	said  *lockedBuffer
	ups   []mcpbridge.Upstream
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func newLazy(t testing.TB, tools string) *lazy {
	l := &lazy{log: filepath.Join(t.TempDir(), "starts"), store: new(mem.Store), said: new(lockedBuffer)}
	up := self("counted")
	up.Env["HELVE_TEST_LOG"], up.Env["HELVE_TEST_TOOLS"], up.Env["HELVE_TEST_REFUSAL"] = l.log, tools, ""
	l.ups = []mcpbridge.Upstream{up}
	return l
}

func (l *lazy) starts() int {
	data, _ := os.ReadFile(l.log) // there is none before the first
	return bytes.Count(data, []byte("\n"))
}

func (l *lazy) open(t testing.TB) *guest {
	g := &guest{}
	g.run = pipeline.New(&g.reg)
	g.ups = mcpbridge.OpenUpstreams(t.Context(), l.ups, mcpbridge.UpstreamOptions{Publish: g.reg.Replace, Root: "/", Version: "test",
		Store: l.store, Log: slog.New(slog.NewTextHandler(l.said, nil))})
	t.Cleanup(func() { g.ups.Close() })
	g.ups.Wait(t.Context())
	return g
}

// learn opens and closes, so that the store knows the tools.
func (l *lazy) learn(t testing.TB) {
	t.Helper()
	g := l.open(t)
	if st := g.status(t); st.State != mcpbridge.Started {
		t.Fatalf("the server is %+v", st)
	}
	g.ups.Close()
}

// kept returns what the store holds.
func (l *lazy) kept(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	if err := l.store.View(t.Context(), func(r store.Reader) error {
		for key, data := range r.Scan("manifests", "") {
			all[key] = data
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFirstCallStartsTheServer(t *testing.T) {
	l := newLazy(t, "get_a,get_b")
	l.learn(t)
	g := l.open(t)
	st := g.status(t)
	if st.State != mcpbridge.Known || st.Tools != 3 || st.Server != "theirs" || st.Version != "7" || st.Protocol == "" {
		t.Fatalf("the server is %+v", st)
	}
	if err := g.reg.Add(g.moduleTools(t)...); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mcp.list_resources", "mcp.list_prompts", "mcp.list_servers", "mcp.health"} { // it has none, and that is known
		if res := g.call(t, name, `{}`); res.Err != nil || !strings.Contains(res.JoinText(), "kid") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	before, ok := g.reg.Set().Lookup("mcp.kid.get_a")
	if !ok || l.starts() != 1 {
		t.Fatalf("get_a is known: %v; %d starts", ok, l.starts())
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if res := g.call(t, "mcp.kid.get_a", `{}`); res.JoinText() != "get_a" {
				t.Errorf("%+v", res)
			}
		})
	}
	all.Wait()
	if n := l.starts(); n != 2 {
		t.Errorf("100 first calls at once: %d starts in all, not 2", n)
	}
	if after, _ := g.reg.Set().Lookup("mcp.kid.get_a"); after != before {
		t.Error("a tool that did not change is not the same after the start")
	}
	if st := g.status(t); st.State != mcpbridge.Started {
		t.Errorf("after the calls: %+v", st)
	}
}

// moduleTools returns the tools of the module mcp.
func (g *guest) moduleTools(t testing.TB) []*tool.Tool {
	ts, err := g.ups.Module().Open(t.Context(), seesAll, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ts.Tools
}

func TestStartBringsTheNewTools(t *testing.T) {
	l := newLazy(t, "get_a,get_b")
	l.learn(t)
	l.ups[0].Env["HELVE_TEST_TOOLS"] = "get_a,get_c" // the value of a variable is no part of the identity
	g := l.open(t)
	a, _ := g.reg.Set().Lookup("mcp.kid.get_a")
	if g.call(t, "mcp.kid.get_a", `{}`).Err != nil {
		t.Fatalf("%+v", g.status(t))
	}
	set := g.reg.Set()
	now, _ := set.Lookup("mcp.kid.get_a")
	_, b := set.Lookup("mcp.kid.get_b")
	_, c := set.Lookup("mcp.kid.get_c")
	if now != a || a == nil || b || !c {
		t.Errorf("same %v, get_b %v, get_c %v", now == a, b, c)
	}
	g.ups.Close()
	if g = l.open(t); g.reg.Set().Len() != 3 || g.status(t).State != mcpbridge.Known {
		t.Errorf("the store did not learn: %+v", g.status(t))
	}
	if _, c := g.reg.Set().Lookup("mcp.kid.get_c"); !c {
		t.Error("the store knows the former tools")
	}
}

func TestManifestOfAnotherConfiguration(t *testing.T) {
	changes := map[string]func(*mcpbridge.Upstream){
		"arguments": func(u *mcpbridge.Upstream) { u.Args = []string{"-other"} },
		"variables": func(u *mcpbridge.Upstream) { u.Env["ANOTHER"] = "x" },
		"folder":    func(u *mcpbridge.Upstream) { u.Cwd = os.TempDir() },
	}
	for what, change := range changes {
		l := newLazy(t, "get_a")
		l.learn(t)
		change(&l.ups[0])
		g := l.open(t)
		if st := g.status(t); st.State != mcpbridge.Started || l.starts() != 2 {
			t.Errorf("other %s: %s, %d starts", what, st.State, l.starts())
		}
		g.ups.Close()
		if g = l.open(t); g.status(t).State != mcpbridge.Known {
			t.Errorf("other %s: not kept: %+v", what, g.status(t))
		}
	}
}

func TestDamagedManifests(t *testing.T) {
	l := newLazy(t, "get_a")
	l.learn(t)
	good := l.kept(t)["kid"]
	line := bytes.IndexByte(good, '\n') + 1
	flipped := bytes.Clone(good)
	flipped[line+10] ^= 1
	for what, bad := range map[string][]byte{
		"empty": {}, "garbage": []byte("\x00\xff{"), "half": good[:len(good)/2], "flipped": flipped, "longer": append(bytes.Clone(good), "{}"...),
		"another format": bytes.Replace(good, []byte(`"format":1`), []byte(`"format":2`), 1), "header only": good[:line],
	} {
		l.said = new(lockedBuffer)
		before := l.starts()
		if err := l.store.Update(t.Context(), func(w store.Writer) error { return w.Put("manifests", "kid", bad) }); err != nil {
			t.Fatal(err)
		}
		g := l.open(t)
		if st := g.status(t); st.State != mcpbridge.Started || st.Tools != 2 || st.Error != "" || l.starts() != before+1 {
			t.Errorf("%s: %+v, %d starts", what, st, l.starts()-before)
		}
		if !strings.Contains(l.said.String(), "level=WARN msg=\"what the MCP server listed earlier cannot be used") {
			t.Errorf("%s: logged %s", what, l.said)
		}
		g.ups.Close()
		if g = l.open(t); g.status(t).State != mcpbridge.Known {
			t.Errorf("%s: it was not mended: %+v", what, g.status(t))
		}
		g.ups.Close()
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	l := newLazy(t, "get_a")
	l.ups[0].Args = []string{"--token", "s3cr3t-argument"}
	l.ups[0].Env["TOKEN"] = "s3cr3t-variable"
	web := serveHTTP(t, sdkServer(func(s *mcp.Server) { nopTool(s, "get_x") }), true)
	web.Headers = map[string]string{"Authorization": "Bearer s3cr3t-header"}
	web.URL += "/?key=s3cr3t-query"
	l.ups = append(l.ups, web)
	l.open(t).ups.Close()
	all := l.kept(t)
	if len(all) != 2 {
		t.Fatalf("%d manifests are kept; the log: %s", len(all), l.said)
	}
	for name, data := range all {
		if bytes.Contains(data, []byte("s3cr3t")) {
			t.Errorf("the manifest of %s holds a secret:\n%s", name, data)
		}
	}
}

func TestIdleServersStop(t *testing.T) {
	h := newHome(t)
	l := newLazy(t, "get_a")
	l.ups[0].IdleTimeout = 100 * time.Millisecond
	l.ups[0].Env["HELVE_TEST_ADDR"] = h.Addr().String()
	g := l.open(t)
	tools := g.reg.Set()
	_, conn := h.await(t)
	gone(t, "server that was only asked for its tools", conn)
	if res := g.call(t, "mcp.kid.get_a", `{}`); res.JoinText() != "get_a" {
		t.Fatalf("a call of the server that was stopped: %+v", res)
	}
	_, conn = h.await(t)

	// A call that takes longer than that is not cut short.
	done := make(chan *tool.Result, 1)
	go func() { done <- g.call(t, "mcp.kid.get_slowly", `{}`) }()
	role, slow := h.await(t)
	for role != "call" { // the server may have been stopped in between
		conn = slow
		role, slow = h.await(t)
	}
	if st := g.status(t); st.State != mcpbridge.InUse {
		t.Errorf("during a call: %+v", st)
	}
	conn.SetReadDeadline(time.Now().Add(400 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("the server was stopped during a call: %v", err)
	}
	slow.Write([]byte("\n"))
	if res := <-done; res.JoinText() != "at last" {
		t.Errorf("the slow call: %+v", res)
	}
	gone(t, "idle server", conn)
	if g.reg.Set() != tools {
		t.Error("stopping and starting changed the tools")
	}
	g.ups.Close()
	if strings.Contains(l.said.String(), "level=WARN") {
		t.Errorf("it is no failure: %s", l.said)
	}
}

func TestEagerServers(t *testing.T) {
	h := newHome(t)
	l := newLazy(t, "get_a")
	l.learn(t)
	l.ups[0].Eager = true
	l.ups[0].Env["HELVE_TEST_ADDR"] = h.Addr().String()
	l.learnAgain(t)
	g := l.open(t)
	if g.reg.Set().Len() != 2 {
		t.Errorf("%d tools are known at once", g.reg.Set().Len())
	}
	if role, _ := h.await(t); role != "server" {
		t.Errorf("%s called", role)
	}
}

// learnAgain is learn after a change that started the server anew.
func (l *lazy) learnAgain(t testing.TB) {
	addr := l.ups[0].Env["HELVE_TEST_ADDR"]
	l.ups[0].Env["HELVE_TEST_ADDR"] = ""
	l.open(t).ups.Close()
	l.ups[0].Env["HELVE_TEST_ADDR"] = addr
}

func TestCallsDuringBackoff(t *testing.T) {
	l := newLazy(t, "get_a")
	other := newLazy(t, "get_a").ups[0]
	other.Name = "sound"
	l.ups = append(l.ups, other)
	l.open(t).ups.Close()
	l.ups[0].Env["HELVE_TEST_REFUSAL"] = "I lost my licence"
	g := l.open(t)
	before := l.starts()
	for i := range 3 {
		res := g.call(t, "mcp.kid.get_a", `{}`)
		if res.Err == nil || res.Err.Code != tool.CodeExternal || !res.Err.Retryable || !strings.Contains(res.Err.Message, "I lost my licence") ||
			!strings.Contains(res.Err.Message, "the next attempt to start it can be made in 1s") {
			t.Errorf("call %d: %+v", i, res.Err)
		}
		g.ok(t, "mcp.sound.get_a", `{}`, "get_a")
	}
	if n := l.starts() - before; n != 1 {
		t.Errorf("three calls within the pause: %d starts", n)
	}
	for _, st := range g.ups.Status() {
		want := map[string]mcpbridge.State{"kid": mcpbridge.Failed, "sound": mcpbridge.Started}[st.Name]
		if st.State != want || st.Tools != 2 || (st.Error != "") != (want == mcpbridge.Failed) {
			t.Errorf("%+v", st)
		}
	}
}

// No tool is lost: all are found by their exact names after each start, also
// while every server connects anew.
func TestNoToolIsLost(t *testing.T) {
	const servers, tools = 10, 500
	starts := 20
	if testing.Short() || raceEnabled {
		starts = 3 // .ci/run runs this test without the race detector, too
	}
	f := newFarm(t, servers, tools, func(s *mcp.Server, i int) { nopTool(s, fmt.Sprintf("list_items_%05d", i)) })
	for n := range starts {
		fd := f.open(t, nil)
		f.web.CloseClientConnections()
		lost := 0
		for i, name := range f.names {
			if _, ok := fd.reg.Set().Lookup(name); !ok {
				lost++
			}
			if i%starts != n {
				continue // the search takes longer: each in one of the starts
			}
			if hits, err := fd.ix.Search(t.Context(), search.Query{Text: name, Limit: 1}); err != nil || len(hits) != 1 || hits[0].Tool.Name != name {
				lost++
			}
		}
		if lost > 0 || fd.ix.Len() != servers*tools {
			t.Errorf("start %d: %d tools are lost, %d are in the index; %+v", n, lost, fd.ix.Len(), fd.ups.Status())
		}
		fd.ups.Close()
	}
}
