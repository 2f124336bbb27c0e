package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A daemon is a helve serve that runs.
type daemon struct {
	cmd *exec.Cmd
	URL string // where it listens
	at  struct {
		URL, MCP, Root, State, App string
		Tools                      int
	}
	errs buffer
	wait func() error // for its end, once
}

// A buffer may be written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// serve starts helve serve in dir on a free port, and ends it with the test.
func serve(t testing.TB, dir string, args ...string) *daemon {
	t.Helper()
	return serveEnv(t, dir, nil, args...)
}

func serveEnv(t testing.TB, dir string, env []string, args ...string) *daemon {
	t.Helper()
	d := &daemon{cmd: exec.Command(raced, append([]string{"serve", "--json", "--addr", "127.0.0.1:0"}, args...)...)}
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr = dir, environ(env...), &d.errs
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.wait = sync.OnceValue(func() error {
		io.Copy(io.Discard, out)
		return d.cmd.Wait()
	})
	t.Cleanup(func() {
		if d.cmd.ProcessState == nil {
			d.cmd.Process.Kill()
			d.wait()
		}
		if t.Failed() {
			t.Logf("helve serve said:\n%s", d.errs.String())
		}
		if strings.Contains(d.errs.String(), "DATA RACE") {
			t.Errorf("a data race:\n%s", d.errs.String())
		}
	})
	if err := json.NewDecoder(out).Decode(&d.at); err != nil {
		t.Fatalf("helve serve announced nothing: %v\n%s", err, d.errs.String())
	}
	d.URL = d.at.URL
	return d
}

// stop sends SIGTERM and returns the exit code.
func (d *daemon) stop(t testing.TB) int {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.wait()
	return d.cmd.ProcessState.ExitCode()
}

// connect returns a client of the official library, connected over HTTP to a path.
func (d *daemon) connect(t testing.TB, path string) *mcp.ClientSession {
	t.Helper()
	s, err := dial(t, d.URL+path, nil)
	if err != nil {
		t.Fatalf("%s%s: %v", d.URL, path, err)
	}
	return s
}

func dial(t testing.TB, url string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	return dialVersion(t, url, "", o)
}

// dialVersion connects with one revision of the protocol; "": the newest.
func dialVersion(t testing.TB, url, version string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	s, err := newClient(o).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

func newClient(o *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, o)
}

// stdio starts helve mcp in dir with a client of the official library before it.
func stdio(t testing.TB, dir string, args ...string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(raced, append([]string{"mcp"}, args...)...)
	cmd.Dir, cmd.Env = dir, environ()
	errs := new(buffer)
	cmd.Stderr = errs
	s, err := newClient(nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("helve mcp: %v\n%s", err, errs)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("helve mcp said:\n%s", errs)
		}
	})
	return s
}

// names lists the tools that a client is shown, all pages of them.
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

// A reply is what a call gave: its text, and the code of its error.
type reply struct {
	Text, Code string
	IsError    bool
}

func call(t testing.TB, s *mcp.ClientSession, name string, args any) reply {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return replyOf(res)
}

func replyOf(res *mcp.CallToolResult) reply {
	var r reply
	var parts []string
	for _, c := range res.Content {
		if tc, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, tc.Text)
		}
	}
	r.Text, r.IsError = strings.Join(parts, "\n"), res.IsError
	if e, ok := res.Meta["helve/error"].(map[string]any); ok {
		r.Code, _ = e["code"].(string)
	}
	return r
}

type object = map[string]any

// post sends one JSON-RPC message over HTTP and returns the status and the
// message in the answer, undecoded.
func post(t testing.TB, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
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
	text := string(data)
	if _, rest, ok := strings.Cut(text, "data: "); ok {
		text, _, _ = strings.Cut(rest, "\n")
	}
	return resp.StatusCode, text, resp.Header
}

// A line is what the tests read of a line of the audit.
type line struct {
	Seq                                          uint64
	Tool, Kind, Session, User, Agent, App        string
	Call, Parent, Decision, Stage, Reason, Error string
	Approver                                     string
	Via                                          []string
	Args                                         json.RawMessage
}

// audited returns the calls on record, oldest first, by helve audit.
func audited(t testing.TB, dir string, args ...string) []line {
	t.Helper()
	var lines []line
	out := must(t, dir, append([]string{"audit", "--limit", "0", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &lines); err != nil {
		t.Fatalf("helve audit --json: %v\n%s", err, out)
	}
	return lines
}

// verified holds the audit to be clean.
func verified(t testing.TB, dir string, args ...string) {
	t.Helper()
	out, errs, code := run(t, dir, "", append([]string{"audit", "verify", "--json"}, args...)...)
	if code != 0 || !strings.Contains(out, `"ok": true`) {
		t.Errorf("helve audit verify: exit code %d\n%s%s", code, out, errs)
	}
}

func lookPath(t testing.TB, name string) string {
	t.Helper()
	exe, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func hardLink(t testing.TB, dir, old, name string) {
	t.Helper()
	if err := os.Link(filepath.Join(dir, old), filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, dir, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}
