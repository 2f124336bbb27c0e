package mcpbridge_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// A scripted server answers by method with results as they are given, over
// stdin and stdout. It speaks an old revision.
type scripted map[string]func(id json.RawMessage, params json.RawMessage) string

func reply(result string) func(json.RawMessage, json.RawMessage) string {
	return func(id, _ json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
}

const oldServer = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"old\u001b[31m","version":"0"}}`

func (s scripted) serve(in io.Reader, out io.Writer) {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 32<<20)
	for sc.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(sc.Bytes(), &m) != nil {
			continue
		}
		switch f := s[m.Method]; {
		case f != nil:
			if text := f(m.ID, m.Params); text != "" {
				io.WriteString(out, text+"\n")
			}
		case m.Method == "initialize":
			io.WriteString(out, reply(oldServer)(m.ID, nil)+"\n")
		case m.ID != nil:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s"}}`+"\n", m.ID, m.Method)
		}
	}
}

// hostiles are servers that break the rules.
var hostiles = map[string]scripted{
	"noisy": {
		"tools/list": func(id, _ json.RawMessage) string {
			return "Listing tools...\n{\"not\":\"a message\"}\n\x1b[32m\n" + reply(`{"tools":[{"name":"get_x","inputSchema":{"type":"object"}}]}`)(id, nil)
		},
		"tools/call": func(id, _ json.RawMessage) string { return "calling\n" + reply(`{"content":[]}`)(id, nil) },
	},
	"latin": { // another encoding than UTF-8, and the mark of that
		"tools/list": func(id, _ json.RawMessage) string { return "\ufeff" + reply(`{"tools":[{"name":"get"}]}`)(id, nil) },
		"tools/call": reply(latin),
	},
	"future": {"initialize": reply(`{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"0"}}`)},
	"keyless": {"initialize": func(id, _ json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no licence key"}}`, id)
	}},
	"circle":   {"tools/list": reply(`{"tools":[],"nextCursor":"again"}`)},
	"endless":  {"tools/list": endless()},
	"swarm":    {"tools/list": reply(`{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, 10_001), ",") + `]}`)},
	"nonsense": {"tools/list": reply(`{"tools":"all of them"}`)},
	"mute":     {"tools/list": func(json.RawMessage, json.RawMessage) string { return "" }},
	"deaf":     {"server/discover": func(json.RawMessage, json.RawMessage) string { return "" }, "tools/list": reply(`{"tools":[{"name":"get_x"}]}`)},
	"mixed": {"tools/list": reply(oneLine(`{"tools":[
		{"name":"get_good","description":"\u001b]0;owned\u0007Good\u001b[2J tool\u202e.\nSecond line.","inputSchema":{"type":"object"},"annotations":{"title":"A \u0007title"}},
		{"name":"bad\u001b[31mname","inputSchema":{"type":"object"}},
		{"name":"","inputSchema":{"type":"object"}},
		{"name":5},
		7,
		{"name":"get_good","inputSchema":{"type":"object"}},
		{"name":"list_params","inputSchema":[]},
		{"name":"string_params","inputSchema":{"type":"string"}},
		{"name":"broken_schema","inputSchema":{"type":"object","properties":{"a":{"type":"no such type"}}}},
		{"name":"bad_hints","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}},
		{"name":"bad_header","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},
		{"name":"nameless"},
		{"name":"` + strings.Repeat("long", 100) + `"}
		]}`))},
	"absurd": { // asks without saying what, and answers what cannot be read
		"tools/list": reply(`{"tools":[{"name":"get"}]}`),
		"tools/call": func(id, params json.RawMessage) string {
			if strings.Contains(string(params), "deep") {
				return reply(`{"structuredContent":`+strings.Repeat(`[`, 50_000)+strings.Repeat(`]`, 50_000)+`}`)(id, nil)
			}
			var all strings.Builder
			for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "ping", "notifications/progress", "notifications/message",
				"notifications/resources/updated", "notifications/cancelled", "notifications/elicitation/complete"} {
				for _, params := range []string{``, `,"params":null`, `,"params":7`, `,"params":[]`, `,"params":{}`} {
					one := `,"id":"q` + method + params[:min(len(params), 1)] + `"`
					if strings.HasPrefix(method, "notifications/") {
						one = ``
					}
					all.WriteString(`{"jsonrpc":"2.0"` + one + `,"method":"` + method + `"` + params + "}\n")
				}
			}
			return all.String() + reply(`{"content":[{"type":"text","text":"still here"}]}`)(id, nil)
		},
	},
	"results": {
		"tools/list": reply(`{"tools":[{"name":"get"}]}`),
		"tools/call": func(id, params json.RawMessage) string {
			var p struct{ Arguments struct{ Want string } }
			json.Unmarshal(params, &p)
			if p.Arguments.Want == "error" {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad \u001b[31margument","data":{"x":1}}}`, id)
			}
			if p.Arguments.Want == "word" {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":"no"}`, id)
			}
			if p.Arguments.Want == "huge" {
				return reply(`{"content":[{"type":"text","text":"`+strings.Repeat("x", 65<<20)+`"}]}`)(id, nil)
			}
			return reply(p.Arguments.Want)(id, nil)
		},
	},
	"family": {
		"tools/list": func(id, _ json.RawMessage) string {
			dialHome("server")
			deafen()
			return reply(`{"tools":[{"name":"get_children"}]}`)(id, nil)
		},
		"tools/call": func(id, _ json.RawMessage) string {
			for _, role := range kin() {
				if err := beget(role).Start(); err != nil {
					return reply(`{"isError":true}`)(id, nil)
				}
			}
			return reply(`{"content":[]}`)(id, nil)
		},
	},
}

func endless() func(json.RawMessage, json.RawMessage) string {
	n := 0
	return func(id, _ json.RawMessage) string {
		n++
		return reply(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n))(id, nil)
	}
}

func TestHostileServers(t *testing.T) {
	mute, deaf := self("mute"), self("deaf")
	mute.StartTimeout, deaf.StartTimeout = 300*time.Millisecond, 6*time.Second
	rows := []struct {
		up    mcpbridge.Upstream
		state mcpbridge.State
		tools int
		err   string
	}{
		{self("noisy"), mcpbridge.Started, 1, ""},
		{self("latin"), mcpbridge.Started, 1, ""},
		{self("future"), mcpbridge.Failed, 0, "it speaks the revision 1999-01-01 of the protocol, which Helve does not"},
		{self("keyless"), mcpbridge.Failed, 0, "no licence key"},
		{self("circle"), mcpbridge.Failed, 0, `in a circle: the cursor "again" came twice`},
		{self("endless"), mcpbridge.Failed, 0, "more than 2000 pages"},
		{self("swarm"), mcpbridge.Failed, 0, "more than 10000 tools"},
		{self("nonsense"), mcpbridge.Failed, 0, "the list of tools cannot be read"},
		{mute, mcpbridge.Failed, 0, "not listed within|not ready within"},
		{deaf, mcpbridge.Started, 1, ""},
	}
	for _, r := range rows {
		name := r.up.Env["HELVE_TEST_CHILD"]
		g := open(t, r.up)
		st := g.status(t)
		ok := r.err == "" && st.Error == ""
		for part := range strings.SplitSeq(r.err, "|") {
			ok = ok || part != "" && strings.Contains(st.Error, part)
		}
		if st.State != r.state || st.Tools != r.tools || !ok {
			t.Errorf("%s: %+v", name, st)
		}
		if st.State == mcpbridge.Started && (st.Server != "old" || st.Protocol != "2024-11-05") {
			t.Errorf("%s calls itself %q, of %s", name, st.Server, st.Protocol)
		}
		g.ups.Close()
	}
}

const latin = `{"content":[{"type":"text","text":"caf` + "\xe9" + `"}],"structuredContent":{"caf` + "\xe9" + `":1}}`

// What is no UTF-8 goes no further: a client that may not read one answer loses
// its connection, and with it all other servers.
func TestOtherEncodings(t *testing.T) {
	g := open(t, self("latin"))
	m := &moody{}
	m.script = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		if m.next()%2 == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: "+reply(latin)(id, nil)+"\n\n")
			return
		}
		io.WriteString(w, reply(latin)(id, nil))
	}
	web := m.open(t)
	for name, res := range map[string]*tool.Result{"stdio": g.call(t, "mcp.kid.get", `{}`),
		"an answer": web.call(t, "mcp.web.send_mail", `{}`), "a stream": web.call(t, "mcp.web.send_mail", `{}`)} {
		if res.Err != nil || res.JoinText() != "caf\ufffd" || !utf8.Valid(res.Structured) || string(res.Structured) != "{\"caf\ufffd\":1}" {
			t.Errorf("%s: %+v, %q", name, res, res.Structured)
		}
	}
}

func TestUnusableToolsAreLeftOutAlone(t *testing.T) {
	mixed := self("mixed")
	mixed.OnFlagged = mcpbridge.WarnFlagged
	g := open(t, mixed)
	st := g.status(t)
	if st.State != mcpbridge.Started || st.Tools != 2 || len(st.LeftOut) != 11 {
		t.Fatalf("the server is %+v", st)
	}
	for i, part := range []string{"unprintable character U+001B", "place 3", "place 4", "place 5", "listed twice", "list_params", "arguments are objects",
		"no such type", "bad_hints", "no name of a header", "at most 256"} {
		if !strings.Contains(st.LeftOut[i], part) {
			t.Errorf("left out: %s; expected %s", st.LeftOut[i], part)
		}
	}
	good, _ := g.reg.Set().Lookup("mcp.kid.get_good")
	if good == nil || good.Description != "Good tool.\nSecond line." || good.Title != "A title" {
		t.Errorf("the good tool is %+v", good)
	}
	if none, _ := g.reg.Set().Lookup("mcp.kid.nameless"); none == nil || !strings.Contains(none.Description, "kid") {
		t.Errorf("the tool without a description is %+v", none)
	}
}

func TestResults(t *testing.T) {
	g := open(t, self("results"))
	get := func(want string) *tool.Result {
		args, _ := json.Marshal(map[string]string{"want": want})
		return g.call(t, "mcp.kid.get", string(args))
	}
	block := `{"type":"image","data":"cG5n","mimeType":"image/png","annotations":{"priority":12345678901234567890}}`
	res := get(`{"content":[{"type":"text","text":"hi"},` + block + `,{"type":"resource","resource":{"uri":"a:b","text":"in"}},` +
		`{"type":"resource_link","uri":"c:d","name":"n"},{"type":"hologram","x":1},"junk"],"structuredContent":{"n":12345678901234567890},"_meta":{"k":1.0}}`)
	if res.Err != nil || len(res.Content) != 6 || string(res.Structured) != `{"n":12345678901234567890}` || string(res.Meta) != `{"k":1.0}` {
		t.Fatalf("the result is %+v", res)
	}
	c := res.Content
	if c[0].Text != "hi" || string(c[1].Data) != "png" || c[1].MIME != "image/png" || string(c[1].Raw) != block || c[2].URI != "a:b" || c[2].Text != "in" ||
		!c[3].Link || c[3].URI != "c:d" || c[3].Name != "n" || !strings.Contains(c[4].Text, "hologram") || !strings.Contains(c[5].Text, "cannot be read") {
		t.Errorf("the contents are %+v", c)
	}
	if res := get(`{"content":[],"structuredContent":{"a":1}}`); res.JoinText() != `{"a":1}` {
		t.Errorf("a result that is only structured reads %q", res.JoinText())
	}
	if res := get(`{"content":[{"type":"text","text":"no such"},{"type":"text","text":"file"}],"isError":true}`); res.Err == nil ||
		res.Err.Code != tool.CodeExternal || res.Err.Message != "no such\nfile" || len(res.Content) != 0 {
		t.Errorf("a failure is %+v", res)
	}
	for want, part := range map[string]string{
		"error": "refused the call: bad argument (code -32602)", `"text"`: "cannot be read", `null`: "cannot be read", `[]`: "cannot be read", `{"content":"no"}`: "cannot be read: content is a JSON string, which it may not be",
		`{"resultType":"input_required","inputRequests":{}}`: "wants input: and asks nothing", "word": "its answer cannot be read: it has not the form of the protocol (code", "huge": "more than 64 MiB",
	} {
		if res := get(want); res.Err == nil || !strings.Contains(res.Err.Message, part) || strings.Contains(res.Err.Message, "\x1b") {
			t.Errorf("%.40s: %+v; want %s", want, res.Err, part)
		}
	}
}

// A server's questions and news without params, and answers that cannot be
// read, are errors of their own.
func TestAbsurdMessages(t *testing.T) {
	up := self("absurd")
	up.Asks = mcpbridge.AsksAll
	g := open(t, up)
	if res := g.call(t, "mcp.kid.get", `{}`); res.Err != nil || res.JoinText() != "still here" {
		t.Errorf("%+v; the servers are %+v", res, g.ups.Status())
	}
	if res := g.call(t, "mcp.kid.get", `{"want":"deep"}`); res.Err == nil || !strings.Contains(res.Err.Message, "its answer cannot be read") {
		t.Errorf("what is nested too deep: %+v", res)
	}
	if res := g.call(t, "mcp.kid.get", `{}`); res.JoinText() != "still here" {
		t.Errorf("afterwards: %+v", res)
	}
}

// What is no block is told, and not passed on: clients would choke on it.
func TestBlocksThatAreNone(t *testing.T) {
	g := open(t, self("results"))
	args, _ := json.Marshal(map[string]string{"want": `{"content":[null,7,{"type":7},{"type":"text","text":{}},{"type":"image","data":"%"},{"type":"hologram"},` + strings.Repeat(`{"type":"text","text":""},`, 6000) + `{"type":"text","text":"last"}]}`})
	res := g.call(t, "mcp.kid.get", string(args))
	if res.Err != nil || len(res.Content) != 5001 || !strings.Contains(res.Content[5000].Text, "1007 more parts of the result were left out") {
		t.Fatalf("%d parts, %+v", len(res.Content), res.Err)
	}
	for i, c := range res.Content[:6] {
		if (c.Raw != nil) != (i == 5) || !strings.Contains(c.Text, "[content ") {
			t.Errorf("block %d is %+v", i, c)
		}
	}
}

func TestCallTimeout(t *testing.T) {
	s := sdkServer(nil)
	nopTool(s, "get_x")
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			io.WriteString(w, reply(oldServer)(m.ID, nil))
		case m.Method == "tools/list":
			io.WriteString(w, reply(`{"tools":[{"name":"get_x"}]}`)(m.ID, nil))
		case m.Method == "tools/call":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	defer close(release)
	g := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL, CallTimeout: 200 * time.Millisecond})
	res := g.call(t, "mcp.web.get_x", `{}`)
	if res.Err == nil || res.Err.Code != tool.CodeTimeout || !res.Err.Retryable {
		t.Errorf("%+v; servers %+v", res, g.ups.Status())
	}
}

// Requests follow a server to another path of its own, with all that they carry.
func TestRequestsAreSentOn(t *testing.T) {
	m := &moody{}
	var without int
	mux := http.NewServeMux()
	mux.Handle("/mcp/", m)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" {
			without++
		}
		http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/circle", http.StatusPermanentRedirect)
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	g := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL + "/mcp", Headers: map[string]string{"X-Key": "k"}})
	for range 2 {
		if res := g.call(t, "mcp.web.send_mail", `{}`); res.Err != nil || res.JoinText() != "sent" || without > 0 {
			t.Errorf("%+v, %d requests without their headers; servers %+v", res, without, g.ups.Status())
		}
	}
	g.ups.Close()
	circle := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL + "/circle"})
	if st := circle.status(t); st.State != mcpbridge.Failed || !strings.Contains(st.Error, "on and on") {
		t.Errorf("%+v", st)
	}
}

// Who signs in by the address does so with every request, and is not told.
func TestUsersOfAddresses(t *testing.T) {
	m := &moody{}
	var sent []string
	var mu sync.Mutex
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		mu.Lock()
		sent = append(sent, user+"+"+password+" to "+r.UserAgent())
		mu.Unlock()
		m.ServeHTTP(w, r)
	}))
	defer web.Close()
	g := open(t, mcpbridge.Upstream{Name: "web", URL: strings.Replace(web.URL, "://", "://ann%40x:s%3acret@", 1) + "/mcp"})
	if res := g.call(t, "mcp.web.send_mail", `{}`); res.Err != nil || res.JoinText() != "sent" {
		t.Errorf("%+v; servers %+v", res, g.ups.Status())
	}
	g.ups.Close()
	if slices.ContainsFunc(sent, func(s string) bool { return s != "ann@x+s:cret to helve/test" }) || len(sent) < 4 {
		t.Errorf("sent %q", sent)
	}
	gone := open(t, mcpbridge.Upstream{Name: "web", URL: "http://t0ken@127.0.0.1:1/mcp"})
	if st := gone.status(t); st.State != mcpbridge.Failed || strings.Contains(st.Error, "t0ken") {
		t.Errorf("%+v", st)
	}
}

func TestHeadersStayAtHome(t *testing.T) {
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	var sent string
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	g := open(t, mcpbridge.Upstream{Name: "web", URL: first.URL, Headers: map[string]string{"Authorization": "Bearer x"}})
	if st := g.status(t); st.State != mcpbridge.Failed || sent != "Bearer x" || len(leaked) != 0 {
		t.Errorf("state %s, sent %q, leaked %q", st.State, sent, leaked)
	}
}

func TestChildrenEndWithTheirServer(t *testing.T) {
	h := newHome(t)
	up := self("family")
	up.Env["HELVE_TEST_ADDR"] = h.Addr().String()
	g := open(t, up)
	if res := g.call(t, "mcp.kid.get_children", `{}`); res.Err != nil {
		t.Fatal(res.Err)
	}
	conns := map[string]net.Conn{}
	for len(conns) < 1+len(kin()) {
		role, conn := h.await(t)
		conns[role] = conn
	}
	g.ups.Close()
	for role, conn := range conns {
		gone(t, role, conn)
	}
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n\t\t", "") }

func TestEnvironment(t *testing.T) {
	t.Setenv("SOME_API_KEY", "secret")
	t.Setenv("LC_ALL", "C")
	up := self("env")
	up.Env["EXTRA"] = "given"
	g := open(t, up)
	env := g.call(t, "mcp.kid.get_env", `{}`).JoinText()
	for _, want := range []string{"EXTRA=given", "PATH=", "LC_ALL=C"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s in\n%s", want, env)
		}
	}
	if strings.Contains(env, "SOME_API_KEY") {
		t.Error("a secret was handed down")
	}
}
