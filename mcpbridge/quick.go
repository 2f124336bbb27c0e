package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Without sessions a call is one request and its answer, but the library makes
// a session for each, with its queue and its goroutines, and reads the request
// a dozen times. So plain calls of tools are read once, here, and answered as
// JSON; whatever is not plain, or not right, is left to the library. What is
// done with a call is the same: its way begins at serve.

// quick answers a request if it is a plain call of a tool, and else leaves it
// as it was.
func (e *endpoint) quick(w http.ResponseWriter, r *http.Request) bool {
	if !plainHeaders(r.Method, r.Header) {
		return false
	}
	body, err := io.ReadAll(r.Body) // which is in memory
	r.Body = io.NopCloser(bytes.NewReader(body))
	id, params := plainCall(body, r.Header)
	if err != nil || params == nil {
		return false
	}
	session := e.silent.get(e.server)
	if session == nil {
		return false
	}
	req := &mcp.ServerRequest[*mcp.CallToolParamsRaw]{Session: session, Params: params, Extra: &mcp.RequestExtra{Header: r.Header}}
	res, err := e.handle(r.Context(), methodCallTool, req)
	writeAnswer(w, e.about, id, res, err)
	return true
}

// plainHeaders reports whether a request looks like a plain call.
func plainHeaders(method string, h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if method != http.MethodPost || h.Get(methodHeader) != methodCallTool || h.Get(versionHeader) != firstStateless ||
		h.Get(sessionHeader) != "" || !strings.EqualFold(strings.TrimSpace(kind), "application/json") ||
		!strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		return false
	}
	for name := range h {
		if strings.HasPrefix(name, "Mcp-Param-") {
			return false
		}
	}
	return true
}

// plainCall returns the parameters of a call that says nothing unusual, and
// whose headers say the same; nil: the library must read it.
func plainCall(body []byte, h http.Header) (id json.RawMessage, _ *mcp.CallToolParamsRaw) {
	var msg [4]json.RawMessage
	if !schema.Members(body, messageKeys, msg[:]) || textOf(msg[0]) != "2.0" || textOf(msg[2]) != methodCallTool || !plainID(msg[1]) {
		return nil, nil
	}
	var params [3]json.RawMessage
	if !schema.Members(msg[3], callKeys, params[:]) {
		return nil, nil
	}
	name := textOf(params[0])
	if name == "" || h.Get(nameHeader) != name || headerValue(name) != name {
		return nil, nil
	}
	meta := metas.get(params[2], plainMeta)
	if meta == nil {
		return nil, nil
	}
	return msg[1], &mcp.CallToolParamsRaw{Meta: maps.Clone(meta), Name: name, Arguments: params[1]}
}

var (
	messageKeys = []string{"jsonrpc", "id", "method", "params"}
	callKeys    = []string{"name", "arguments", "_meta"}
)

// plainMeta reads what a client says along with a call; nil: it says something
// unusual.
func plainMeta(raw json.RawMessage) mcp.Meta {
	var about map[string]json.RawMessage
	if json.Unmarshal(raw, &about) != nil || about["progressToken"] != nil || about[mcp.MetaKeyLogLevel] != nil ||
		textOf(about[mcp.MetaKeyProtocolVersion]) != firstStateless {
		return nil
	}
	meta := mcp.Meta{}
	for key, raw := range about {
		var v any
		switch key {
		case mcp.MetaKeyClientCapabilities:
			continue
		case mcp.MetaKeyClientInfo:
			v = new(mcp.Implementation)
		}
		if json.Unmarshal(raw, &v) != nil {
			return nil
		}
		meta[key] = v
	}
	can := abilities.get(about[mcp.MetaKeyClientCapabilities], readCapabilities)
	if can == nil {
		return nil
	}
	meta[mcp.MetaKeyClientCapabilities] = can
	return meta
}

// capabilities are those of a client, as it wrote them and as the library reads
// them.
type capabilities struct {
	raw  json.RawMessage
	read *mcp.ClientCapabilities
}

// MarshalJSON gives what the client wrote, which is what the library looks for.
func (c *capabilities) MarshalJSON() ([]byte, error) { return c.raw, nil }

// A heard keeps what was read of texts lately: clients say the same with every
// request. What it returns is not to be changed.
type heard[T any] struct {
	mu sync.Mutex
	by map[string]T
}

var (
	metas     heard[mcp.Meta]
	abilities heard[*capabilities]
)

const (
	maxHeard     = 64      // texts that are kept
	maxHeardSize = 4 << 10 // bytes of each
)

// get returns what reads makes of a text.
func (h *heard[T]) get(raw json.RawMessage, reads func(json.RawMessage) T) T {
	h.mu.Lock()
	v, known := h.by[string(raw)]
	h.mu.Unlock()
	if known {
		return v
	}
	v = reads(raw)
	if len(raw) <= maxHeardSize {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.by == nil || len(h.by) >= maxHeard {
			h.by = map[string]T{}
		}
		h.by[string(raw)] = v
	}
	return v
}

// readCapabilities returns nil if raw is no object.
func readCapabilities(raw json.RawMessage) *capabilities {
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil
	}
	req := &mcp.ServerRequest[*mcp.CallToolParamsRaw]{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{mcp.MetaKeyClientCapabilities: object}}}
	c := &capabilities{bytes.Clone(raw), req.ClientCapabilities()}
	if c.read == nil {
		return nil
	}
	return c
}

// capabilitiesOf returns what a request's client can do; nil: it did not say.
// They are not to be changed.
func capabilitiesOf(req fromClient) *mcp.ClientCapabilities {
	if r, ok := req.(*mcp.ServerRequest[*mcp.CallToolParamsRaw]); ok && r.Params != nil {
		if c, ok := r.Params.Meta[mcp.MetaKeyClientCapabilities].(*capabilities); ok {
			return c.read
		}
	}
	return req.ClientCapabilities()
}

// textOf returns the text of a string, "" of anything else that is JSON.
func textOf(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) < 2 || raw[0] != '"':
		return ""
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return string(raw[1 : len(raw)-1])
	case json.Unmarshal(raw, &s) != nil:
		return ""
	}
	return s
}

// plainID reports whether an id is a string or an integer of a usual size.
func plainID(raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] == '"' {
		return true
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return len(raw) > 0 && len(raw) <= 15 && raw[len(raw)-1] != '-'
}

// writeAnswer answers a call.
func writeAnswer(w http.ResponseWriter, about *mcp.Implementation, id json.RawMessage, res mcp.Result, err error) {
	answer := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  mcp.Result      `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: id, Result: res}
	status := http.StatusOK
	if err != nil {
		answer.Result = nil
		if !errors.As(err, &answer.Error) {
			answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		status = statusOfRefusal(answer.Error.Code)
	} else {
		meta := mcp.Meta{mcp.MetaKeyServerInfo: about}
		for key, v := range res.GetMeta() {
			meta[key] = v
		}
		res.SetMeta(meta)
	}
	var data []byte
	if call, ok := answer.Result.(*callResult); ok {
		data, err = call.message(id)
	} else {
		data, err = tool.Encode(answer)
	}
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone misses nothing
}

// message returns the answer to a request. The parts of the result are JSON
// already, and are not read once more.
func (r *callResult) message(id json.RawMessage) ([]byte, error) {
	meta, err := tool.Encode(r.Meta)
	if err != nil {
		return nil, err
	}
	kind, err := tool.Encode(r.ResultType)
	if err != nil {
		return nil, err
	}
	size := 128 + len(id) + len(meta) + len(r.Structured)
	for _, block := range r.Content {
		size += len(block) + 1
	}
	b := append(make([]byte, 0, size), `{"jsonrpc":"2.0","id":`...)
	b = append(append(b, id...), `,"result":{"_meta":`...)
	b = append(append(b, meta...), `,"resultType":`...)
	b = append(append(b, kind...), `,"content":[`...)
	for i, block := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, block...)
	}
	b = append(b, ']')
	if len(r.Structured) > 0 {
		b = append(append(b, `,"structuredContent":`...), r.Structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, "}}"...), nil
}

// statusOfRefusal is the status that the protocol wants for an error.
func statusOfRefusal(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// silent is the session of all requests that have none: it says nothing, and
// nobody listens.
type silent struct {
	once    sync.Once
	session *mcp.ServerSession
}

func (n *silent) get(server *mcp.Server) *mcp.ServerSession {
	n.once.Do(func() {
		c := &silence{closed: make(chan struct{})}
		state := &mcp.ServerSessionState{InitializeParams: &mcp.InitializeParams{ProtocolVersion: firstStateless, Capabilities: &mcp.ClientCapabilities{}},
			InitializedParams: &mcp.InitializedParams{}}
		n.session, _ = server.Connect(context.Background(), oneConn{c}, &mcp.ServerSessionOptions{State: state}) // without one the library answers
	})
	return n.session
}

// silence is a connection to nobody.
type silence struct {
	once   sync.Once
	closed chan struct{}
}

func (s *silence) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *silence) Write(context.Context, jsonrpc.Message) error { return nil }
func (s *silence) SessionID() string                            { return "" }

func (s *silence) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
