package openai

import (
	"encoding/json"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// chatBody writes a request as chat completions have it.
func (m *Model) chatBody(req *llm.Request) object {
	o := object{"model": m.Client.Model, "messages": m.chatMessages(req)}
	if !m.Whole {
		o["stream"] = true
		if !m.NoUsageOption {
			o["stream_options"] = object{"include_usage": true}
		}
	}
	m.chatTools(o, req)
	m.sampling(o, req.Settings)
	if req.MaxTokens > 0 {
		if m.OpenAI {
			o["max_completion_tokens"] = req.MaxTokens
		} else {
			o["max_tokens"] = req.MaxTokens
		}
	}
	if req.Effort != "" && m.mayReason() {
		o["reasoning_effort"] = req.Effort
	}
	if req.Output != nil {
		o["response_format"] = m.chatForm(req.Output)
	}
	if m.OpenAI && req.Session != "" {
		o["prompt_cache_key"] = req.Session
	}
	return o.extend(m.Extra)
}

func (m *Model) chatTools(o object, req *llm.Request) {
	var all []any
	for _, t := range req.Tools {
		all = append(all, object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.Input}})
	}
	if all == nil {
		return
	}
	o["tools"] = all
	if req.Choice != llm.Auto {
		o["tool_choice"] = named(req.Choice, func(name string) any {
			return object{"type": "function", "function": object{"name": name}}
		})
	}
}

func (m *Model) chatForm(schema json.RawMessage) any {
	if m.JSONOnly {
		return object{"type": "json_object"}
	}
	return object{"type": "json_schema", "json_schema": object{"name": "answer", "schema": schema}}
}

func (m *Model) chatMessages(req *llm.Request) []any {
	var all []any
	if system := m.system(req); system != "" {
		all = append(all, object{"role": "system", "content": m.text(system, true)})
	}
	turn := wire.Turn(req.Messages)
	for i := range req.Messages {
		msg := &req.Messages[i]
		last := i == len(req.Messages)-1
		switch {
		case len(msg.Answers) > 0:
			all = append(all, m.chatAnswers(msg, last)...)
		case msg.Role == llm.Assistant:
			if said := m.chatSaid(msg, i >= turn); said != nil {
				all = append(all, said)
			}
		default:
			if content := m.chatContent(msg.Content, last); content != nil {
				all = append(all, object{"role": "user", "content": content})
			}
		}
	}
	return all
}

// system returns what the model is told first: the schema too, where the API
// cannot hold it to one.
func (m *Model) system(req *llm.Request) string {
	if req.Output == nil || !m.JSONOnly {
		return req.System
	}
	return strings.TrimSpace(req.System + "\n\nAnswer with one JSON value by this JSON Schema, and nothing else: " + string(req.Output))
}

// marks reports whether what is to be kept is marked.
func (m *Model) marks() bool {
	return m.CacheMarks && (strings.Contains(m.Client.Model, "claude") || strings.Contains(m.Client.Model, "anthropic/"))
}

// text writes a text, marked as one to be kept if that is wanted and possible.
func (m *Model) text(s string, keep bool) any {
	if s == "" || !keep || !m.marks() {
		return s
	}
	return []any{object{"type": "text", "text": s, "cache_control": object{"type": "ephemeral"}}}
}

// chatContent writes what the user says; nil: nothing.
func (m *Model) chatContent(content []tool.Content, keep bool) any {
	text, images := wire.Parts(content)
	switch {
	case text == "" && len(images) == 0:
		return nil
	case len(images) == 0:
		return m.text(text, keep)
	}
	var parts []any
	if text != "" {
		parts = append(parts, object{"type": "text", "text": text})
	}
	return append(parts, chatImages(images)...)
}

func chatImages(images []tool.Content) (parts []any) {
	for _, c := range images {
		parts = append(parts, object{"type": "image_url", "image_url": object{"url": wire.DataURL(c)}})
	}
	return parts
}

// chatSaid writes what the model said; nil: nothing. What it thought is given
// back to those who want it: within the turn in which it makes calls.
func (m *Model) chatSaid(msg *llm.Message, now bool) any {
	o := object{"role": "assistant"}
	if text, _ := wire.Parts(msg.Content); text != "" {
		o["content"] = text
	}
	var calls []any
	for _, c := range msg.Calls {
		calls = append(calls, object{"id": m.id(c.ID), "type": "function", "function": object{"name": wire.Name(c.Name), "arguments": string(wire.Object(c.Args))}})
	}
	if calls != nil {
		o["tool_calls"] = calls
	}
	if len(o) == 1 {
		return nil
	}
	for _, t := range msg.Thought {
		if t.From == m.From() && t.Opaque != nil {
			giveBack(o, t.Opaque, now && calls != nil)
		}
	}
	return o
}

// giveBack adds the members in which reasoning is kept. Details are wanted
// always, plain texts within the turn only.
func giveBack(o object, opaque json.RawMessage, now bool) {
	var kept map[string]json.RawMessage
	if json.Unmarshal(opaque, &kept) != nil {
		return
	}
	for k, v := range kept {
		if now || k == "reasoning_details" {
			o[k] = v
		}
	}
}

func (m *Model) id(id string) string {
	if !m.ShortIDs {
		return wire.ID(id, 40)
	}
	if len(id) == 9 && !strings.ContainsAny(id, "_-") {
		return wire.ID(id, 9)
	}
	return wire.ID(id+" ", 9) // the space has it made anew
}

// chatAnswers writes the results of calls. They are texts: images follow in a
// message of the user's.
func (m *Model) chatAnswers(msg *llm.Message, last bool) (all []any) {
	var images []any
	for i, a := range msg.Answers {
		text, shown := wire.Parts(a.Content)
		if len(shown) > 0 {
			note := wire.NotShown(len(shown), a.Name)
			text = strings.TrimSpace(text + "\n" + note)
			images = append(images, object{"type": "text", "text": note})
			images = append(images, chatImages(shown)...)
		}
		all = append(all, object{"role": "tool", "tool_call_id": m.id(a.CallID), "content": m.text(text, last && i == len(msg.Answers)-1)})
	}
	if images != nil {
		all = append(all, object{"role": "user", "content": images})
	}
	return all
}
