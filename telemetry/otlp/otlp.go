// Package otlp sends spans and metrics to an OpenTelemetry collector over HTTP.
package otlp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Options say what sends.
type Options struct {
	Env     func(name string) string // of the process
	Service string                   // its name, unless OTEL_SERVICE_NAME says otherwise
	Version string
	Log     *slog.Logger // of what cannot be sent; nil: nobody is told
}

// An Exporter gives out what records spans and metrics, and sends them to a
// collector. It is safe for concurrent use.
type Exporter struct {
	tracer  *sdktrace.TracerProvider // nil: no spans
	meter   *sdkmetric.MeterProvider // nil: no metrics
	traces  string                   // where spans go; "": nowhere
	metrics string                   // where metrics go
}

// Open returns an exporter as the environment says, by the variables that
// OpenTelemetry specifies (OTEL_EXPORTER_OTLP_ENDPOINT and its kin, OTEL_SDK_DISABLED,
// OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER; the SDK reads those of samplers,
// limits and batches). It is nil without an endpoint: nothing is sent to a
// default one.
func Open(o Options) (*Exporter, error) {
	vars := env(o.Env)
	if vars.on("OTEL_SDK_DISABLED") {
		return nil, nil
	}
	traces, err := vars.sender("TRACES", "/v1/traces")
	if err != nil {
		return nil, err
	}
	measured, err := vars.sender("METRICS", "/v1/metrics")
	if err != nil {
		return nil, err
	}
	if traces == nil && measured == nil {
		return nil, nil
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	about, err := o.resource()
	if err != nil {
		return nil, err
	}
	e := new(Exporter)
	if traces != nil {
		traces.log, e.traces = o.Log, shown(traces.url)
		e.tracer = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(spans{traces}))
	}
	if measured != nil {
		measured.log, e.metrics = o.Log, shown(measured.url)
		e.meter = sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics{measured})))
	}
	return e, nil
}

// resource says what process this is. OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME go before what is said here.
func (o *Options) resource() (*resource.Resource, error) {
	r, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", rand.Text())), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// shown returns an address without what may be secret in it.
func shown(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// Tracers returns what records spans.
func (e *Exporter) Tracers() trace.TracerProvider {
	if e.tracer == nil {
		return nooptrace.NewTracerProvider()
	}
	return e.tracer
}

// Meters returns what records metrics.
func (e *Exporter) Meters() metric.MeterProvider {
	if e.meter == nil {
		return noopmetric.NewMeterProvider()
	}
	return e.meter
}

// Where says where spans and metrics go; "": nowhere.
func (e *Exporter) Where() (traces, metrics string) { return e.traces, e.metrics }

// Close sends what was recorded, and gives up after patience.
func (e *Exporter) Close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if e.meter != nil {
			_ = e.meter.Shutdown(ctx) // what is lost the sender tells
		}
	}()
	if e.tracer != nil {
		_ = e.tracer.Shutdown(ctx)
	}
	<-done
}
