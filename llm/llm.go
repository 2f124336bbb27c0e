// Package llm is the vocabulary of conversations with models.
package llm

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/helve-ai/helve/tool"
)

// A Model continues conversations. It is safe for concurrent use.
type Model interface {
	// Generate yields the pieces of one answer as they come. The last chunk of
	// a whole answer has a Stop. After an error nothing more is yielded; what
	// came before it stands. To stop listening cancels the request.
	Generate(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// A Request is a conversation to be continued. It is not changed.
type Request struct {
	System   string // what the model is told first; "": nothing
	Messages []Message
	Tools    []Tool // that the model may call by the API; none for models that are told in the text
	Choice   Choice // zero: Auto
	Settings

	// Output is the JSON Schema of the answer; nil: free text. Models that
	// cannot be held to one are not, so the answer must be checked.
	Output json.RawMessage

	// Session groups requests whose beginnings are alike, for providers that
	// keep what they have read; "": none.
	Session string
}

// Settings say how an answer is to be made. Zero values leave it to the model.
type Settings struct {
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	Stop        []string // texts at which the answer ends
	MayStop     []string // texts from which on it is of no use; they go only to providers that end there without forgetting their models' own
	Effort      string   // how long the model may think: low, medium, high
}

// A Tool is what a model is told of a tool: what inject.Present shows.
type Tool struct {
	Name        string          // in wire form: [a-zA-Z0-9_-]{1,64}
	Description string          //
	Input       json.RawMessage // a JSON Schema of type object
}

// A Choice says whether the model is to call tools: Auto, None, Required, or
// the name of the one that it is to call.
type Choice string

// The choices that are no names.
const (
	Auto     Choice = ""
	None     Choice = "none"
	Required Choice = "required"
)

// A Message is one turn of a conversation.
type Message struct {
	Role    Role           `json:"role"`
	Content []tool.Content `json:"content,omitempty"` // what was said: texts, and images of users
	Thought []Thought      `json:"thought,omitempty"` // of the model, before it said so
	Calls   []Call         `json:"calls,omitempty"`   // that the model makes
	Answers []Answer       `json:"answers,omitempty"` // to the calls of the message before
}

// A Role is who speaks.
type Role string

// The roles. What the model is told first is in Request.System.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Results   Role = "tool" // a message that has only Answers
)

// Said returns a message of one text.
func Said(by Role, text string) Message {
	return Message{Role: by, Content: []tool.Content{{Text: text}}}
}

// Text returns the texts of a message, each on lines of its own.
func (m *Message) Text() string {
	return (&tool.Result{Content: m.Content}).JoinText()
}

// A Thought is a piece of a model's reasoning. Providers that want it back want
// it back as it was.
type Thought struct {
	Text   string          `json:"text,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"` // in the provider's own form; nil: nothing to be given back
	From   string          `json:"from,omitempty"`   // the provider whose form that is: others are not given it
}

// A Call is what a model asks for.
type Call struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`             // as it was offered
	Args   json.RawMessage `json:"args"`             // as the model wrote them: not always an object, not always JSON
	Opaque json.RawMessage `json:"opaque,omitempty"` // what the provider wants back with it
	From   string          `json:"from,omitempty"`   // whose form that is
}

// An Answer is the result of a call, as the model reads it.
type Answer struct {
	CallID  string         `json:"call_id"`
	Name    string         `json:"name"` // of the tool
	Content []tool.Content `json:"content"`
	Failed  bool           `json:"failed,omitempty"`
}

// A Chunk is a piece of an answer. One has any of its parts.
type Chunk struct {
	Text    string
	Thought *Thought // pieces of a text come one by one; Opaque comes whole, with no text or with the last
	Call    *Call    // whole
	Image   *tool.Content
	Usage   *Usage // so far; the last one counts
	Source  *Source
	Stop    Stop
}

// Stops returns all texts at which an answer is to end, for those who take MayStop.
func (s *Settings) Stops() []string { return append(slices.Clip(s.Stop), s.MayStop...) }

// A Source is what a provider says of where an answer comes from. What it does
// not say is "".
type Source struct {
	ID    string // of the answer
	Model string // that gave it, which may be another than was asked for
}

// A Stop is why an answer ended.
type Stop string

// The reasons. Zero: it has not ended.
const (
	StopEnd     Stop = "end"     // the model has said what it had to say
	StopCalls   Stop = "calls"   // it waits for its calls
	StopLength  Stop = "length"  // it would have been longer than allowed
	StopRefusal Stop = "refusal" // the model or its provider will not say it
	StopOther   Stop = "other"
)

// Usage is what an answer cost, in tokens.
type Usage struct {
	Input     int `json:"input"`               // read, those from the cache included
	Cached    int `json:"cached,omitempty"`    // of Input: read from the provider's cache
	Written   int `json:"written,omitempty"`   // of Input: written to it
	Output    int `json:"output"`              // said, reasoning included
	Reasoning int `json:"reasoning,omitempty"` // of Output
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Cached + v.Cached, u.Written + v.Written, u.Output + v.Output, u.Reasoning + v.Reasoning}
}

// Sub returns u without v, which is part of it.
func (u Usage) Sub(v Usage) Usage {
	return Usage{u.Input - v.Input, u.Cached - v.Cached, u.Written - v.Written, u.Output - v.Output, u.Reasoning - v.Reasoning}
}

// An Error is a refusal or failure of a provider.
type Error struct {
	Provider   string        // such as "anthropic"
	Status     int           // of HTTP; zero: there was no answer
	Code       string        // the provider's own; "": none
	Message    string        // for people
	RetryAfter time.Duration // when the provider wants to be asked again; zero: it did not say
	Temporary  bool          // the same request may succeed later: 408, 409, 429, 5xx, a broken connection
	TooLong    bool          // the conversation is longer than the model's window
	Begun      bool          // part of the answer had come
	Err        error         // what failed beneath; nil: nothing
}

func (e *Error) Unwrap() error { return e.Err }
