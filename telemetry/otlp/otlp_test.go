package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/helve-ai/helve/telemetry/otlp"
)

// A receiver keeps the last message to each path, and answers as it was told.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	got     map[string][]byte
	headers http.Header
	refuse  []int // statuses of the first answers
	asked   int
}

func newReceiver(t *testing.T, refuse ...int) *receiver {
	r := &receiver{got: map[string][]byte{}, refuse: refuse}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, _ = io.ReadAll(z)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if n := r.asked - 1; n < len(r.refuse) {
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(r.refuse[n])
		return
	}
	r.got[req.URL.Path], r.headers = body, req.Header.Clone()
}

func open(t *testing.T, said *bytes.Buffer, env ...string) *otlp.Exporter {
	t.Helper()
	e, err := otlp.Open(otlp.Options{Env: environ(env...), Service: "tested", Version: "1", Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil || e == nil {
		t.Fatalf("%v, %v", e, err)
	}
	return e
}

func environ(all ...string) func(string) string {
	return func(name string) string {
		for _, v := range all {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// All that a span can hold arrives as it was, by the protocol's own types.
func TestSpans(t *testing.T) {
	r := newReceiver(t)
	e := open(t, new(bytes.Buffer), "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, x = y", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	state, err := trace.ParseTraceState("a=1,b=2")
	if err != nil {
		t.Fatal(err)
	}
	far := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	at := time.Unix(1700000000, 5)
	tracer := e.Tracers().Tracer("scope", trace.WithInstrumentationVersion("2"))
	ctx, span := tracer.Start(trace.ContextWithSpanContext(context.Background(), far), "outer", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at),
		trace.WithLinks(trace.Link{SpanContext: far, Attributes: []attribute.KeyValue{attribute.Bool("why", true)}}))
	span.SetAttributes(attribute.String("s", "text ß"), attribute.String("empty", ""), attribute.Bool("no", false), attribute.Int("zero", 0), attribute.Int("minus", -7),
		attribute.Float64("f", 1.5), attribute.StringSlice("list", []string{"x", ""}), attribute.Int64Slice("ints", []int64{1, 2}))
	span.AddEvent("happened", trace.WithTimestamp(at.Add(time.Second)), trace.WithAttributes(attribute.Int("n", 1)))
	_, inner := tracer.Start(ctx, "inner", trace.WithTimestamp(at))
	inner.SetStatus(codes.Error, "broke")
	inner.End(trace.WithTimestamp(at.Add(time.Minute)))
	span.SetStatus(codes.Ok, "")
	span.End(trace.WithTimestamp(at.Add(time.Hour)))
	e.Close(time.Minute)

	var got traces.TracesData
	if err := proto.Unmarshal(r.got["/v1/traces"], &got); err != nil {
		t.Fatal(err)
	}
	if r.headers.Get("Api-Key") != "a b" || r.headers.Get("X") != "y" || r.headers.Get("Content-Encoding") != "gzip" {
		t.Errorf("the headers: %v", r.headers)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0]
	if spans.Scope.Name != "scope" || spans.Scope.Version != "2" || len(spans.Spans) != 2 {
		t.Fatalf("%v", spans)
	}
	for i, want := range []string{
		`{"traceId":"AQIAAAAAAAAAAAAAAAAAAA==","spanId":"?","traceState":"a=1,b=2","parentSpanId":"?","name":"inner","kind":"SPAN_KIND_INTERNAL","startTimeUnixNano":"1700000000000000005","endTimeUnixNano":"1700000060000000005","status":{"message":"broke","code":"STATUS_CODE_ERROR"},"flags":257}`,
		`{"traceId":"AQIAAAAAAAAAAAAAAAAAAA==","spanId":"?","traceState":"a=1,b=2","parentSpanId":"?","name":"outer","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1700000000000000005","endTimeUnixNano":"1700003600000000005","attributes":[{"key":"s","value":{"stringValue":"text ß"}},{"key":"empty","value":{"stringValue":""}},{"key":"no","value":{"boolValue":false}},{"key":"zero","value":{"intValue":"0"}},{"key":"minus","value":{"intValue":"-7"}},{"key":"f","value":{"doubleValue":1.5}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"x"},{"stringValue":""}]}}},{"key":"ints","value":{"stringValue":"[1,2]"}}],"events":[{"timeUnixNano":"1700000001000000005","name":"happened","attributes":[{"key":"n","value":{"intValue":"1"}}]}],"links":[{"traceId":"AQIAAAAAAAAAAAAAAAAAAA==","spanId":"AwAAAAAAAAA=","traceState":"a=1,b=2","attributes":[{"key":"why","value":{"boolValue":true}}],"flags":769}],"status":{"code":"STATUS_CODE_OK"},"flags":769}`,
	} {
		s := spans.Spans[i]
		if parent := []string{string(spans.Spans[1].SpanId), "\x03\x00\x00\x00\x00\x00\x00\x00"}[i]; string(s.ParentSpanId) != parent || len(s.SpanId) != 8 {
			t.Errorf("%s: span %x beneath %x", s.Name, s.SpanId, s.ParentSpanId)
		}
		s = proto.Clone(s).(*traces.Span)
		s.SpanId, s.ParentSpanId = nil, nil
		expect := new(traces.Span)
		if err := protojson.Unmarshal([]byte(strings.NewReplacer(`"spanId":"?",`, "", `"parentSpanId":"?",`, "").Replace(want)), expect); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expect.String(), s.String()); !proto.Equal(expect, s) {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	}
}

func TestMetrics(t *testing.T) {
	r := newReceiver(t)
	e := open(t, new(bytes.Buffer), "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="+r.URL+"/here")
	if traces, metrics := e.Where(); traces != "" || metrics != r.URL+"/here" {
		t.Errorf("it goes to %q and %q", traces, metrics)
	}
	meter := e.Meters().Meter("scope")
	about := metric.WithAttributes(attribute.String("k", "v"))
	took, _ := meter.Float64Histogram("took", metric.WithUnit("s"), metric.WithDescription("How long."), metric.WithExplicitBucketBoundaries(1, 2.5))
	tokens, _ := meter.Int64Histogram("tokens", metric.WithExplicitBucketBoundaries(10))
	cost, _ := meter.Float64Counter("cost")
	calls, _ := meter.Int64UpDownCounter("calls")
	for _, v := range []float64{0.5, 2, 7} {
		took.Record(t.Context(), v, about)
	}
	tokens.Record(t.Context(), 12)
	cost.Add(t.Context(), 1.25, about)
	calls.Add(t.Context(), -3)
	e.Close(time.Minute)
	var got metrics.MetricsData
	if err := proto.Unmarshal(r.got["/here"], &got); err != nil {
		t.Fatal(err)
	}
	about2 := got.ResourceMetrics[0].Resource.String()
	if !strings.Contains(about2, `"service.name"`) || !strings.Contains(about2, `"tested"`) || !strings.Contains(about2, `"telemetry.sdk.name"`) {
		t.Errorf("the resource: %s", about2)
	}
	by := map[string]*metrics.Metric{}
	for _, m := range got.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		by[m.Name] = m
	}
	h := by["took"].GetHistogram()
	p := h.DataPoints[0]
	if by["took"].Unit != "s" || by["took"].Description != "How long." || h.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE ||
		p.Count != 3 || p.GetSum() != 9.5 || p.GetMin() != 0.5 || p.GetMax() != 7 || fmt.Sprint(p.BucketCounts, p.ExplicitBounds) != "[1 1 1] [1 2.5]" ||
		p.Attributes[0].Value.GetStringValue() != "v" || p.StartTimeUnixNano == 0 || p.TimeUnixNano < p.StartTimeUnixNano {
		t.Errorf("took: %v", by["took"])
	}
	if p := by["tokens"].GetHistogram().DataPoints[0]; p.GetSum() != 12 || fmt.Sprint(p.BucketCounts) != "[0 1]" {
		t.Errorf("tokens: %v", p)
	}
	if s := by["cost"].GetSum(); !s.IsMonotonic || s.DataPoints[0].GetAsDouble() != 1.25 {
		t.Errorf("cost: %v", s)
	}
	if s := by["calls"].GetSum(); s.IsMonotonic || s.DataPoints[0].GetAsInt() != -3 {
		t.Errorf("calls: %v", s)
	}
}

// A collector that is busy is asked again; one that refuses, or sends us
// elsewhere, is not.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		asked    int
		says     string
	}{
		{[]int{503, 429}, 3, ""},
		{[]int{400}, 1, "400 Bad Request"},
		{[]int{308}, 1, "308 Permanent Redirect"},
	} {
		t.Run(fmt.Sprint(c.statuses), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, c.statuses...)
			said := new(bytes.Buffer)
			e := open(t, said, "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL)
			_, span := e.Tracers().Tracer("x").Start(t.Context(), "s")
			span.End()
			e.Close(time.Minute)
			if r.asked != c.asked || !strings.Contains(said.String(), c.says) || (c.says == "") != (len(r.got["/v1/traces"]) > 0) {
				t.Errorf("asked %d times, said %q", r.asked, said)
			}
		})
	}
}

func TestNotConfigured(t *testing.T) {
	for _, env := range [][]string{nil, {"OTEL_SERVICE_NAME=x"}, {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=TRUE"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none"}} {
		if e, err := otlp.Open(otlp.Options{Env: environ(env...)}); e != nil || err != nil {
			t.Errorf("%v: %v, %v", env, e, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
	for says, env := range map[string][]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address":                       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=localhost:4318"},
		`OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json" is not spoken`:         {endpoint, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json"},
		`OTEL_EXPORTER_OTLP_TIMEOUT: "10s" is no number of milliseconds`:         {endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"},
		`OTEL_EXPORTER_OTLP_COMPRESSION: "zip" is not known; it is gzip or none`: {endpoint, "OTEL_EXPORTER_OTLP_COMPRESSION=zip"},
		`OTEL_METRICS_EXPORTER: "console" is not offered`:                        {endpoint, "OTEL_METRICS_EXPORTER=console"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE: open /no/such":                          {endpoint, "OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such"},
		"CLIENT_KEY beside it":                                {endpoint, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/no/such"},
		"OTEL_EXPORTER_OTLP_HEADERS: a header cannot be read": {endpoint, "OTEL_EXPORTER_OTLP_HEADERS=secret"},
	} {
		e, err := otlp.Open(otlp.Options{Env: environ(env...)})
		if err == nil || e != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", env, err, says)
		}
	}
}
