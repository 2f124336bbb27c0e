package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
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

// A gate is where a slow tool waits to be told its answer.
type gate struct{ net.Listener }

func newGate(t testing.TB) gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return gate{l}
}

// called waits until the tool has been called, and returns what lets it answer.
func (g gate) called(t testing.TB) (answer func(string)) {
	t.Helper()
	conn, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) {
		fmt.Fprint(conn, text)
		conn.Close()
	}
}

// slowly begins a call of the slow tool and returns what will be its answer.
func slowly(t testing.TB, s *mcp.ClientSession) <-chan string {
	got := make(chan string, 1)
	go func() {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp.kid.get_slow"})
		if err != nil {
			got <- "error: " + err.Error()
			return
		}
		got <- replyOf(res).Text
	}()
	return got
}

func TestTermDrains(t *testing.T) {
	needsUnix(t)
	g := newGate(t)
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": child(t, "slow="+g.Addr().String())}))
	t.Run("http", func(t *testing.T) {
		d := serve(t, dir, "--app", "app.yaml")
		got := slowly(t, d.connect(t, "/mcp"))
		answer := g.called(t)
		if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		// The daemon has heard the signal when it begins no more sessions.
		eventually(t, func() bool {
			resp, err := http.Post(d.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
			if err == nil {
				resp.Body.Close()
			}
			return err != nil || resp.StatusCode >= 500
		})
		answer("slow but sure")
		if text := <-got; text != "slow but sure" {
			t.Errorf("the call under way was answered with %q", text)
		}
		d.wait()
		if code := d.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d\n%s", code, d.errs.String())
		}
	})
	t.Run("stdio", func(t *testing.T) {
		cmd := exec.Command(raced, "mcp", "--app", "app.yaml")
		cmd.Dir, cmd.Env = dir, environ()
		errs := new(buffer)
		cmd.Stderr = errs
		ended := make(chan int, 1)
		s, err := newClient(nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := slowly(t, s)
		answer := g.called(t)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		answer("slow but sure")
		if text := <-got; text != "slow but sure" {
			t.Errorf("the call under way was answered with %q\n%s", text, errs)
		}
		go func() {
			s.Wait()
			s.Close()
			ended <- cmd.ProcessState.ExitCode()
		}()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, errs)
		}
	})
	lines := audited(t, dir, "--app", "app.yaml", "--tool", "*get_slow")
	if len(lines) != 2 || lines[0].Error != "" || lines[1].Error != "" {
		t.Errorf("on record: %+v", lines)
	}
	verified(t, dir)
}

// Every call that was answered is on record, whenever the daemon is killed.
func TestKillLosesNothing(t *testing.T) {
	needsUnix(t)
	dir := folder(t, "a.txt", "hello")
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	const rounds, callers = 6, 3
	for round := range rounds {
		d := serve(t, dir)
		enough, quota := make(chan struct{}), 1+rand.IntN(60)
		var calls sync.WaitGroup
		for caller := range callers {
			calls.Go(func() {
				for i := 0; ; i++ {
					mark := fmt.Sprintf("r%d-c%d-i%d.txt", round, caller, i)
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.stat","arguments":{"path":%q}}}`, mark)
					req, _ := http.NewRequest(http.MethodPost, d.URL+"/mcp", strings.NewReader(body))
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Accept", "application/json, text/event-stream")
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						return
					}
					var answer bytes.Buffer
					_, err = answer.ReadFrom(resp.Body)
					resp.Body.Close()
					if err != nil || !strings.Contains(answer.String(), `"result"`) {
						return
					}
					mu.Lock()
					acknowledged[mark] = true
					if quota--; quota == 0 {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		if err := d.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		d.wait()
		calls.Wait()
	}
	recorded := map[string]bool{}
	for _, l := range audited(t, dir, "--tool", "filesystem.stat") {
		var args struct{ Path string }
		if err := json.Unmarshal(l.Args, &args); err != nil {
			t.Fatal(err)
		}
		recorded[args.Path] = true
	}
	for mark := range acknowledged {
		if !recorded[mark] {
			t.Errorf("the call with %s was answered and is not on record", mark)
		}
	}
	verified(t, dir)
	// A helve that is started afterwards goes on with the chain.
	must(t, dir, "tools", "call", "filesystem.read", `{"path":"a.txt"}`)
	verified(t, dir)
}

func TestProcessesShareOneChain(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	d := serve(t, dir)
	clients := []*mcp.ClientSession{d.connect(t, "/mcp"), stdio(t, dir), stdio(t, dir), serve(t, dir).connect(t, "/mcp/full")}
	const each = 40
	var all sync.WaitGroup
	for i, s := range clients {
		all.Go(func() {
			for n := range each {
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "filesystem.stat", Arguments: object{"path": fmt.Sprintf("%d-%d", i, n)}})
				if err != nil || replyOf(res).Code != "runtime_error" {
					t.Errorf("client %d, call %d: %v %+v", i, n, err, res)
					return
				}
			}
		})
	}
	for range 4 {
		must(t, dir, "tools", "call", "filesystem.read", `{"path":"a.txt"}`)
	}
	all.Wait()
	lines := audited(t, dir)
	if len(lines) != each*len(clients)+4 {
		t.Errorf("%d lines on record, want %d", len(lines), each*len(clients)+4)
	}
	for i, l := range lines {
		if l.Seq != uint64(i+1) {
			t.Fatalf("line %d has the number %d", i+1, l.Seq)
		}
	}
	verified(t, dir)
}

// granted is an app in which files may be written.
const granted = `
app: {app_id: writer, name: Writer}
tools:
  capabilities:
    grant: [filesystem.*]
`

func TestAuditThatCannotBeWritten(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", granted)
	d := serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp")
	if got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "one"}); got.IsError {
		t.Fatalf("at first: %+v", got)
	}
	auditDir := filepath.Join(dir, ".helve", "audit")
	if err := os.Rename(auditDir, filepath.Join(dir, ".helve", "away")); err != nil {
		t.Fatal(err)
	}
	write(t, auditDir, "a file where the folder was")
	// The log looks once a second whether its folder is still there.
	eventually(t, func() bool {
		return strings.Contains(call(t, s, "filesystem.read", object{"path": "a.txt"}).Text, "withheld")
	})
	got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "two"})
	if !got.IsError || got.Code != "runtime_error" || !strings.Contains(got.Text, "audit") {
		t.Errorf("a write without an audit: %+v", got)
	}
	if now := read(t, filepath.Join(dir, "b.txt")); now != "one" {
		t.Errorf("the write took place: %q", now)
	}
	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); !got.IsError || !strings.Contains(got.Text, "audit") || strings.Contains(got.Text, "hello") {
		t.Errorf("a read without an audit: %+v", got)
	}
	if got := call(t, s, "run_parallel", object{"actions": []any{object{"name": "filesystem.write", "params": object{"path": "b.txt", "content": "three"}}}}); !strings.Contains(got.Text, "audit") {
		t.Errorf("a write by run_parallel: %+v", got)
	}
	_, errs, code := run(t, dir, "", "tools", "call", "filesystem.write", `{"path":"b.txt","content":"four"}`, "--app", "app.yaml")
	if code == 0 || !strings.Contains(errs, "audit") {
		t.Errorf("helve tools call: exit code %d: %s", code, errs)
	}
	if now := read(t, filepath.Join(dir, "b.txt")); now != "one" {
		t.Errorf("a write took place: %q", now)
	}
	if names(t, s); call(t, s, "search_tools", object{"query": "read"}).Code == "" {
		t.Error("a search went without a record")
	}
	// When the folder is back, so are the tools.
	if err := os.Remove(auditDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, ".helve", "away"), auditDir); err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "five"}); got.IsError {
		t.Errorf("after the folder is back: %+v", got)
	}
	verified(t, dir)
}
