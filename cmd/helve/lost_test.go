package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A restless field is many servers at one address, with tools that stay, of
// which one fails in the middle of its list when it is told to.
type restless struct {
	web     *httptest.Server
	all     []*mcp.Server
	names   []string // of the tools that stay
	servers object
	failing atomic.Bool
	gate    atomic.Pointer[pageGate] // before the end of the list of the last server
	beat    chan struct{}            // each search sends one: changes keep time with them
}

// A pageGate holds one server up in the middle of its list until it is opened.
type pageGate struct {
	held, open chan struct{}
	once       sync.Once
}

func newRestless(t *testing.T, servers, tools int) *restless {
	f := &restless{servers: object{}, beat: make(chan struct{}, 1)}
	handlers := map[string]http.Handler{}
	for i := range servers {
		s, name := theirServer(), fmt.Sprintf("s%02d", i)
		for j := range tools {
			tool := fmt.Sprintf("list_items_%05d", i*tools+j)
			addTool(s, tool, anything, echoArgs)
			f.names = append(f.names, "mcp."+name+"."+tool)
		}
		if i == 0 {
			s.AddReceivingMiddleware(f.failInTheMiddle)
		}
		if i == servers-1 {
			s.AddReceivingMiddleware(f.waitInTheMiddle)
		}
		handlers["/"+name] = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		f.all = append(f.all, s)
	}
	f.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handlers[r.URL.Path].ServeHTTP(w, r) }))
	t.Cleanup(func() {
		f.web.CloseClientConnections()
		f.web.Close()
	})
	for path := range handlers {
		f.servers[path[1:]] = object{"url": f.web.URL + path}
	}
	return f
}

func (f *restless) failInTheMiddle(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if r, ok := req.(*mcp.ListToolsRequest); ok && f.failing.Load() && r.Params != nil && r.Params.Cursor != "" {
			return nil, errors.New("the list is lost")
		}
		return next(ctx, method, req)
	}
}

func (f *restless) waitInTheMiddle(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, ok := req.(*mcp.ListToolsRequest)
		if g := f.gate.Load(); ok && g != nil && r.Params != nil && r.Params.Cursor != "" {
			g.once.Do(func() { close(g.held) })
			select {
			case <-g.open:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return next(ctx, method, req)
	}
}

// searchBehindGate searches for a tool whose server is in the middle of its
// list, and lets that go on once the search has been sent.
func (d *daemon) searchBehindGate(t *testing.T, g *pageGate, name string) string {
	select {
	case <-g.held:
	case <-t.Context().Done():
		return "nothing: the server was never asked for the rest of its list"
	}
	sent := sync.OnceFunc(func() { close(g.open) })
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	defer sent()
	return d.search(ctx, http.DefaultClient, name)
}

// stir breaks connections and changes lists until the function that it returns
// is called.
func (f *restless) stir() (stop func()) {
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-f.beat:
			}
			s := f.all[1+n%(len(f.all)-1)]
			addTool(s, "get_noise", anything, echoArgs)
			s.RemoveTools("get_noise")
			if n%50 == 0 {
				f.web.CloseClientConnections()
			}
		}
	})
	return func() {
		close(done)
		all.Wait()
	}
}

// missed searches for each of the tools by its exact name, and says which are
// not found.
func (d *daemon) missed(t *testing.T, names []string, beat chan<- struct{}) (all []string) {
	const atOnce = 8
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var searching sync.WaitGroup
	next := make(chan string)
	for range atOnce {
		searching.Go(func() {
			for name := range next {
				if why := d.search(t.Context(), client, name); why != "" {
					mu.Lock()
					all = append(all, fmt.Sprintf("a search for %s finds %s", name, why))
					mu.Unlock()
				}
			}
		})
	}
	for _, name := range names {
		next <- name
		select {
		case beat <- struct{}{}:
		default:
		}
	}
	close(next)
	searching.Wait()
	return all
}

// search returns "" if a search for the name of a tool finds it, and else what
// it finds.
func (d *daemon) search(ctx context.Context, client *http.Client, name string) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":%q,"limit":1},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, name)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/mcp/discovery", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search_tools"} {
		r.Header.Set(k, v)
	}
	resp, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	var msg struct {
		Result struct{ Content []struct{ Text string } }
	}
	var found struct{ Tools []struct{ Name string } }
	if json.Unmarshal(data, &msg) != nil || len(msg.Result.Content) == 0 ||
		json.Unmarshal([]byte(msg.Result.Content[0].Text), &found) != nil || len(found.Tools) != 1 || found.Tools[0].Name != name {
		return fmt.Sprintf("%.300s", data)
	}
	return ""
}

// No tool is lost: after each cold start all of 5,000 are listed, page by page,
// and found by their exact names, while servers lose their connections, die and
// return, tell of changes without end, or cannot list any more what they listed
// before.
func TestNoToolIsLost(t *testing.T) {
	const servers, tools = 10, 500
	starts := 3
	if raceEnabled {
		starts = 1 // .ci/run runs this test without the race detector, too
	}
	if n, err := strconv.Atoi(os.Getenv("HELVE_TEST_STARTS")); err == nil && n > 0 {
		starts = n
	}
	f := newRestless(t, servers, tools)
	f.servers["dying"] = child(t, "crash")
	f.names = append(f.names, "mcp.dying.get_well", "mcp.dying.get_crash")
	dir := folder(t, "app.yaml", serversApp(t, f.servers))
	for n := range starts {
		f.failing.Store(false)
		slow := &pageGate{held: make(chan struct{}), open: make(chan struct{})}
		f.gate.Store(slow)
		d := serve(t, dir, "--app", "app.yaml", "--state", filepath.Join(t.TempDir(), "state"))
		last := f.names[servers*tools-1]
		if why := d.searchBehindGate(t, slow, last); why != "" {
			t.Errorf("start %d: while its server was listing, a search for %s finds %s", n, last, why)
		}
		first := d.rawList(t, "/mcp/full") // which waits until every server has answered
		f.failing.Store(true)
		addTool(f.all[0], "get_extra", anything, echoArgs) // its list is read again, and cannot be
		stop := f.stir()
		if _, failed := d.rawCall(t, "/mcp/full", "mcp__dying__get_crash", "{}"); !failed {
			t.Errorf("start %d: a server that dies has answered", n)
		}
		for _, listed := range []map[string]json.RawMessage{first, d.rawList(t, "/mcp/full")} {
			for _, name := range f.names {
				if listed[strings.ReplaceAll(name, ".", "__")] == nil {
					t.Errorf("start %d: %s is not listed", n, name)
				}
			}
		}
		for _, missed := range d.missed(t, f.names, f.beat) {
			t.Errorf("start %d: %s", n, missed)
		}
		eventually(t, func() bool {
			text, failed := d.rawCall(t, "/mcp/full", "mcp__dying__get_well", "{}")
			return !failed && text == "well"
		})
		stop()
		f.all[0].RemoveTools("get_extra")
		d.cmd.Process.Kill()
		d.wait()
	}
}
