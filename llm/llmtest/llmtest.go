// Package llmtest is a model for tests, which says what it is told to say.
package llmtest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/helve-ai/helve/llm"
)

// A Model gives one answer after another, and keeps what it was asked. It is
// safe for concurrent use.
type Model struct {
	// Answer, where it is not nil, makes up the answers in place of those that
	// were declared. It is given the number of the request, from 0.
	Answer func(n int, req *llm.Request) ([]llm.Chunk, error)

	mu      sync.Mutex
	answers []answer
	asked   []llm.Request
}

type answer struct {
	chunks []llm.Chunk
	err    error
}

// Says appends an answer: texts, a byte at a time.
func (m *Model) Says(text string) *Model {
	var chunks []llm.Chunk
	for i := range len(text) {
		chunks = append(chunks, llm.Chunk{Text: text[i : i+1]})
	}
	return m.Gives(append(chunks, llm.Chunk{Stop: llm.StopEnd})...)
}

// Calls appends an answer that makes calls by the API.
func (m *Model) Calls(calls ...llm.Call) *Model {
	var chunks []llm.Chunk
	for _, c := range calls {
		chunks = append(chunks, llm.Chunk{Call: &c})
	}
	return m.Gives(append(chunks, llm.Chunk{Stop: llm.StopCalls})...)
}

// Gives appends an answer as it comes.
func (m *Model) Gives(chunks ...llm.Chunk) *Model {
	m.answers = append(m.answers, answer{chunks: chunks})
	return m
}

// Fails appends an answer that breaks off.
func (m *Model) Fails(err error, chunks ...llm.Chunk) *Model {
	m.answers = append(m.answers, answer{chunks, err})
	return m
}

// Asked returns what was asked so far. Messages are copies.
func (m *Model) Asked() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// Generate gives the next answer.
func (m *Model) Generate(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		next := m.next(req)
		for _, c := range next.chunks {
			if ctx.Err() != nil {
				yield(llm.Chunk{}, context.Cause(ctx))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if next.err != nil {
			yield(llm.Chunk{}, next.err)
		}
	}
}

func (m *Model) next(req *llm.Request) answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.asked)
	r := *req
	r.Messages = slices.Clone(req.Messages)
	m.asked = append(m.asked, r)
	if m.Answer != nil {
		chunks, err := m.Answer(n, req)
		return answer{chunks, err}
	}
	if n >= len(m.answers) {
		return answer{err: fmt.Errorf("llmtest: asked %d times, but there are only %d answers", n+1, len(m.answers))}
	}
	return m.answers[n]
}
