package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A taskAnswer is what a client that knows tasks is answered.
type taskAnswer struct {
	Result struct {
		Type    string          `json:"resultType"`
		ID      string          `json:"taskId"`
		Status  string          `json:"status"`
		Message string          `json:"statusMessage"`
		Result  json.RawMessage `json:"result"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	raw string
}

// knowing sends a request as a client of revision 2026-07-28 that knows tasks.
func (d *daemon) knowing(t testing.TB, client, method, key, value string) (a taskAnswer) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%q:%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`,
		method, key, value, client)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": value} {
		req.Header.Set(name, value)
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
	a.raw = string(data)
	if at := strings.LastIndex(a.raw, "data: "); at >= 0 {
		a.raw, _, _ = strings.Cut(a.raw[at+len("data: "):], "\n")
	}
	if err := json.Unmarshal([]byte(a.raw), &a); err != nil {
		t.Fatalf("%s: %s: %v", method, a.raw, err)
	}
	return a
}

// What a task came to is told after the daemon was killed; of a task that it
// was killed in, that it was interrupted.
func TestTasksSurviveAKill(t *testing.T) {
	t.Parallel() // it takes a while until a daemon counts as killed
	g := newGate(t)
	var file map[string]any
	if err := json.Unmarshal([]byte(serversApp(t, object{"kid": child(t, "slow="+g.Addr().String())})), &file); err != nil {
		t.Fatal(err)
	}
	file["runtime"] = object{"long_calls": object{"at_once": []string{"mcp.kid.get_slow"}}}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, "app.yaml", string(text))
	d := serve(t, dir, "--app", "app.yaml")
	begin := func() (id string) {
		t.Helper()
		a := d.knowing(t, "tester", "tools/call", "name", "mcp.kid.get_slow")
		if a.Result.Type != "task" || a.Result.Status != "working" || a.Result.ID == "" {
			t.Fatalf("answered %s", a.raw)
		}
		return a.Result.ID
	}
	short := begin()
	g.called(t)("slow but sure")
	done := func() bool { return d.knowing(t, "tester", "tasks/get", "taskId", short).Result.Status == "completed" }
	eventually(t, done)
	unwanted := begin()
	g.called(t)
	if a := d.knowing(t, "tester", "tasks/cancel", "taskId", unwanted); a.Error != nil {
		t.Errorf("tasks/cancel: %s", a.raw)
	}
	eventually(t, func() bool {
		return d.knowing(t, "tester", "tasks/get", "taskId", unwanted).Result.Status == "cancelled"
	})
	long := begin()
	g.called(t)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait()

	d = serve(t, dir, "--app", "app.yaml")
	if a := d.knowing(t, "tester", "tasks/get", "taskId", short); !done() || !strings.Contains(string(a.Result.Result), `"text":"slow but sure"`) {
		t.Errorf("the task that had ended: %s", a.raw)
	}
	if a := d.knowing(t, "stranger", "tasks/get", "taskId", short); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("for another client: %s", a.raw)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	eventually(t, func() bool {
		<-tick.C
		a := d.knowing(t, "tester", "tasks/get", "taskId", long)
		return a.Result.Status == "failed" && strings.Contains(a.Result.Message, "interrupted")
	})
	lines := audited(t, dir, "--app", "app.yaml", "--tool", "*get_slow")
	if len(lines) != 2 || lines[0].Error != "" || lines[1].Error == "" {
		t.Errorf("on record: %+v", lines)
	}
	if lines := audited(t, dir, "--app", "app.yaml", "--tool", "mcp.cancel_task"); len(lines) != 1 || !strings.Contains(string(lines[0].Args), unwanted) {
		t.Errorf("the cancellation on record: %+v", lines)
	}
}
