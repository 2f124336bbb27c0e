package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// An event is one of a stream.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *whole `json:"message"`
	Block   block  `json:"content_block"`
	Delta   struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		JSON      string `json:"partial_json"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

// A whole is an answer that is not streamed.
type whole struct {
	ID      wire.Text `json:"id"`
	Model   wire.Text `json:"model"`
	Type    string    `json:"type"`
	Content []block   `json:"content"`
	Stop    string    `json:"stop_reason"`
	Usage   *usage    `json:"usage"`
}

// A block is a piece of an answer's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	args      []byte          // that came in pieces
}

type usage struct {
	Input   *int `json:"input_tokens"`
	Written *int `json:"cache_creation_input_tokens"`
	Read    *int `json:"cache_read_input_tokens"`
	Output  *int `json:"output_tokens"`
}

// An answer is read.
type answer struct {
	sink  wire.Sink
	from  string
	form  bool // it comes as the arguments of a tool
	open  map[int]*block
	used  usage
	stop  string
	calls bool
	done  bool
}

func (a *answer) Event(_ string, data []byte) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			if err := a.known(e.Message); err != nil {
				return err
			}
			return a.use(e.Message.Usage)
		}
	case "content_block_start":
		return a.begin(&e)
	case "content_block_delta":
		return a.delta(&e)
	case "content_block_stop":
		return a.end(e.Index)
	case "message_delta":
		if e.Delta.Stop != "" {
			a.stop = e.Delta.Stop
		}
		return a.use(e.Usage)
	case "message_stop":
		a.done = true
	case "error":
		return wire.ReadError(data)
	}
	return nil // ping, and what is not known yet
}

// known tells where the answer comes from.
func (a *answer) known(w *whole) error {
	if w.ID == "" && w.Model == "" {
		return nil
	}
	return a.sink(wire.Source(w.ID, w.Model))
}

func (a *answer) begin(e *event) error {
	if a.open == nil {
		a.open = map[int]*block{}
	}
	b := e.Block
	a.open[e.Index] = &b
	if b.Type == "text" {
		return a.text(b.Text)
	}
	return a.thought(b.Thinking)
}

func (a *answer) delta(e *event) error {
	b := a.open[e.Index]
	if b == nil {
		return fmt.Errorf("a piece belongs to block %d, which did not begin", e.Index)
	}
	d := &e.Delta
	b.Signature += d.Signature
	b.Thinking += d.Thinking
	if b.args = append(b.args, d.JSON...); len(b.args) > wire.MaxEvent {
		return fmt.Errorf("the arguments of a call are longer than %d MB", wire.MaxEvent>>20)
	}
	if err := a.thought(d.Thinking); err != nil {
		return err
	}
	return a.text(d.Text)
}

// end tells what comes whole.
func (a *answer) end(index int) error {
	b := a.open[index]
	if b == nil {
		return fmt.Errorf("block %d ends, which did not begin", index)
	}
	delete(a.open, index)
	if len(b.args) > 0 {
		b.Input = b.args
	}
	return a.tell(b)
}

// tell tells of a block what its pieces did not.
func (a *answer) tell(b *block) error {
	switch b.Type {
	case "tool_use":
		if a.form && b.Name == formTool {
			return a.text(string(b.Input))
		}
		a.calls = true
		return a.sink(llm.Chunk{Call: &llm.Call{ID: b.ID, Name: b.Name, Args: b.Input}})
	case "thinking":
		if b.Signature == "" {
			return nil // it would be refused
		}
		return a.opaque(map[string]string{"type": b.Type, "thinking": b.Thinking, "signature": b.Signature})
	case "redacted_thinking":
		return a.opaque(map[string]string{"type": b.Type, "data": b.Data})
	}
	return nil
}

func (a *answer) opaque(block map[string]string) error {
	raw, err := tool.Encode(block)
	if err != nil {
		return err
	}
	return a.sink(llm.Chunk{Thought: &llm.Thought{Opaque: raw, From: a.from}})
}

func (a *answer) text(s string) error {
	if s == "" {
		return nil
	}
	return a.sink(llm.Chunk{Text: s})
}

func (a *answer) thought(s string) error {
	if s == "" {
		return nil
	}
	return a.sink(llm.Chunk{Thought: &llm.Thought{Text: s, From: a.from}})
}

// use takes what an answer has cost so far: of what is not said again, what was
// said before stands.
func (a *answer) use(u *usage) error {
	if u == nil {
		return nil
	}
	for to, from := range map[**int]*int{&a.used.Input: u.Input, &a.used.Written: u.Written, &a.used.Read: u.Read, &a.used.Output: u.Output} {
		if from != nil {
			*to = from
		}
	}
	n := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	read, written := n(a.used.Read), n(a.used.Written)
	return a.sink(llm.Chunk{Usage: &llm.Usage{Input: n(a.used.Input) + read + written, Cached: read, Written: written, Output: n(a.used.Output)}})
}

func (a *answer) Whole(data []byte) error {
	var w whole
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if w.Type == "error" {
		return wire.ReadError(data)
	}
	if w.Stop == "" {
		return fmt.Errorf("the answer has no stop_reason")
	}
	if err := a.known(&w); err != nil {
		return err
	}
	for i := range w.Content {
		b := &w.Content[i]
		if err := a.thought(b.Thinking); err != nil {
			return err
		}
		if b.Type == "text" {
			if err := a.text(b.Text); err != nil {
				return err
			}
		}
		if err := a.tell(b); err != nil {
			return err
		}
	}
	a.stop, a.done = w.Stop, true
	if err := a.use(w.Usage); err != nil {
		return err
	}
	return a.End()
}

func (a *answer) End() error {
	if !a.done {
		return wire.ErrCut
	}
	stop := llm.StopOther
	switch {
	case a.stop == "max_tokens" || a.stop == "model_context_window_exceeded":
		stop = llm.StopLength
	case a.stop == "refusal":
		stop = llm.StopRefusal
	case a.calls:
		stop = llm.StopCalls
	case a.stop == "end_turn" || a.stop == "stop_sequence" || a.stop == "tool_use":
		stop = llm.StopEnd
	}
	return a.sink(llm.Chunk{Stop: stop})
}
