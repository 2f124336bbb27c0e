package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// by are the ways to have one call made; each returns the code of its error.
var by = map[string]func(testing.TB, *mcp.ClientSession, string, object) string{
	"direct": func(t testing.TB, s *mcp.ClientSession, name string, args object) string {
		return call(t, s, name, args).Code
	},
	"execute_tool": func(t testing.TB, s *mcp.ClientSession, name string, args object) string {
		return call(t, s, "execute_tool", object{"name": name, "params": args}).Code
	},
	"run_parallel": func(t testing.TB, s *mcp.ClientSession, name string, args object) string {
		got := call(t, s, "run_parallel", object{"actions": []any{object{"name": name, "params": args}}})
		if strings.Contains(got.Text, `"success":true`) {
			return ""
		}
		return member(t, got)
	},
	"execute_tool of run_parallel": func(t testing.TB, s *mcp.ClientSession, name string, args object) string {
		got := call(t, s, "execute_tool", object{"name": "run_parallel", "params": object{"actions": []any{object{"name": name, "params": args}}}})
		if strings.Contains(got.Text, `"success":true`) {
			return ""
		}
		return member(t, got)
	},
}

const limitedApp = `app: {app_id: lim, name: Lim}
runtime:
  repetition: {callers: all}
tools:
  capabilities:
    rate_limits:
      filesystem.read: {calls: 2, window: 3600}
      filesystem.stat: {calls: 2, window: 3600, per: session}
`

// Whichever way a call comes, its target is what is counted.
func TestRateLimitsThroughEveryEntry(t *testing.T) {
	for way, try := range by {
		t.Run(way, func(t *testing.T) {
			dir := folder(t, "a.txt", "hello", "app.yaml", limitedApp)
			http := serve(t, dir, "--app", "app.yaml").connect(t, "/mcp")
			local := stdio(t, dir, "--app", "app.yaml")
			read := func(n int) object { return object{"path": "a.txt", "limit": n} }
			for i, s := range []*mcp.ClientSession{http, local} {
				if code := try(t, s, "filesystem.read", read(i+1)); code != "" {
					t.Errorf("call %d: %s", i+1, code)
				}
			}
			for _, s := range []*mcp.ClientSession{http, local} { // two processes, one limit
				if code := try(t, s, "filesystem.read", read(3)); code != "rate_limited" {
					t.Errorf("beyond the limit: %q", code)
				}
				for i, want := range []string{"", "", "rate_limited"} {
					if code := try(t, s, "filesystem.stat", object{"path": []string{"a.txt", ".", "app.yaml"}[i]}); code != want {
						t.Errorf("call %d of the session: %q, want %q", i+1, code, want)
					}
				}
			}
			_, errs, exit := run(t, dir, "", "tools", "call", "filesystem.read", `{"path":"a.txt"}`, "--app", "app.yaml")
			if exit != 3 || !strings.Contains(errs, "rate_limited: filesystem.read may be called 2 times in 1h0m0s; wait 3") {
				t.Errorf("helve tools call: exit code %d, %s", exit, errs)
			}
			verified(t, dir, "--app", "app.yaml")
		})
	}
}

// However many processes call at once, the limit holds for all of them.
func exactlySo(t *testing.T, store string) {
	dir := folder(t, "a.txt", "hello", "app.yaml", "app: {app_id: lim, name: Lim}\ntools: {capabilities: {rate_limits: {filesystem.read: {calls: 13, window: 3600}}}}\n")
	var ran, refused atomic.Int32
	var all sync.WaitGroup
	for range 2 {
		s := serve(t, dir, "--app", "app.yaml", "--store", store).connect(t, "/mcp")
		for i := range 20 {
			all.Go(func() {
				switch got := call(t, s, "filesystem.read", object{"path": "a.txt", "limit": i + 1}); got.Code {
				case "":
					ran.Add(1)
				case "rate_limited":
					refused.Add(1)
				default:
					t.Errorf("%+v", got)
				}
			})
		}
	}
	all.Wait()
	if ran.Load() != 13 || refused.Load() != 27 {
		t.Errorf("%d ran and %d were refused", ran.Load(), refused.Load())
	}
}

func TestRateLimitsOfTwoProcesses(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { exactlySo(t, "") })
	t.Run("postgres", func(t *testing.T) { exactlySo(t, postgresPlace(t)) })
}

// Wrapping a call, renaming it or writing its arguments otherwise does not make
// it another.
func TestRepetitionThroughEveryEntry(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", limitedApp)
	d := serve(t, dir, "--app", "app.yaml")
	for name, s := range map[string]*mcp.ClientSession{"http": d.connect(t, "/mcp"), "stdio": stdio(t, dir, "--app", "app.yaml")} {
		t.Run(name, func(t *testing.T) {
			args := object{"path": ".", "depth": 1}
			for i, way := range []string{"direct", "execute_tool", "run_parallel", "execute_tool of run_parallel", "direct"} {
				want := ""
				if i >= 2 {
					want = "repetition"
				}
				if code := by[way](t, s, "filesystem.list", args); code != want {
					t.Errorf("call %d, by %s: %q, want %q", i+1, way, code, want)
				}
			}
			if got := call(t, s, "filesystem__list", object{"depth": 1.0, "path": "."}); got.Code != "repetition" || !strings.Contains(got.Text, "try another tool") {
				t.Errorf("in another writing: %+v", got)
			}
			for i, query := range []string{"delete a file now", "delete a file", "now delete a file"} {
				if got := call(t, s, "search_tools", object{"query": query}); (got.Code == "repetition") != (i == 2) {
					t.Errorf("search %d: %+v", i+1, got)
				}
			}
		})
	}
	// A command is a session of its own.
	for range 4 {
		must(t, dir, "tools", "call", "filesystem.list", `{"path":"."}`, "--app", "app.yaml")
	}
	// Where nobody asks for it, clients may repeat themselves.
	s := stdio(t, dir)
	for range 4 {
		if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); got.IsError {
			t.Errorf("%+v", got)
		}
	}
}

func TestMistakesThroughEveryEntry(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "app.yaml", limitedApp)
	s := stdio(t, dir, "--app", "app.yaml")
	mistakes := func(name string, args object) (n float64, stop bool) {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		e, _ := res.Meta["helve/error"].(map[string]any)
		details, _ := e["details"].(map[string]any)
		m, _ := details["mistakes"].(map[string]any)
		n, _ = m["in_a_row"].(float64)
		stop, _ = m["stop"].(bool)
		return n, stop
	}
	for i, c := range []struct {
		name string
		args object
	}{
		{"filesystem.raed", object{}},
		{"execute_tool", object{"name": "filesystem.list", "params": object{"path": 7}}},
		{"execute_tool", object{"name": "execute_tool", "params": object{"name": "filesystem.list", "params": object{"path": "nowhere"}}}},
	} {
		if n, stop := mistakes(c.name, c.args); int(n) != i+1 || stop != (i == 2) {
			t.Errorf("mistake %d: %v in a row, stop %v", i+1, n, stop)
		}
	}
	call(t, s, "filesystem.list", object{"path": "."})
	if n, stop := mistakes("filesystem.raed", nil); n != 1 || stop {
		t.Errorf("after a success: %v in a row, stop %v", n, stop)
	}
}

const middlewareApp = `app: {app_id: mid, name: Mid}
runtime:
  middleware:
    - {audit: {file: logs/calls.jsonl}}
    - {redact: {patterns: ["PID-[0-9]+"]}}
tools:
  modules:
    filesystem: {middleware: [cache]}
  mcp_servers:
    kid:
      command: UPSTREAM
      args: ["flaky=DIR/attempts"]
      trusted: true
      overrides: {get_flaky: {effect: reads}, create_flaky: {effect: writes}}
      middleware: [{retry: {attempts: 3, backoff: 0.01}}, {name: circuit_breaker, config: {failures: 9}, enabled: false}]
  capabilities: {grant: [mcp.kid.create_flaky, filesystem.write]}
`

func TestMiddlewareOfAnApp(t *testing.T) {
	dir := folder(t, "a.txt", "PID-4711 was here")
	text := strings.NewReplacer("UPSTREAM", filepath.ToSlash(lookPath(t, "upstream")), "DIR", filepath.ToSlash(dir)).Replace(middlewareApp)
	write(t, filepath.Join(dir, "app.yaml"), text)
	d := serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp")

	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); !strings.HasPrefix(got.Text, "[redacted] was here") {
		t.Errorf("redacted: %+v", got)
	}
	write(t, filepath.Join(dir, "a.txt"), "changed behind its back")
	if got := call(t, s, "execute_tool", object{"name": "read_file", "params": object{"path": "a.txt"}}); !strings.HasPrefix(got.Text, "[redacted] was here") || !strings.Contains(got.Text, "from the cache") {
		t.Errorf("cached: %+v", got)
	}
	write(t, filepath.Join(dir, ".helveignore"), "a.txt\n")
	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); got.Code != "ignored_path" {
		t.Errorf("what is kept is read without being judged: %+v", got)
	}
	os.Remove(filepath.Join(dir, ".helveignore"))
	if got := call(t, s, "filesystem.write", object{"path": "b.txt", "content": "x"}); got.IsError {
		t.Errorf("%+v", got)
	}
	if got := call(t, s, "filesystem.read", object{"path": "a.txt"}); !strings.HasPrefix(got.Text, "changed behind its back") {
		t.Errorf("after a write: %+v", got)
	}

	attempts := func(name string) string { return read(t, filepath.Join(dir, "attempts."+name)) }
	if got := call(t, s, "mcp.kid.get_flaky", object{}); got.IsError || !strings.HasPrefix(got.Text, "done") || attempts("get_flaky") != "ii" {
		t.Errorf("a read whose server fell: %+v, attempts %q", got, attempts("get_flaky"))
	}
	if got := call(t, s, "mcp.kid.create_flaky", object{}); !got.IsError || attempts("create_flaky") != "i" {
		t.Errorf("a write whose server fell: %+v, attempts %q", got, attempts("create_flaky"))
	}

	var tools []string
	for l := range strings.Lines(read(t, filepath.Join(dir, ".helve", "logs", "calls.jsonl"))) {
		var line struct{ Tool, Text string }
		if err := json.Unmarshal([]byte(l), &line); err != nil || strings.Contains(l, "PID-4711") {
			t.Errorf("the audit middleware wrote %s (%v)", l, err)
		}
		tools = append(tools, line.Tool)
	}
	if got, want := fmt.Sprint(tools), "[filesystem.read filesystem.read filesystem.write filesystem.read mcp.kid.get_flaky mcp.kid.create_flaky]"; got != want {
		t.Errorf("the audit middleware saw %s, want %s", got, want)
	}
	verified(t, dir, "--app", "app.yaml")
}
