package cli

import (
	"cmp"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/helve-ai/helve/telemetry"
	"github.com/helve-ai/helve/telemetry/otlp"
)

// flushPatience is how long the end of the process waits for a collector.
const flushPatience = 3 * time.Second

// contentVariable asks for arguments and results in spans. It is what
// OpenTelemetry's own instrumentations look for.
const contentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// startTelemetry opens what tells of calls, once, if the environment names a
// collector. What is wrong with that stops nothing else.
func (c *cli) startTelemetry() {
	if c.telemetryTried {
		return
	}
	c.telemetryTried = true
	e, err := otlp.Open(otlp.Options{Env: os.Getenv, Service: "helve", Version: version(), Log: c.logger()})
	if err != nil {
		c.logger().Warn("telemetry is off", "error", err)
		return
	}
	if e == nil {
		return
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.logger().Debug("telemetry", "error", err) }))
	t, err := telemetry.New(e.Tracers(), e.Meters(), telemetry.Options{Version: version(), Content: wantsContent(os.Getenv(contentVariable))})
	if err != nil {
		c.logger().Warn("telemetry is off", "error", err)
		return
	}
	c.exporter, c.telemetry = e, t
}

// wantsContent reads the variable's values, of which there are older and newer ones.
func wantsContent(value string) bool {
	switch strings.ToLower(value) {
	case "true", "1", "span_only", "span_and_event":
		return true
	}
	return false
}

// stopTelemetry sends what was not sent yet.
func (c *cli) stopTelemetry() {
	if c.exporter != nil {
		c.exporter.Close(flushPatience)
	}
}

// checkTelemetry says where telemetry goes.
func (c *cli) checkTelemetry() finding {
	e, err := otlp.Open(otlp.Options{Env: os.Getenv})
	if err != nil {
		return warning("telemetry", "docs/telemetry.md lists the variables", "off: %v", err)
	}
	if e == nil {
		return ok("telemetry", "off; OTEL_EXPORTER_OTLP_ENDPOINT names a collector")
	}
	defer e.Close(0)
	traces, metrics := e.Where()
	return ok("telemetry", "spans to %s, metrics to %s", cmp.Or(traces, "nowhere"), cmp.Or(metrics, "nowhere"))
}
