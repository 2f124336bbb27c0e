package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/tool"
)

// A piece is an answer, or a part of one.
type piece struct {
	ID         wire.Text `json:"responseId"`
	Model      wire.Text `json:"modelVersion"`
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		Finish  string `json:"finishReason"`
		Message string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt   int `json:"promptTokenCount"`
		Tools    int `json:"toolUsePromptTokenCount"`
		Cached   int `json:"cachedContentTokenCount"`
		Said     int `json:"candidatesTokenCount"`
		Thoughts int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Data *struct {
		MIME string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
}

// An answer is read.
type answer struct {
	sink    wire.Sink
	from    string
	calls   bool
	finish  string
	message string
	blocked string
	known   bool // where the answer comes from was told
}

func (a *answer) Event(_ string, data []byte) error {
	if string(data) == "[DONE]" { // of gateways
		return nil
	}
	var p piece
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	if len(p.Error) > 0 && string(p.Error) != "null" {
		return wire.ReadError(data)
	}
	return a.take(&p)
}

// Whole takes an answer of one piece, or a list of pieces.
func (a *answer) Whole(data []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		list = []json.RawMessage{data}
	}
	for _, raw := range list {
		if err := a.Event("", raw); err != nil {
			return err
		}
	}
	if a.finish == "" && a.blocked == "" {
		return fmt.Errorf("the answer has no finishReason")
	}
	return a.End()
}

func (a *answer) take(p *piece) error {
	if !a.known && (p.ID != "" || p.Model != "") {
		a.known = true
		if err := a.sink(wire.Source(p.ID, p.Model)); err != nil {
			return err
		}
	}
	for _, c := range p.Candidates {
		if c.Index != 0 {
			continue
		}
		for i := range c.Content.Parts {
			if err := a.part(&c.Content.Parts[i]); err != nil {
				return err
			}
		}
		if c.Finish != "" {
			a.finish, a.message = c.Finish, c.Message
		}
	}
	if p.Feedback.Block != "" {
		a.blocked = p.Feedback.Block
	}
	if u := p.Usage; u != nil {
		return a.sink(llm.Chunk{Usage: &llm.Usage{Input: u.Prompt + u.Tools, Cached: u.Cached, Output: u.Said + u.Thoughts, Reasoning: u.Thoughts}})
	}
	return nil
}

func (a *answer) part(p *part) error {
	switch {
	case p.Call != nil:
		a.calls = true
		args := p.Call.Args
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		call := &llm.Call{ID: p.Call.ID, Name: p.Call.Name, Args: args, From: a.from}
		call.Opaque, _ = tool.Encode(own{p.Signature, p.Call.ID})
		return a.sink(llm.Chunk{Call: call})
	case p.Data != nil:
		data, err := base64.StdEncoding.DecodeString(p.Data.Data)
		if err != nil {
			return fmt.Errorf("inline data cannot be read: %w", err)
		}
		return a.sink(llm.Chunk{Image: &tool.Content{MIME: p.Data.MIME, Data: data}})
	}
	chunk := llm.Chunk{Text: p.Text}
	if p.Thought && p.Text != "" {
		chunk = llm.Chunk{Thought: &llm.Thought{Text: p.Text, From: a.from}}
	}
	if p.Text != "" {
		if err := a.sink(chunk); err != nil {
			return err
		}
	}
	if p.Signature == "" {
		return nil
	}
	opaque, _ := tool.Encode(own{Signature: p.Signature})
	return a.sink(llm.Chunk{Thought: &llm.Thought{Opaque: opaque, From: a.from}})
}

func (a *answer) End() error {
	switch {
	case a.blocked != "":
		return a.sink(llm.Chunk{Stop: llm.StopRefusal})
	case a.finish == "":
		return wire.ErrCut
	case a.finish == "MALFORMED_FUNCTION_CALL" || a.finish == "UNEXPECTED_TOOL_CALL":
		return &llm.Error{Code: a.finish, Message: "the model began a call that is none: " + a.message, Temporary: true}
	}
	return a.sink(llm.Chunk{Stop: a.stop()})
}

func (a *answer) stop() llm.Stop {
	switch a.finish {
	case "MAX_TOKENS":
		return llm.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return llm.StopRefusal
	case "STOP":
		if a.calls {
			return llm.StopCalls
		}
		return llm.StopEnd
	}
	if a.calls {
		return llm.StopCalls
	}
	return llm.StopOther
}
