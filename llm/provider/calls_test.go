package provider

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/helve-ai/helve/llm"
)

// TestCalls reads calls and reasoning as the protocols have them, whole
// however they come: by index, without one, all with the same, as objects.
func TestCalls(t *testing.T) {
	chat := Spec{Backend: "openai_compat"}
	for _, c := range []struct {
		name, body, calls, opaque string
		spec                      Spec
		usage                     llm.Usage
	}{
		{"by index", strings.Join(sse(
			`{"choices":[{"delta":{"reasoning_content":"Hm"}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"p\""}},{"index":1,"id":"b","function":{"name":"y","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}`, "[DONE]"), ""),
			`a x {"p":1}; b y {}`, `{"reasoning_content":"Hm"}`, chat, llm.Usage{Input: 9, Cached: 5, Output: 6, Reasoning: 2}},
		{"one index for all", strings.Join(sse(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}]}`), ""),
			`a x {}; b x {}`, "", chat, llm.Usage{}},
		{"no index, an object", strings.Join(sse(
			`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"x","arguments":{"p":1}}},{"id":"b","function":{"name":"y","arguments":"{\"q\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"2}"}}]},"finish_reason":"tool_calls"}]}`), ""),
			`a x {"p":1}; b y {"q":2}`, "", chat, llm.Usage{}},
		{"details", strings.Join(sse(
			`{"choices":[{"delta":{"reasoning":"So","reasoning_details":[{"type":"reasoning.text","index":0,"text":"S"}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"o","signature":"s"}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}}]},"finish_reason":"tool_calls"}]}`), ""),
			`a x `, `{"reasoning_details":[{"index":0,"signature":"s","text":"So","type":"reasoning.text"}]}`, chat, llm.Usage{}},
		{"responses", strings.Join(sse(
			`{"type":"response.reasoning_summary_text.delta","delta":"Hm"}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"E"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"x","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":2}}}`), ""),
			`a x {}`, `{"type":"reasoning","summary":[],"encrypted_content":"E"}`, Spec{Backend: "openai_compat", Config: json.RawMessage(`{"api":"responses"}`)}, llm.Usage{Input: 3, Output: 2}},
		{"anthropic", strings.Join(sse(
			`{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`), ""),
			`a x {"p":1}`, `{"signature":"S","thinking":"Hm","type":"thinking"}`, Spec{Backend: "anthropic"}, llm.Usage{Input: 12, Cached: 4, Written: 5, Output: 7}},
		{"gemini", strings.Join(sse(
			`{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true},{"functionCall":{"name":"x","args":{"p":1}},"thoughtSignature":"S"},{"functionCall":{"name":"y"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":1}}`), ""),
			` x {"p":1};  y {}`, "", Spec{Backend: "gemini"}, llm.Usage{Input: 3, Output: 3, Reasoning: 1}},
		{"ollama", `{"message":{"thinking":"Hm"}}` + "\n" + `{"message":{"tool_calls":[{"function":{"name":"x","arguments":{"p":1}}}]}}` + "\n" + `{"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}`,
			` x {"p":1}`, "", Spec{Backend: "ollama"}, llm.Usage{Input: 3, Output: 2}},
	} {
		d := dialect{spec: c.spec}
		got, err := d.ask(t, func(w http.ResponseWriter, _ *http.Request) {
			for i := range len(c.body) {
				io.WriteString(w, c.body[i:i+1])
				w.(http.Flusher).Flush()
			}
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var calls []string
		for _, call := range got.Calls {
			calls = append(calls, call.ID+" "+call.Name+" "+string(call.Args))
		}
		opaque := ""
		for _, th := range got.Thought {
			opaque += string(th.Opaque)
		}
		if strings.Join(calls, "; ") != c.calls || opaque != c.opaque || got.Stop != llm.StopCalls || got.Usage != c.usage {
			t.Errorf("%s: got calls %q, opaque %s, stop %s, usage %+v", c.name, calls, opaque, got.Stop, got.Usage)
		}
	}
}

func TestNoKey(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"models":[{"name":"qwen3:8b"}]}`) }))
	defer srv.Close()
	env := map[string]string{"OLLAMA_HOST": srv.URL}
	s := Spec{Provider: "Anthropic", Model: "claude-sonnet-4-5", Env: func(name string) string { return env[name] }}
	_, err := Open(s)
	var none *NoKey
	if !errors.As(err, &none) || none.Env != "ANTHROPIC_API_KEY" || !strings.Contains(err.Error(), "qwen3:8b") || !strings.Contains(err.Error(), "--demo") {
		t.Errorf("got %v", err)
	}
	if o, err := Describe(s); err != nil || o.Window != 200_000 || o.Format != nil || o.Name != "anthropic/claude-sonnet-4-5" {
		t.Errorf("described as %+v, %v", o, err)
	}
	env["ANTHROPIC_API_KEY"] = "k"
	if o, err := Open(s); err != nil || o.Model == nil {
		t.Errorf("with a key: %v", err)
	}
	yes := true
	for _, c := range []struct {
		spec   Spec
		format string
	}{
		{Spec{Provider: "LM Studio", Model: "qwen3:8b"}, "hermes"},
		{Spec{Provider: "vllm", Model: "x", Native: &yes}, ""},
		{Spec{Provider: "mine", BaseURL: "http://127.0.0.1:1/v1", Model: "gpt-oss-20b"}, "harmony"},
	} {
		o, err := Describe(c.spec)
		if err != nil || (o.Format == nil) != (c.format == "") || o.Format != nil && o.Format.Name != c.format {
			t.Errorf("%+v: got %+v, %v", c.spec, o, err)
		}
	}
}
