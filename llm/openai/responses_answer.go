package openai

import (
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
)

// A responseEvent is what events of the responses API have in common.
type responseEvent struct {
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	Summary  int             `json:"summary_index"`
	Output   int             `json:"output_index"`
	Item     json.RawMessage `json:"item"`
	Response *response       `json:"response"`
}

type response struct {
	ID         wire.Text         `json:"id"`
	Model      wire.Text         `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		In     struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// An item is a piece of a response's output.
type item struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

// responses reads a response.
type responses struct {
	sink    wire.Sink
	from    string
	heard   bool // pieces of the output came
	calls   bool
	refused bool
	done    bool
}

func (r *responses) Event(name string, data []byte) error {
	if string(data) == "[DONE]" {
		return nil
	}
	var e responseEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.heard = true
		r.refused = r.refused || e.Type == "response.refusal.delta"
		return r.text(e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.thought(e.Delta)
	case "response.reasoning_summary_part.added":
		if e.Summary > 0 {
			return r.thought("\n\n")
		}
	case "response.output_item.done":
		r.heard = true
		return r.item(e.Item, true)
	case "response.completed", "response.incomplete", "response.failed", "response.done":
		if e.Response == nil {
			return fmt.Errorf("%s has no response", e.Type)
		}
		return r.end(e.Response)
	case "error", "":
		if err := wire.ReadError(data); e.Type == "error" || err.Message != "" {
			return err
		}
	}
	return nil
}

func (r *responses) Whole(data []byte) error {
	var all response
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if all.Status == "" && all.Output == nil {
		if err := wire.ReadError(data); err.Message != "" {
			return err
		}
		return fmt.Errorf("the answer has neither status nor output")
	}
	return r.end(&all)
}

func (r *responses) text(s string) error {
	if s == "" {
		return nil
	}
	return r.sink(llm.Chunk{Text: s})
}

func (r *responses) thought(s string) error {
	if s == "" {
		return nil
	}
	return r.sink(llm.Chunk{Thought: &llm.Thought{Text: s, From: r.from}})
}

// item takes a piece of the output that is whole. Of what came in pieces its
// texts are known.
func (r *responses) item(raw json.RawMessage, known bool) error {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return fmt.Errorf("an item of the output cannot be read: %w", err)
	}
	switch it.Type {
	case "function_call":
		r.calls = true
		return r.sink(llm.Chunk{Call: &llm.Call{ID: it.CallID, Name: it.Name, Args: json.RawMessage(it.Arguments)}})
	case "reasoning":
		return r.reasoned(raw, &it, known)
	case "message":
		for _, c := range it.Content {
			r.refused = r.refused || c.Type == "refusal"
			if !known {
				if err := r.text(c.Text + c.Refusal); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *responses) reasoned(raw json.RawMessage, it *item, known bool) error {
	if !known {
		for i, s := range it.Summary {
			if i > 0 {
				s.Text = "\n\n" + s.Text
			}
			if err := r.thought(s.Text); err != nil {
				return err
			}
		}
		for _, c := range it.Content {
			if err := r.thought(c.Text); err != nil {
				return err
			}
		}
	}
	if opaque := sealed(raw); opaque != nil {
		return r.sink(llm.Chunk{Thought: &llm.Thought{Opaque: opaque, From: r.from}})
	}
	return nil
}

// end takes a response as it is at its end.
func (r *responses) end(all *response) error {
	if r.done {
		return nil
	}
	if !r.heard {
		for _, raw := range all.Output {
			if err := r.item(raw, false); err != nil {
				return err
			}
		}
	}
	if all.ID != "" || all.Model != "" {
		if err := r.sink(wire.Source(all.ID, all.Model)); err != nil {
			return err
		}
	}
	if u := all.Usage; u != nil {
		err := r.sink(llm.Chunk{Usage: &llm.Usage{Input: u.Input, Cached: u.In.Cached, Written: u.In.Written, Output: u.Output, Reasoning: u.Out.Reasoning}})
		if err != nil {
			return err
		}
	}
	if all.Status == "failed" || all.Status == "cancelled" {
		err := wire.ReadError([]byte(`{"error":` + orNull(all.Error) + `}`))
		if err.Message == "" {
			err.Message = "the response " + all.Status
		}
		return err
	}
	r.done = true
	return r.sink(llm.Chunk{Stop: r.stop(all)})
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}

func (r *responses) stop(all *response) llm.Stop {
	switch {
	case all.Incomplete.Reason == "max_output_tokens":
		return llm.StopLength
	case all.Incomplete.Reason == "content_filter" || r.refused:
		return llm.StopRefusal
	case all.Status == "incomplete":
		return llm.StopOther
	case r.calls:
		return llm.StopCalls
	}
	return llm.StopEnd
}

func (r *responses) End() error {
	if !r.done {
		return wire.ErrCut
	}
	return nil
}
