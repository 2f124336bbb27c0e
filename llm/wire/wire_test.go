package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/llm"
)

// A recorder keeps the events that it is given.
type recorder struct{ got []string }

func (r *recorder) Event(name string, data []byte) error {
	r.got = append(r.got, fmt.Sprintf("%s=%s", name, data))
	return nil
}
func (r *recorder) Whole(data []byte) error { return r.Event("whole", data) }
func (r *recorder) End() error              { return r.Event("end", nil) }

// pieces reads n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

func TestEvents(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "end="},
		{"data: a\n\n", "=a end="},
		{"data: a\r\n\r\ndata:b\r\n\r\n", "=a =b end="},
		{"data: a\r\rdata: b\r\r", "=a =b end="},
		{"\uFEFFdata: a\n\n", "=a end="},
		{": comment\n\nevent: x\nid: 7\ndata: a\ndata: b\n\n", "x=a\nb end="},
		{"event: x\n\ndata: a\n\n", "=a end="}, // an event without data is none
		{"data\n\n", "= end="},
		{"data:  two\n\n", "= two end="},
		{"dataset: no\n\ndata: a", "=a end="}, // the end is left out
		{"data: a\n", "=a end="},
		{"event: x\ndata: é\r", "x=é end="},
	} {
		for n := 1; n <= len(c.in)+1; n++ {
			var r recorder
			if err := eachEvent(pieces{strings.NewReader(c.in), n}, &r); err != nil {
				t.Errorf("%q in pieces of %d: %v", c.in, n, err)
			}
			if got := strings.Join(r.got, " "); got != c.want {
				t.Errorf("%q in pieces of %d: got %q, want %q", c.in, n, got, c.want)
			}
		}
	}
}

// Pieces of any size give the same events.
func FuzzEvents(f *testing.F) {
	f.Add("event: a\r\ndata: b\rdata: c\n\n\ndata", uint8(3))
	f.Add("\uFEFF\n\rdata:\r\n\r\n", uint8(1))
	f.Fuzz(func(t *testing.T, in string, n uint8) {
		var whole, cut recorder
		_ = eachEvent(strings.NewReader(in), &whole)
		_ = eachEvent(pieces{strings.NewReader(in), int(n) + 1}, &cut)
		if fmt.Sprintf("%q", whole.got) != fmt.Sprintf("%q", cut.got) {
			t.Errorf("whole %q, cut %q", whole.got, cut.got)
		}
	})
}

func TestEventsBroken(t *testing.T) {
	var r recorder
	broken := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := eachEvent(broken, &r); !errors.Is(err, io.ErrUnexpectedEOF) || len(r.got) != 1 {
		t.Errorf("got %v and %q", err, r.got)
	}
	if err := eachEvent(bytes.NewReader(append([]byte("data: "), make([]byte, MaxEvent+1)...)), &r); !errors.Is(err, errTooLong) {
		t.Errorf("too long an event: %v", err)
	}
	many := strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", MaxEvent>>20+1)
	if err := eachEvent(strings.NewReader(many), &r); !errors.Is(err, errTooLong) {
		t.Errorf("too many lines of one event: %v", err)
	}
}

func TestLines(t *testing.T) {
	var r recorder
	if err := eachLine(strings.NewReader("{\"a\":1}\n\n {\"b\":2}\r\n{\"c\":3}"), &r); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(r.got, " "), `={"a":1} ={"b":2} ={"c":3} end=`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadError(t *testing.T) {
	for _, c := range []struct {
		body, code, message string
		temporary, long     bool
		after               time.Duration
	}{
		{`{"error":{"message":"No","type":"invalid_request_error","code":"model_not_found"}}`, "model_not_found", "No", false, false, 0},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "overloaded_error", "Overloaded", true, false, 0},
		{`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", false, true, 0},
		{`[{"error":{"code":429,"message":"Slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"34.5s"}]}}]`, "RESOURCE_EXHAUSTED", "Slow", true, false, 34500 * time.Millisecond},
		{`{"error":"model 'x' not found"}`, "", "model 'x' not found", false, false, 0},
		{`{"error":{"message":"Gateway","code":502}}`, "502", "Gateway", true, false, 0},
		{`{"error":{"message":"No money","type":"insufficient_quota","code":"insufficient_quota"}}`, "insufficient_quota", "No money", false, false, 0},
		{`{"message":"Bad","type":"x"}`, "x", "Bad", false, false, 0},
		{`{"detail":[{"loc":["body"],"msg":"extra"}]}`, "", `[{"loc":["body"],"msg":"extra"}]`, false, false, 0},
		{`{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}`, "context_length_exceeded", "This model's maximum context length is 8 tokens", false, true, 0},
		{`not JSON`, "", "", false, false, 0},
		{`{"error":{"message":{"deep":1},"code":null}}`, "", `{"deep":1}`, false, false, 0},
	} {
		e := ReadError([]byte(c.body))
		if e.Code != c.code || e.Message != c.message || e.Temporary != c.temporary || e.TooLong != c.long || e.RetryAfter != c.after {
			t.Errorf("%s:\ngot %+v", c.body, e)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	date := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []struct {
		h    http.Header
		want time.Duration
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"3"}}, 3 * time.Second},
		{http.Header{"Retry-After": {"0.25"}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {"-3"}}, 0},
		{http.Header{"Retry-After": {"soon"}}, 0},
		{http.Header{"Retry-After": {"3"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After": {date.Add(7 * time.Second).Format(http.TimeFormat)}, "Date": {date.Format(http.TimeFormat)}}, 7 * time.Second},
		{http.Header{"Retry-After": {date.Format(http.TimeFormat)}, "Date": {date.Add(time.Hour).Format(http.TimeFormat)}}, 0},
	} {
		if got := retryAfter(c.h); got != c.want {
			t.Errorf("%v: got %s, want %s", c.h, got, c.want)
		}
	}
}

// A redirect would carry the key and the conversation to somebody else.
func TestNoRedirect(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c := &Client{Provider: "p", BaseURL: srv.URL}
	_, err := llm.Collect(c.Stream(t.Context(), "/x", 1, SSE, func(Sink) Decoder { return &recorder{} }))
	var e *llm.Error
	if !errors.As(err, &e) || e.Status != 307 || !strings.Contains(e.Message, "base_url") || asked != 0 {
		t.Errorf("got %v; the other was asked %d times", err, asked)
	}
}

// silent answers, and then says nothing more.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: out, Request: r}, nil
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Provider: "p", BaseURL: "http://x", HTTP: &http.Client{Transport: silent{}}, Idle: time.Minute}
		began := time.Now()
		_, err := llm.Collect(c.Stream(t.Context(), "/x", 1, SSE, func(Sink) Decoder { return &recorder{} }))
		var e *llm.Error
		if !errors.As(err, &e) || !e.Temporary || !errors.Is(err, errIdle) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it took %s", d)
		}
	})
}
func TestID(t *testing.T) {
	for id, same := range map[string]bool{"call_1": true, "a-B_9": true, "functions.x:0": false, "": false, strings.Repeat("x", 41): false} {
		got := ID(id, 40)
		if (got == id) != same || got == "" || len(got) > 40 || ID(id, 40) != got {
			t.Errorf("%q: got %q", id, got)
		}
	}
}
