package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// A chatEvent is a whole completion, or a piece of one.
type chatEvent struct {
	ID      wire.Text `json:"id"`
	Model   wire.Text `json:"model"`
	Choices []struct {
		Index   int         `json:"index"`
		Delta   chatMessage `json:"delta"`
		Message chatMessage `json:"message"`
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
	Groq  struct {
		Usage *chatUsage `json:"usage"`
	} `json:"x_groq"`
	Error json.RawMessage `json:"error"`
}

type chatMessage struct {
	Content          json.RawMessage   `json:"content"`
	Refusal          string            `json:"refusal"`
	ReasoningContent *string           `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	Details          []json.RawMessage `json:"reasoning_details"`
	Calls            []chatCall        `json:"tool_calls"`
	Images           []struct {
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	} `json:"images"`
}

type chatCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Hit        int `json:"prompt_cache_hit_tokens"`
	Created    int `json:"cache_creation_input_tokens"`
	In         struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Out struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *chatUsage) usage() *llm.Usage {
	out := &llm.Usage{Input: u.Prompt, Cached: max(u.In.Cached, u.Hit), Written: max(u.In.Written, u.Created), Output: u.Completion, Reasoning: u.Out.Reasoning}
	if u.Out.Reasoning > 0 && u.Total == u.Prompt+u.Completion+u.Out.Reasoning { // counted beside the output by some
		out.Output += u.Out.Reasoning
	}
	return out
}

// A chat reads a completion.
type chat struct {
	sink    wire.Sink
	from    string
	calls   []*building
	last    *building
	kept    strings.Builder // reasoning_content
	details details
	refused bool
	finish  string
	done    bool
	source  bool // it was told
}

// A building is a call whose arguments are coming.
type building struct {
	index    int
	id, name string
	args     []byte
}

func (c *chat) Event(name string, data []byte) error {
	if string(data) == "[DONE]" {
		c.done = true
		return nil
	}
	var e chatEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || name == "error" {
		return wire.ReadError(data)
	}
	if err := c.known(&e); err != nil {
		return err
	}
	for _, choice := range e.Choices {
		if choice.Index != 0 {
			continue
		}
		if err := c.take(&choice.Delta); err != nil {
			return err
		}
		if choice.Finish != "" {
			c.finish = choice.Finish
		}
	}
	if e.Usage == nil {
		e.Usage = e.Groq.Usage
	}
	if e.Usage != nil {
		return c.sink(llm.Chunk{Usage: e.Usage.usage()})
	}
	return nil
}

func (c *chat) Whole(data []byte) error {
	var e chatEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return wire.ReadError(data)
	}
	if len(e.Choices) == 0 {
		return fmt.Errorf("the answer has no choices")
	}
	if err := c.known(&e); err != nil {
		return err
	}
	if err := c.take(&e.Choices[0].Message); err != nil {
		return err
	}
	if e.Usage != nil {
		if err := c.sink(llm.Chunk{Usage: e.Usage.usage()}); err != nil {
			return err
		}
	}
	c.finish, c.done = e.Choices[0].Finish, true
	return c.End()
}

// known tells where the answer comes from, once.
func (c *chat) known(e *chatEvent) error {
	if c.source || e.ID == "" && e.Model == "" {
		return nil
	}
	c.source = true
	return c.sink(wire.Source(e.ID, e.Model))
}

// take reads a message, or a piece of one.
func (c *chat) take(m *chatMessage) error {
	if err := c.think(m); err != nil {
		return err
	}
	if err := c.say(m.Content); err != nil {
		return err
	}
	if m.Refusal != "" {
		c.refused = true
		if err := c.sink(llm.Chunk{Text: m.Refusal}); err != nil {
			return err
		}
	}
	for _, call := range m.Calls {
		if err := c.build(call); err != nil {
			return err
		}
	}
	for _, i := range m.Images {
		if content, ok := readDataURL(i.Image.URL); ok {
			if err := c.sink(llm.Chunk{Image: &content}); err != nil {
				return err
			}
		}
	}
	return nil
}

// think takes reasoning, which comes in members of many names.
func (c *chat) think(m *chatMessage) error {
	c.details.add(m.Details)
	text := ""
	if m.ReasoningContent != nil {
		text = *m.ReasoningContent
		c.kept.WriteString(text)
	}
	if text == "" && len(m.Reasoning) > 0 && m.Reasoning[0] == '"' {
		_ = json.Unmarshal(m.Reasoning, &text) // it is a text
	}
	if text == "" && len(m.Reasoning) == 0 {
		text = textsOf(m.Details)
	}
	return c.thought(text)
}

func (c *chat) thought(text string) error {
	if text == "" {
		return nil
	}
	return c.sink(llm.Chunk{Thought: &llm.Thought{Text: text, From: c.from}})
}

// say takes a content: a text, or parts of one.
func (c *chat) say(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil || text == "" {
			return err
		}
		return c.sink(llm.Chunk{Text: text})
	}
	var parts []struct {
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("a content cannot be read: %w", err)
	}
	for _, p := range parts {
		if err := c.thought(plain(p.Thinking)); err != nil {
			return err
		}
		if p.Text != "" {
			if err := c.sink(llm.Chunk{Text: p.Text}); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain returns the text of a text, or of parts.
func plain(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // what is no text is not shown
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// build takes a piece of a call. Which call it belongs to follows from its
// index; some leave that out, or have the same for all, so that a new name with
// a new id begins a new one.
func (c *chat) build(p chatCall) error {
	b := c.last
	if p.Index != nil {
		b = nil
		for _, known := range c.calls {
			if known.index == *p.Index {
				b = known // the last one of that index
			}
		}
	}
	if b == nil || p.Function.Name != "" && b.name != "" && p.ID != b.id {
		b = &building{index: len(c.calls)}
		if p.Index != nil {
			b.index = *p.Index
		}
		c.calls = append(c.calls, b)
	}
	c.last = b
	if b.id == "" {
		b.id = p.ID
	}
	if b.name == "" {
		b.name = p.Function.Name
	}
	args := p.Function.Arguments
	switch {
	case len(args) == 0 || string(args) == "null":
	case args[0] == '"':
		var piece string
		if err := json.Unmarshal(args, &piece); err != nil {
			return err
		}
		b.args = append(b.args, piece...)
	default: // some send an object
		b.args = append(b.args, args...)
	}
	if len(b.args) > wire.MaxEvent {
		return fmt.Errorf("the arguments of a call are longer than %d MB", wire.MaxEvent>>20)
	}
	return nil
}

// End tells the calls, and why the answer ended.
func (c *chat) End() error {
	if !c.done && c.finish == "" {
		return wire.ErrCut
	}
	if c.finish == "error" {
		return &llm.Error{Message: "the provider broke the answer off", Temporary: true}
	}
	if opaque := c.opaque(); opaque != nil {
		if err := c.sink(llm.Chunk{Thought: &llm.Thought{Opaque: opaque, From: c.from}}); err != nil {
			return err
		}
	}
	for _, b := range c.calls {
		if err := c.sink(llm.Chunk{Call: &llm.Call{ID: b.id, Name: b.name, Args: b.args}}); err != nil {
			return err
		}
	}
	return c.sink(llm.Chunk{Stop: c.stop()})
}

// opaque returns the members in which the provider wants reasoning back.
func (c *chat) opaque() json.RawMessage {
	kept := map[string]any{}
	if c.kept.Len() > 0 {
		kept["reasoning_content"] = c.kept.String()
	}
	if len(c.details) > 0 {
		kept["reasoning_details"] = c.details
	}
	if len(kept) == 0 {
		return nil
	}
	out, _ := tool.Encode(kept)
	return out
}

func (c *chat) stop() llm.Stop {
	switch {
	case c.finish == "length":
		return llm.StopLength
	case c.refused || c.finish == "content_filter":
		return llm.StopRefusal
	case len(c.calls) > 0:
		return llm.StopCalls
	case c.finish == "stop" || c.finish == "eos" || c.finish == "stop_sequence" || c.finish == "tool_calls" || c.finish == "":
		return llm.StopEnd
	}
	return llm.StopOther
}

func readDataURL(text string) (tool.Content, bool) {
	rest, ok := strings.CutPrefix(text, "data:")
	mime, data, found := strings.Cut(rest, ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	return tool.Content{MIME: mime, Data: raw}, ok && found && err == nil
}
