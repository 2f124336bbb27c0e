package openai

import (
	"encoding/json"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// responsesBody writes a request as the responses API has it. Nothing is kept
// there: reasoning comes sealed, and is given back.
func (m *Model) responsesBody(req *llm.Request) object {
	o := object{"model": m.Client.Model, "input": m.input(req.Messages), "store": false}
	if !m.Whole {
		o["stream"] = true
	}
	if req.System != "" {
		o["instructions"] = req.System
	}
	m.responsesTools(o, req)
	m.sampling(o, req.Settings)
	if req.MaxTokens > 0 {
		o["max_output_tokens"] = req.MaxTokens
	}
	m.reasoning(o, req.Effort)
	if req.Output != nil {
		o["text"] = object{"format": object{"type": "json_schema", "name": "answer", "schema": req.Output, "strict": false}}
	}
	if m.OpenAI && req.Session != "" {
		o["prompt_cache_key"] = req.Session
	}
	return o.extend(m.Extra)
}

func (m *Model) reasoning(o object, effort string) {
	if Reasons(m.Client.Model) {
		o["include"] = []string{"reasoning.encrypted_content"} // an error for other models
	}
	r := object{}
	if effort != "" && m.mayReason() {
		r["effort"] = effort
	}
	if m.Summary != "" {
		r["summary"] = m.Summary
	}
	if len(r) > 0 {
		o["reasoning"] = r
	}
}

func (m *Model) responsesTools(o object, req *llm.Request) {
	var all []any
	for _, t := range req.Tools {
		all = append(all, object{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Input, "strict": false})
	}
	if all == nil {
		return
	}
	o["tools"] = all
	if req.Choice != llm.Auto {
		o["tool_choice"] = named(req.Choice, func(name string) any { return object{"type": "function", "name": name} })
	}
}

// input writes the conversation as items.
func (m *Model) input(messages []llm.Message) []any {
	all := []any{}
	for i := range messages {
		msg := &messages[i]
		switch {
		case len(msg.Answers) > 0:
			for _, a := range msg.Answers {
				all = append(all, object{"type": "function_call_output", "call_id": wire.ID(a.CallID, 64), "output": output(a.Content)})
			}
		case msg.Role == llm.Assistant:
			all = append(all, m.said(msg)...)
		default:
			if parts := inputParts(msg.Content); parts != nil {
				all = append(all, object{"role": "user", "content": parts})
			}
		}
	}
	return all
}

// said writes what the model thought, said and called.
func (m *Model) said(msg *llm.Message) (all []any) {
	for _, t := range msg.Thought {
		if t.From == m.From() && t.Opaque != nil {
			all = append(all, t.Opaque)
		}
	}
	if text, _ := wire.Parts(msg.Content); text != "" {
		all = append(all, object{"role": "assistant", "content": []any{object{"type": "output_text", "text": text}}})
	}
	for _, c := range msg.Calls {
		all = append(all, object{"type": "function_call", "call_id": wire.ID(c.ID, 64), "name": wire.Name(c.Name), "arguments": string(wire.Object(c.Args))})
	}
	if len(msg.Calls) == 0 && msg.Text() == "" {
		return nil // reasoning that nothing follows is an error
	}
	return all
}

func inputParts(content []tool.Content) (parts []any) {
	text, images := wire.Parts(content)
	if text != "" {
		parts = append(parts, object{"type": "input_text", "text": text})
	}
	for _, c := range images {
		parts = append(parts, object{"type": "input_image", "image_url": wire.DataURL(c)})
	}
	return parts
}

// output writes a result: a text, or parts where there are images.
func output(content []tool.Content) any {
	text, images := wire.Parts(content)
	if len(images) == 0 {
		return text
	}
	return inputParts(content)
}

// sealed returns a reasoning item as it is given back; nil: it cannot be. Its
// id would have the API look for what it was told not to keep.
func sealed(item json.RawMessage) json.RawMessage {
	var kept struct {
		Type      string            `json:"type"`
		Summary   []json.RawMessage `json:"summary"`
		Encrypted string            `json:"encrypted_content"`
	}
	if json.Unmarshal(item, &kept) != nil || strings.TrimSpace(kept.Encrypted) == "" {
		return nil
	}
	if kept.Summary == nil {
		kept.Summary = []json.RawMessage{}
	}
	out, _ := tool.Encode(kept)
	return out
}
