package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/internal/oauthtest"
)

// A desk is a folder with an app whose server wants a login, and the person
// who is at it.
type desk struct {
	dir string
	as  *oauthtest.Server
	env []string
}

func newDesk(t *testing.T) *desk {
	s := mcp.NewServer(&mcp.Implementation{Name: "theirs", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "get_it", InputSchema: object{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "got it"}}}, nil
	})
	d := &desk{dir: t.TempDir(), as: oauthtest.New(t)}
	at := d.as.Guard(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	app := "app: {app_id: a, name: A}\nsecurity: {credentials: file}\ntools: {mcp_servers: {web: {url: " + at + "}}, capabilities: {grant: [{module: mcp.web}]}}\n"
	if err := os.WriteFile(filepath.Join(d.dir, "app.yaml"), []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	d.env = environ("BROWSER="+lookPath(t, "browser"), "HELVE_CREDENTIALS_DIR="+filepath.Join(d.dir, "kept"))
	return d
}

func (d *desk) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), lookPath(t, "helve"), append(args, "--app", "app.yaml")...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

func (d *desk) run(t *testing.T, args ...string) (string, error) {
	out, err := d.command(t, args...).CombinedOutput()
	for _, token := range d.as.Tokens() {
		if strings.Contains(string(out), token) {
			t.Errorf("helve %s shows a token", strings.Join(args, " "))
		}
	}
	return string(out), err
}

func (d *desk) want(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, err := d.run(t, args...); err != nil || !strings.Contains(out, want) {
		t.Fatalf("helve %s: %v; want %q in\n%s", strings.Join(args, " "), err, want, out)
	}
}

// call calls the server's tool in a state folder of its own, as another
// process of the same user would.
func (d *desk) call(t *testing.T, state string) (string, error) {
	return d.run(t, "tools", "call", "mcp.web.get_it", "{}", "--state", state)
}

func TestLogin(t *testing.T) {
	d := newDesk(t)
	out, err := d.run(t, "tools", "call", "mcp.web.get_it", "{}")
	if err == nil {
		t.Fatalf("a call without a login: %s", out)
	}
	d.want(t, "needs login", "upstreams")
	d.want(t, "run helve login --app app.yaml web", "doctor")
	d.want(t, "Signed in to web at "+d.as.URL+": it has 1 tools", "login", "web", "--timeout", "60s")
	for range 2 {
		d.want(t, "got it", "tools", "call", "mcp.web.get_it", "{}")
		d.as.Expire()
	}
	d.want(t, "manifest known", "upstreams")
	d.want(t, `"renews": true`, "login", "web", "--json")
	d.as.Revoke()
	if out, err := d.call(t, "s"); err == nil || !strings.Contains(out, "helve login --app app.yaml web") {
		t.Errorf("a call after the login was revoked: %v\n%s", err, out)
	}
	d.want(t, "Signed in", "login", "web")
	d.want(t, "Signed out", "logout", "web")
	if len(d.as.Tokens()) > 0 {
		t.Error("the authorization server was not told")
	}
	d.want(t, "Nobody was signed in", "logout", "web")
}

// A server that refuses what the app file says to it is said to do so.
func TestRefusedWithoutLogin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	app := filepath.Join(d.dir, "app.yaml")
	whole := read(t, app)
	for more, want := range map[string]string{
		`headers: {Authorization: "Bearer wrong"}`: "the server does not accept the Authorization header of the app file (HTTP status 401 Unauthorized)",
		"oauth: false": "the server wants to know who calls, and oauth: false turns logins off (HTTP status 401 Unauthorized)",
	} {
		write(t, app, strings.Replace(whole, "/mcp}", "/mcp, "+more+"}", 1))
		d.want(t, want, "upstreams")
	}
	nobody := "http://127.0.0.1:1/mcp"
	write(t, app, "app: {app_id: a, name: A}\nsecurity: {credentials: file}\ntools: {mcp_servers: {web: {url: "+nobody+"}}}\n")
	if out, err := d.run(t, "login", "web"); err == nil || !strings.HasPrefix(out, `error: web: the server cannot be asked what it wants: Post "`+nobody+`": dial tcp`) {
		t.Errorf("signing in where nobody is: %v\n%s", err, out)
	}
}

// Processes that need a new token at once share one renewal: the second use of
// a refresh token would end the login.
func TestRenewalAcrossProcesses(t *testing.T) {
	d := newDesk(t)
	d.want(t, "Signed in", "login", "web")
	d.as.Expire()
	asked, release := d.as.Hold()
	var all sync.WaitGroup
	for _, state := range []string{"a", "b", "c"} {
		all.Go(func() {
			if out, err := d.call(t, state); err != nil || !strings.Contains(out, "got it") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	<-asked
	release()
	all.Wait()
	if _, renewals, _ := d.as.Counts(); renewals != 1 {
		t.Errorf("%d renewals", renewals)
	}
}

// A process that is killed while it renews the login leaves it as it was, and
// its lock to the next.
func TestKilledWhileRenewing(t *testing.T) {
	d := newDesk(t)
	d.want(t, "Signed in", "login", "web")
	d.as.Expire()
	asked, release := d.as.Hold()
	cmd := d.command(t, "tools", "call", "mcp.web.get_it", "{}", "--state", "s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("nothing is renewed")
	}
	cmd.Process.Kill()
	cmd.Wait()
	<-d.as.Left()
	release()
	if out, err := d.call(t, "s"); err != nil || !strings.Contains(out, "got it") {
		t.Errorf("%v\n%s", err, out)
	}
	if logins, renewals, _ := d.as.Counts(); logins != 1 || renewals != 1 {
		t.Errorf("%d logins, %d renewals", logins, renewals)
	}
}
