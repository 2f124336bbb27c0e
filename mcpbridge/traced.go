package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/telemetry"
)

// traced returns ctx with the trace to which a request belongs by its _meta.
func traced(ctx context.Context, req mcp.Request) context.Context {
	params := req.GetParams()
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ctx
	}
	return telemetry.FromMeta(ctx, params.GetMeta())
}

// told begins to tell of a request that is served.
func (e *endpoint) told(ctx context.Context, method string, req mcp.Request) (context.Context, func(mcp.Result, error)) {
	t := e.s.opts.Telemetry
	if t == nil || strings.HasPrefix(method, "notifications/") {
		return ctx, func(mcp.Result, error) {}
	}
	r := telemetry.Request{Method: method}
	if s, ok := req.GetSession().(*mcp.ServerSession); ok && s != nil {
		r.Session = s.ID()
	}
	if c, ok := req.(fromClient); ok {
		r.Protocol = c.ProtocolVersion()
	}
	_, r.HTTP = e.request(req)
	ctx, done := t.Serve(ctx, r)
	return ctx, func(res mcp.Result, err error) {
		f := failureOf(err)
		if out, ok := res.(*callResult); ok && err == nil {
			f.Tool = out.IsError
		}
		done(e.meant(req), f)
	}
}

// meant returns the tool that a request calls; "": none, or none that there is.
func (e *endpoint) meant(req mcp.Request) string {
	call, ok := req.(*mcp.ServerRequest[*mcp.CallToolParamsRaw])
	if !ok || call.Params == nil || e.s.opts.Resolve == nil {
		return ""
	}
	found := e.s.opts.Resolve(originOf(e, call), call.Params.Name)
	if found == nil {
		return ""
	}
	return found.Name
}

func failureOf(err error) (f telemetry.Failure) {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		f.Code = e.Code
	}
	f.Else = err != nil
	return f
}

// asking begins to tell of a request to the server.
func (s *upstream) asking(ctx context.Context, l *link, method, name string) (context.Context, func([]byte, error)) {
	t := s.o.Telemetry
	if t == nil {
		return ctx, func([]byte, error) {}
	}
	r := telemetry.Request{Method: method, Protocol: l.protocol, HTTP: l.proc == nil}
	if method == methodCallTool {
		r.Tool = s.owner() + "." + name
	}
	if u, err := url.Parse(s.full().URL); err == nil && r.HTTP {
		r.Host, r.Port = u.Hostname(), u.Port()
		if r.Port == "" {
			r.Port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
	}
	ctx, done := t.Ask(ctx, r)
	return ctx, func(raw []byte, err error) {
		f := failureOf(err)
		var res struct {
			IsError bool `json:"isError"`
		}
		if err == nil && method == methodCallTool && json.Unmarshal(raw, &res) == nil {
			f.Tool = res.IsError
		}
		done(f)
	}
}
