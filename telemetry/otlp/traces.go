package otlp

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spans sends what spans there were.
type spans struct{ to *sender }

func (s spans) ExportSpans(ctx context.Context, all []sdk.ReadOnlySpan) error {
	s.to.send(ctx, tracesData(all))
	return nil // what cannot be sent is lost, and told once
}

func (spans) Shutdown(context.Context) error { return nil }

// tracesData writes spans, which are of one resource: the process.
func tracesData(all []sdk.ReadOnlySpan) []byte {
	var out message
	if len(all) == 0 {
		return out
	}
	out.message(1, func(m *message) {
		m.resource(1, all[0].Resource())
		for len(all) > 0 {
			scope, n := all[0].InstrumentationScope(), 1
			for n < len(all) && all[n].InstrumentationScope() == scope {
				n++
			}
			m.message(2, func(m *message) {
				m.scope(1, scope)
				for _, s := range all[:n] {
					m.message(2, func(m *message) { m.span(s) })
				}
				m.text(3, scope.SchemaURL)
			})
			all = all[n:]
		}
	})
	return out
}

// kinds are the numbers of kinds of spans on the wire.
var kinds = map[trace.SpanKind]uint64{trace.SpanKindInternal: 1, trace.SpanKindServer: 2, trace.SpanKindClient: 3, trace.SpanKindProducer: 4, trace.SpanKindConsumer: 5}

func (m *message) span(s sdk.ReadOnlySpan) {
	own, parent := s.SpanContext(), s.Parent()
	id, span := own.TraceID(), own.SpanID()
	m.bytes(1, id[:])
	m.bytes(2, span[:])
	m.text(3, own.TraceState().String())
	if parent.HasSpanID() {
		above := parent.SpanID()
		m.bytes(4, above[:])
	}
	m.text(5, s.Name())
	m.uint(6, kinds[s.SpanKind()])
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.uint(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.message(11, func(m *message) {
			m.time(1, e.Time)
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
			m.uint(4, uint64(e.DroppedAttributeCount))
		})
	}
	m.uint(12, uint64(s.DroppedEvents()))
	for _, l := range s.Links() {
		m.message(13, func(m *message) {
			id, span := l.SpanContext.TraceID(), l.SpanContext.SpanID()
			m.bytes(1, id[:])
			m.bytes(2, span[:])
			m.text(3, l.SpanContext.TraceState().String())
			m.attributes(4, l.Attributes)
			m.uint(5, uint64(l.DroppedAttributeCount))
			m.fixed32(6, flags(l.SpanContext, l.SpanContext.IsRemote()))
		})
	}
	m.uint(14, uint64(s.DroppedLinks()))
	m.message(15, func(m *message) {
		status := s.Status()
		m.text(2, status.Description)
		m.uint(3, map[codes.Code]uint64{codes.Ok: 1, codes.Error: 2}[status.Code])
	})
	m.fixed32(16, flags(own, parent.IsRemote()))
}

// flags are those of the trace, and whether what they are said of is remote.
func flags(of trace.SpanContext, remote bool) uint32 {
	const known, isRemote = 0x100, 0x200
	out := uint32(of.TraceFlags()) | known
	if remote {
		out |= isRemote
	}
	return out
}
