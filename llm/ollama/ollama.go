// Package ollama speaks to models by Ollama's own protocol.
package ollama

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// A Model is one model.
type Model struct {
	*wire.Client
	Window int                        // tokens that it is given; zero: Ollama's own, which forgets the beginning of what is longer
	Extra  map[string]json.RawMessage // further members of every request
}

// Generate continues a conversation.
func (m *Model) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return m.Stream(ctx, "/api/chat", m.body(req), wire.Lines, func(s wire.Sink) wire.Decoder {
		return &answer{sink: s, from: m.From()}
	})
}

// object is a JSON object that is being written.
type object map[string]any

func (m *Model) body(req *llm.Request) object {
	o := object{"model": m.Client.Model, "messages": m.messages(req), "stream": true}
	if options := m.options(req.Settings); len(options) > 0 {
		o["options"] = options
	}
	var tools []any
	for _, t := range req.Tools {
		if req.Choice == llm.None { // there is no other way to say so
			break
		}
		tools = append(tools, object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": t.Input}})
	}
	if tools != nil {
		o["tools"] = tools
	}
	if req.Output != nil {
		o["format"] = req.Output
	}
	if req.Effort != "" {
		o["think"] = m.think(req.Effort)
	}
	for k, v := range m.Extra {
		o[k] = v
	}
	return o
}

// think says whether the model thinks: but for gpt-oss models know yes and no.
func (m *Model) think(effort string) any {
	if !strings.Contains(m.Client.Model, "gpt-oss") {
		return effort != "minimal"
	}
	if effort == "minimal" {
		return "low"
	}
	return effort
}

func (m *Model) options(s llm.Settings) object {
	o := object{}
	if m.Window > 0 {
		o["num_ctx"] = m.Window
	}
	if s.Temperature != nil {
		o["temperature"] = *s.Temperature
	}
	if s.TopP != nil {
		o["top_p"] = *s.TopP
	}
	if s.MaxTokens > 0 {
		o["num_predict"] = s.MaxTokens
	}
	if len(s.Stop) > 0 { // in place of those that the model has there: so MayStop is not sent
		o["stop"] = s.Stop
	}
	return o
}

func (m *Model) messages(req *llm.Request) []any {
	all := []any{}
	if req.System != "" {
		all = append(all, object{"role": "system", "content": req.System})
	}
	turn := wire.Turn(req.Messages)
	for i := range req.Messages {
		msg := &req.Messages[i]
		switch {
		case len(msg.Answers) > 0:
			for _, a := range msg.Answers {
				all = append(all, with(object{"role": "tool", "tool_name": wire.Name(a.Name), "tool_call_id": a.CallID}, a.Content))
			}
		case msg.Role == llm.Assistant:
			all = append(all, m.said(msg, i >= turn))
		default:
			all = append(all, with(object{"role": "user"}, msg.Content))
		}
	}
	return all
}

// with adds a content: its texts, and its images beside them.
func with(o object, content []tool.Content) object {
	text, images := wire.Parts(content)
	o["content"] = text
	var all []string
	for _, c := range images {
		all = append(all, base64.StdEncoding.EncodeToString(c.Data))
	}
	if all != nil {
		o["images"] = all
	}
	return o
}

// said writes what the model said. What it thought it is told again within the
// turn, as its template may want it.
func (m *Model) said(msg *llm.Message, now bool) object {
	o := with(object{"role": "assistant"}, msg.Content)
	delete(o, "images")
	var calls []any
	for _, c := range msg.Calls {
		calls = append(calls, object{"id": c.ID, "function": object{"name": wire.Name(c.Name), "arguments": wire.Object(c.Args)}})
	}
	if calls == nil {
		return o
	}
	o["tool_calls"] = calls
	thought := ""
	for _, t := range msg.Thought {
		if t.From == m.From() {
			thought += t.Text
		}
	}
	if now && thought != "" {
		o["thinking"] = thought
	}
	return o
}

// An answer is read, line by line.
type answer struct {
	sink  wire.Sink
	from  string
	calls bool
	done  bool
}

type line struct {
	Model   wire.Text `json:"model"`
	Message struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
		Calls    []struct {
			ID       string `json:"id"`
			Function struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done   bool            `json:"done"`
	Reason string          `json:"done_reason"`
	Read   int             `json:"prompt_eval_count"`
	Said   int             `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

func (a *answer) Event(_ string, data []byte) error {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("a line cannot be read: %w", err)
	}
	if len(l.Error) > 0 {
		return wire.ReadError(data)
	}
	if l.Message.Thinking != "" {
		if err := a.sink(llm.Chunk{Thought: &llm.Thought{Text: l.Message.Thinking, From: a.from}}); err != nil {
			return err
		}
	}
	if l.Message.Content != "" {
		if err := a.sink(llm.Chunk{Text: l.Message.Content}); err != nil {
			return err
		}
	}
	for _, c := range l.Message.Calls {
		a.calls = true
		if err := a.sink(llm.Chunk{Call: &llm.Call{ID: c.ID, Name: c.Function.Name, Args: c.Function.Args}}); err != nil {
			return err
		}
	}
	if !l.Done || a.done {
		return nil
	}
	return a.end(&l)
}

func (a *answer) end(l *line) error {
	a.done = true
	if l.Model != "" {
		if err := a.sink(wire.Source("", l.Model)); err != nil {
			return err
		}
	}
	if err := a.sink(llm.Chunk{Usage: &llm.Usage{Input: l.Read, Output: l.Said}}); err != nil {
		return err
	}
	stop := llm.StopEnd
	switch {
	case l.Reason == "length":
		stop = llm.StopLength
	case a.calls:
		stop = llm.StopCalls
	}
	return a.sink(llm.Chunk{Stop: stop})
}

// Whole takes an answer that is not streamed: one line.
func (a *answer) Whole(data []byte) error {
	if err := a.Event("", data); err != nil {
		return err
	}
	return a.End()
}

func (a *answer) End() error {
	if !a.done {
		return wire.ErrCut
	}
	return nil
}
