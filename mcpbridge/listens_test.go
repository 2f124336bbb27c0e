package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store/mem"
	"github.com/helve-ai/helve/task"
	"github.com/helve-ai/helve/tool"
)

// talk is a raw conversation over two streams.
type talk struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func newTalk(t *testing.T, h *house) *talk {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- h.server.ServeStdio(context.Background(), fromClient, toClient, "direct")
		toClient.Close()
	}()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-ended; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return &talk{t, toServer, bufio.NewScanner(fromServer)}
}

func (k *talk) say(line string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, line+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

// hear returns the next message.
func (k *talk) hear() (msg struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Meta map[string]any `json:"_meta"`
	} `json:"params"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}) {
	k.t.Helper()
	if !k.out.Scan() {
		k.t.Fatal("the server says nothing more")
	}
	if err := json.Unmarshal(k.out.Bytes(), &msg); err != nil {
		k.t.Fatalf("%s: %v", k.out.Text(), err)
	}
	return msg
}

const listenMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":CAPS}`

func listenFor(id, caps, notifications string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{%s,"notifications":%s}}`, id, strings.Replace(listenMeta, "CAPS", caps, 1), notifications)
}

// TestSeveralListensOfOneClient holds that each is told, as long as it listens.
func TestSeveralListensOfOneClient(t *testing.T) {
	h := newHouse(t, nil, echo())
	k := newTalk(t, h)
	for _, id := range []string{`1`, `"two"`, `3`} {
		k.say(listenFor(id, `{}`, `{"toolsListChanged":true}`))
		if msg := k.hear(); msg.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("answered %+v", msg)
		}
	}
	told := func(n int) map[string]bool {
		t.Helper()
		ids := map[string]bool{}
		for range n {
			msg := k.hear()
			for msg.ID != nil { // the end of a listen
				msg = k.hear()
			}
			if msg.Method != "notifications/tools/list_changed" {
				t.Fatalf("told %+v", msg)
			}
			ids[fmt.Sprint(msg.Params.Meta["io.modelcontextprotocol/subscriptionId"])] = true
		}
		return ids
	}
	list := func() {
		t.Helper()
		k.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{` + strings.Replace(listenMeta, "CAPS", "{}", 1) + `}}`)
		for k.hear().ID != "list" {
		}
	}
	// cancel ends a listen, and returns when the server knows.
	cancel := func(id string) {
		t.Helper()
		k.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		list()
	}
	change := func(name string) {
		t.Helper()
		if err := h.reg.Replace("more", handled(name, tool.Reads, echo().Handle)); err != nil {
			t.Fatal(err)
		}
	}
	list()
	change("more.one")
	if ids := told(3); !ids["1"] || !ids["two"] || !ids["3"] {
		t.Errorf("told %v", ids)
	}
	cancel(`3`)
	change("more.two")
	if ids := told(2); !ids["1"] || !ids["two"] {
		t.Errorf("after the newest ended: told %v", ids)
	}
	cancel(`1`)
	change("more.three")
	if ids := told(1); !ids["two"] {
		t.Errorf("after two ended: told %v", ids)
	}
	cancel(`"two"`)
	// The next to listen is the only one.
	k.say(listenFor(`9`, `{}`, `{"toolsListChanged":true}`))
	for k.hear().Method != "notifications/subscriptions/acknowledged" {
	}
	change("more.four")
	if ids := told(1); !ids["9"] {
		t.Errorf("after all ended, and one began: told %v", ids)
	}
}

// TestListenRightAfterAnother holds that the end of one takes nothing from the
// next.
func TestListenRightAfterAnother(t *testing.T) {
	h := newHouse(t, nil, echo())
	k := newTalk(t, h)
	k.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{` + strings.Replace(listenMeta, "CAPS", "{}", 1) + `}}`)
	k.hear()
	for i := range 20 {
		k.say(listenFor(strconv.Itoa(i), `{}`, `{"toolsListChanged":true}`))
		for k.hear().Method != "notifications/subscriptions/acknowledged" {
		}
		if err := h.reg.Replace("more", handled(fmt.Sprintf("more.n%d", i), tool.Reads, echo().Handle)); err != nil {
			t.Fatal(err)
		}
		for k.hear().Method != "notifications/tools/list_changed" {
		}
		k.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
}

// TestListensForTasks holds that who asks to be told of tasks must have said
// that it knows them.
func TestListensForTasks(t *testing.T) {
	h := newHouse(t, func(o *mcpbridge.ServerOptions) { o.Tasks = task.New(new(mem.Store), task.Options{}) }, echo())
	url := h.http(t, "direct").URL
	const wants = `{"toolsListChanged":true,"taskIds":["x"]}`
	body := listenFor(`1`, `{}`, wants)
	header := callHeader("", "Mcp-Method", "subscriptions/listen")
	header.Del("Mcp-Name")
	status, _, msg := postCall(t, url, body, header)
	if e, _ := msg["error"].(map[string]any); status != 400 || e == nil || e["code"] != float64(-32021) {
		t.Errorf("over HTTP: %d %v", status, msg)
	}
	k := newTalk(t, h)
	k.say(body)
	if msg := k.hear(); msg.Error == nil || msg.Error.Code != -32021 {
		t.Errorf("over stdio: %+v", msg)
	}
	k.say(listenFor(`2`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, wants))
	if msg := k.hear(); msg.Method != "notifications/subscriptions/acknowledged" {
		t.Errorf("who knows tasks: %+v", msg)
	}
}
