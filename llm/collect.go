package llm

import (
	"iter"

	"github.com/helve-ai/helve/tool"
)

// A Reply is a whole answer.
type Reply struct {
	Message
	Usage Usage
	Stop  Stop
}

// Collect puts the chunks of an answer together. With an error the reply is
// what had come before it.
func Collect(chunks iter.Seq2[Chunk, error]) (*Reply, error) {
	r := &Reply{Message: Message{Role: Assistant}}
	for c, err := range chunks {
		if err != nil {
			return r, err
		}
		r.Add(c)
	}
	return r, nil
}

// Add appends a chunk.
func (r *Reply) Add(c Chunk) {
	if c.Text != "" {
		r.addText(c.Text)
	}
	if c.Thought != nil {
		r.addThought(*c.Thought)
	}
	if c.Call != nil {
		r.Calls = append(r.Calls, *c.Call)
	}
	if c.Image != nil {
		r.Content = append(r.Content, *c.Image)
	}
	if c.Usage != nil {
		r.Usage = *c.Usage
	}
	if c.Stop != "" {
		r.Stop = c.Stop
	}
}

func (r *Reply) addText(text string) {
	if n := len(r.Content); n > 0 && r.Content[n-1].Data == nil {
		r.Content[n-1].Text += text
		return
	}
	r.Content = append(r.Content, tool.Content{Text: text})
}

// addThought joins texts until the one that ends with what is opaque.
func (r *Reply) addThought(t Thought) {
	if n := len(r.Thought); n > 0 && r.Thought[n-1].Opaque == nil && r.Thought[n-1].From == t.From {
		r.Thought[n-1].Text += t.Text
		r.Thought[n-1].Opaque = t.Opaque
		return
	}
	r.Thought = append(r.Thought, t)
}
