package mcpbridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
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

// headerValue encodes a text that no header could hold as it is.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for i := range len(s) {
		plain = plain && (s[i] >= ' ' && s[i] <= '~' || s[i] == '\t')
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
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
	if r.Body == nil || r.Method != http.MethodPost || r.Context().Value(completeKey{}) != nil {
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
func withoutLibrary(ctx context.Context) context.Context {
	return context.WithValue(ctx, completeKey{}, true)
}

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
