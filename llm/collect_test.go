package llm_test

import (
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

func chunks(err error, list ...llm.Chunk) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for _, c := range list {
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(llm.Chunk{}, err)
		}
	}
}

func TestCollect(t *testing.T) {
	sealed := json.RawMessage(`{"sig":1}`)
	broken := errors.New("broken")
	image := tool.Content{MIME: "image/png", Data: []byte{1}}
	got, err := llm.Collect(chunks(broken,
		llm.Chunk{Thought: &llm.Thought{Text: "let ", From: "a"}},
		llm.Chunk{Thought: &llm.Thought{Text: "me see", From: "a", Opaque: sealed}},
		llm.Chunk{Thought: &llm.Thought{Text: "again", From: "a"}},
		llm.Chunk{Text: "He"}, llm.Chunk{Text: "llo"},
		llm.Chunk{Image: &image}, llm.Chunk{Text: "!"},
		llm.Chunk{Call: &llm.Call{ID: "1", Name: "x"}},
		llm.Chunk{Usage: &llm.Usage{Input: 1}}, llm.Chunk{Usage: &llm.Usage{Input: 2, Output: 3}, Stop: llm.StopCalls}))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the one of the stream", err)
	}
	want := &llm.Reply{Message: llm.Message{Role: llm.Assistant,
		Content: []tool.Content{{Text: "Hello"}, image, {Text: "!"}},
		Thought: []llm.Thought{{Text: "let me see", From: "a", Opaque: sealed}, {Text: "again", From: "a"}},
		Calls:   []llm.Call{{ID: "1", Name: "x"}}},
		Usage: llm.Usage{Input: 2, Output: 3}, Stop: llm.StopCalls}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestErrorsSayWhatAndWhen(t *testing.T) {
	e := &llm.Error{Provider: "acme", Status: 429, Code: "slow_down", Message: "too many requests", RetryAfter: 2e9}
	const want = "acme: 429 Too Many Requests (slow_down): too many requests; it can be asked again in 2s"
	if e.Error() != want {
		t.Errorf("got %q, want %q", e.Error(), want)
	}
}
