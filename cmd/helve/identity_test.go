package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/sqlite"
)

// bearing presents a token with each request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// as connects a client with a token, of one revision.
func (d *daemon) as(t testing.TB, token, path, client, version string) (*mcp.ClientSession, error) {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: client, Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.URL + path, HTTPClient: &http.Client{Transport: bearing(token)}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

func (d *daemon) mustAs(t testing.TB, token, path, version string) *mcp.ClientSession {
	t.Helper()
	s, err := d.as(t, token, path, "tester", version)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// token makes a token and returns its text.
func token(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out := must(t, dir, append([]string{"tokens", "create", "--json"}, args...)...)
	var made struct{ Token, Hash string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || !strings.HasPrefix(made.Token, "hlv_") || made.Hash != "" {
		t.Fatalf("helve tokens create: %v\n%s", err, out)
	}
	return made.Token
}

const askList = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func auth(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestClientTokens(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	d := serve(t, dir)
	status := func(path string, header ...string) int {
		got, _, _ := post(t, d.URL+path, askList, header...)
		return got
	}
	if got := status("/mcp"); got != 200 {
		t.Fatalf("without any token, on loopback: %d", got)
	}
	if exists(filepath.Join(dir, ".helve", "helve.db")) {
		t.Error("to look for tokens a database was made")
	}
	ci := token(t, dir, "--name", "ci")
	eventually(t, func() bool { return status("/mcp") == 401 })
	for _, path := range []string{"/mcp", "/mcp/full", "/mcp/apps/default", "/mcp/apps/other", "/nonsense", "/"} {
		got, body, header := post(t, d.URL+path, askList)
		if got != 401 || !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer") || !strings.Contains(body, "helve tokens create") {
			t.Errorf("%s without a token: %d %q %s", path, got, header.Get("WWW-Authenticate"), body)
		}
		for name, header := range map[string][]string{
			"another scheme": {"Authorization", "Basic " + ci}, "another token": auth(ci[:len(ci)-4] + "aaaa"), "no token": auth(""), "its id": auth(ci[:16]),
		} {
			if got := status(path, header...); got != 401 {
				t.Errorf("%s with %s: %d", path, name, got)
			}
		}
		if got := status(path + "?token=" + ci); got != 400 {
			t.Errorf("%s with the token in the address: %d", path, got)
		}
		if got := status(path+"?x="+ci, auth(ci)...); got != 400 {
			t.Errorf("%s with the token in the address under another name: %d", path, got)
		}
	}
	if got := status("/mcp", auth(ci)...); got != 200 {
		t.Errorf("with the token: %d", got)
	}
	if got := status("/mcp", "Authorization", "bearer  "+ci); got != 200 {
		t.Errorf("with another spelling of the scheme: %d", got)
	}
	if got := status("/mcp/apps/other", auth(ci)...); got != 404 {
		t.Errorf("another app: %d", got)
	}
	s := d.mustAs(t, ci, "/mcp", "2025-11-25")
	if got := call(t, s, "filesystem.read", object{"path": ci}); !got.IsError {
		t.Errorf("a file called like the token: %+v", got)
	}
	record := must(t, dir, "audit", "--json")
	if strings.Contains(record, ci) || !strings.Contains(record, "token:ci") {
		t.Errorf("the audit has the token, or not its user:\n%s", record)
	}
	list := must(t, dir, "tokens", "list", "--json")
	if strings.Contains(list, ci[20:]) || strings.Contains(list, "hash") || !strings.Contains(list, `"state": "active"`) {
		t.Errorf("helve tokens list tells %s", list)
	}
	if strings.Contains(d.errs.String(), ci[20:]) {
		t.Error("the log has the token")
	}
	// A stream that is open ends when its token is revoked, and so do sessions.
	_, _, header := post(t, d.URL+"/mcp", hello20251125, auth(ci)...)
	id := header.Get("Mcp-Session-Id")
	ended := listen(t, d.URL+"/mcp", id, ci)
	must(t, dir, "tokens", "revoke", "ci")
	<-ended // or the test hangs
	again := token(t, dir, "--name", "ci")
	for name, header := range map[string][]string{"the old token": auth(ci), "none": nil} {
		if got := status("/mcp", header...); got != 401 {
			t.Errorf("after it was revoked, with %s: %d", name, got)
		}
	}
	if got := status("/mcp", append(auth(again), "Mcp-Session-Id", id)...); got != 404 {
		t.Errorf("a new token of the same name gets %d in the old one's session", got)
	}
	must(t, dir, "tokens", "revoke", "ci")
	eventually(t, func() bool { return status("/mcp", auth(again)...) == 401 })
	if got := status("/mcp"); got != 401 {
		t.Errorf("after the last token was revoked, without one: %d", got)
	}
	must(t, dir, "tokens", "prune")
	eventually(t, func() bool { return status("/mcp") == 200 })
	verified(t, dir)
}

const hello20251125 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// listen opens a session's stream, and closes the channel when it has ended.
func listen(t testing.TB, url, id, token string) <-chan struct{} {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", id)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("a stream: %v %+v", err, resp)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		bufio.NewReader(resp.Body).ReadString(0)
	}()
	return ended
}

func TestTheOperatorsToken(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	if _, errs, code := run(t, dir, "", "serve", "--addr", "0.0.0.0:0"); code != 64 || !strings.Contains(errs, "helve tokens create") {
		t.Errorf("off loopback without a token: exit code %d, %s", code, errs)
	}
	ci := token(t, dir, "--name", "ci", "--app", "other")
	d := serveEnv(t, dir, []string{"HELVE_TOKEN=operators-own-token"}, "--addr", "0.0.0.0:0")
	at := strings.Replace(d.URL, "[::]", "127.0.0.1", 1)
	at = strings.Replace(at, "0.0.0.0", "127.0.0.1", 1)
	for name, r := range map[string]struct {
		header []string
		want   int
	}{
		"none": {nil, 401}, "the operator's": {auth("operators-own-token"), 200}, "a prefix of it": {auth("operators-own-toke"), 401},
		"two": {append(auth("x"), "Authorization", "Bearer y"), 401}, "of an app that is not here": {auth(ci), 404},
	} {
		if got, body, _ := post(t, at+"/mcp", askList, r.header...); got != r.want {
			t.Errorf("token: %s: %d %s", name, got, body)
		}
	}
	s, err := newClient(nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at + "/mcp", HTTPClient: &http.Client{Transport: bearing("operators-own-token")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call(t, s, "filesystem.read", object{"path": "operators-own-token"})
	record := must(t, dir, "audit", "--json")
	if strings.Contains(record, "operators-own-token") || !strings.Contains(record, `"user": "operator"`) {
		t.Errorf("the audit has the operator's token, or not the operator:\n%s", record)
	}
}

func TestTokensAreBoundToViews(t *testing.T) {
	dir := folder(t, "a.txt", "hello\n")
	bound := token(t, dir, "--name", "d", "--view", "discovery")
	free := token(t, dir, "--name", "f")
	d := serve(t, dir)
	want := names(t, d.mustAs(t, free, "/mcp/discovery", ""))
	for _, path := range []string{"/mcp", "/mcp/discovery", "/mcp/apps/default", "/mcp/apps/default/discovery"} {
		if got := names(t, d.mustAs(t, bound, path, "")); !slices.Equal(got, want) {
			t.Errorf("%s shows %v", path, got)
		}
	}
	for _, path := range []string{"/mcp/full", "/mcp/compact", "/mcp/apps/default/full"} {
		if got, body, _ := post(t, d.URL+path, askList, auth(bound)...); got != 403 || !strings.Contains(body, "discovery") {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
}

// The first token binds from its first use on, although nobody needed one a
// moment ago.
func TestFirstTokenBindsAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, "a.txt", "hello\n")
	d := serve(t, dir)
	if got, body, _ := post(t, d.URL+"/mcp/full", askList); got != 200 {
		t.Fatalf("without any token: %d %s", got, body)
	}
	if got, body, _ := post(t, d.URL+"/mcp/full", askList, auth("hlv_aaaaaaaaaaaa_bbbb")...); got != 200 {
		t.Errorf("a token of another folder while none is needed: %d %s", got, body)
	}
	bound := token(t, dir, "--name", "d", "--view", "discovery")
	if got, body, _ := post(t, d.URL+"/mcp/full", askList, auth(bound)...); got != 403 || !strings.Contains(body, "discovery") {
		t.Errorf("the first token, in another view: %d %s", got, body)
	}
	if got, body, _ := post(t, d.URL+"/mcp/full", askList); got != 401 {
		t.Errorf("without a token after that: %d %s", got, body)
	}
}

func TestBadTokenBounds(t *testing.T) {
	dir := folder(t, "app.yaml", "app: {app_id: mail, name: Mail}\nagents: [{id: clerk, brain: {backend: script}, profile: [read]}]\n")
	for want, args := range map[string][]string{
		"--name is missing":  {},
		"bad name":           {"--name", "a b"},
		"want full, compact": {"--name", "a", "--view", "wide"},
		"neither a group":    {"--name", "a", "--profile", "clerk"},
		"that is past":       {"--name", "a", "--expires", "2020-01-01"},
		"want a date":        {"--name", "a", "--expires", "soon"},
		"want an app_id":     {"--name", "a", "--app", "missing.yaml"},
		"keeps no tokens":    {"--name", "a", "--store", "memory"},
	} {
		if _, errs, code := run(t, dir, "", append([]string{"tokens", "create"}, args...)...); code != 64 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
	out := must(t, dir, "tokens", "create", "--json", "--name", "a", "--app", "app.yaml", "--profile", "clerk", "--expires", "90d")
	for _, want := range []string{`"app": "mail"`, `"profile": "clerk"`, `"expires": "`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	if _, errs, code := run(t, dir, "", "tokens", "revoke", "b"); code != 64 || !strings.Contains(errs, "no such token") {
		t.Errorf("revoke of nothing: exit code %d, %s", code, errs)
	}
}

const twoApps = `
app: {app_id: ID, name: Name}
runtime: {workdir: WORK}
agents: [{id: reader, brain: {backend: script}, profile: [read]}]
tools: {capabilities: {default_policy: auto}}
`

func appFile(id, work string) string {
	return strings.NewReplacer("ID", id, "WORK", work).Replace(twoApps)
}

func TestSeveralApps(t *testing.T) {
	dir := folder(t, "one.yaml", appFile("one", "w1"), "two.yaml", appFile("two", "w2"), "w1/a.txt", "from one\n", "w2/a.txt", "from two\n", "w2/b.txt", "")
	bound := token(t, dir, "--name", "two-only", "--app", "two")
	free := token(t, dir, "--name", "free")
	d := serve(t, dir, "one.yaml", "two.yaml")
	for path, want := range map[string]string{"/mcp": "from one", "/mcp/full": "from one", "/mcp/apps/one": "from one", "/mcp/apps/two": "from two", "/mcp/apps/two/full": "from two"} {
		if got := call(t, d.mustAs(t, free, path, ""), "filesystem.read", object{"path": "a.txt"}); !strings.HasPrefix(got.Text, want) {
			t.Errorf("%s reads %+v", path, got)
		}
	}
	if got := call(t, d.mustAs(t, bound, "/mcp", ""), "filesystem.read", object{"path": "a.txt"}); !strings.HasPrefix(got.Text, "from two") {
		t.Errorf("a token of the app two reads %+v at /mcp", got)
	}
	_, unknown, _ := post(t, d.URL+"/mcp/apps/three", askList, auth(free)...)
	for _, path := range []string{"/mcp/apps/one", "/mcp/apps/one/full", "/mcp/apps/three"} {
		if status, body, _ := post(t, d.URL+path, askList, auth(bound)...); status != 404 || body != unknown {
			t.Errorf("a token of the app two gets %d %s at %s", status, body, path)
		}
	}
	for _, id := range []string{"one", "two"} {
		state := filepath.Join(dir, ".helve", "apps", id)
		verified(t, dir, "--state", state)
		for _, l := range audited(t, dir, "--state", state) {
			if l.App != id {
				t.Errorf("the audit of %s has a call of %s", id, l.App)
			}
		}
	}
	// Each follows its own file; a new id is not taken over.
	write(t, filepath.Join(dir, "two.yaml"), strings.Replace(appFile("two", "w2"), "auto", "block", 1))
	write(t, filepath.Join(dir, "one.yaml"), strings.Replace(appFile("uno", "w1"), "auto", "block", 1))
	s1, s2 := d.mustAs(t, free, "/mcp/apps/one", ""), d.mustAs(t, free, "/mcp/apps/two", "")
	eventually(t, func() bool { return call(t, s2, "filesystem.read", object{"path": "a.txt"}).IsError })
	eventually(t, func() bool { return strings.Contains(d.errs.String(), `its app_id is now \"uno\"`) })
	if got := call(t, s1, "filesystem.read", object{"path": "a.txt"}); got.IsError {
		t.Errorf("the app one: %+v", got)
	}
}

// No app reads what the daemon, another app, or a store in the root keeps.
func TestStateIsOutOfReach(t *testing.T) {
	dir := folder(t, "one.yaml", appFile("one", "."), "two.yaml", appFile("two", "."), "kept/x", "")
	secret := token(t, dir, "--name", "ci", "--state", "kept")
	d := serve(t, dir, "--state", "kept", "one.yaml", "two.yaml")
	s := d.mustAs(t, secret, "/mcp/apps/two", "")
	for _, path := range []string{"kept/helve.db", "kept/apps/one/audit", "kept/apps/two/audit", "kept"} {
		if got := call(t, s, "filesystem.stat", object{"path": path}); got.Code != "ignored_path" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for _, file := range []string{"one.yaml", "two.yaml"} { // nor do the calls of one app change the policy of another
		if got := call(t, s, "filesystem.write", object{"path": file, "content": appFile("one", ".")}); got.Code != "ignored_path" {
			t.Errorf("%s: %+v", file, got)
		}
	}
	if got := call(t, stdio(t, dir, "--store", "some.db"), "filesystem.stat", object{"path": "some.db"}); got.Code != "ignored_path" {
		t.Errorf("the store: %+v", got)
	}
}

func TestBadAppsAreRefusedBeforeListening(t *testing.T) {
	dir := folder(t, "one.yaml", appFile("one", "."), "same.yaml", appFile("one", "."), "bad.yaml", "app: {app_id: bad, name: Bad}\nnonsense: 1\n")
	for want, files := range map[string][]string{
		"bad.yaml:2:1":         {"one.yaml", "bad.yaml"},
		`both have the app_id`: {"one.yaml", "same.yaml"},
		"no app file":          {"one.yaml", "missing.yaml"},
	} {
		out, errs, code := run(t, dir, "", append([]string{"serve", "--addr", "127.0.0.1:0"}, files...)...)
		if code == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s%s", files, code, out, errs)
		}
	}
	if exists(filepath.Join(dir, ".helve")) {
		t.Error("something was opened")
	}
}

// A profile takes away from what the app allows: what it lacks is neither seen
// nor run, on any way.
func TestProfiles(t *testing.T) {
	dir := folder(t, "app.yaml", appFile("demo", "."), "a.txt", "hello\n")
	reader := token(t, dir, "--name", "r", "--app", "app.yaml", "--profile", "reader")
	groups := token(t, dir, "--name", "g", "--profile", "read,+filesystem.mkdir,-filesystem.stat")
	lost := token(t, dir, "--name", "l", "--app", "demo", "--profile", "read")
	d := serve(t, dir, "--app", "app.yaml")
	for name, r := range map[string]struct {
		s         *mcp.ClientSession
		may, lack []string
	}{
		"an agent's": {d.mustAs(t, reader, "/mcp/full", ""), []string{"filesystem.list", "filesystem.stat"}, []string{"filesystem.mkdir", "filesystem.write", "shell.run"}},
		"groups":     {d.mustAs(t, groups, "/mcp/full", "2025-06-18"), []string{"filesystem.list", "filesystem.mkdir"}, []string{"filesystem.stat", "filesystem.write", "shell.run"}},
		"read":       {d.mustAs(t, lost, "/mcp/full", ""), []string{"filesystem.list", "filesystem.stat"}, []string{"filesystem.mkdir", "http.get"}},
		"stdio":      {stdio(t, dir, "--app", "app.yaml", "--present", "full", "--profile", "reader"), []string{"filesystem.list"}, []string{"filesystem.mkdir", "filesystem.write"}},
		"only one":   {stdio(t, dir, "--present", "full", "--profile", "+filesystem.list"), []string{"filesystem.list"}, []string{"filesystem.read", "filesystem.mkdir"}},
		"all but":    {stdio(t, dir, "--present", "full", "--profile", "-filesystem.list,-execute_tool"), []string{"filesystem.stat"}, []string{"filesystem.list", "execute_tool"}},
		"a module":   {stdio(t, dir, "--present", "full", "--profile=-filesystem,-shell"), nil, []string{"filesystem.list", "shell.run"}},
		"a pattern":  {stdio(t, dir, "--present", "full", "--profile=-filesystem.l*,-filesystem__write"), []string{"filesystem.stat"}, []string{"filesystem.list", "filesystem.write"}},
	} {
		listed := names(t, r.s)
		args := object{"path": "."}
		for _, n := range r.may {
			if !slices.Contains(listed, wire(n)) {
				t.Errorf("%s: %s is not listed", name, n)
			}
			if n == "filesystem.mkdir" {
				args = object{"path": "made"}
			}
			if got := call(t, r.s, n, args); got.IsError {
				t.Errorf("%s: %s: %+v", name, n, got)
			}
		}
		for _, n := range r.lack {
			if slices.Contains(listed, wire(n)) {
				t.Errorf("%s: %s is listed", name, n)
			}
			for way, got := range map[string]reply{
				"its name":      call(t, r.s, n, object{"path": "x"}),
				"its wire name": call(t, r.s, wire(n), object{"path": "x"}),
				"get_tool":      call(t, r.s, "get_tool", object{"name": n}),
			} {
				if got.Code != "not_visible" {
					t.Errorf("%s: %s by %s: %+v", name, n, way, got)
				}
			}
			if name == "all but" {
				continue
			}
			if got := call(t, r.s, "execute_tool", object{"name": n, "params": object{"path": "x"}}); got.Code != "not_visible" {
				t.Errorf("%s: %s by execute_tool: %+v", name, n, got)
			}
			if got := member(t, call(t, r.s, "run_parallel", object{"actions": []any{object{"name": n, "params": object{"path": "x"}}}})); got != "not_visible" {
				t.Errorf("%s: %s by run_parallel: %s", name, n, got)
			}
			if got := call(t, r.s, "search_tools", object{"query": n}); strings.Contains(got.Text, n+"\"") || strings.Contains(got.Text, n+" ") {
				t.Errorf("%s: search finds %s: %s", name, n, got.Text)
			}
		}
	}
	// A profile that the app does not know any more lets nothing be done.
	write(t, filepath.Join(dir, "app.yaml"), strings.Replace(appFile("demo", "."), "id: reader", "id: other", 1))
	eventually(t, func() bool {
		status, body, _ := post(t, d.URL+"/mcp", askList, auth(reader)...)
		return status == 403 && strings.Contains(body, "neither a group")
	})
	if _, errs, code := run(t, dir, "", "mcp", "--profile", "nonsense"); code != 64 || !strings.Contains(errs, "neither a group") {
		t.Errorf("helve mcp --profile nonsense: exit code %d, %s", code, errs)
	}
	// What takes nothing away is no profile.
	for _, args := range [][]string{{"mcp", "--profile=-filesystem.wirte"}, {"tokens", "create", "--name", "w", "--app", "app.yaml", "--profile=-filesytem"}} {
		if _, errs, code := run(t, dir, "", args...); code != 64 || !strings.Contains(errs, "names no tool, module or server") || !strings.Contains(errs, "did you mean") {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
	if out := must(t, dir, "mcp", "--print-config", "--profile", "read,web"); strings.Count(out, "read,web") < 5 {
		t.Errorf("the profile is missing in\n%s", out)
	}
}

// What one session spilled no other can read, whatever revision, token or
// transport; and the attempt is on record.
func TestSpilledResultsAreTheSessionsOwn(t *testing.T) {
	dir := folder(t, "long.txt", strings.Repeat("a long line of a long file\n", 2000))
	ann, bob := token(t, dir, "--name", "ann"), token(t, dir, "--name", "bob")
	d := serve(t, dir)
	clients := map[string]*mcp.ClientSession{"stdio": stdio(t, dir), "stdio again": stdio(t, dir)}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		clients["ann "+version], clients["bob "+version] = d.mustAs(t, ann, "/mcp", version), d.mustAs(t, bob, "/mcp", version)
	}
	clients["ann 2025-11-25 again"] = d.mustAs(t, ann, "/mcp", "2025-11-25")
	clients["ann 2025-11-25 elsewhere"] = d.mustAs(t, ann, "/mcp/full", "2025-11-25")
	other, err := d.as(t, ann, "/mcp", "another client", "2026-07-28")
	if err != nil {
		t.Fatal(err)
	}
	clients["ann 2026-07-28 another client"] = other
	ids := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, s := range clients {
		all.Go(func() {
			id := idIn(t, call(t, s, "filesystem.read", object{"path": "long.txt"}).Text)
			mu.Lock()
			defer mu.Unlock()
			ids[name] = id
		})
	}
	all.Wait()
	if len(ids) != len(clients) {
		t.Fatalf("%d of %d clients have a result", len(ids), len(clients))
	}
	tries := 0
	for name, s := range clients {
		for owner, id := range ids {
			got := call(t, s, "results.read", object{"id": id, "search": "long file"})
			if owner == name && (got.IsError || !strings.Contains(got.Text, "places contain")) {
				t.Errorf("%s cannot read its own result: %+v", name, got)
			}
			if owner != name {
				tries++
				if !got.IsError || !strings.Contains(got.Text, "no result with the id") {
					t.Errorf("%s reads the result of %s: %+v", name, owner, got)
				}
			}
		}
	}
	missed := 0
	for _, l := range audited(t, dir, "--tool", "results.read") {
		if l.Error != "" {
			missed++
		}
	}
	if missed != tries {
		t.Errorf("%d of %d attempts are on record", missed, tries)
	}
	verified(t, dir)
}

// What a session spilled goes with it: when its client ends it, when it was idle
// for long, and when its token is revoked.
func TestEndedSessionsLeaveNoResults(t *testing.T) {
	dir := folder(t, "long.txt", strings.Repeat("a long line of a long file\n", 2000))
	ann, bob := token(t, dir, "--name", "ann"), token(t, dir, "--name", "bob")
	quick, slow := serve(t, dir, "--session-idle", "500ms"), serve(t, dir)
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, ".helve", "helve.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept := func(bucket string) (n int) {
		if err := db.View(t.Context(), func(r store.Reader) error {
			n = 0
			for range r.Scan("apps/default/results/"+bucket, "") {
				n++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	spills := func(s *mcp.ClientSession) *mcp.ClientSession {
		idIn(t, call(t, s, "filesystem.read", object{"path": "long.txt"}).Text)
		return s
	}
	for range 3 {
		spills(slow.mustAs(t, ann, "/mcp", "2025-11-25"))
	}
	spills(stdio(t, dir)).Close()
	spills(slow.mustAs(t, bob, "/mcp", "2025-06-18")).Close()
	// One without a stream, or it would not be idle.
	_, _, header := post(t, quick.URL+"/mcp", hello20251125, auth(bob)...)
	_, body, _ := post(t, quick.URL+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"filesystem.read","arguments":{"path":"long.txt"}}}`,
		append(auth(bob), "Mcp-Session-Id", header.Get("Mcp-Session-Id"))...)
	if !strings.Contains(body, "results.read") {
		t.Fatalf("nothing was spilled: %.300s", body)
	}
	eventually(t, func() bool { return kept("spilled") == 3 && kept("spilled_of") == 3 })
	must(t, dir, "tokens", "revoke", "ann")
	eventually(t, func() bool { return kept("spilled") == 0 && kept("spilled_of") == 0 })
}

func TestSessionsPerUser(t *testing.T) {
	dir := folder(t, "app.yaml", "app: {app_id: demo, name: Demo}\nruntime: {max_sessions_per_user: 2}\n", "a.txt", "hello\n")
	ann, bob := token(t, dir, "--name", "ann"), token(t, dir, "--name", "bob")
	d := serve(t, dir, "--app", "app.yaml", "--max-sessions", "4")
	first, _ := d.mustAs(t, ann, "/mcp", "2025-11-25"), d.mustAs(t, ann, "/mcp/full", "2025-06-18")
	if status, body, _ := post(t, d.URL+"/mcp", hello20251125, auth(ann)...); status != 429 || !strings.Contains(body, "this user has 2 sessions") {
		t.Errorf("a third session: %d %s", status, body)
	}
	d.mustAs(t, bob, "/mcp", "2025-11-25")
	call(t, d.mustAs(t, ann, "/mcp", "2026-07-28"), "filesystem.read", object{"path": "a.txt"}) // needs none
	first.Close()
	eventually(t, func() bool {
		status, _, _ := post(t, d.URL+"/mcp", hello20251125, auth(ann)...)
		return status == 200
	})
	must(t, dir, "app", "check", "app.yaml")
	if _, errs, code := run(t, dir, "", "serve", "--max-sessions", "-1"); code != 64 || !strings.Contains(errs, "negative") {
		t.Errorf("a negative bound: exit code %d, %s", code, errs)
	}
}

// Whatever the path, pages of other sites are kept out.
func TestForeignPagesAreKeptOut(t *testing.T) {
	d := serve(t, folder(t))
	for _, path := range []string{"/", "/mcp", "/mcp/full", "/mcp/apps/default", "/mcp/apps/other", "/nonsense", "/healthz", "/.well-known/oauth-protected-resource"} {
		for name, header := range map[string][]string{
			"another host":   {"Host", "evil.example"},
			"another origin": {"Origin", "http://evil.example"},
			"no origin":      {"Origin", "null"},
			"cross-site":     {"Sec-Fetch-Site", "cross-site"},
		} {
			for _, method := range []string{"POST", "GET", "OPTIONS"} {
				if name == "cross-site" && method != "POST" {
					continue // a link may lead here; what it shows no page can read
				}
				req, err := http.NewRequestWithContext(t.Context(), method, d.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set(header[0], header[1])
				if header[0] == "Host" {
					req.Host = header[1]
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != 403 {
					t.Errorf("%s %s with %s: %d", method, path, name, resp.StatusCode)
				}
				for h := range resp.Header {
					if strings.HasPrefix(h, "Access-Control-") {
						t.Errorf("%s %s with %s: %s", method, path, name, h)
					}
				}
			}
		}
	}
}

// Daemons that share a database share its tokens.
func TestTokensInPostgres(t *testing.T) {
	place := postgresPlace(t)
	dir, far := folder(t, "a.txt", "here\n"), folder(t, "a.txt", "there\n")
	one, two := serve(t, dir, "--store", place), serve(t, far, "--store", place)
	ci := token(t, folder(t), "--name", "ci", "--store", place)
	for i, d := range []*daemon{one, two} {
		eventually(t, func() bool { status, _, _ := post(t, d.URL+"/mcp", askList); return status == 401 })
		want := []string{"here", "there"}[i]
		if got := call(t, d.mustAs(t, ci, "/mcp", ""), "filesystem.read", object{"path": "a.txt"}); !strings.HasPrefix(got.Text, want) {
			t.Errorf("daemon %d reads %+v", i, got)
		}
	}
	must(t, dir, "tokens", "revoke", "ci", "--store", place)
	for _, d := range []*daemon{one, two} {
		eventually(t, func() bool { status, _, _ := post(t, d.URL+"/mcp", askList, auth(ci)...); return status == 401 })
	}
	if out := must(t, far, "tokens", "list", "--store", place); !strings.Contains(out, "revoked") || strings.Contains(fmt.Sprint(out), ci) {
		t.Errorf("helve tokens list:\n%s", out)
	}
}
