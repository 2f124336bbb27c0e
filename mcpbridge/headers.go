package mcpbridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/tool"
)

// Since 2026-07-28 a request over HTTP repeats in headers what proxies route
// by: the method, the name, and the arguments for which a tool's schema names
// a header.

// A binding says which argument is repeated in which header.
type binding struct {
	path   []string
	header string
}

// headerKeyword is the keyword that names the header of an argument.
const headerKeyword = "x-mcp-header"

// bindings reads the bindings of an input schema. One that cannot be is an
// error, since the server would refuse every call.
func bindings(input json.RawMessage) ([]binding, error) {
	if !bytes.Contains(input, []byte(headerKeyword)) {
		return nil, nil
	}
	taken := map[string]bool{}
	var found []binding
	err := bind(input, nil, func(b binding) error {
		key := strings.ToLower(b.header)
		if taken[key] {
			return fmt.Errorf("two arguments have the header %q", b.header)
		}
		taken[key] = true
		found = append(found, b)
		return nil
	})
	return found, err
}

func bind(raw json.RawMessage, path []string, add func(binding) error) error {
	var s struct {
		Type       json.RawMessage            `json:"type"`
		Header     json.RawMessage            `json:"x-mcp-header"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil // a schema without properties, such as true
	}
	if s.Header != nil {
		var name string
		switch t := string(s.Type); {
		case t != `"string"` && t != `"integer"` && t != `"boolean"`:
			return fmt.Errorf("%s: only a string, an integer or a boolean can have a header", strings.Join(path, "."))
		case json.Unmarshal(s.Header, &name) != nil || !token(name):
			return fmt.Errorf("%s: %s is no name of a header", strings.Join(path, "."), cut(string(s.Header), 60))
		}
		if err := add(binding{path, "Mcp-Param-" + name}); err != nil {
			return err
		}
	}
	for name, sub := range s.Properties {
		if err := bind(sub, append(path[:len(path):len(path)], name), add); err != nil {
			return err
		}
	}
	return nil
}

// token reports whether s may name a header.
func token(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return s != ""
}

// value returns the argument in the form that headers have.
func (b binding) value(args json.RawMessage) (string, bool) {
	for _, name := range b.path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil || object[name] == nil {
			return "", false
		}
		args = object[name]
	}
	var text string
	switch {
	case json.Unmarshal(args, &text) == nil && args[0] == '"':
		return headerValue(text), true
	case string(args) == "true" || string(args) == "false":
		return string(args), true
	}
	n, err := strconv.ParseInt(string(args), 10, 64)
	return string(args), err == nil && n <= maxInteger && n >= -maxInteger
}

// check returns why a request's header does not repeat the argument; nil: it does.
func (b binding) check(h http.Header, args json.RawMessage) error {
	got, there := h[http.CanonicalHeaderKey(b.header)]
	for _, name := range b.path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil {
			args = nil
			break
		}
		args = object[name]
	}
	at := strings.Join(b.path, ".")
	switch given := len(args) > 0 && string(args) != "null"; {
	case !given && !there:
		return nil
	case !given:
		return fmt.Errorf("the header %s is there, the argument %s is not", b.header, at)
	case !there:
		return fmt.Errorf("the header %s is missing, which repeats the argument %s", b.header, at)
	case len(got) != 1:
		return fmt.Errorf("the header %s is there %d times", b.header, len(got))
	}
	text, err := headerText(got[0])
	if err != nil {
		return fmt.Errorf("the header %s: %w", b.header, err)
	}
	if !repeats(text, args) {
		return fmt.Errorf("the header %s says another value than the argument %s", b.header, at)
	}
	return nil
}

// repeats reports whether a header's text is the argument: integers however
// they are written, anything else as it is.
func repeats(text string, arg json.RawMessage) bool {
	var want string
	if arg[0] == '"' {
		return json.Unmarshal(arg, &want) == nil && text == want
	}
	if text == string(arg) {
		return true
	}
	a, err := strconv.ParseFloat(text, 64)
	b, err2 := strconv.ParseFloat(string(arg), 64)
	return err == nil && err2 == nil && a == b && a == math.Trunc(a) && math.Abs(a) <= maxInteger
}

const (
	base64Begin = "=?base64?"
	base64End   = "?="
)

// headerText is the inverse of headerValue.
func headerText(s string) (string, error) {
	encoded, begins := strings.CutPrefix(s, base64Begin)
	encoded, ends := strings.CutSuffix(encoded, base64End)
	if !begins || !ends {
		return s, nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("%.60q is no Base64", s)
	}
	return string(data), nil
}

// checkHeaders answers a call whose headers do not repeat the arguments for
// which the tool's schema names headers, and reports whether it did. Proxies
// route and judge by the headers. The library would look in its own tools,
// which are none.
func (e *endpoint) checkHeaders(w http.ResponseWriter, r *http.Request, who Caller) bool {
	if r.Method != http.MethodPost || r.Header.Get(methodHeader) != methodCallTool || e.s.opts.Resolve == nil {
		return false
	}
	name, err := headerText(r.Header.Get(nameHeader))
	if err != nil {
		return false // the library refuses it
	}
	t := e.s.opts.Resolve(tool.Origin{App: e.s.opts.App, User: who.User, Profile: e.s.opts.Profile, Kind: tool.KindMCP}, name)
	if t == nil {
		return false
	}
	all, err := bindings(t.Input.Raw())
	if err != nil || len(all) == 0 {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil {
		return false // the library refuses it
	}
	for _, b := range all {
		if err := b.check(r.Header, msg.Params.Arguments); err != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(refusal(msg.ID, mcp.CodeHeaderMismatch, "header mismatch: "+err.Error()))
			return true
		}
	}
	return false
}

// headerValue encodes a text that no header could hold as it is.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, base64Begin)
	for i := range len(s) {
		plain = plain && (s[i] >= ' ' && s[i] <= '~' || s[i] == '\t')
	}
	if plain {
		return s
	}
	return base64Begin + base64.StdEncoding.EncodeToString([]byte(s)) + base64End
}

type bindingsKey struct{}

// withBindings tells the transport, on the only way that leads there through
// the library, which arguments of a call have headers.
func withBindings(ctx context.Context, all []binding) context.Context {
	if len(all) == 0 {
		return ctx
	}
	return context.WithValue(ctx, bindingsKey{}, all)
}

// rename gives a request of ours the name that the server knows, and the
// headers that go with it.
func (t *httpTransport) rename(r *http.Request) error {
	if r.Body == nil || r.Method != http.MethodPost || isComplete(r.Context()) {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return err
	}
	// The library writes the method before the parameters.
	alias := []byte(`"method":"` + aliasPrefix)
	ours := bytes.Contains(body, alias)
	if ours {
		body = bytes.Replace(body, alias, []byte(`"method":"`), 1)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if ours {
		return t.addHeaders(r, body)
	}
	return nil
}

type completeKey struct{}

// withoutLibrary tells the transport that a request did not come through the
// library, and is complete.
func withoutLibrary(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, completeKey{}, ex)
}

// exchangeOf returns the request that a context is of; nil: the library's.
func exchangeOf(ctx context.Context) *exchange {
	ex, _ := ctx.Value(completeKey{}).(*exchange)
	return ex
}

func isComplete(ctx context.Context) bool { return exchangeOf(ctx) != nil }

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

func (t *httpTransport) addHeaders(r *http.Request, body []byte) error {
	var msg struct {
		Method string `json:"method"`
		Params struct {
			rawParams
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		return err
	}
	t.direct.learn(r, msg.Params.Meta)
	method, named := strings.CutPrefix(r.Header.Get(methodHeader), aliasPrefix)
	if !named {
		return nil
	}
	r.Header.Set(methodHeader, method)
	switch msg.Method {
	case methodCallTool, methodGetPrompt:
		r.Header.Set(nameHeader, headerValue(msg.Params.Name))
	case methodGetTask, methodUpdateTask, methodCancelTask:
		r.Header.Set(nameHeader, headerValue(msg.Params.TaskID))
	case methodReadResource:
		r.Header.Set(nameHeader, headerValue(msg.Params.URI))
	}
	setBindings(r, msg.Params.Arguments)
	return nil
}

// setBindings repeats arguments in the headers that their schema names.
func setBindings(r *http.Request, args json.RawMessage) {
	all, _ := r.Context().Value(bindingsKey{}).([]binding)
	for _, b := range all {
		if v, ok := b.value(args); ok {
			r.Header.Set(b.header, v)
		}
	}
}
