package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// meets holds that a client can list, search, read about and call tools.
func meets(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if got := names(t, s); !slices.Contains(got, "search_tools") && !slices.Contains(got, "filesystem__read") {
		t.Errorf("neither the meta-tools nor the tools are listed: %v", got)
	}
	if got := call(t, s, "search_tools", object{"query": "read a text file", "limit": 3}); !strings.Contains(got.Text, "filesystem.read") || got.IsError {
		t.Errorf("search: %+v", got)
	}
	if got := call(t, s, "get_tool", object{"name": "filesystem.read"}); !strings.Contains(got.Text, `"path"`) || got.IsError {
		t.Errorf("get_tool: %+v", got)
	}
	for _, name := range []string{"filesystem.read", "filesystem__read", "read_file"} {
		if got := call(t, s, name, object{"path": "a.txt"}); !strings.HasPrefix(got.Text, "hello") || got.IsError {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := call(t, s, "execute_tool", object{"name": "filesystem.read", "params": object{"path": "a.txt"}}); !strings.HasPrefix(got.Text, "hello") {
		t.Errorf("execute_tool: %+v", got)
	}
	got := call(t, s, "run_parallel", object{"actions": []any{
		object{"name": "filesystem.read", "params": object{"path": "a.txt"}}, object{"name": "filesystem.read", "params": object{"path": "none.txt"}}}})
	var report struct{ Total, Succeeded, Failed int }
	if err := json.Unmarshal([]byte(got.Text), &report); err != nil || report.Total != 2 || report.Succeeded != 1 || report.Failed != 1 {
		t.Errorf("run_parallel: %v %+v", err, got)
	}
}

var views = []string{"/mcp", "/mcp/full", "/mcp/compact", "/mcp/discovery",
	"/mcp/apps/default", "/mcp/apps/default/full", "/mcp/apps/default/compact", "/mcp/apps/default/discovery"}

func TestServeOverHTTP(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	d := serve(t, dir)
	if !strings.HasPrefix(d.at.URL, "http://127.0.0.1:") || d.at.MCP != d.at.URL+"/mcp" || d.at.App != "default" || d.at.Tools == 0 || d.at.Root != dir {
		t.Errorf("announced: %+v", d.at)
	}
	for _, path := range views {
		t.Run(path, func(t *testing.T) { meets(t, d.connect(t, path)) })
	}
	full, compact, discovery := d.rawList(t, "/mcp/full"), d.rawList(t, "/mcp/compact"), d.rawList(t, "/mcp/discovery")
	if len(full) != len(compact) || len(discovery) >= len(full) {
		t.Errorf("%d tools in the full view, %d in the compact one, %d in discovery", len(full), len(compact), len(discovery))
	}
	if reflect.DeepEqual(full["filesystem__read"], compact["filesystem__read"]) || !strings.Contains(string(full["filesystem__read"]), `"path"`) {
		t.Errorf("filesystem.read in full: %s, compact: %s", full["filesystem__read"], compact["filesystem__read"])
	}
	for path, want := range map[string]int{"/mcp/nonsense": 404, "/mcp/apps/other": 404, "/nonsense": 404, "/": 405, "/sse": 404} {
		status, body, _ := post(t, d.URL+path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if status != want || !strings.HasPrefix(path, "/mcp/") && !strings.Contains(body, d.URL+"/mcp") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	verified(t, dir)
	needsUnix(t)
	if code := d.stop(t); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
}

func TestServeOverStdio(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	for _, present := range []string{"auto", "full", "compact", "discovery"} {
		t.Run(present, func(t *testing.T) { meets(t, stdio(t, dir, "--present", present)) })
	}
	verified(t, dir)
}

func TestServeTellsWhatAndWhere(t *testing.T) {
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": child(t, "strange"), "lost": child(t, "broken")}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := command(ctx, dir, "serve", "--addr", "127.0.0.1:0", "--app", "app.yaml")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	wants := []string{"serves the app gate", "root " + dir, "/mcp/discovery", "/mcp/full", "/mcp/compact",
		"State is kept in " + dir, "upstream kid (stdio): 6 tools", "upstream lost: "}
	lines := bufio.NewScanner(out)
	for len(wants) > 0 && lines.Scan() {
		l := lines.Text()
		if strings.Contains(l, "\x1b") {
			t.Errorf("colours in what is no terminal: %q", l)
		}
		wants = slices.DeleteFunc(wants, func(w string) bool { return strings.Contains(l, w) })
	}
	if len(wants) > 0 {
		t.Errorf("not announced: %q", wants)
	}
}

func TestTokens(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for how, d := range map[string]*daemon{
		"flag":        serve(t, dir, "--token", "s3cret"),
		"environment": serveEnv(t, dir, []string{"HELVE_TOKEN=s3cret"}),
	} {
		for _, path := range views {
			for _, header := range []string{"", "Bearer wrong", "Bearer ", "s3cret", "Basic s3cret", "Bearer s3cretX", "Bearer s3cre"} {
				if status, body, h := post(t, d.URL+path, list, "Authorization", header); status != 401 || h.Get("WWW-Authenticate") == "" || strings.Contains(body, "filesystem") {
					t.Errorf("%s: %s with %q: %d %s", how, path, header, status, body)
				}
			}
			if status, body, _ := post(t, d.URL+path, list, "Authorization", "Bearer s3cret"); status != 200 {
				t.Errorf("%s: %s with the token: %d %s", how, path, status, body)
			}
		}
		if _, err := dial(t, d.URL+"/mcp", nil); err == nil {
			t.Errorf("%s: a client without the token connected", how)
		}
		resp, err := http.Get(d.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(body), dir) || strings.Contains(string(body), "s3cret") {
			t.Errorf("%s: /healthz tells strangers %s", how, body)
		}
		if strings.Contains(d.errs.String(), "s3cret") {
			t.Errorf("%s: the token was printed", how)
		}
	}
}

func TestAddresses(t *testing.T) {
	dir := folder(t)
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.com:0"} {
		_, errs, code := run(t, dir, "", "serve", "--addr", addr)
		if code == 0 || !strings.Contains(errs, "loopback") || !strings.Contains(errs, "--token") {
			t.Errorf("--addr %s: exit code %d, %s", addr, code, errs)
		}
	}
	for _, addr := range []string{"nonsense", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:port"} {
		_, errs, code := run(t, dir, "", "serve", "--addr", addr)
		if code == 0 || !strings.Contains(errs, "error:") {
			t.Errorf("--addr %s: exit code %d, %s", addr, code, errs)
		}
	}
	d := serve(t, dir)
	_, errs, code := run(t, dir, "", "serve", "--addr", strings.TrimPrefix(d.URL, "http://"))
	if code == 0 || !strings.Contains(errs, "in use") || !strings.Contains(errs, "--addr") {
		t.Errorf("a taken address: exit code %d, %s", code, errs)
	}
	if d := serve(t, dir, "--addr", "0.0.0.0:0", "--token", "s3cret"); d.at.Tools == 0 {
		t.Errorf("with a token every address may be served: %+v", d.at)
	}
}

// The second --addr wins over that of the harness.

func TestMalformedRequests(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	d := serve(t, dir)
	for name, r := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"garbage":            {`{`, 400, ""},
		"empty":              {``, 400, ""},
		"a number":           {`42`, 400, ""},
		"not UTF-8":          {"\xff\xfe", 400, ""},
		"too large":          {`{"x":"` + strings.Repeat("x", 5<<20) + `"}`, 413, ""},
		"unknown method":     {`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, 400, "no/such"},
		"no name":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, 200, "-32602"},
		"arguments an array": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.read","arguments":[1]}}`, 200, "validation_error"},
		"arguments a text":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.read","arguments":"a.txt"}}`, 200, "validation_error"},
		"arguments null":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.read","arguments":null}}`, 200, "validation_error"},
		"unknown tool":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.reed","arguments":{}}}`, 200, "tool_not_found"},
		"unknown argument":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.read","arguments":{"path":"a.txt","zzz":1}}}`, 200, "validation_error"},
		"outside":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.read","arguments":{"path":"/etc/passwd"}}}`, 200, "permission_denied"},
		"own state":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"filesystem.list","arguments":{"path":".helve"}}}`, 200, "ignored_path"},
		"private address":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"http.get","arguments":{"url":"http://169.254.169.254/latest"}}}`, 200, "permission_denied"},
		"name too long":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 100_000) + `","arguments":{}}}`, 200, "tool_not_found"},
	} {
		status, body, _ := post(t, d.URL+"/mcp", r.body)
		if status != r.status || !strings.Contains(body, r.want) {
			t.Errorf("%s: %d %.400s; want %d %s", name, status, body, r.status, r.want)
		}
	}
	if text, isError := d.rawCall(t, "/mcp", "filesystem.read", `{"path":"a.txt"}`); isError || !strings.HasPrefix(text, "hello") {
		t.Errorf("afterwards: %s", text)
	}
	for code, n := range map[string]int{"tool_not_found": 2, "validation_error": 4, "permission_denied": 2, "ignored_path": 1} {
		if got := audited(t, dir, "--error", code); len(got) != n {
			t.Errorf("%d calls on record with %s, want %d: %+v", len(got), code, n, got)
		} else {
			for _, l := range got {
				if l.Decision != "deny" || l.Stage == "" || l.Reason == "" || l.Kind != "mcp" {
					t.Errorf("the record of %s lacks something: %+v", code, l)
				}
			}
		}
	}
	verified(t, dir)
}

func TestMalformedLines(t *testing.T) {
	dir := folder(t, "a.txt", "hello")
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	const after = "\n" + `{"jsonrpc":"2.0","id":"after %d","method":"tools/call","params":{"name":"filesystem.read","arguments":{"path":"a.txt"}}}` + "\n"
	rows := []struct{ in, want string }{
		{`garbage`, `-32700`},
		{`{"jsonrpc":"2.0","id":1,`, `-32700`},
		{"\x00\xff\xfe", `-32700`},
		{`[]`, `-32600`},
		{`{"jsonrpc":"2.0","id":7,"method":"no/such"}`, `-32601`},
		{`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"nope"}}`, `tool_not_found`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"filesystem.read","arguments":{"path":5.5}}}`, `validation_error`},
		{`{"jsonrpc":"2.0","id":10,"method":"ping","params":{"x":"` + strings.Repeat("x", 17<<20) + `"}}`, `bytes`},
	}
	in := hello
	for i, r := range rows {
		in += r.in + fmt.Sprintf(after, i)
	}
	out, errs, code := run(t, dir, in, "mcp")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for l := range strings.Lines(out) {
		if !json.Valid([]byte(l)) {
			t.Errorf("printed what is no message: %q", l)
		}
	}
	for _, r := range rows {
		if !strings.Contains(out, r.want) {
			t.Errorf("%.80q: no %s in the answers", r.in, r.want)
		}
	}
	if got := strings.Count(out, `"text":"hello`); got != len(rows) {
		t.Errorf("%d of %d calls were answered between bad lines", got, len(rows))
	}
	verified(t, dir)
}
