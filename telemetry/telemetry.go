// Package telemetry tells OpenTelemetry of model calls, tool calls and requests over MCP, by its conventions for generative AI.
package telemetry

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names what makes the spans and metrics.
const scope = "github.com/helve-ai/helve/telemetry"

// Options say what is told.
type Options struct {
	Version string

	// Content adds what was said to tools, and what they answered, to their
	// spans, with what is secret taken out.
	Content bool
}

// A Telemetry makes spans and metrics. It is safe for concurrent use. A nil one
// makes none, and costs nothing.
type Telemetry struct {
	o      Options
	tracer trace.Tracer

	tokens    metric.Int64Histogram   // gen_ai.client.token.usage
	models    metric.Float64Histogram // gen_ai.client.operation.duration
	agents    metric.Float64Histogram // gen_ai.invoke_agent.duration
	tools     metric.Float64Histogram // gen_ai.execute_tool.duration
	served    metric.Float64Histogram // mcp.server.operation.duration
	requested metric.Float64Histogram // mcp.client.operation.duration
	spent     metric.Float64Counter   // helve.cost
}

// The bounds of histograms, which the conventions recommend.
var (
	tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	modelBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	mcpBounds   = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// New returns a Telemetry that records with what others provide.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, o Options) (*Telemetry, error) {
	t := &Telemetry{o: o, tracer: tracers.Tracer(scope, trace.WithInstrumentationVersion(o.Version))}
	meter := meters.Meter(scope, metric.WithInstrumentationVersion(o.Version))
	var errs [7]error
	seconds := func(name, doc string, bounds []float64) (h metric.Float64Histogram, err error) {
		return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(doc), metric.WithExplicitBucketBoundaries(bounds...))
	}
	t.tokens, errs[0] = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	t.models, errs[1] = seconds("gen_ai.client.operation.duration", "GenAI operation duration.", modelBounds)
	t.agents, errs[2] = seconds("gen_ai.invoke_agent.duration", "The end-to-end duration of a single agent invocation.", mcpBounds)
	t.tools, errs[3] = seconds("gen_ai.execute_tool.duration", "The duration of a single tool execution.", modelBounds)
	t.served, errs[4] = seconds("mcp.server.operation.duration", "MCP request duration as observed on the receiver.", mcpBounds)
	t.requested, errs[5] = seconds("mcp.client.operation.duration", "MCP request duration as observed on the sender.", mcpBounds)
	t.spent, errs[6] = meter.Float64Counter("helve.cost", metric.WithUnit("{currency}"),
		metric.WithDescription("Money spent on models and metered tools, by currency."))
	return t, errors.Join(errs[:]...)
}

// Paid tells of what a model's answer cost, in US dollars.
func (t *Telemetry) Paid(ctx context.Context, model string, dollars float64) {
	if t != nil && dollars > 0 {
		t.spent.Add(ctx, dollars, metric.WithAttributes(attribute.String("helve.currency", "USD"), attribute.String("gen_ai.request.model", model)))
	}
}

// paid tells of what a call of a metered tool cost, such as "0.05 USD".
func (t *Telemetry) paid(ctx context.Context, tool, money string) {
	amount, currency, _ := strings.Cut(money, " ")
	if f, err := strconv.ParseFloat(amount, 64); err == nil && f > 0 {
		t.spent.Add(ctx, f, metric.WithAttributes(attribute.String("helve.currency", currency), attribute.String("gen_ai.tool.name", tool)))
	}
}

// An operation is a span and the histogram of its kind.
type operation struct {
	span  trace.Span
	took  metric.Float64Histogram
	begun time.Time
}

// begin begins a span in ctx.
func (t *Telemetry) begin(ctx context.Context, name string, kind trace.SpanKind, took metric.Float64Histogram) (context.Context, operation) {
	now := time.Now()
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(now))
	return ctx, operation{span, took, now}
}

// end ends the span, as failed if failure names a kind of failure, and
// measures it under what of it is also said in metrics. No message is told:
// those of tools and providers may quote what was said to them.
func (o *operation) end(ctx context.Context, failure string, measured []attribute.KeyValue) {
	now := time.Now()
	if failure != "" {
		failed := attribute.String("error.type", failure)
		o.span.SetAttributes(failed)
		o.span.SetStatus(codes.Error, "")
		measured = append(measured, failed)
	}
	o.span.SetAttributes(measured...)
	o.span.End(trace.WithTimestamp(now))
	o.took.Record(ctx, now.Sub(o.begun).Seconds(), metric.WithAttributes(measured...))
}

// set adds an attribute if there is something to say.
func set(all []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return all
	}
	return append(all, attribute.String(key, value))
}

func setInt(all []attribute.KeyValue, key string, n int) []attribute.KeyValue {
	if n == 0 {
		return all
	}
	return append(all, attribute.Int(key, n))
}

// at adds where a server is.
func at(all []attribute.KeyValue, host, port string) []attribute.KeyValue {
	if host == "" {
		return all
	}
	all = append(all, attribute.String("server.address", host))
	if n, err := strconv.Atoi(port); err == nil {
		all = append(all, attribute.Int("server.port", n))
	}
	return all
}

// clip bounds a text that others made up, and makes it one that can be sent.
func clip(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
