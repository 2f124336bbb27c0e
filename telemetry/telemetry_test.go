package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/tool"
)

func recording(t testing.TB) (*telemetry.Telemetry, *tracetest.SpanRecorder) {
	t.Helper()
	r := tracetest.NewSpanRecorder()
	tel, err := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r)), noopmetric.NewMeterProvider(), telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tel, r
}

// What is no trace is left where it is, and believed of nobody.
func TestMeta(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, meta := range []map[string]any{nil, {}, {"traceparent": 7}, {"traceparent": "00-00000000000000000000000000000000-00f067aa0ba902b7-01"},
		{"traceparent": parent[:40]}, {"tracestate": "a=1"}} {
		ctx := telemetry.FromMeta(t.Context(), meta)
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("%v is taken for a trace", meta)
		}
		before := maps.Clone(meta)
		if out := telemetry.ToMeta(ctx, meta); !maps.Equal(out, before) {
			t.Errorf("%v becomes %v", before, out)
		}
	}
	ctx := telemetry.FromMeta(t.Context(), map[string]any{"traceparent": parent, "tracestate": "a=1"})
	theirs := map[string]any{"progressToken": 1, "traceparent": "old"}
	if out := telemetry.ToMeta(ctx, theirs); out["traceparent"] != parent || out["tracestate"] != "a=1" || out["progressToken"] != 1 {
		t.Errorf("passed on: %v", out)
	}
	if theirs["traceparent"] != "old" || len(theirs) != 2 {
		t.Errorf("the map of the caller was changed: %v", theirs)
	}
}

// A model that yields what it is given.
type replies struct {
	chunks []llm.Chunk
	err    error
}

func (r replies) Generate(context.Context, *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for _, c := range r.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if r.err != nil {
			yield(llm.Chunk{}, r.err)
		}
	}
}

// How a request ended is told whoever ends it.
func TestEndsOfRequests(t *testing.T) {
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	gone, leave := context.WithCancel(t.Context())
	leave()
	words := []llm.Chunk{{Text: "a"}, {Text: "b"}}
	for name, c := range map[string]struct {
		ctx    context.Context
		model  replies
		hear   int // chunks
		failed string
	}{
		"whole":          {t.Context(), replies{append(words, llm.Chunk{Stop: llm.StopEnd}), nil}, 9, ""},
		"left":           {t.Context(), replies{words, nil}, 1, "cancelled"},
		"cancelled":      {gone, replies{words, context.Canceled}, 9, "cancelled"},
		"late":           {late, replies{nil, context.DeadlineExceeded}, 9, "timeout"},
		"refused":        {t.Context(), replies{nil, &llm.Error{Status: 529}}, 9, "529"},
		"no connection":  {t.Context(), replies{nil, &llm.Error{Err: errors.New("no route to 10.0.0.7")}}, 9, "_OTHER"},
		"none but words": {t.Context(), replies{words, nil}, 9, ""},
	} {
		tel, spans := recording(t)
		heard := 0
		for range tel.Model(c.model, telemetry.About{Provider: "xai", Model: "m"}).Generate(c.ctx, new(llm.Request)) {
			if heard++; heard == c.hear {
				break
			}
		}
		ended := spans.Ended()
		if len(ended) != 1 || ended[0].Name() != "chat m" {
			t.Fatalf("%s: %v", name, ended)
		}
		got := map[string]string{}
		for _, kv := range ended[0].Attributes() {
			got[string(kv.Key)] = kv.Value.String()
		}
		if got["error.type"] != c.failed || got["gen_ai.provider.name"] != "x_ai" || ended[0].Status().Description != "" {
			t.Errorf("%s: %v, want %q", name, got, c.failed)
		}
	}
	var off *telemetry.Telemetry
	if m := (replies{}); off.Model(m, telemetry.About{}) == nil {
		t.Error("where nothing is told the model is gone")
	}
}

// What calls and answers cost is counted by currency; what cost nothing is not.
func TestCosts(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	tel, err := telemetry.New(sdktrace.NewTracerProvider(), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(tool.New(tool.Definition{Name: "a.buy", Description: "Buy.", Effect: tool.Writes},
		func(context.Context, struct{}) (string, error) { return "", nil })); err != nil {
		t.Fatal(err)
	}
	pays := func(money string) pipeline.Stage {
		return pipeline.Stage{Name: "metering", Doc: "pay", Wrap: func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, c *tool.Call) (*tool.Result, error) {
				c.Trail.Money = money
				return next(ctx, c)
			}
		}}
	}
	for _, money := range []string{"0.05 USD", "0.10 USD", "2 EUR", ""} {
		if _, err := pipeline.New(&reg, tel.Stage(nil), pays(money)).Do(t.Context(), &tool.Call{Name: "a.buy", From: tool.Origin{App: "x", Session: "s"}}); err != nil {
			t.Fatal(err)
		}
	}
	tel.Paid(t.Context(), "some-model", 0.25)
	tel.Paid(t.Context(), "free-model", 0)
	(*telemetry.Telemetry)(nil).Paid(t.Context(), "some-model", 1)

	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "helve.cost" {
				for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
					sums[p.Attributes.Encoded(attribute.DefaultEncoder())] = fmt.Sprintf("%.2f", p.Value)
				}
			}
		}
	}
	want := map[string]string{"gen_ai.tool.name=a.buy,helve.currency=USD": "0.15", "gen_ai.tool.name=a.buy,helve.currency=EUR": "2.00",
		"gen_ai.request.model=some-model,helve.currency=USD": "0.25"}
	if !maps.Equal(sums, want) {
		t.Errorf("helve.cost: %v; want %v", sums, want)
	}
}

func BenchmarkStage(b *testing.B) {
	var reg tool.Registry
	if err := reg.Add(tool.New(tool.Definition{Name: "a.read", Description: "Read.", Effect: tool.Reads},
		func(context.Context, struct{}) (string, error) { return "", nil })); err != nil {
		b.Fatal(err)
	}
	tel, err := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{})), noopmetric.NewMeterProvider(), telemetry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, stages := range map[string][]pipeline.Stage{"off": nil, "on": {tel.Stage(nil)}} {
		exec := pipeline.New(&reg, stages...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := exec.Do(b.Context(), &tool.Call{Name: "a.read", From: tool.Origin{App: "x", Session: "s"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard takes spans and forgets them.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }
