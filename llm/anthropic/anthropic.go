// Package anthropic speaks to models by the messages protocol of Anthropic.
package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
)

// A Model is one model.
type Model struct {
	*wire.Client
	Extra map[string]json.RawMessage // further members of every request
}

// Version is the version of the protocol.
const Version = "2023-06-01"

// Authorize returns what adds a key to a request.
func Authorize(key string) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		if r.Header.Get("Anthropic-Version") == "" {
			r.Header.Set("Anthropic-Version", Version)
		}
		if key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("X-Api-Key", key)
		}
		return nil
	}
}

// Generate continues a conversation.
func (m *Model) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return m.Stream(ctx, "/messages", m.body(req), wire.SSE, func(s wire.Sink) wire.Decoder {
		return &answer{sink: s, from: m.From(), form: m.forced(req)}
	})
}

// object is a JSON object that is being written.
type object map[string]any

// maxTokens is how long an answer may be where nobody says: the protocol wants
// a number, and refuses one beyond the model's own.
func maxTokens(model string) int {
	for _, l := range limits {
		if ok, err := path.Match(l.pattern, model); ok && err == nil {
			return l.tokens
		}
	}
	return 32_000
}

var limits = []struct {
	pattern string
	tokens  int
}{{"*claude-3-5*", 8192}, {"*claude-3-7*", 32_000}, {"*claude-3-*", 4096}, {"*claude-2*", 4096}}

// body writes a request.
func (m *Model) body(req *llm.Request) object {
	most := req.MaxTokens
	if most == 0 {
		most = maxTokens(m.Client.Model)
	}
	o := object{"model": m.Client.Model, "max_tokens": most, "stream": true, "messages": m.messages(req.Messages)}
	if req.System != "" {
		o["system"] = []any{object{"type": "text", "text": req.System, "cache_control": kept}}
	}
	thinks := m.thinking(o, req, most)
	if !thinks { // thinking has settings of its own
		if req.Temperature != nil {
			o["temperature"] = min(*req.Temperature, 1)
		} else if req.TopP != nil { // newer models take one of them
			o["top_p"] = *req.TopP
		}
	}
	if stops := req.Stops(); len(stops) > 0 {
		o["stop_sequences"] = stops
	}
	m.tools(o, req)
	for k, v := range m.Extra {
		o[k] = v
	}
	return o
}

// kept marks what is to be kept for the next request.
var kept = object{"type": "ephemeral"}

// budgets are how many tokens each effort may cost.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576}

// thinking adds how long the model may think, and reports whether it may.
func (m *Model) thinking(o object, req *llm.Request, most int) bool {
	budget := min(budgets[req.Effort], most/2)
	if budget < 1024 || m.forced(req) || req.Choice != llm.Auto && req.Choice != llm.None || !m.mayThink(req.Messages) {
		return false
	}
	if adapts(m.Client.Model) {
		effort := req.Effort
		if effort == "minimal" {
			effort = "low"
		}
		o["thinking"], o["output_config"] = object{"type": "adaptive"}, object{"effort": effort}
		return true
	}
	o["thinking"] = object{"type": "enabled", "budget_tokens": budget}
	return true
}

// adapts reports whether a model decides itself how long it thinks.
func adapts(model string) bool {
	for _, p := range []string{"*claude-opus-4-[6-9]*", "*claude-sonnet-4-[6-9]*", "*claude-opus-[5-9]*", "*claude-sonnet-[5-9]*"} {
		if ok, _ := path.Match(p, model); ok {
			return true
		}
	}
	return false
}

// mayThink reports whether thinking can be asked for: within a turn that makes
// calls, the thoughts before the first of them must be given back, which those
// of another model cannot be.
func (m *Model) mayThink(all []llm.Message) bool {
	for _, msg := range all[wire.Turn(all):] {
		if msg.Role == llm.Assistant && len(msg.Calls) > 0 {
			return slices.ContainsFunc(msg.Thought, func(t llm.Thought) bool { return t.From == m.From() && t.Opaque != nil })
		}
	}
	return true
}

// formTool is the tool by which an answer is held to a schema.
const formTool = "answer"

// forced reports whether the answer is asked for as the arguments of a tool:
// where other tools are offered, the model must be free to call them.
func (m *Model) forced(req *llm.Request) bool { return req.Output != nil && len(req.Tools) == 0 }

func (m *Model) tools(o object, req *llm.Request) {
	if m.forced(req) {
		o["tools"] = []any{object{"name": formTool, "description": "Give your answer.", "input_schema": req.Output}}
		o["tool_choice"] = object{"type": "tool", "name": formTool}
		return
	}
	var all []any
	for i, t := range req.Tools {
		tool := object{"name": t.Name, "description": t.Description, "input_schema": t.Input}
		if i == len(req.Tools)-1 {
			tool["cache_control"] = kept
		}
		all = append(all, tool)
	}
	if all == nil {
		return
	}
	o["tools"] = all
	switch req.Choice {
	case llm.Auto:
	case llm.None:
		o["tool_choice"] = object{"type": "none"}
	case llm.Required:
		o["tool_choice"] = object{"type": "any"}
	default:
		o["tool_choice"] = object{"type": "tool", "name": string(req.Choice)}
	}
}

// BaseURL completes an address that lacks the version: people leave it out.
func BaseURL(s string) string {
	if _, after, ok := strings.Cut(s, "://"); ok && !strings.Contains(strings.TrimSuffix(after, "/"), "/") {
		return strings.TrimSuffix(s, "/") + "/v1"
	}
	return s
}
