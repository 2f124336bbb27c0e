package otlp

import (
	"encoding/binary"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// A message is one of protocol buffers, as it is written. Fields are numbered
// as in opentelemetry/proto of OTLP 1. What is zero is left out.
type message []byte

// The types of fields on the wire.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

func (m *message) tag(field, kind int) {
	*m = binary.AppendUvarint(*m, uint64(field<<3|kind))
}

func (m *message) uint(field int, v uint64) {
	if v != 0 {
		m.tag(field, typeVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *message) fixed64(field int, v uint64) {
	m.tag(field, typeFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) fixed32(field int, v uint32) {
	m.tag(field, typeFixed32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *message) double(field int, v float64) { m.fixed64(field, math.Float64bits(v)) }

func (m *message) time(field int, t time.Time) {
	if !t.IsZero() {
		m.fixed64(field, uint64(t.UnixNano()))
	}
}

func (m *message) bytes(field int, v []byte) {
	m.tag(field, typeBytes)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

func (m *message) text(field int, s string) {
	if s != "" {
		m.bytes(field, []byte(s))
	}
}

// message writes another within this one, even if it is empty.
func (m *message) message(field int, write func(*message)) {
	var inner message
	write(&inner)
	m.bytes(field, inner)
}

func (m *message) attributes(field int, all []attribute.KeyValue) {
	for _, kv := range all {
		m.message(field, func(m *message) {
			m.text(1, string(kv.Key))
			m.message(2, func(m *message) { m.value(kv.Value) })
		})
	}
}

func (m *message) set(field int, s attribute.Set) { m.attributes(field, s.ToSlice()) }

// value writes an AnyValue, the parts of which say of what type it is: zeros
// count.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		m.bytes(1, []byte(v.AsString()))
	case attribute.BOOL:
		m.tag(2, typeVarint)
		*m = append(*m, 0)
		if v.AsBool() {
			(*m)[len(*m)-1] = 1
		}
	case attribute.INT64:
		m.tag(3, typeVarint)
		*m = binary.AppendUvarint(*m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	case attribute.STRINGSLICE:
		m.message(5, func(m *message) {
			for _, s := range v.AsStringSlice() {
				m.message(1, func(m *message) { m.value(attribute.StringValue(s)) })
			}
		})
	case attribute.EMPTY:
	default: // none of ours; the SDK's own text of it
		m.bytes(1, []byte(v.String()))
	}
}

func (m *message) resource(field int, r *resource.Resource) {
	m.message(field, func(m *message) { m.attributes(1, r.Attributes()) })
}

func (m *message) scope(field int, s instrumentation.Scope) {
	m.message(field, func(m *message) {
		m.text(1, s.Name)
		m.text(2, s.Version)
		m.set(3, s.Attributes)
	})
}
