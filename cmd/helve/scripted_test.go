package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A scripted server stands in for a provider: it answers request by request as
// it was told, and keeps what it was asked.
type scripted struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newScripted(t testing.TB, answers ...http.HandlerFunc) *scripted {
	s := new(scripted)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, string(body))
		s.mu.Unlock()
		if n >= len(answers) {
			t.Errorf("request %d has no answer: %s %s %s", n+1, r.Method, r.URL, body)
			http.Error(w, `{"error":{"message":"nothing more was declared"}}`, http.StatusBadRequest)
			return
		}
		answers[n](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// requests returns the bodies so far.
func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// app returns an app file whose agent thinks by the server.
func (s *scripted) app(more string) string {
	return fmt.Sprintf(`{"app":{"app_id":"asks","name":"Asks"},"agents":[{"id":"worker","brain":{"provider":"openai","model":"gpt-test",
		"config":{"base_url":%q,"api_key":"sk-very-secret-key","api":"chat"}}}]%s}`, s.URL+"/v1", more)
}

// chunks answers with a stream of chat completions.
func chunks(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

const used = `{"id":"chatcmpl-7","model":"gpt-test-0613","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":8,"total_tokens":48}}`

// says is an answer in words.
func says(text string) http.HandlerFunc {
	delta, _ := json.Marshal(text)
	return chunks(`{"id":"chatcmpl-7","model":"gpt-test-0613","choices":[{"delta":{"content":`+string(delta)+`}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, used, "[DONE]")
}

// callsTool is an answer that calls a tool.
func callsTool(id, name, args string) http.HandlerFunc {
	raw, _ := json.Marshal(args)
	return chunks(`{"id":"chatcmpl-7","model":"gpt-test-0613","choices":[{"delta":{"tool_calls":[{"index":0,"id":"`+id+`","function":{"name":"`+name+`","arguments":`+string(raw)+`}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, used, "[DONE]")
}

// fails is an answer of a status, with headers.
func fails(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, strings.TrimSpace(body))
	}
}
