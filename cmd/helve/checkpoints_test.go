package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// writing is an app in which everything may be changed.
const writing = `
app: {app_id: writer, name: Writer}
security: {sandbox: "off"}
tools:
  modules:
    filesystem: {}
    workspace: {}
    checkpoint: {}
    shell: {config: {profile: unrestricted}}
  capabilities:
    grant: [filesystem.*, workspace.*, checkpoint.*, shell.run]
`

// contents returns the files beneath dir, but for Helve's own.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		switch rel, _ := filepath.Rel(dir, file); {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".helve":
			return filepath.SkipDir
		case d.IsDir():
			out[rel] = "folder"
		default:
			data, err := os.ReadFile(file)
			out[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whichever way a write comes, it can be undone.
func TestUndoWhicheverWayItCame(t *testing.T) {
	dir := folder(t, "a.txt", "one", "gone/b.txt", "b", "app.yaml", writing)
	before := contents(t, dir)
	d := serve(t, dir, "--app", "app.yaml")
	overHTTP, discovering, overStdio := d.connect(t, "/mcp"), d.connect(t, "/mcp/discovery"), stdio(t, dir, "--app", "app.yaml")
	write := func(text string) object { return object{"path": "a.txt", "content": text} }
	through := func(s *mcp.ClientSession, name string, args object) func(*testing.T) {
		return func(t *testing.T) {
			if got := call(t, s, name, args); got.IsError || strings.Contains(got.Text, `"failed":1`) {
				t.Fatalf("%+v", got)
			}
		}
	}
	for _, entry := range []struct {
		name  string
		calls int // on record
		do    func(*testing.T)
	}{
		{"command line", 1, func(t *testing.T) {
			must(t, dir, "tools", "call", "filesystem.write", `{"path":"a.txt","content":"cli"}`, "--app", "app.yaml")
		}},
		{"http", 1, through(overHTTP, "filesystem.write", write("http"))},
		{"stdio", 1, through(overStdio, "filesystem.write", write("stdio"))},
		{"execute_tool", 1, through(discovering, "execute_tool", object{"name": "filesystem.write", "params": write("execute")})},
		{"run_parallel", 3, through(discovering, "run_parallel", object{"actions": []any{
			object{"name": "filesystem.write", "params": write("parallel")},
			object{"name": "filesystem.append", "params": object{"path": "a.txt", "content": " and more"}},
			object{"name": "execute_tool", "params": object{"name": "filesystem.delete", "params": object{"path": "gone", "recursive": true}}},
		}})},
		{"an artifact", 1, through(overHTTP, "workspace.write_artifact", object{"path": "deep/r.md", "content": "r"})},
		{"a tree that moves", 1, through(overStdio, "filesystem.move", object{"from": "gone", "to": "x/y"})},
		{"a command over http", 1, through(overHTTP, "shell.run", object{"profile": "unrestricted", "cmd": "rm a.txt; mkdir m; echo x >gone/more"})},
		{"a command", 1, func(t *testing.T) {
			must(t, dir, "tools", "call", "shell.run", `{"profile":"unrestricted","cmd":"echo two >a.txt; rm -r gone; mkdir -p m/n; echo x >m/n/made; chmod 600 a.txt"}`, "--app", "app.yaml")
		}},
	} {
		t.Run(entry.name, func(t *testing.T) {
			entry.do(t)
			if maps.Equal(contents(t, dir), before) {
				t.Fatal("nothing was changed")
			}
			var plan struct{ Calls []struct{ ID int64 } }
			out := must(t, dir, "undo", fmt.Sprint(entry.calls), "--dry-run", "--json", "--app", "app.yaml")
			if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Calls) < entry.calls {
				t.Errorf("%v: %s", err, out)
			}
			must(t, dir, "undo", fmt.Sprint(entry.calls), "--yes", "--app", "app.yaml")
			if got := contents(t, dir); !maps.Equal(got, before) {
				t.Errorf("after the undoing: %v, want %v", got, before)
			}
		})
	}
	if info, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode of a.txt: %v, %v", info.Mode(), err)
	}
	// Reads leave no checkpoint, and neither does what only passes them on.
	all := must(t, dir, "checkpoints", "--json", "--app", "app.yaml", "--limit", "0")
	call(t, discovering, "execute_tool", object{"name": "filesystem.read", "params": object{"path": "a.txt"}})
	must(t, dir, "tools", "call", "shell.run", `{"cmd":"cat a.txt"}`, "--app", "app.yaml")
	if again := must(t, dir, "checkpoints", "--json", "--app", "app.yaml", "--limit", "0"); again != all {
		t.Errorf("after reads there are other checkpoints:\n%s", again)
	}
	verified(t, dir, "--app", "app.yaml")
}

// However often the daemon is killed while it writes, every file is as before
// or as after a write, every acknowledged write has its checkpoint, and taking
// all of them back gives what was there at first.
func TestKillWhileWriting(t *testing.T) {
	needsUnix(t)
	files := []string{"a.txt", "b.txt", "d/c.txt"}
	dir := folder(t, "a.txt", "first a", "b.txt", "first b", "app.yaml", writing)
	before := contents(t, dir)
	var mu sync.Mutex
	sent, acknowledged := map[string]bool{"first a": true, "first b": true}, 0
	const rounds, callers = 8, 3
	for round := range rounds {
		d := serve(t, dir, "--app", "app.yaml")
		enough, quota := make(chan struct{}), 1+rand.IntN(25)
		var calls sync.WaitGroup
		for caller := range callers {
			calls.Go(func() {
				for i := 0; ; i++ {
					text := fmt.Sprintf("r%d-c%d-i%d", round, caller, i)
					mu.Lock()
					sent[text] = true
					mu.Unlock()
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.write","arguments":{"path":%q,"content":%q}}}`, files[(caller+i)%len(files)], text)
					if !posted(d.URL, body) {
						return
					}
					mu.Lock()
					acknowledged++
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
		for _, f := range files {
			if data, err := os.ReadFile(filepath.Join(dir, f)); err == nil && !sent[string(data)] {
				t.Fatalf("%s holds %q, which nobody wrote", f, data)
			}
		}
	}
	var all []struct{ ID int64 }
	if err := json.Unmarshal([]byte(must(t, dir, "checkpoints", "--json", "--limit", "0", "--app", "app.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < acknowledged {
		t.Errorf("%d writes were acknowledged, and there are %d checkpoints", acknowledged, len(all))
	}
	must(t, dir, "checkpoints", "prune", "--app", "app.yaml") // what was left behind goes, what is needed stays
	last := all[len(all)-1].ID
	must(t, dir, "checkpoints", "restore", fmt.Sprint(last), "--since", "--yes", "--app", "app.yaml")
	got := contents(t, dir)
	// What a killed process was writing stays beside its place, hidden from all tools.
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(filepath.Base(name), ".helve-tmp-") })
	if !maps.Equal(got, before) {
		t.Errorf("after all was taken back: %v, want %v", got, before)
	}
	verified(t, dir, "--app", "app.yaml")
	if left, _ := filepath.Glob(filepath.Join(dir, ".helve", "checkpoints", "*", "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if hidden, _ := filepath.Glob(filepath.Join(dir, ".helve-tmp-*")); slices.ContainsFunc(hidden, exists) && len(hidden) > rounds*callers {
		t.Errorf("hidden files: %v", hidden)
	}
}

// posted sends a request and reports whether it was answered with a success.
func posted(url, body string) bool {
	req, _ := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var answer strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		answer.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return strings.Contains(answer.String(), `"result"`) && !strings.Contains(answer.String(), `"isError":true`)
}
