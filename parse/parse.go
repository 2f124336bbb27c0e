// Package parse reads the tool calls that models write in their text, and
// writes calls and results as those models expect them.
//
// Each format has a file of its own and one entry in [Formats].
package parse

import (
	"encoding/json"
	"strings"

	"github.com/helve-ai/helve/tool"
)

// A Format is a way in which some models write tool calls. One value says how
// calls are read, how a prompt asks for them, and how earlier calls and their
// results are shown to the model again: what is asked for is what is read.
type Format struct {
	Name    string // as it appears in configuration, such as "hermes"
	Doc     string // one sentence
	Models  string // which models write it, for people
	grammar grammar

	// render writes calls as the model would. They are read back unharmed.
	render func(calls []tool.Call) string
	// result writes what a call answered, as the model expects to read it.
	result func(name, id, content string) string
}

// New returns a parser of one message. Only calls of the tools are read; nil
// tools: every name counts as offered.
func (f *Format) New(tools *Tools) Parser { return f.machine(tools) }

func (f *Format) machine(tools *Tools) *machine {
	f.grammar.compile(f.resultTag())
	return newMachine(&f.grammar, tools)
}

// NewThinking is New for a model whose prompt ended within its reasoning, as
// many chat templates have it: the text is reasoning until that is closed.
func (f *Format) NewThinking(tools *Tools) Parser {
	m := f.machine(tools)
	if c := f.grammar.impliedCloser(); c != "" {
		m.closers, m.trim = []string{c}, true
	}
	return m
}

// A Parser turns the text of one message into events.
//
// However the text is cut into chunks, the events join to the same message.
type Parser interface {
	// Write returns the events that no later text can change. The slice is
	// valid until the next call.
	Write(chunk string) []Event
	// Close returns the events of what was held back. The parser is spent.
	Close() []Event
}

// A Kind says what an Event holds.
type Kind uint8

// The kinds of events.
const (
	Text     Kind = iota // text for the reader
	Thinking             // reasoning, which is not searched for calls
	Called               // a call of a tool that was offered
	Note                 // a repair or a warning, addressed to the model
	Rethink              // all text so far was reasoning: only now did that become known
)

// An Event is a piece of a message.
type Event struct {
	Kind Kind
	Text string     // of Text, Thinking and Note
	Call *tool.Call // of Called: the name as the model wrote it, arguments that are a JSON object, the id if it gave one
}

// A Message is what a model wrote, taken apart.
type Message struct {
	Content  string
	Thinking string
	Calls    []tool.Call
	Notes    []string
}

// Add joins events to the message.
func (m *Message) Add(events ...Event) {
	for _, e := range events {
		switch e.Kind {
		case Text:
			m.Content += e.Text
		case Thinking:
			m.Thinking += e.Text
		case Called:
			m.Calls = append(m.Calls, *e.Call)
		case Note:
			m.Notes = append(m.Notes, e.Text)
		case Rethink:
			m.Thinking, m.Content = m.Thinking+m.Content, ""
		}
	}
}

// Read returns the message that the chunks are.
func Read(p Parser, chunks ...string) Message {
	var text, thought strings.Builder
	var m Message
	add := func(events []Event) {
		for _, e := range events {
			switch e.Kind {
			case Text:
				text.WriteString(e.Text)
			case Thinking:
				thought.WriteString(e.Text)
			case Rethink:
				thought.WriteString(text.String())
				text.Reset()
			default:
				m.Add(e)
			}
		}
	}
	for _, c := range chunks {
		add(p.Write(c))
	}
	add(p.Close())
	m.Content, m.Thinking = text.String(), thought.String()
	return m
}

func callOf(name, id string, args json.RawMessage) *tool.Call {
	return &tool.Call{Name: name, ID: id, Args: args}
}
