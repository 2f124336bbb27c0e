package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Servers that say nothing keep nobody from the tools of the others; who they
// are is told, and their tools come when they answer.
func TestSomeServersAreMute(t *testing.T) {
	pipe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	theirs := theirServer()
	strangeTools(theirs)
	speak, over := make(chan struct{}), make(chan struct{})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return theirs }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-speak:
			handler.ServeHTTP(w, r)
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		web.CloseClientConnections()
		web.Close()
	})
	dir := folder(t)
	write(t, dir+"/app.yaml", hastyApp(t, object{"one": child(t, "strange"), "two": child(t, "strange"),
		"pipe": child(t, "late="+pipe.Addr().String(), "strange"), "silent": object{"url": "http://" + silent.Addr().String()}, "web": object{"url": web.URL}}))
	changed := make(chan struct{}, 100)
	o := &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }}
	d := serve(t, dir, "--app", "app.yaml")
	s, err := dialVersion(t, d.URL+"/mcp/full", "2025-11-25", o)
	if err != nil {
		t.Fatal(err)
	}
	has := func(server string) bool {
		return slices.ContainsFunc(names(t, s), func(name string) bool { return strings.HasPrefix(name, "mcp__"+server+"__") })
	}
	if !has("one") || !has("two") || has("pipe") || has("web") || has("silent") {
		t.Errorf("the tools are %q", names(t, s))
	}
	const hint = "not known yet, since they have not answered: the tools of the MCP servers pipe, silent, web"
	if got := call(t, s, "search_tools", object{"query": "get defs"}); !strings.Contains(got.Text, hint) || !strings.Contains(got.Text, "mcp.one.") {
		t.Errorf("a search: %+v", got)
	}
	if got := call(t, s, "execute_tool", object{"name": "get_nothing", "params": object{}}); !strings.Contains(got.Text, "get_nothing") {
		t.Errorf("a tool of nobody: %+v", got)
	}
	if _, err := s.ListResources(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := s.ListPrompts(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if is := d.states(t, dir); is["pipe"] != "configured" || is["web"] != "configured" || is["silent"] != "configured" {
		t.Errorf("somebody waited until they had failed: %v", is)
	}
	if told := must(t, dir, "upstreams", "--at", d.URL); strings.Count(told, "and lists of tools do not wait for it any longer") != 3 {
		t.Errorf("of the states is told:\n%s", told)
	}
	close(speak)
	pipe.Close()
	for !has("web") || !has("pipe") {
		<-changed
	}
	if got := call(t, s, "search_tools", object{"query": "get defs"}); !strings.Contains(got.Text, `the tools of the MCP servers silent"`) || !strings.Contains(got.Text, "mcp.web.") {
		t.Errorf("a search when they have answered: %+v", got)
	}

	// Over stdio: the next time all but one are known, and that one is not waited for as long.
	stdin := stdio(t, dir, "--app", "app.yaml", "--present", "full")
	if all := names(t, stdin); !slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, "mcp__web__") }) {
		t.Errorf("over stdio the tools are %q", all)
	}
}

// How long lists wait for a server, and how long it may take to start, is as
// the app file says.
func TestWaitsAsSaid(t *testing.T) {
	pipe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	patient := child(t, "late="+pipe.Addr().String(), "strange")
	patient["lists_wait"], patient["start_timeout"] = 600, 600
	url := "http://" + silent.Addr().String()
	dir := folder(t, "app.yaml", hastyApp(t, object{"patient": patient, "plain": object{"url": url}, "brief": object{"url": url, "start_timeout": 1}}))
	d := serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp/discovery")
	found := make(chan reply, 1)
	go func() { found <- call(t, s, "search_tools", object{"query": "get defs"}) }()
	eventually(t, func() bool {
		return strings.Contains(must(t, dir, "upstreams", "--at", d.URL), "was not ready within 1s")
	})
	const noMore = `lists of tools do not wait for it any longer" server=`
	eventually(t, func() bool { return strings.Contains(d.errs.String(), noMore+"plain") })
	if strings.Contains(d.errs.String(), noMore+"patient") {
		t.Errorf("lists do not wait as long as is said:\n%s", d.errs.String())
	}
	pipe.Close()
	if got := <-found; !strings.Contains(got.Text, "mcp.patient.get_defs") {
		t.Errorf("a search that began before: %+v", got)
	}
}
