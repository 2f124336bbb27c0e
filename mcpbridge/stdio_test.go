package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/tool"
)

// converse sends everything at once, ends the input, and returns the lines of the answer.
func (h *house) converse(t testing.TB, in string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := h.server.ServeStdio(t.Context(), strings.NewReader(in), &out, inject.Direct); err != nil {
		t.Fatalf("ServeStdio: %v", err)
	}
	var lines []string
	for l := range strings.Lines(out.String()) {
		if !json.Valid([]byte(l)) {
			t.Errorf("printed what is no message: %q", l)
		}
		lines = append(lines, strings.TrimSuffix(l, "\n"))
	}
	return lines
}

const (
	hello   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n"
	started = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
)

func begin(version string) string { return strings.ReplaceAll(hello, "VERSION", version) + started }

func TestMalformedLines(t *testing.T) {
	rows := []struct{ name, in, want string }{
		{"garbage", `hello there`, `"id":null,"error":{"code":-32700`},
		{"half a message", `{"jsonrpc":"2.0","id":1,`, `"code":-32700`},
		{"binary", "\x00\xff\xfe", `"code":-32700`},
		{"a number", `42`, `"code":-32600`},
		{"no version", `{"id":7,"method":"ping"}`, `"id":7,"error":{"code":-32600`},
		{"wrong version", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, `"id":7,"error":{"code":-32600`},
		{"method of a wrong type", `{"jsonrpc":"2.0","id":7,"method":5}`, `"code":-32600`},
		{"id of a wrong type", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"code":-32600`},
		{"id beyond integers", `{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}`, `"code":-32600`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"code":-32600`},
		{"unknown method", `{"jsonrpc":"2.0","id":8,"method":"no/such"}`, `"id":8,"error":{"code":-32601`},
		{"call without params", `{"jsonrpc":"2.0","id":8,"method":"tools/call"}`, `"id":8,"error":{"code":-32600`},
		{"call without a name", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}`, `"id":8,"error":{"code":-32602`},
		{"name of a wrong type", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":[]}}`, `"id":8,"error":{"code":-32602`},
		{"params of a wrong type", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[1]}`, `"id":8,"error":{"code":-32602`},
		{"a foreign cursor", `{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":"abc"}}`, `"id":8,"error":{"code":-32602`},
		{"a stale cursor", `{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":"abc.1"}}`, `list them from the start`},
		{"a batch", `[{"jsonrpc":"2.0","id":8,"method":"ping"}]`, `revision 2025-11-25 has no batches`},
		{"deep nesting", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"talk__echo","arguments":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}}`, `"code":-32600`},
		{"a huge line", `{"jsonrpc":"2.0","id":8,"method":"ping","params":{"x":"` + strings.Repeat("x", 17<<20) + `"}}`, `at most 16777216 bytes`},
	}
	h := newHouse(t, nil, echo())
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := h.converse(t, begin("2025-11-25")+r.in+"\n\n  \n"+
				`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"alive"}}}`)
			if len(got) != 3 {
				t.Fatalf("%d answers: %.300q", len(got), got)
			}
			all := strings.Join(got, "\n")
			if !strings.Contains(all, r.want) {
				t.Errorf("no %s in\n%.600s", r.want, all)
			}
			if !strings.Contains(all, `"text":"alive"`) {
				t.Errorf("the server did not go on:\n%.600s", all)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	h := newHouse(t, nil, echo())
	got := h.converse(t, begin("2025-03-26")+`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}},7,`+
		`{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"hi"}}}]`+"\n[]\n[1]\n")
	if len(got) != 4 {
		t.Fatalf("%d answers: %q", len(got), got)
	}
	var answers []struct {
		ID     any
		Error  *struct{ Code int }
		Result any
	}
	for _, l := range got[1:] {
		if strings.HasPrefix(l, "[") && len(l) > len(`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: not an object"}}]`) {
			if err := json.Unmarshal([]byte(l), &answers); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused, answered := 0, 0
	for _, a := range answers {
		if a.Error != nil && a.Error.Code == -32600 && a.ID == nil {
			refused++
		}
		if a.Result != nil {
			answered++
		}
	}
	if refused != 2 || answered != 2 {
		t.Errorf("the batch was answered with %+v", answers)
	}
}

func TestEndOfInputWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := handled("test.slow", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
			select {
			case <-time.After(20 * time.Second):
				return tool.Text("slow but sure"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		h := newHouse(t, nil, slow)
		got := h.converse(t, begin("2025-06-18")+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test__slow"}}`)
		if len(got) != 2 || !strings.Contains(got[1], "slow but sure") {
			t.Errorf("answers: %q", got)
		}
		h.server.Close(t.Context())
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := handled("test.stuck", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) {
			<-release // heeds nothing
			return tool.Text("late"), nil
		})
		h := newHouse(t, nil, stuck)
		in := begin("2025-06-18") + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test__stuck"}}`
		if got := h.converse(t, in); len(got) != 1 {
			t.Errorf("answers: %q", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, w := io.Pipe()
		go io.WriteString(w, in+"\n")
		if err := h.server.ServeStdio(ctx, r, io.Discard, inject.Direct); !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped server returned %v", err)
		}
		r.Close()
		close(release)
		synctest.Wait()
		h.server.Close(t.Context())
	})
}

func TestCancellation(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	wait := handled("test.wait", tool.Reads, func(ctx context.Context, _ *tool.Call) (*tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	h := newHouse(t, nil, wait)
	web := h.http(t, "")
	for _, version := range versions {
		for name, s := range map[string]*mcp.ClientSession{"stdio": h.pipe(t, "", nil, version), "http": dial(t, web.URL, nil, version)} {
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() {
				if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "test__wait"}); !errors.Is(err, context.Canceled) {
					t.Errorf("%s %s: the call returned %v", name, version, err)
				}
			})
			<-begun
			cancel()
			<-ended // or the test hangs
			done.Wait()
		}
	}
}

func TestProgress(t *testing.T) {
	report := handled("test.report", tool.Reads, func(_ context.Context, c *tool.Call) (*tool.Result, error) {
		c.Progress(tool.Content{Text: "one"})
		c.Progress(tool.Content{Text: "two"})
		return tool.Text("done"), nil
	})
	h := newHouse(t, nil, report)
	web := h.http(t, "")
	for _, version := range versions {
		got := make(chan string, 10)
		o := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			got <- r.Params.Message
		}}
		for name, s := range map[string]*mcp.ClientSession{"stdio": h.pipe(t, "", o, version), "http": dial(t, web.URL, o, version)} {
			p := &mcp.CallToolParams{Name: "test__report"}
			p.SetProgressToken("t")
			if _, err := s.CallTool(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if a, b := <-got, <-got; a != "one" || b != "two" {
				t.Errorf("%s %s: progress %q, %q", name, version, a, b)
			}
			call(t, s, "test__report", nil) // without a token there is none
			select {
			case m := <-got:
				t.Errorf("%s %s: unasked progress %q", name, version, m)
			default:
			}
		}
	}
}

func TestNotes(t *testing.T) {
	noted := handled("test.noted", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) {
		return &tool.Result{Content: []tool.Content{{Text: "a"}}, Notes: []string{"x was made a number", "cut"}}, nil
	})
	h := newHouse(t, nil, noted)
	if got := text(call(t, h.pipe(t, "", nil, ""), "test__noted", nil)); got != "a\n[note] x was made a number\n[note] cut" {
		t.Errorf("got %q", got)
	}
}

func TestContentKinds(t *testing.T) {
	all := handled("test.all", tool.Reads, func(context.Context, *tool.Call) (*tool.Result, error) {
		return &tool.Result{Meta: json.RawMessage(`{"vendor/x":{"b":1,"a":2},"io.modelcontextprotocol/serverInfo":{"name":"theirs"}}`), Content: []tool.Content{
			{Text: "<b>&"}, {Data: []byte("png"), MIME: "image/png"}, {Data: []byte("wav"), MIME: "audio/wav"},
			{Data: []byte("zip"), MIME: "application/zip"}, {URI: "file:///x", Text: "inside", MIME: "text/plain"},
			{URI: "file:///y", Data: []byte("bin")}, {URI: "file:///z", Link: true, Name: "z"},
			{Text: "[redacted]", Raw: json.RawMessage(`{"type":"text","text":"secret"}`)},
			{Text: "raw", Raw: json.RawMessage(`{"type":"text","text":"raw","annotations":{"priority":0.5},"n":12345678901234567890}`)},
		}}, nil
	})
	h := newHouse(t, nil, all)
	got := h.converse(t, begin("2025-06-18")+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test__all"}}`)
	want := `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"vendor/x":{"b":1,"a":2}},"content":[{"type":"text","text":"<b>&"},` +
		`{"type":"image","data":"cG5n","mimeType":"image/png"},{"type":"audio","data":"d2F2","mimeType":"audio/wav"},` +
		`{"type":"resource","resource":{"uri":"helve:result","mimeType":"application/zip","blob":"emlw"}},` +
		`{"type":"resource","resource":{"uri":"file:///x","mimeType":"text/plain","text":"inside"}},` +
		`{"type":"resource","resource":{"uri":"file:///y","blob":"Ymlu"}},{"type":"resource_link","uri":"file:///z","name":"z"},{"type":"text","text":"[redacted]"},` +
		`{"type":"text","text":"raw","annotations":{"priority":0.5},"n":12345678901234567890}]}}`
	if got[1] != want {
		t.Errorf("sent\n%s\nnot\n%s", got[1], want)
	}
}

func TestListsAreTheSameBytes(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, mode := range []inject.Mode{"", inject.Direct, inject.Compact, inject.Discovery} {
		var bodies []string
		for range 2 { // of two servers, asked twice each, over both transports
			h := newHouse(t, nil, echo(), sum(), failing(), meta())
			url := h.http(t, mode).URL
			for range 2 {
				_, body, _ := post(t, url, list)
				bodies = append(bodies, body)
			}
			r, w := io.Pipe()
			out, in := io.Pipe()
			go func() {
				h.server.ServeStdio(t.Context(), r, in, mode)
				in.Close()
			}()
			go func() {
				io.WriteString(w, begin("2025-06-18")+list+"\n")
				w.Close()
			}()
			sc := bufio.NewScanner(out)
			sc.Scan()
			sc.Scan()
			bodies = append(bodies, sc.Text())
			io.Copy(io.Discard, out)
		}
		for _, b := range bodies {
			if b != bodies[0] || !strings.Contains(b, "execute_tool") {
				t.Errorf("%s: lists differ:\n%s\n%s", mode, b, bodies[0])
			}
		}
	}
}

// Whatever comes in, only messages come out, and the server goes on to the end.
func FuzzServeStdio(f *testing.F) {
	for _, in := range []string{"", "{}", "[]", "[[]]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `[{"jsonrpc":"2.0","id":"a","method":"ping"}]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk__echo","arguments":"{}"}}`, "\"\\ud800\"", `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`} {
		f.Add([]byte(in), true)
		f.Add([]byte(in), false)
	}
	h := newHouse(f, nil, echo())
	f.Fuzz(func(t *testing.T, in []byte, old bool) {
		version := "2025-11-25"
		if old {
			version = "2025-03-26"
		}
		last := `{"jsonrpc":"2.0","id":"the last one","method":"tools/call","params":{"name":"talk__echo","arguments":{"text":"alive"}}}`
		got := h.converse(t, begin(version)+string(in)+"\n"+last)
		if !strings.Contains(strings.Join(got, "\n"), "alive") && !bytes.Contains(in, []byte("the last one")) {
			t.Errorf("the server did not go on: %q", got)
		}
	})
}
