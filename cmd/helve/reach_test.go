package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Rules hold for where a request is led, whoever makes it: by its parameters
// and by redirects.
func TestRulesHoldForRedirects(t *testing.T) {
	var reached atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("to") != "":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/secret"):
			reached.Add(1)
		default:
			fmt.Fprint(w, "here")
		}
	}))
	defer web.Close()
	addr := web.Listener.Addr().String()
	dir := folder(t, "app.yaml", fmt.Sprintf(`app: {app_id: demo, name: Demo}
security: {allow_hosts: [%q]}
tools:
  modules: {http: {}}
  capabilities: {deny: ['http.get(url: "http://%s/secret**")']}
`, addr, addr))
	s := serve(t, dir, "--app", "app.yaml").connect(t, "/mcp/full")
	for _, test := range []struct {
		args object
		want string
	}{
		{object{"url": web.URL + "/hop?to=/fine"}, "here"},
		{object{"url": web.URL + "/hop?to=/secret/a"}, "not allowed"},
		{object{"url": web.URL + "/hop", "query": object{"to": "/hop?to=/secret/a"}}, "not allowed"},
		{object{"url": web.URL + "/secret/a"}, "denied by the rule"},
	} {
		for _, call := range []reply{
			call(t, s, "http.get", test.args),
			call(t, s, "execute_tool", object{"name": "http.get", "params": test.args}),
		} {
			if !strings.Contains(call.Text, test.want) {
				t.Errorf("%v: %+v", test.args, call)
			}
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("what is denied was reached %d times", n)
	}
	verified(t, dir, "--app", "app.yaml")
}

// A grant of a command that reads does not let it write.
func TestGrantsOfReadsDoNotWrite(t *testing.T) {
	needsUnix(t)
	dir := folder(t, "a.txt", "hello\n", "app.yaml", `app: {app_id: demo, name: Demo}
security: {sandbox: "off"}
tools:
  modules: {shell: {config: {profile: unrestricted}}}
  capabilities: {grant: ['shell.run(cmd: "git diff*")', 'shell.run(cmd: "sort *")']}
`)
	s := serve(t, dir, "--app", "app.yaml").connect(t, "/mcp/full")
	if got := call(t, s, "shell.run", object{"cmd": "sort a.txt", "profile": "unrestricted"}); !strings.Contains(got.Text, "hello") {
		t.Errorf("sort: %+v", got)
	}
	for _, command := range []string{"git diff --no-index --output=out.txt a.txt app.yaml", "sort a.txt -o out.txt", "sort --output=out.txt a.txt"} {
		if got := call(t, s, "shell.run", object{"cmd": command, "profile": "unrestricted"}); got.Code != "permission_denied" && got.Code != "approval_denied" {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if exists(filepath.Join(dir, "out.txt")) {
		t.Error("a file was written")
	}
}
