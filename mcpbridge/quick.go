package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	msg := object(body, "jsonrpc", "id", "method", "params")
	if msg == nil || len(msg) != 4 || textOf(msg["jsonrpc"]) != "2.0" || textOf(msg["method"]) != methodCallTool || !plainID(msg["id"]) {
		return nil, nil
	}
	params := object(msg["params"], "name", "arguments", "_meta")
	name := textOf(params["name"])
	if name == "" || h.Get(nameHeader) != name || headerValue(name) != name {
		return nil, nil
	}
	var about map[string]json.RawMessage
	if json.Unmarshal(params["_meta"], &about) != nil || about["progressToken"] != nil || about[mcp.MetaKeyLogLevel] != nil ||
		textOf(about[mcp.MetaKeyProtocolVersion]) != firstStateless {
		return nil, nil
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
			return nil, nil
		}
		meta[key] = v
	}
	can := readCapabilities(about[mcp.MetaKeyClientCapabilities])
	if can == nil {
		return nil, nil
	}
	meta[mcp.MetaKeyClientCapabilities] = can
	return msg["id"], &mcp.CallToolParamsRaw{Meta: meta, Name: name, Arguments: params["arguments"]}
}

// capabilities are those of a client, as it wrote them and as the library reads
// them.
type capabilities struct {
	raw  json.RawMessage
	read *mcp.ClientCapabilities
}

// MarshalJSON gives what the client wrote, which is what the library looks for.
func (c *capabilities) MarshalJSON() ([]byte, error) { return c.raw, nil }

// read keeps what has been read of capabilities lately: clients say the same
// with every request.
var read struct {
	sync.Mutex
	by map[string]*capabilities
}

const (
	maxRead     = 64      // of capabilities that are kept
	maxReadSize = 4 << 10 // bytes of each
)

// readCapabilities returns nil if raw is no object.
func readCapabilities(raw json.RawMessage) *capabilities {
	read.Lock()
	defer read.Unlock()
	if c := read.by[string(raw)]; c != nil {
		return c
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil
	}
	req := &mcp.ServerRequest[*mcp.CallToolParamsRaw]{Params: &mcp.CallToolParamsRaw{Meta: mcp.Meta{mcp.MetaKeyClientCapabilities: object}}}
	c := &capabilities{bytes.Clone(raw), req.ClientCapabilities()}
	if c.read == nil {
		return nil
	}
	if len(raw) <= maxReadSize {
		if read.by == nil || len(read.by) >= maxRead {
			read.by = map[string]*capabilities{}
		}
		read.by[string(raw)] = c
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

// object reads an object that has no other keys; nil: it is none.
func object(raw json.RawMessage, keys ...string) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	known := 0
	for _, key := range keys {
		if o[key] != nil {
			known++
		}
	}
	if known != len(o) {
		return nil
	}
	return o
}

// textOf returns the text of a string, "" of anything else.
func textOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
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
	data, err := tool.Encode(answer)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone misses nothing
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
