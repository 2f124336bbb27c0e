package mcpbridge

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// A client without sessions that speaks over two streams may listen several
// times at once. The library knows one listener for each connection: the end of
// any ends them all, and only the newest is told. So it is kept from seeing an
// end while others listen, and what it tells is told to each.

const methodListen = "subscriptions/listen"

// A listen is what one subscriptions/listen asks to be told.
type listen struct {
	id    jsonrpc.ID
	wants mcp.NotificationSubscriptions
}

// listens are those of one connection.
type listens struct {
	live []listen
	held []jsonrpc.Message // the ends of those that have ended, which the library has not seen
	late []jsonrpc.ID      // those whose end the library has seen and not yet answered
}

// maxListens bounds the listens of a connection, those included whose end is held.
const maxListens = 256

// begin notes a listen. It reports whether there is room for it.
func (l *listens) begin(req *jsonrpc.Request) bool {
	if len(l.live)+len(l.held) >= maxListens {
		return false
	}
	p := listenParams(req.Params)
	l.live = append(l.live, listen{req.ID, p.lists})
	return true
}

// cancelledBy returns the id of the request that a notification ends.
func cancelledBy(msg jsonrpc.Message) (id jsonrpc.ID, ok bool) {
	req, _ := msg.(*jsonrpc.Request)
	var p struct {
		ID any `json:"requestId"`
	}
	if req == nil || json.Unmarshal(req.Params, &p) != nil {
		return id, false
	}
	id, err := jsonrpc.MakeID(p.ID)
	return id, err == nil
}

// cancelled takes the end of a request, and returns what the library is to see.
func (l *listens) cancelled(msg jsonrpc.Message) []jsonrpc.Message {
	id, ok := cancelledBy(msg)
	if !ok || !l.end(id) {
		return []jsonrpc.Message{msg}
	}
	l.held = append(l.held, msg)
	if len(l.live) > 0 {
		return nil
	}
	seen := l.held
	l.held = nil
	for _, end := range seen {
		if id, ok := cancelledBy(end); ok {
			l.late = append(l.late, id)
		}
	}
	return seen
}

// end forgets a listen, and reports whether there was one.
func (l *listens) end(id jsonrpc.ID) bool {
	n := len(l.live)
	l.late = slices.DeleteFunc(l.late, func(x jsonrpc.ID) bool { return x == id })
	l.live = slices.DeleteFunc(l.live, func(x listen) bool { return x.id == id })
	return len(l.live) < n
}

// told returns the messages to be sent in place of one of the library's: one
// for each that listens for it.
func (l *listens) told(msg jsonrpc.Message) []jsonrpc.Message {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || req.IsCall() || len(l.live)+len(l.held) == 0 {
		return []jsonrpc.Message{msg}
	}
	var p map[string]json.RawMessage
	var uri string
	if json.Unmarshal(req.Params, &p) == nil {
		_ = json.Unmarshal(p["uri"], &uri) // only one of the kinds has it
	}
	var wants func(mcp.NotificationSubscriptions) bool
	switch req.Method {
	case "notifications/tools/list_changed":
		wants = func(w mcp.NotificationSubscriptions) bool { return w.ToolsListChanged }
	case "notifications/prompts/list_changed":
		wants = func(w mcp.NotificationSubscriptions) bool { return w.PromptsListChanged }
	case "notifications/resources/list_changed":
		wants = func(w mcp.NotificationSubscriptions) bool { return w.ResourcesListChanged }
	case "notifications/resources/updated":
		wants = func(w mcp.NotificationSubscriptions) bool { return slices.Contains(w.ResourceSubscriptions, uri) }
	default:
		return []jsonrpc.Message{msg}
	}
	var out []jsonrpc.Message
	for _, to := range l.live {
		if wants(to.wants) {
			out = append(out, stamped(req, p, to.id))
		}
	}
	return out
}

// stamped returns a notification as it is sent to one listener.
func stamped(req *jsonrpc.Request, params map[string]json.RawMessage, id jsonrpc.ID) jsonrpc.Message {
	meta := map[string]any{}
	_ = json.Unmarshal(params["_meta"], &meta) // there may be none
	meta[mcp.MetaKeySubscriptionID] = id.Raw()
	all := map[string]any{}
	for key, v := range params {
		all[key] = v
	}
	all["_meta"] = meta
	data, err := tool.Encode(all)
	if err != nil {
		return req // it came from JSON
	}
	copied := *req
	copied.Params = bytes.TrimSpace(data)
	return &copied
}

// A listenFor is what a listen asks for.
type listenFor struct {
	meta  map[string]json.RawMessage
	lists mcp.NotificationSubscriptions
	tasks []json.RawMessage
}

// listenParams reads what a listen asks for; what cannot be read is for the
// library to refuse.
func listenParams(raw json.RawMessage) (p listenFor) {
	var params struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications json.RawMessage            `json:"notifications"`
	}
	var tasks struct {
		IDs []json.RawMessage `json:"taskIds"`
	}
	_ = json.Unmarshal(raw, &params)
	_ = json.Unmarshal(params.Notifications, &p.lists)
	_ = json.Unmarshal(params.Notifications, &tasks)
	p.meta, p.tasks = params.Meta, tasks.IDs
	return p
}

// refused returns the error of a listen for tasks by a client that did not say
// that it knows them; nil: it may go on.
func (p *listenFor) refused() *jsonrpc.Error {
	var can struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	_ = json.Unmarshal(p.meta[mcp.MetaKeyClientCapabilities], &can) // none, if they cannot be read
	if len(p.tasks) == 0 || can.Extensions[tasksExtension] != nil {
		return nil
	}
	return errNeedsTasks().(*jsonrpc.Error)
}

// refuseListen answers a listen over HTTP that asks for what its client did
// not say that it knows, and reports whether it did.
func refuseListen(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || r.Header.Get(methodHeader) != methodListen {
		return false
	}
	body, err := io.ReadAll(r.Body) // which is in memory
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err != nil || json.Unmarshal(body, &msg) != nil || msg.Method != methodListen || msg.ID == nil {
		return false
	}
	p := listenParams(msg.Params)
	refusal := p.refused()
	if refusal == nil {
		return false
	}
	writeAnswer(w, nil, msg.ID, nil, refusal)
	return true
}
