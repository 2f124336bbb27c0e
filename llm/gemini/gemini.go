// Package gemini speaks to models by Google's generateContent protocol.
package gemini

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
)

// A Model is one model.
type Model struct {
	*wire.Client
	Extra map[string]json.RawMessage // further members of every request
}

// Authorize returns what adds a key to a request: as a header, since addresses
// are logged.
func Authorize(key string) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		if key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("X-Goog-Api-Key", key)
		}
		return nil
	}
}

// Generate continues a conversation.
func (m *Model) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	name := m.Client.Model
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return m.Stream(ctx, "/"+name+":streamGenerateContent?alt=sse", m.body(req), wire.SSE, func(s wire.Sink) wire.Decoder {
		return &answer{sink: s, from: m.From()}
	})
}

// object is a JSON object that is being written.
type object map[string]any

func (m *Model) body(req *llm.Request) object {
	o := object{"contents": m.contents(req.Messages)}
	if req.System != "" {
		o["systemInstruction"] = object{"parts": []any{object{"text": req.System}}}
	}
	m.tools(o, req)
	if c := m.generation(req); len(c) > 0 {
		o["generationConfig"] = c
	}
	for k, v := range m.Extra {
		o[k] = v
	}
	return o
}

func (m *Model) generation(req *llm.Request) object {
	c := object{}
	if req.Temperature != nil {
		c["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		c["topP"] = *req.TopP
	}
	if req.MaxTokens > 0 {
		c["maxOutputTokens"] = req.MaxTokens
	}
	if stops := req.Stops(); len(stops) > 0 {
		c["stopSequences"] = stops
	}
	if req.Output != nil && len(req.Tools) == 0 { // both at once is an error
		c["responseMimeType"], c["responseJsonSchema"] = "application/json", clean(req.Output)
	}
	if req.Effort != "" {
		c["thinkingConfig"] = m.thinking(req.Effort)
	}
	return c
}

// budgets are how many tokens each effort may cost, for models that count.
var budgets = map[string]int{"minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}

func (m *Model) thinking(effort string) object {
	if !third(m.Client.Model) {
		return object{"includeThoughts": true, "thinkingBudget": budgets[effort]}
	}
	if effort == "minimal" {
		effort = "low"
	}
	return object{"includeThoughts": true, "thinkingLevel": effort}
}

// third reports whether a model is of the third generation, or a later one.
func third(model string) bool {
	_, after, ok := strings.Cut(model, "gemini-")
	return ok && after != "" && after[0] >= '3' && after[0] <= '9'
}

func (m *Model) tools(o object, req *llm.Request) {
	var all []any
	for _, t := range req.Tools {
		all = append(all, object{"name": t.Name, "description": t.Description, "parametersJsonSchema": clean(t.Input)})
	}
	if all == nil {
		return
	}
	o["tools"] = []any{object{"functionDeclarations": all}}
	choice := object{}
	switch req.Choice {
	case llm.Auto:
		return
	case llm.None:
		choice["mode"] = "NONE"
	case llm.Required:
		choice["mode"] = "ANY"
	default:
		choice["mode"], choice["allowedFunctionNames"] = "ANY", []string{string(req.Choice)}
	}
	o["toolConfig"] = object{"functionCallingConfig": choice}
}
