// Package search finds tools by what they do.
package search

import (
	"context"

	"github.com/helve-ai/helve/tool"
)

// A Query asks for tools.
type Query struct {
	Text    string                // what is wanted, in any language
	Limit   int                   // the most hits; zero: 10
	Accept  func(*tool.Tool) bool // which tools may be found; nil: all
	Explain bool                  // fill in Hit.Why in full, and Hit.Parts
	Lexical bool                  // by words alone, though there is an Embedder

	// Habits says how far, from 0 to 1, tools were of use after queries like
	// this one, by their names. Nil: nothing is known.
	Habits map[string]float32
	// From says who asks, for those who learn from it. An Index does not look at it.
	From tool.Origin
}

// A Hit is a tool that was found.
type Hit struct {
	Tool  *tool.Tool
	Score float64 // higher is better; comparable only within one answer
	Why   string  // what matched, in a few words
	Parts []Part  // what makes up Score, nothing that is zero; nil unless the query says Explain
}

// A Part is what one channel adds to a score.
type Part struct {
	Channel string  `json:"channel"`
	Score   float64 `json:"score"`
}

// An Embedder maps texts to vectors of one length, each of length 1 or 0. It
// is safe for concurrent use.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}
