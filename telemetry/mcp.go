package telemetry

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A Request is one over MCP.
type Request struct {
	Method   string // such as tools/call
	Tool     string // "": none, or none that there is
	Protocol string // the revision; "": not known
	Session  string // its id; "": none
	HTTP     bool   // else over pipes
	Host     string // of the server that is asked; "": none is
	Port     string
}

func (r *Request) name() string {
	if r.Tool == "" {
		return r.Method
	}
	return r.Method + " " + r.Tool
}

// measured is what is told of a request in metrics, too.
func (r *Request) measured() []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("mcp.method.name", r.Method)}
	if r.Method == "tools/call" {
		all = append(all, attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	all = set(all, "gen_ai.tool.name", r.Tool)
	all = set(all, "mcp.protocol.version", r.Protocol)
	if r.HTTP {
		all = append(all, attribute.String("network.transport", "tcp"), attribute.String("network.protocol.name", "http"))
	} else {
		all = append(all, attribute.String("network.transport", "pipe"))
	}
	return at(all, r.Host, r.Port)
}

// A Failure is how a request failed. Zero: it did not.
type Failure struct {
	Tool bool  // its result says so
	Code int64 // of the protocol's error
	Else bool  // there was no answer
}

func (f Failure) kind() string {
	switch {
	case f.Code != 0:
		return strconv.FormatInt(f.Code, 10)
	case f.Tool:
		return "tool_error"
	case f.Else:
		return "_OTHER"
	}
	return ""
}

// Serve begins to serve a request of a client, beneath the client's span if ctx
// has it (FromMeta). The function it returns is told how that ended, and which
// tool it was: while servers are still being listed, that is not known before.
func (t *Telemetry) Serve(ctx context.Context, r Request) (context.Context, func(tool string, f Failure)) {
	ctx, op := t.begin(ctx, r.name(), trace.SpanKindServer, t.served)
	return ctx, func(tool string, f Failure) {
		r.Tool = tool
		op.span.SetName(r.name())
		measured := r.measured()
		if r.Session != "" {
			op.span.SetAttributes(attribute.String("mcp.session.id", r.Session))
		}
		if f.Code != 0 {
			measured = append(measured, attribute.String("rpc.response.status_code", f.kind()))
		}
		failure := f.kind()
		if f.Code != 0 && !ours(f.Code) {
			failure = ""
		}
		op.end(ctx, failure, measured)
	}
}

// ours reports whether an error of the protocol is the server's own failure;
// others are the client's.
func ours(code int64) bool { return code == -32603 || code <= -32000 && code >= -32099 }

// Ask begins a request to a server. A call of a tool has its span already, that
// of Stage, to which is added what is special to MCP; other requests get one of
// their own. The function it returns is told how that ended.
func (t *Telemetry) Ask(ctx context.Context, r Request) (context.Context, func(Failure)) {
	if r.Method == "tools/call" {
		begun := time.Now()
		measured := r.measured()
		trace.SpanFromContext(ctx).SetAttributes(without(measured, "gen_ai.tool.name")...)
		return ctx, func(f Failure) {
			measured = set(measured, "error.type", f.kind())
			t.requested.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(measured...))
		}
	}
	ctx, op := t.begin(ctx, r.name(), trace.SpanKindClient, t.requested)
	return ctx, func(f Failure) { op.end(ctx, f.kind(), r.measured()) }
}

// without leaves out an attribute: a span of ours has the tool's whole name.
func without(all []attribute.KeyValue, key attribute.Key) []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(all), func(kv attribute.KeyValue) bool { return kv.Key == key })
}

// w3c is how the context of a trace is written (SEP-414: traceparent and
// tracestate in a request's _meta).
var w3c propagation.TraceContext

// FromMeta returns ctx with the trace of a request's _meta, if there is one.
func FromMeta(ctx context.Context, meta map[string]any) context.Context {
	if _, ok := meta["traceparent"].(string); !ok {
		return ctx
	}
	return w3c.Extract(ctx, carrier(meta))
}

// ToMeta returns meta with the trace of ctx, if there is one. It is that of our
// span, or else the client's, which is passed on as it is. The map is not changed.
func ToMeta[M ~map[string]any](ctx context.Context, meta M) M {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return meta
	}
	out := make(M, len(meta)+2)
	maps.Copy(out, meta)
	w3c.Inject(ctx, carrier(out))
	return out
}

// A carrier is a _meta in which a trace is looked for, or written down.
type carrier map[string]any

func (c carrier) Get(key string) string {
	text, _ := c[key].(string)
	return text
}

func (c carrier) Set(key, value string) { c[key] = value }

func (c carrier) Keys() []string {
	var all []string
	for key := range c {
		all = append(all, key)
	}
	return all
}
