package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxEvents  = 16 << 20 // bytes kept for clients that lost a connection, of all sessions
	maxStreams = 64       // of one session whose events are kept
)

// events keeps what was sent to clients of sessions, so that one that lost its
// connection can have it again. What is oldest is dropped first.
type events struct {
	most int // bytes; 0: maxEvents

	mu       sync.Mutex
	sessions map[string]*keptSession
	oldest   []*keptStream // those that hold events, by when they began to
	size     int
}

type keptSession struct {
	streams map[string]*keptStream
	order   []string // but for "", which lasts as long as the session
}

type keptStream struct {
	first int // how many events were dropped
	data  [][]byte
	size  int
}

var errNotKept = errors.New("the stream's events are not kept any more")

// Open implements [mcp.EventStore].
func (e *events) Open(_ context.Context, session, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions == nil {
		e.sessions = map[string]*keptSession{}
	}
	s := e.sessions[session]
	if s == nil {
		s = &keptSession{streams: map[string]*keptStream{}}
		e.sessions[session] = s
	}
	if s.streams[stream] != nil {
		return nil
	}
	s.streams[stream] = &keptStream{}
	if stream == "" {
		return nil
	}
	if s.order = append(s.order, stream); len(s.order) > maxStreams {
		e.drop(s.streams[s.order[0]])
		delete(s.streams, s.order[0])
		s.order = s.order[1:]
	}
	return nil
}

// Append implements [mcp.EventStore]. It keeps nothing of a stream that has
// been dropped, nor an event larger than all that may be kept.
func (e *events) Append(_ context.Context, session, stream string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.stream(session, stream)
	if k == nil {
		return errNotKept
	}
	most := e.most
	if most == 0 {
		most = maxEvents
	}
	if len(data) > most {
		e.drop(k)
		k.first++
		return fmt.Errorf("an event of %d bytes is not kept", len(data))
	}
	if len(k.data) == 0 {
		e.oldest = append(e.oldest, k)
	}
	k.data = append(k.data, slices.Clone(data))
	k.size += len(data)
	e.size += len(data)
	for e.size > most {
		if old := e.oldest[0]; old != k {
			e.drop(old)
			continue
		}
		n := len(k.data[0])
		k.data[0], k.data = nil, k.data[1:]
		k.first++
		k.size -= n
		e.size -= n
	}
	return nil
}

// After implements [mcp.EventStore].
func (e *events) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.stream(session, stream)
	if k == nil || index+1 < k.first {
		return func(yield func([]byte, error) bool) {
			yield(nil, fmt.Errorf("event %d: %w", index, mcp.ErrEventsPurged))
		}
	}
	rest := slices.Clone(k.data[min(index+1-k.first, len(k.data)):])
	return func(yield func([]byte, error) bool) {
		for _, data := range rest {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements [mcp.EventStore].
func (e *events) SessionClosed(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sessions[session]; s != nil {
		for _, k := range s.streams {
			e.drop(k)
		}
		delete(e.sessions, session)
	}
	return nil
}

// stream returns nil if there is none. The caller holds e.mu.
func (e *events) stream(session, stream string) *keptStream {
	s := e.sessions[session]
	if s == nil {
		return nil
	}
	return s.streams[stream]
}

// drop drops a stream's events. The caller holds e.mu.
func (e *events) drop(k *keptStream) {
	e.size -= k.size
	k.first += len(k.data)
	k.data, k.size = nil, 0
	if at := slices.Index(e.oldest, k); at >= 0 {
		e.oldest = slices.Delete(e.oldest, at, at+1)
	}
}
