package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

var update = flag.Bool("update", false, "write testdata anew")

// conversation has all that a request can hold: images of the user and in
// results, several calls at once, one that failed, arguments that are no JSON,
// ids of other makes, a name that no tool may have, thoughts of the model's own and of another.
func conversation(from string, thought, call json.RawMessage) *llm.Request {
	warm := 0.5
	png := tool.Content{MIME: "image/png", Data: []byte("PNG")}
	return &llm.Request{
		System: "Be short.",
		Messages: []llm.Message{
			{Role: llm.User, Content: []tool.Content{{Text: "Look"}, png}},
			{Role: llm.Assistant, Thought: []llm.Thought{{Text: "Well"}}}, // it said nothing
			{Role: llm.User, Content: []tool.Content{{Text: "and tell <me>"}}},
			{Role: llm.Assistant, Content: []tool.Content{{Text: "I look. "}}, Thought: []llm.Thought{{Text: "Hm", Opaque: json.RawMessage(`{"of":"another"}`), From: "other/x"}},
				Calls: []llm.Call{{ID: "functions.look:0", Name: "look", Args: json.RawMessage(`{"at":`), Opaque: json.RawMessage(`{"id":"no"}`), From: "other/x"}}},
			{Role: llm.Results, Answers: []llm.Answer{{CallID: "functions.look:0", Name: "look", Content: []tool.Content{{Text: "unreadable"}}, Failed: true}}},
			llm.Said(llm.User, "Again"),
			{Role: llm.Assistant, Thought: []llm.Thought{{Text: "So", Opaque: thought, From: from}},
				Calls: []llm.Call{{ID: "a1", Name: "look", Args: json.RawMessage(`{"at":1}`), Opaque: call, From: from}, {ID: "a2", Name: "multi_tool_use.parallel"}}},
			{Role: llm.Results, Answers: []llm.Answer{{CallID: "a1", Name: "look", Content: []tool.Content{{Text: "seen"}, png}}, {CallID: "a2", Name: "multi_tool_use.parallel"}}},
		},
		Tools: []llm.Tool{{Name: "look", Description: "Looks.", Input: json.RawMessage(`{"type":"object","properties":{"at":{"const":1,"examples":[2]}},"additionalProperties":false}`)},
			{Name: "wait", Input: json.RawMessage(`{"type":"object"}`)}},
		Choice:   "look",
		Settings: llm.Settings{Temperature: &warm, MaxTokens: 4000, Stop: []string{"END"}, MayStop: []string{"<tool_response"}},
		Session:  "s1",
	}
}

// structured asks for an answer by a schema, after some thought.
func structured() *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.Said(llm.User, "Hi")}, Output: json.RawMessage(`{"type":"object"}`), Settings: llm.Settings{Effort: "high"}}
}

// TestRequests compares what goes over the wire with what is kept in testdata.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name          string
		spec          Spec
		thought, call json.RawMessage
	}{
		{"openai-chat", Spec{Provider: "openai", Model: "gpt-4o", Config: json.RawMessage(`{"api":"chat"}`)}, json.RawMessage(`{"reasoning_content":"So"}`), nil},
		{"openai-responses", Spec{Provider: "openai", Model: "gpt-5", Config: json.RawMessage(`{"api":"responses"}`)}, json.RawMessage(`{"type":"reasoning","summary":[],"encrypted_content":"abc"}`), nil},
		{"mistral", Spec{Provider: "mistral", Model: "mistral-large"}, nil, nil},
		{"deepseek", Spec{Provider: "deepseek", Model: "deepseek-reasoner"}, json.RawMessage(`{"reasoning_content":"So"}`), nil},
		{"openrouter", Spec{Provider: "openrouter", Model: "anthropic/claude-sonnet-4"}, json.RawMessage(`{"reasoning_details":[{"type":"reasoning.text","text":"So","signature":"abc"}]}`), nil},
		{"anthropic", Spec{Provider: "anthropic", Model: "claude-sonnet-4"}, json.RawMessage(`{"type":"thinking","thinking":"So","signature":"abc"}`), nil},
		{"gemini", Spec{Provider: "gemini", Model: "gemini-3-pro"}, json.RawMessage(`{"thoughtSignature":"abc"}`), json.RawMessage(`{"thoughtSignature":"def","id":"g1"}`)},
		{"ollama", Spec{Provider: "ollama", Model: "qwen3"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := c.spec.Provider + "/" + c.spec.Model
			var got bytes.Buffer
			for _, req := range []*llm.Request{conversation(from, c.thought, c.call), structured()} {
				r, body := sent(t, c.spec, req)
				got.WriteString(r.Method + " " + r.URL.String() + "\n")
				for _, h := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "X-More", "User-Agent"} {
					if v := r.Header.Get(h); v != "" {
						got.WriteString(h + ": " + v + "\n")
					}
				}
				if err := json.Indent(&got, body, "", " "); err != nil {
					t.Fatal(err)
				}
				got.WriteString("\n")
			}
			file := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("the requests differ from %s; if that is right, run: go test ./llm/provider -update\n%s", file, got.String())
			}
		})
	}
}

// sent returns what a model is sent.
func sent(t *testing.T, s Spec, req *llm.Request) (got *http.Request, body []byte) {
	t.Helper()
	before, _ := json.Marshal(req)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer srv.Close()
	s.Key, s.BaseURL = testKey, srv.URL+"/base"
	o, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Collect(o.Model.Generate(t.Context(), req)); err == nil {
		t.Fatal("no error")
	}
	if after, _ := json.Marshal(req); !bytes.Equal(before, after) {
		t.Error("the request was changed")
	}
	return got, body
}
