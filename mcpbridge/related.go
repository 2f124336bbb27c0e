package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/helve-ai/helve/tool"
)

// Over HTTP a server with sessions asks on the stream that answers the call,
// and says nowhere else which call it asks about. What the library delivers
// has lost that; so questions are marked as they are read from the stream,
// under a name that the server never sees.

// callKey is where the _meta of a question holds the mark of its call.
const callKey = "helve/call"

type inFlightKey struct{}

// withCall tells the transport, on the only way that leads there through the
// library, which call a request makes.
func withCall(ctx context.Context, call *inFlight) context.Context {
	return context.WithValue(ctx, inFlightKey{}, call)
}

// callOf returns the call that a request makes; nil: none that servers may ask about.
func callOf(ctx context.Context) *inFlight {
	call, _ := ctx.Value(inFlightKey{}).(*inFlight)
	return call
}

// A markedStream is a stream of events in which questions are marked.
type markedStream struct {
	io.Closer
	in   *bufio.Reader
	mark string
	out  []byte
	err  error
}

func newMarkedStream(body io.ReadCloser, mark string) *markedStream {
	return &markedStream{Closer: body, in: bufio.NewReader(body), mark: mark}
}

// Read reads what is to be read of the stream.
func (s *markedStream) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// fill reads a line, or a part of one that is too long for a question.
func (s *markedStream) fill() {
	s.out = nil
	for {
		part, err := s.in.ReadSlice('\n')
		s.out = append(s.out, part...)
		if err == bufio.ErrBufferFull && len(s.out) <= maxQuestion {
			continue
		}
		if err != bufio.ErrBufferFull {
			s.err = err
		}
		break
	}
	if data, ok := bytes.CutPrefix(s.out, []byte("data:")); ok && bytes.Contains(data, []byte(`"method"`)) {
		if marked := markQuestion(data, s.mark); marked != nil {
			s.out = append(append([]byte("data: "), marked...), '\n')
		}
	}
}

// markQuestion returns nil if the message is no question.
func markQuestion(data []byte, mark string) []byte {
	var msg map[string]json.RawMessage
	var method string
	if json.Unmarshal(data, &msg) != nil || msg["id"] == nil || json.Unmarshal(msg["method"], &method) != nil || !isQuestion(method) {
		return nil
	}
	params, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if msg["params"] != nil && json.Unmarshal(msg["params"], &params) != nil || params == nil ||
		params["_meta"] != nil && json.Unmarshal(params["_meta"], &meta) != nil || meta == nil {
		return nil
	}
	var err error
	encode := func(v any) (raw json.RawMessage) {
		if err == nil {
			raw, err = tool.Encode(v)
		}
		return raw
	}
	meta[callKey] = encode(mark)
	params["_meta"] = encode(meta)
	msg["params"] = encode(params)
	out := encode(msg)
	if err != nil {
		return nil
	}
	return out
}
