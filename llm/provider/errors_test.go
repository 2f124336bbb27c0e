package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/llm"
)

// A dialect is what a test must know of a protocol: how an answer of "Hello"
// looks, event by event, and an error among events.
type dialect struct {
	name   string
	spec   Spec
	stream []string
	broken string // an event that is an error, of a provider that is overloaded
}

const testKey = "sk-very-secret-key"

func sse(events ...string) (all []string) {
	for _, e := range events {
		all = append(all, "data: "+e+"\n\n")
	}
	return all
}

func dialects() []dialect {
	return []dialect{
		{"chat", Spec{Backend: "openai_compat", Config: json.RawMessage(`{"api":"chat"}`)},
			sse(`{"choices":[{"delta":{"content":"Hel"}}]}`, `{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`, "[DONE]"),
			`data: {"error":{"message":"Overloaded","type":"server_error","code":"overloaded"}}` + "\n\n"},
		{"responses", Spec{Backend: "openai_compat", Config: json.RawMessage(`{"api":"responses"}`)},
			sse(`{"type":"response.output_text.delta","delta":"Hel"}`, `{"type":"response.output_text.delta","delta":"lo"}`, `{"type":"response.completed","response":{"status":"completed"}}`),
			`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Overloaded"}}}` + "\n\n"},
		{"anthropic", Spec{Backend: "anthropic"},
			sse(`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`),
			`data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"},
		{"gemini", Spec{Backend: "gemini"},
			sse(`{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}]}`),
			`data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}` + "\n\n"},
		{"ollama", Spec{Backend: "ollama"},
			[]string{`{"message":{"content":"Hel"}}` + "\n", `{"message":{"content":"lo"}}` + "\n", `{"done":true,"done_reason":"stop"}` + "\n"},
			`{"error":{"message":"Overloaded","code":503}}` + "\n"},
	}
}

// begun returns the stream until "Hel" has come.
func (d *dialect) begun() string {
	for i, e := range d.stream {
		if strings.Contains(e, "Hel") {
			return strings.Join(d.stream[:i+1], "")
		}
	}
	panic(d.name + " does not say Hel")
}

// ask asks a model that is served by a handler.
func (d *dialect) ask(t *testing.T, h http.HandlerFunc) (*llm.Reply, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	s := d.spec
	s.Provider, s.Model, s.Key, s.BaseURL = "tested", "m", testKey, srv.URL
	o, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return llm.Collect(o.Model.Generate(t.Context(), &llm.Request{System: "Be short.", Messages: []llm.Message{llm.Said(llm.User, "Hi")}}))
}

func each(t *testing.T, test func(t *testing.T, d dialect)) {
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

func mustFail(t *testing.T, err error) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *llm.Error", err)
	}
	if e.Provider != "tested" {
		t.Errorf("the provider of %+v", e)
	}
	if strings.Contains(err.Error(), testKey) {
		t.Errorf("the key is shown: %v", err)
	}
	return e
}

func TestStatuses(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, c := range []struct {
			status          int
			body            string
			header          http.Header
			temporary, long bool
			after           time.Duration
			says            string
		}{
			{401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `","code":"invalid_api_key"}}`, nil, false, false, 0, "[key]"},
			{403, `{"error":{"message":"Not for you"}}`, nil, false, false, 0, "Not for you"},
			{404, `{"error":{"message":"no such model"}}`, nil, false, false, 0, `the model "m"`},
			{408, ``, nil, true, false, 0, "Timeout"},
			{409, `{"error":{"message":"conflict"}}`, nil, true, false, 0, "conflict"},
			{413, `too large`, nil, false, true, 0, "too large"},
			{400, `{"error":{"message":"prompt is too long: 9 > 8","type":"invalid_request_error"}}`, nil, false, true, 0, "too long"},
			{400, `{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}`, nil, false, true, 0, ""},
			{400, `{"error":{"message":"max_tokens: 99999 > 64000, which is the maximum allowed"}}`, nil, false, false, 0, ""},
			{422, `{"detail":[{"msg":"Extra inputs are not permitted"}]}`, nil, false, false, 0, "Extra inputs"},
			{429, `{"error":{"message":"slow down"}}`, http.Header{"Retry-After": {"7"}}, true, false, 7 * time.Second, "7s"},
			{429, `{"error":{"message":"slow down"}}`, http.Header{"Retry-After-Ms": {"250"}}, true, false, 250 * time.Millisecond, ""},
			{429, `{"error":{"message":"pay","code":"insufficient_quota"}}`, nil, false, false, 0, "pay"},
			{500, `<html>sorry</html>`, http.Header{"Content-Type": {"text/html"}}, true, false, 0, "Internal Server Error"},
			{503, `busy`, http.Header{"X-Should-Retry": {"false"}}, false, false, 0, "busy"},
			{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, nil, true, false, 0, "Overloaded"},
		} {
			_, err := d.ask(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range c.header {
					w.Header()[k] = v
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			e := mustFail(t, err)
			if e.Status != c.status || e.Temporary != c.temporary || e.TooLong != c.long || e.RetryAfter != c.after || e.Begun || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d %s: got %+v\n%v", c.status, c.body, e, err)
			}
		}
	})
}

// A stream may end anywhere. Only after its last event is the answer whole.
func TestCut(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		whole := strings.Join(d.stream, "")
		for n := range len(whole) {
			got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, whole[:n]) })
			if err == nil {
				if got.Stop == "" || got.Text() != "Hello" {
					t.Errorf("cut after %q: no error, stop %q and text %q", whole[:n], got.Stop, got.Text())
				}
				continue
			}
			if e := mustFail(t, err); !e.Temporary || e.Begun != (got.Text() != "") || got.Stop != "" {
				t.Errorf("cut after %q: got %+v, stop %q", whole[:n], e, got.Stop)
			}
		}
		got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, whole) })
		if err != nil || got.Text() != "Hello" || got.Stop != llm.StopEnd {
			t.Errorf("whole: %+v, %v", got, err)
		}
	})
}

// A connection that breaks is told from a stream that ends.
func TestBreaks(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		_, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			io.WriteString(w, d.begun())
		})
		if e := mustFail(t, err); !e.Temporary || !e.Begun || !strings.Contains(e.Message, "ended") {
			t.Errorf("got %+v", e)
		}
	})
}

func TestMalformed(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		for _, bad := range []string{"data: {\"choices\":[\n\n", "data: nonsense\n\n", "nonsense\n", "data: []\n\n", "<html>\n\n"} {
			got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, d.begun()+bad) })
			if e := mustFail(t, err); !e.Begun || got.Text() != "Hel" || e.TooLong {
				t.Errorf("%q: got %+v after %q", bad, e, got.Text())
			}
		}
		for _, bad := range []string{"", "{", "null", "[]", `"text"`, "{}"} {
			got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, bad)
			})
			if e := mustFail(t, err); e.Begun || got.Stop != "" {
				t.Errorf("whole %q: got %+v", bad, e)
			}
		}
		_, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>Welcome</html>")
		})
		if e := mustFail(t, err); !strings.Contains(e.Message, "base_url") {
			t.Errorf("a web page: %v", err)
		}
	})
}

func TestErrorWithin(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, d.begun()+d.broken) })
		e := mustFail(t, err)
		if !e.Temporary || !e.Begun || e.Message != "Overloaded" || got.Text() != "Hel" {
			t.Errorf("got %+v", e)
		}
	})
}

func TestNobodyThere(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		srv := httptest.NewServer(nil)
		s := d.spec
		s.Provider, s.Model, s.BaseURL = "tested", "m", srv.URL
		srv.Close()
		o, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = llm.Collect(o.Model.Generate(t.Context(), &llm.Request{}))
		if e := mustFail(t, err); !e.Temporary || e.Begun || !strings.Contains(err.Error(), "is it running") {
			t.Errorf("got %+v", e)
		}
	})
}

// Whoever stops listening, or cancels, ends the request.
func TestLeaving(t *testing.T) {
	each(t, func(t *testing.T, d dialect) {
		gone := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, d.begun())
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
		}))
		defer srv.Close()
		s := d.spec
		s.Provider, s.Model, s.BaseURL = "tested", "m", srv.URL
		o, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range o.Model.Generate(t.Context(), &llm.Request{}) {
			if err != nil || c.Text != "Hel" && c.Usage == nil {
				t.Errorf("got %+v, %v", c, err)
			}
			break
		}
		<-gone
		why := fmt.Errorf("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		for _, err := range o.Model.Generate(ctx, &llm.Request{}) {
			if err == nil {
				cancel(why)
			} else if !errors.Is(err, why) {
				t.Errorf("cancelled: %v", err)
			}
		}
		cancel(nil)
		<-gone
	})
}
