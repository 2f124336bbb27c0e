package otlp

import (
	"context"
	"encoding/binary"
	"math"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// metrics sends what was measured.
type metrics struct{ to *sender }

func (metrics) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (metrics) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

func (s metrics) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	for _, scope := range all.ScopeMetrics {
		if len(scope.Metrics) > 0 {
			s.to.send(ctx, metricsData(all))
			break
		}
	}
	return nil // what cannot be sent is lost, and told once
}

func (metrics) ForceFlush(context.Context) error { return nil }
func (metrics) Shutdown(context.Context) error   { return nil }

func metricsData(all *metricdata.ResourceMetrics) []byte {
	var out message
	out.message(1, func(m *message) {
		m.resource(1, all.Resource)
		for _, scope := range all.ScopeMetrics {
			m.message(2, func(m *message) {
				m.scope(1, scope.Scope)
				for _, one := range scope.Metrics {
					m.message(2, func(m *message) { m.metric(&one) })
				}
				m.text(3, scope.Scope.SchemaURL)
			})
		}
	})
	return out
}

// metric writes a histogram or a sum: there are no others.
func (m *message) metric(one *metricdata.Metrics) {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch data := one.Data.(type) {
	case metricdata.Histogram[float64]:
		histogram(m, data)
	case metricdata.Histogram[int64]:
		histogram(m, data)
	case metricdata.Sum[float64]:
		sum(m, data, func(m *message, v float64) { m.double(4, v) })
	case metricdata.Sum[int64]:
		sum(m, data, func(m *message, v int64) { m.fixed64(6, uint64(v)) })
	}
}

// temporalities are their numbers on the wire.
var temporalities = map[metricdata.Temporality]uint64{metricdata.DeltaTemporality: 1, metricdata.CumulativeTemporality: 2}

func histogram[N int64 | float64](m *message, h metricdata.Histogram[N]) {
	m.message(9, func(m *message) {
		for _, p := range h.DataPoints {
			m.message(1, func(m *message) {
				m.time(2, p.StartTime)
				m.time(3, p.Time)
				m.fixed64(4, p.Count)
				m.double(5, float64(p.Sum))
				var counts, bounds message
				for _, n := range p.BucketCounts {
					counts = binary.LittleEndian.AppendUint64(counts, n)
				}
				for _, b := range p.Bounds {
					bounds = binary.LittleEndian.AppendUint64(bounds, math.Float64bits(b))
				}
				m.bytes(6, counts)
				m.bytes(7, bounds)
				m.set(9, p.Attributes)
				if least, ok := p.Min.Value(); ok {
					m.double(11, float64(least))
				}
				if most, ok := p.Max.Value(); ok {
					m.double(12, float64(most))
				}
			})
		}
		m.uint(2, temporalities[h.Temporality])
	})
}

func sum[N int64 | float64](m *message, s metricdata.Sum[N], value func(*message, N)) {
	m.message(7, func(m *message) {
		for _, p := range s.DataPoints {
			m.message(1, func(m *message) {
				m.time(2, p.StartTime)
				m.time(3, p.Time)
				value(m, p.Value)
				m.set(7, p.Attributes)
			})
		}
		m.uint(2, temporalities[s.Temporality])
		if s.IsMonotonic {
			m.uint(3, 1)
		}
	})
}
