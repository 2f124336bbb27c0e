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
	Explain bool                  // fill in Hit.Why in full
}

// A Hit is a tool that was found.
type Hit struct {
	Tool  *tool.Tool
	Score float64 // higher is better; comparable only within one answer
	Why   string  // what matched, in a few words
}

// An Embedder maps texts to vectors of one length.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}
