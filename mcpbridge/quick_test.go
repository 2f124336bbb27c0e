package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/tool"
)

// newCall is a call of the newest revision. It ends with what the two places
// in it are to hold: the rest of params, and the rest of _meta.
func newCall(id, name, args, params, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}%s}}}`, id, name, args, params, meta)
}

// postCall posts a call of the newest revision and returns the status, the kind
// of the answer, and the message in it.
func postCall(t *testing.T, url, body string, header http.Header) (status int, kind string, msg map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	kind = resp.Header.Get("Content-Type")
	if kind == "text/event-stream" {
		text = ""
		for line := range strings.Lines(string(data)) { // the last event is the answer
			if d, ok := strings.CutPrefix(line, "data: "); ok && len(strings.TrimSpace(d)) > 0 {
				text = d
			}
		}
	}
	if json.Unmarshal([]byte(text), &msg) != nil {
		msg = map[string]any{"text": text}
	}
	return resp.StatusCode, kind, msg
}

func callHeader(name string, more ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {name}}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

// TestQuickCalls holds that a call which is answered without the library gets
// the answer that the library would give, and that the library answers the others.
func TestQuickCalls(t *testing.T) {
	h := newHouse(t, nil, echo(), sum(), failing())
	url := h.http(t, "direct").URL
	plain := newCall("1", "talk__echo", `{"text":"hi"}`, "", "")
	for name, row := range map[string]struct {
		body   string
		header http.Header
		quick  bool
	}{
		"a call":                 {plain, callHeader("talk__echo"), true},
		"by its own name":        {newCall(`"x-1"`, "talk.echo", `{"text":"hi"}`, "", ""), callHeader("talk.echo"), true},
		"structured":             {newCall("7", "math__sum", `{"a":1,"b":2}`, "", ""), callHeader("math__sum"), true},
		"that fails":             {newCall("7", "test__fail", `{}`, "", ""), callHeader("test__fail"), true},
		"of nothing":             {newCall("7", "no_such", `{}`, "", ""), callHeader("no_such"), true},
		"bad arguments":          {newCall("7", "math__sum", `{"a":"x"}`, "", ""), callHeader("math__sum"), true},
		"arguments of no object": {newCall("7", "math__sum", `[1]`, "", ""), callHeader("math__sum"), true},
		"null arguments":         {newCall("7", "talk__echo", `null`, "", ""), callHeader("talk__echo"), true},
		"more in _meta":          {newCall("7", "talk__echo", `{"text":"hi"}`, "", `,"traceparent":"00-1-2-3"`), callHeader("talk__echo"), true},
		"a big number":           {newCall("7", "talk__echo", `{"text":"hi","n":12345678901234567890}`, "", ""), callHeader("talk__echo"), true},
		"lists kinds apart":      {plain, callHeader("talk__echo", "Accept", "text/event-stream;q=0.5, application/json"), true},
		"with a charset":         {plain, callHeader("talk__echo", "Content-Type", "application/json; charset=utf-8"), true},

		"progress is wanted":      {newCall("7", "talk__echo", `{"text":"hi"}`, "", `,"progressToken":"p"`), callHeader("talk__echo"), false},
		"logs are wanted":         {newCall("7", "talk__echo", `{"text":"hi"}`, "", `,"io.modelcontextprotocol/logLevel":"debug"`), callHeader("talk__echo"), false},
		"more in params":          {newCall("7", "talk__echo", `{"text":"hi"}`, `,"requestState":"x"`, ""), callHeader("talk__echo"), false},
		"another name":            {plain, callHeader("math__sum"), false},
		"no name":                 {plain, callHeader(""), false},
		"another method":          {plain, callHeader("talk__echo", "Mcp-Method", "tools/list"), false},
		"a header of an argument": {plain, callHeader("talk__echo", "Mcp-Param-Text", "hi"), false},
		"an old revision":         {plain, callHeader("talk__echo", "Mcp-Protocol-Version", "2025-11-25"), false},
		"only JSON is taken":      {plain, callHeader("talk__echo", "Accept", "application/json"), false},
		"of another kind":         {plain, callHeader("talk__echo", "Content-Type", "text/plain"), false},
		"without id":              {strings.Replace(plain, `"id":1,`, "", 1), callHeader("talk__echo"), false},
		"null id":                 {newCall("null", "talk__echo", `{}`, "", ""), callHeader("talk__echo"), false},
		"an id of a kind":         {newCall("1.5", "talk__echo", `{}`, "", ""), callHeader("talk__echo"), false},
		"an id that is an object": {newCall("{}", "talk__echo", `{}`, "", ""), callHeader("talk__echo"), false},
		"a batch":                 {"[" + plain + "]", callHeader("talk__echo"), false},
		"keys in capitals":        {strings.Replace(plain, `"method"`, `"Method"`, 1), callHeader("talk__echo"), false},
		"a name in capitals":      {strings.Replace(plain, `"name":"talk__echo"`, `"NAME":"talk__echo"`, 1), callHeader("talk__echo"), false},
		"no capabilities":         {strings.Replace(plain, `"io.modelcontextprotocol/clientCapabilities":{}`, `"x":1`, 1), callHeader("talk__echo"), false},
		"capabilities of a kind":  {strings.Replace(plain, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":[]`, 1), callHeader("talk__echo"), false},
		"a client of a kind":      {strings.Replace(plain, `{"name":"tester","version":"1"}`, `"tester"`, 1), callHeader("talk__echo"), false},
		"no JSON":                 {plain[:40], callHeader("talk__echo"), false},
		"more than one value":     {plain + plain, callHeader("talk__echo"), false},
		"nothing":                 {"", callHeader("talk__echo"), false},
		"too much":                {newCall("7", "talk__echo", `{"text":"`+strings.Repeat("x", 5<<20)+`"}`, "", ""), callHeader("talk__echo"), false},
	} {
		t.Run(name, func(t *testing.T) {
			status, kind, msg := postCall(t, url, row.body, row.header)
			if quick := kind == "application/json" && msg["result"] != nil; quick != row.quick {
				t.Errorf("answered as %s: %v", kind, msg)
			}
			// A header for an argument that there is not leaves the call to the library.
			slow := row.header.Clone()
			slow.Set("Mcp-Param-None", "x")
			wantStatus, _, want := postCall(t, url, row.body, slow)
			if status != wantStatus {
				t.Errorf("status %d, the library's %d", status, wantStatus)
			}
			if d := cmp.Diff(want, msg); d != "" {
				t.Errorf("the library answers otherwise:\n%s", d)
			}
		})
	}
}

// TestQuickCallsAreTheSameCalls holds that the pipeline sees the same call.
func TestQuickCallsAreTheSameCalls(t *testing.T) {
	h := newHouse(t, nil, echo())
	url := h.http(t, "direct").URL
	body := newCall("1", "talk__echo", `{"text":"hi"}`, "", "")
	postCall(t, url, body, callHeader("talk__echo"))
	postCall(t, url, body, callHeader("talk__echo", "Mcp-Param-None", "x"))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) != 2 {
		t.Fatalf("%d calls", len(h.calls))
	}
	quick, slow := h.calls[0], h.calls[1]
	if d := cmp.Diff(slow.From, quick.From); d != "" || quick.Name != slow.Name || string(quick.Args) != string(slow.Args) {
		t.Errorf("%+v\n%+v\n%s", quick, slow, d)
	}
}

// TestQuickCallsEndWithTheirClient holds that a call is given up when nobody
// waits for it, and that the end of the server waits for one that somebody does.
func TestQuickCallsEndWithTheirClient(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	h := newHouse(t, nil, handled("test.wait", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}))
	url := h.http(t, "direct").URL
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(newCall("1", "test__wait", `{}`, "", "")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = callHeader("test__wait")
	go func() {
		<-begun
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Error("the call was answered")
	}
	if err := <-ended; err == nil {
		t.Error("the call went on")
	}
}

func TestQuickCallsFinishBeforeTheServerDoes(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHouse(t, nil, handled("test.wait", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) {
		close(begun)
		<-end
		return tool.Text("done"), nil
	}))
	url := h.http(t, "direct").URL
	answer := make(chan map[string]any)
	go func() {
		_, _, msg := postCall(t, url, newCall("1", "test__wait", `{}`, "", ""), callHeader("test__wait"))
		answer <- msg
	}()
	<-begun
	closed := make(chan error)
	go func() { closed <- h.server.Close(t.Context()) }()
	for { // until it takes no further calls
		status, _, _ := postCall(t, url, newCall("2", "none", `{}`, "", ""), callHeader("none"))
		if status == http.StatusServiceUnavailable {
			break
		}
	}
	close(end)
	msg := <-answer
	result, _ := msg["result"].(map[string]any)
	if content, _ := result["content"].([]any); !slices.ContainsFunc(content, func(c any) bool { return fmt.Sprint(c) == "map[text:done type:text]" }) {
		t.Errorf("answered %v", msg)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
