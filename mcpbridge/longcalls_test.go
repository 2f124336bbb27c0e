package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/tool"
)

// A talker is a client of revision 2026-07-28 of which tests see every byte:
// the library's knows no tasks.
type talker struct {
	t     testing.TB
	caps  string // of the client, JSON
	send  func(method, params string) wireAnswer
	heard func() []string // notifications so far, over stdio
}

type wireAnswer struct {
	Status int             `json:"-"` // of HTTP
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	raw string
}

// A wireTask is a task as clients see it.
type wireTask struct {
	Type     string                     `json:"resultType"`
	ID       string                     `json:"taskId"`
	Status   string                     `json:"status"`
	Message  string                     `json:"statusMessage"`
	TTL      *int64                     `json:"ttlMs"`
	Requests map[string]json.RawMessage `json:"inputRequests"`
	State    string                     `json:"requestState"`
	Result   json.RawMessage            `json:"result"`
	Error    json.RawMessage            `json:"error"`
}

const (
	knowsTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	asksToo    = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

func (k *talker) message(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s"_meta":{"progressToken":"p%d","io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"talker","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`,
		id, method, params, strings.Repeat(",", min(len(params), 1)), id, k.caps)
}

// overHTTP returns a client that posts each request, as a user.
func overHTTP(t testing.TB, url, user, caps string) *talker {
	k := &talker{t: t, caps: caps}
	k.send = func(method, params string) wireAnswer {
		var name struct{ Name, TaskID string }
		if err := json.Unmarshal([]byte("{"+params+"}"), &name); err != nil {
			t.Fatal(err)
		}
		status, body, _ := postAll(t, url, k.message(1, method, params), "X-User", user, "Mcp-Protocol-Version", "2026-07-28",
			"Mcp-Method", method, "Mcp-Name", name.Name+name.TaskID)
		a := wireAnswer{Status: status, raw: body}
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatalf("%s: %d %s: %v", method, status, body, err)
		}
		return a
	}
	return k
}

// postAll is post for answers that are preceded by notifications.
func postAll(t testing.TB, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := string(data)
	if at := strings.LastIndex(out, "data: "); at >= 0 {
		out, _, _ = strings.Cut(out[at+len("data: "):], "\n")
	}
	return resp.StatusCode, out, resp.Header
}

// overStdio returns a client at a pair of pipes, and what makes it leave.
func overStdio(t testing.TB, h *house, caps string) (k *talker, leave func()) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- h.server.ServeStdio(context.Background(), fromClient, toClient, inject.Direct)
		toClient.Close()
	}()
	k = &talker{t: t, caps: caps}
	var mu sync.Mutex
	var heard []string
	answers := map[int]chan wireAnswer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(fromServer); lines.Scan(); {
			var head struct{ ID *int }
			if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
				t.Errorf("not a message: %s", lines.Bytes())
			}
			mu.Lock()
			if head.ID == nil {
				heard = append(heard, lines.Text())
			} else {
				a := wireAnswer{raw: lines.Text()}
				json.Unmarshal(lines.Bytes(), &a)
				answers[*head.ID] <- a
			}
			mu.Unlock()
		}
	}()
	ids := 0
	k.send = func(method, params string) wireAnswer {
		mu.Lock()
		ids++
		id, answer := ids, make(chan wireAnswer, 1)
		answers[id] = answer
		mu.Unlock()
		if _, err := io.WriteString(toServer, k.message(id, method, params)+"\n"); err != nil {
			t.Error(err)
		}
		return <-answer
	}
	k.heard = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(heard)
	}
	var once sync.Once
	leave = func() {
		once.Do(func() {
			toServer.Close()
			if err := <-served; err != nil {
				t.Errorf("ServeStdio: %v", err)
			}
			<-read
		})
	}
	t.Cleanup(leave)
	return k, leave
}

func (a wireAnswer) task(t testing.TB) wireTask {
	t.Helper()
	var k wireTask
	if a.Error != nil || json.Unmarshal(a.Result, &k) != nil {
		t.Fatalf("answered %s", a.raw)
	}
	var at struct{ CreatedAt, LastUpdatedAt time.Time }
	if err := json.Unmarshal(a.Result, &at); err != nil || at.LastUpdatedAt.Before(at.CreatedAt) {
		t.Errorf("a task that changed before it was made: %v\n%s", err, a.raw)
	}
	return k
}

func (k *talker) call(name string) wireTask {
	k.t.Helper()
	return k.send("tools/call", fmt.Sprintf(`"name":%q`, name)).task(k.t)
}

func (k *talker) get(id string) wireTask {
	k.t.Helper()
	return k.send("tasks/get", fmt.Sprintf(`"taskId":%q`, id)).task(k.t)
}

// until asks after a task until it is as wanted.
func (k *talker) until(id string, wanted func(wireTask) bool) wireTask {
	k.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		got := k.get(id)
		if wanted(got) {
			return got
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("the task stays %+v", got)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (k *talker) ended(id string) wireTask {
	k.t.Helper()
	return k.until(id, func(w wireTask) bool { return w.Status != "working" && w.Status != "input_required" })
}

// patient makes calls tasks as soon as they do not answer at once.
func patient(s store.Store, change func(*mcpbridge.LongCalls)) func(*mcpbridge.ServerOptions) {
	return func(o *mcpbridge.ServerOptions) {
		o.Tasks = task.New(s, task.Options{})
		l := mcpbridge.LongCalls{After: time.Millisecond}
		if change != nil {
			change(&l)
		}
		o.Long = func() mcpbridge.LongCalls { return l }
		o.Caller = func(r *http.Request) mcpbridge.Caller { return mcpbridge.Caller{User: r.Header.Get("X-User")} }
	}
}

// waiting is a tool that answers when it is told, and tells when it was given up.
func waiting(name string) (t *tool.Tool, release func(), begun, givenUp chan struct{}) {
	released := make(chan struct{})
	begun, givenUp = make(chan struct{}, 100), make(chan struct{}, 100)
	t = handled(name, tool.Reads, func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
		c.Progress(tool.Content{Text: "working on it"})
		begun <- struct{}{}
		select {
		case <-released:
			return tool.Text("done at last"), nil
		case <-ctx.Done():
			givenUp <- struct{}{}
			return nil, ctx.Err()
		}
	})
	return t, sync.OnceFunc(func() { close(released) }), begun, givenUp
}

func TestLongCallsBecomeTasks(t *testing.T) {
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			wait, release, _, _ := waiting("test.wait")
			defer release()
			h := newHouse(t, patient(new(mem.Store), nil), wait)
			web := h.http(t, "direct").URL
			k := overHTTP(t, web, "ann", knowsTasks)
			if way == "stdio" {
				k, _ = overStdio(t, h, knowsTasks)
			}
			begun := k.call("test__wait")
			if begun.Type != "task" || begun.Status != "working" || begun.ID == "" || begun.TTL == nil || *begun.TTL < task.DefaultKeep.Milliseconds() || begun.Result != nil {
				t.Fatalf("answered with %+v", begun)
			}
			got := k.until(begun.ID, func(w wireTask) bool { return w.Message != "" })
			if got.Type != "complete" || got.Status != "working" || got.Message != "working on it" {
				t.Errorf("while it works: %+v", got)
			}
			stranger, _ := overStdio(t, h, knowsTasks)
			for who, other := range map[string]*talker{"another user": overHTTP(t, web, "bob", knowsTasks), "another session": stranger} {
				for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
					a := other.send(method, fmt.Sprintf(`"taskId":%q`, begun.ID))
					if a.Error == nil || a.Error.Code != -32602 || !strings.Contains(a.Error.Message, "there is no such task") {
						t.Errorf("%s of %s: %s", method, who, a.raw)
					}
				}
			}
			release()
			done := k.ended(begun.ID)
			if done.Status != "completed" || !strings.Contains(string(done.Result), `"text":"done at last"`) || done.State != "" {
				t.Errorf("ended as %+v", done)
			}
			if a := k.send("tasks/cancel", fmt.Sprintf(`"taskId":%q`, begun.ID)); a.Error != nil || k.get(begun.ID).Status != "completed" {
				t.Errorf("cancelled after its end: %s", a.raw)
			}
			if n := len(h.seen()); n != 1 {
				t.Errorf("%d calls were made", n)
			}
		})
	}
}

// Clients that do not say that they know tasks wait for the answer.
func TestOthersWait(t *testing.T) {
	wait, release, begun, _ := waiting("test.wait")
	h := newHouse(t, patient(new(mem.Store), nil), wait)
	web := h.http(t, "direct").URL
	line, _ := overStdio(t, h, `{}`)
	answers := make(chan string, 10)
	for _, k := range []*talker{line, overHTTP(t, web, "ann", `{"elicitation":{}}`)} {
		go func() { answers <- k.send("tools/call", `"name":"test__wait"`).raw }()
	}
	for _, s := range []*mcp.ClientSession{h.pipe(t, "direct", nil, "2025-11-25"), dial(t, web, nil, "2025-06-18")} {
		go func() {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test__wait"})
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- text(res)
		}()
	}
	for range 4 {
		<-begun
	}
	release()
	for range 4 {
		if a := <-answers; !strings.Contains(a, "done at last") {
			t.Errorf("answered %s", a)
		}
	}
	if a := line.send("tasks/get", `"taskId":"x"`); a.Error == nil || a.Error.Code != -32021 || !strings.Contains(string(a.Error.Data), `"io.modelcontextprotocol/tasks":{}`) {
		t.Errorf("a client without the extension asks after a task: %s", a.raw)
	}
	old := h.converse(t, begin("2025-11-25")+`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}`)
	if strings.Contains(old[0], "extensions") || !strings.Contains(old[1], "-32601") {
		t.Errorf("an old client is told %q", old)
	}
	for _, caps := range []string{`{}`, knowsTasks} {
		k := overHTTP(t, web, "ann", caps)
		var res struct {
			Capabilities struct{ Extensions map[string]any }
		}
		if a := k.send("server/discover", ""); json.Unmarshal(a.Result, &res) != nil || res.Capabilities.Extensions["io.modelcontextprotocol/tasks"] == nil {
			t.Errorf("discovered %s", a.raw)
		}
	}
}

func TestTasksAreCancelled(t *testing.T) {
	came, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	h, g := gateway(t, patient(new(mem.Store), nil), rename(serveHTTP(t, sdkServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				came <- struct{}{}
				<-ctx.Done()
				gone <- struct{}{}
				return nil, ctx.Err()
			})
	}), false), "theirs"))
	local, _, inside, givenUp := waiting("test.wait")
	if err := g.reg.Replace("house", local); err != nil {
		t.Fatal(err)
	}
	k := overHTTP(t, h.http(t, "direct").URL, "ann", knowsTasks)
	for name, noticed := range map[string]chan struct{}{"mcp__theirs__wait": gone, "test__wait": givenUp} {
		begun := k.call(name)
		if name == "test__wait" {
			<-inside
		} else {
			<-came // one that is cancelled before is never made
		}
		if a := k.send("tasks/cancel", fmt.Sprintf(`"taskId":%q`, begun.ID)); a.Error != nil || strings.Contains(string(a.Result), "taskId") {
			t.Fatalf("%s: %s", name, a.raw)
		}
		<-noticed
		if got := k.ended(begun.ID); got.Status != "cancelled" || got.Result != nil || got.Error != nil {
			t.Errorf("%s: ended as %+v", name, got)
		}
	}
	line, leave := overStdio(t, h, knowsTasks)
	line.call("test__wait")
	<-inside
	leave()
	<-givenUp // nobody could ask after it
}

// A call is cancelled, too, when the message that cancels it overtakes it.
func TestCancellingOvertakesTheCall(t *testing.T) {
	gone := make(chan struct{})
	sessions := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return sdkServer(func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
		})
	}, nil)
	called, overtaken := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(overtaken) })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		call := bytes.Contains(body, []byte(`"tools/call"`))
		if call {
			close(called)
			<-overtaken
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		sessions.ServeHTTP(w, r)
		if call {
			close(gone) // only what was cancelled is answered
		}
		if bytes.Contains(body, []byte(`"notifications/cancelled"`)) {
			once()
		}
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	g := open(t, mcpbridge.Upstream{Name: "web", URL: web.URL, CallTimeout: 20 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := g.run.Do(ctx, &tool.Call{Name: "mcp.web.wait", Args: json.RawMessage("{}")}); err == nil {
			t.Error("a cancelled call was answered")
		}
	}()
	<-called
	cancel()
	<-done
	<-gone
}

func TestTasksAsk(t *testing.T) {
	atOnce := func(l *mcpbridge.LongCalls) {
		l.After = -1
		l.As = func(c *tool.Call) mcpbridge.AsTask {
			if strings.Contains(c.Name, "get_name") {
				return mcpbridge.WhenLong
			}
			return mcpbridge.AtOnce
		}
	}
	h, _ := gateway(t, patient(new(mem.Store), atOnce), rename(serveHTTP(t, inquisitive(), true), "new"), rename(serveHTTP(t, sdkServer(asksByItself), false), "old"))
	web := h.http(t, "direct").URL
	k := overHTTP(t, web, "ann", asksToo)
	begun := k.call("mcp__new__multi_input")
	asked := k.until(begun.ID, func(w wireTask) bool { return len(w.Requests) == 2 })
	if asked.Status != "input_required" {
		t.Errorf("asked with %+v", asked)
	}
	seen := map[string]bool{}
	for id, q := range asked.Requests {
		if !strings.Contains(string(q), `"method":"elicitation/create"`) || seen[string(q)] {
			t.Errorf("asks %s", q)
		}
		seen[string(q)] = true
		if a := k.send("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"never":{"action":"accept"},%q:7}`, begun.ID, id)); a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("answered with a number: %s", a.raw)
		}
		a := k.send("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ann"}}}`, begun.ID, id))
		if a.Error != nil || strings.Contains(string(a.Result), "taskId") {
			t.Errorf("answered: %s", a.raw)
		}
		if now := k.get(begun.ID); now.Requests[id] != nil {
			t.Errorf("asks again: %+v", now)
		}
	}
	if done := k.ended(begun.ID); !strings.Contains(string(done.Result), "first: accept map[name:Ann]. second: accept map[name:Ann].") {
		t.Errorf("ended as %+v", done)
	}
	// A call that is no task yet asks by its answer, and goes on with the next request.
	asked = k.call("mcp__old__get_name")
	if asked.Type != "input_required" || asked.ID != "" || asked.State == "" || len(asked.Requests) != 1 {
		t.Fatalf("asked with %+v", asked)
	}
	for id := range asked.Requests {
		again := fmt.Sprintf(`"name":"mcp__old__get_name","requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Ann"}}}`, asked.State, id)
		if a := overHTTP(t, web, "bob", asksToo).send("tools/call", again); a.Error == nil || !strings.Contains(a.Error.Message, "does not wait for an answer") {
			t.Errorf("another user goes on with: %s", a.raw)
		}
		if a := k.send("tools/call", again); !strings.Contains(a.raw, "accept Ann") {
			t.Errorf("with the answer: %s", a.raw)
		}
	}
	if a := overHTTP(t, web, "ann", knowsTasks).send("tools/call", `"name":"mcp__old__get_name"`); !strings.Contains(a.raw, "it does not support elicitation") {
		t.Errorf("a client that cannot be asked: %s", a.raw)
	}
}

func TestTasksSurviveTheServer(t *testing.T) {
	s := new(mem.Store)
	wait, _, begunWait, _ := waiting("test.wait")
	h := newHouse(t, patient(s, func(l *mcpbridge.LongCalls) {
		l.As = func(*tool.Call) mcpbridge.AsTask { return mcpbridge.AtOnce }
	}), wait, echo())
	k := overHTTP(t, h.http(t, "direct").URL, "ann", knowsTasks)
	short := k.send("tools/call", `"name":"talk__echo","arguments":{"text":"hi"}`).task(t).ID
	if got := k.ended(short); got.Status != "completed" {
		t.Fatalf("ended as %+v", got)
	}
	long := k.call("test__wait").ID
	<-begunWait
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	next := newHouse(t, patient(s, nil), echo())
	web := next.http(t, "direct").URL
	k = overHTTP(t, web, "ann", knowsTasks)
	if got := k.get(short); got.Status != "completed" || !strings.Contains(string(got.Result), `"text":"hi"`) {
		t.Errorf("the one that had ended: %+v", got)
	}
	if got := k.get(long); got.Status != "failed" || !strings.Contains(got.Message, "interrupted") || !strings.Contains(string(got.Error), `"code":-32603`) {
		t.Errorf("the one that had not: %+v", got)
	}
	if a := overHTTP(t, web, "bob", knowsTasks).send("tasks/get", fmt.Sprintf(`"taskId":%q`, short)); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("for another user: %s", a.raw)
	}
}

func TestTasksAreBounded(t *testing.T) {
	wait, release, begun, _ := waiting("test.wait")
	h := newHouse(t, func(o *mcpbridge.ServerOptions) {
		patient(nil, nil)(o)
		o.Tasks = task.New(new(mem.Store), task.Options{Most: 1})
	}, wait)
	k := overHTTP(t, h.http(t, "direct").URL, "ann", knowsTasks)
	if got := k.call("test__wait"); got.Type != "task" {
		t.Fatalf("the first: %+v", got)
	}
	<-begun
	answer := make(chan string, 1)
	go func() { answer <- k.send("tools/call", `"name":"test__wait"`).raw }()
	<-begun
	release()
	if a := <-answer; !strings.Contains(a, "done at last") {
		t.Errorf("the second: %s", a)
	}
}

func TestRequestsNameTheirTasks(t *testing.T) {
	h := newHouse(t, patient(new(mem.Store), nil), echo())
	web := h.http(t, "direct").URL
	k := &talker{t: t, caps: knowsTasks}
	for name, header := range map[string][]string{
		"none": nil, "another": {"Mcp-Name", "other"}, "right": {"Mcp-Name", "x"},
	} {
		status, body, _ := post(t, web, k.message(7, "tasks/get", `"taskId":"x"`), append(header, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tasks/get")...)
		want := `"code":-32020`
		if name == "right" {
			want = `"code":-32602`
		}
		if status != 400 || !strings.Contains(body, want) || !strings.Contains(body, `"id":7`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// progressOf returns what a client was told of the progress of one call.
func progressIn(t testing.TB, heard []string) (messages []string) {
	t.Helper()
	last := 0.0
	for _, line := range heard {
		var n struct {
			Method string
			Params struct {
				ProgressToken string
				Progress      float64
				Message       string
			}
		}
		if err := json.Unmarshal([]byte(line), &n); err != nil || n.Method != "notifications/progress" {
			continue
		}
		if n.Params.Progress <= last {
			t.Errorf("progress goes from %g to %g", last, n.Params.Progress)
		}
		last = n.Params.Progress
		messages = append(messages, n.Params.Message)
	}
	return messages
}

func TestWaitingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := handled("test.slow", tool.Reads, func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			time.Sleep(7 * time.Second)
			c.Progress(tool.Content{Text: "halfway"})
			time.Sleep(12 * time.Second)
			return tool.Text("slow but sure"), nil
		})
		h := newHouse(t, nil, slow)
		for version, want := range map[string]string{
			"2025-06-18": "running for 5s|halfway|running for 12s|running for 17s",
			"2025-11-25": "",
		} {
			meta := `,"_meta":{"progressToken":"x"}`
			if want == "" {
				meta = ""
			}
			got := h.converse(t, begin(version)+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test__slow"`+meta+`}}`)
			if !strings.Contains(got[len(got)-1], "slow but sure") {
				t.Errorf("%s: the last is %s", version, got[len(got)-1])
			}
			if told := strings.Join(progressIn(t, got), "|"); told != want {
				t.Errorf("%s: told %q, want %q", version, told, want)
			}
		}
		h.server.Close(t.Context())
	})
}

func TestTasksReportNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := handled("test.slow", tool.Reads, func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
			time.Sleep(30 * time.Second)
			c.Progress(tool.Content{Text: "nearly"})
			time.Sleep(5 * time.Second)
			return tool.Text("slow but sure"), nil
		})
		h := newHouse(t, patient(new(mem.Store), func(l *mcpbridge.LongCalls) { l.After = 12 * time.Second }), slow)
		k, leave := overStdio(t, h, knowsTasks)
		began := time.Now()
		begun := k.call("test__slow")
		if begun.Type != "task" || time.Since(began) != 12*time.Second || begun.Message != "" {
			t.Errorf("after %s: %+v", time.Since(began), begun)
		}
		time.Sleep(20 * time.Second)
		if got := k.get(begun.ID); got.Message != "nearly" {
			t.Errorf("in between: %+v", got)
		}
		time.Sleep(20 * time.Second)
		if got := k.get(begun.ID); got.Status != "completed" {
			t.Errorf("in the end: %+v", got)
		}
		if told := strings.Join(progressIn(t, k.heard()), "|"); told != "running for 5s|running for 10s" {
			t.Errorf("told %q", told)
		}
		leave()
		h.server.Close(t.Context())
	})
}
