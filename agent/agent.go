// Package agent runs the loop in which a model speaks, its calls are run, and it hears the results.
package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// An Agent answers what it is told, with tools. Its fields are set before its
// first run; it may run any number of conversations at once.
type Agent struct {
	From   tool.Origin // on whose behalf it calls; the session is the conversation's
	Brains []Brain     // the first thinks; the others stand in for it, in this order

	// Prompt returns what the model is told first. It is asked for every turn,
	// and should return the same text unless something has changed. Nil: nothing.
	Prompt func(ctx context.Context, from tool.Origin, b *Brain) (*Prompt, error)

	// Recall returns the memory that stands in the prompt. It is asked when a
	// conversation is told of it (see System). Nil: that of Prompt.
	Recall func(ctx context.Context, from tool.Origin) (string, error)

	// Show returns the tools that the model sees this turn. Nil: none.
	Show func(from tool.Origin, b *Brain) []inject.Item

	// Offered returns the tools that a model which writes its calls may name:
	// all that it may call, shown or not. Nil: none.
	Offered func(from tool.Origin) *parse.Tools

	// Do runs the calls of one reply, all through the pipeline, and returns
	// their results in their order. The error says that ctx ended; results of
	// calls that did not end before are nil.
	Do func(ctx context.Context, calls []*tool.Call) ([]*tool.Result, error)

	// Price returns what an answer cost, in the unit of Limits.Money. Nil: nothing.
	Price func(b *Brain, u llm.Usage) float64

	// Spent returns what others have used on behalf of a session since it was
	// last asked: it counts as what the agent used. Nil: nothing.
	Spent func(session string) Spent

	// Handed returns the agent to whom a session was handed over since it was
	// last asked, ready to run and the run's own; nil: nobody. That one goes on
	// within the limits of the run, and owes the answer that is asked for. Nil:
	// sessions stay with their agent.
	Handed func(session string) *Agent

	// Used is told of every answer of a model: what it used, and what that cost
	// by Price. Nil: nobody is.
	Used func(from tool.Origin, b *Brain, u llm.Usage, money float64)

	// Begin is told that the agent begins to work, and returns its context and
	// a function that is told the end: of the run, or, where the conversation
	// was handed over to it in the run of another, of its part. The run of the
	// other goes on around that. Nil: nobody is told.
	Begin func(ctx context.Context, from tool.Origin) (context.Context, func(*Outcome))

	// Save keeps what was added to a conversation. Nil: it is not kept.
	Save func(ctx context.Context, c *Conversation) error

	Final   string         // the tool whose success ends a run; its result is the answer; "": none
	Output  *schema.Schema // of the answer; nil: free text
	Limits  Limits
	Context Context
	Log     *slog.Logger // nil: nothing is logged
}

// Spent is what was used.
type Spent struct {
	Usage llm.Usage
	Money float64
}

// A Brain is a model and how it is spoken to.
type Brain struct {
	Name     string // for people, such as anthropic/claude
	Model    llm.Model
	Format   *parse.Format // how it is asked to write calls in its text; nil: it calls by the API
	Reads    *parse.Format // how they are read from it; nil: as it is asked
	Window   int           // tokens; zero: inject.DefaultWindow
	Settings llm.Settings
	Timeout  time.Duration // of one answer; zero: none
	Retries  int           // after failures that may pass; zero: 3; negative: none
}

// Limits bound a run. Zero means that there is no limit.
type Limits struct {
	Turns  int           // answers of the model
	Time   time.Duration // all in all
	Tokens int           // that the model reads and says
	Money  float64
}

// Context says how a conversation is kept within a model's window.
type Context struct {
	Reserved  int     // tokens for the answer; zero: 4096
	Keep      int     // the last messages, which are never summarized; zero: 10
	Trigger   float64 // the part of the window that is filled when compaction begins; zero: 0.75
	Truncate  bool    // leave out what is old rather than summarize it
	Summarize *Brain  // nil: the agent's own
}

// DefaultContext is what the zero values of a Context stand for (app file,
// runtime.context).
var DefaultContext = Context{Reserved: 4096, Keep: 10, Trigger: .75}

func (c Context) orDefault() Context {
	if c.Reserved <= 0 {
		c.Reserved = DefaultContext.Reserved
	}
	if c.Keep <= 0 {
		c.Keep = DefaultContext.Keep
	}
	if c.Trigger <= 0 {
		c.Trigger = DefaultContext.Trigger
	}
	return c
}

// An Event is something that happened in a run. It has one of its parts, or a
// call and its result.
type Event struct {
	Text     string
	Thinking string
	Call     *tool.Call   // alone: it begins
	Result   *tool.Result // of Call, which has ended
	Notice   string       // what happened beside, for people: a retry, a compaction
	Usage    *llm.Usage   // what one answer cost
	Agent    *Agent       // who goes on, now that the conversation was handed over
	Discard  bool         // what came of the present answer does not count: it is asked for again
	Done     *Outcome     // the last event
}

// A Reason is why a run ended.
type Reason string

// The reasons.
const (
	Answered  Reason = "answered"  // the model has given its answer
	OutOf     Reason = "limit"     // a limit of the run was reached
	Mistaken  Reason = "mistakes"  // too many calls in a row were mistakes
	Refused   Reason = "refused"   // the model or its provider would not answer
	Cancelled Reason = "cancelled" // the context ended
	Failed    Reason = "failed"    // no brain could answer, or its answer was not of the form asked for
)

// An Outcome is what a run came to.
type Outcome struct {
	Reason Reason          `json:"reason"`
	Detail string          `json:"detail,omitempty"` // which limit, what failed
	Text   string          `json:"text,omitempty"`   // the answer
	Output json.RawMessage `json:"output,omitempty"` // the answer, of the form asked for
	Turns  int             `json:"turns"`
	Calls  int             `json:"calls"`
	Usage  llm.Usage       `json:"usage"`
	Money  float64         `json:"money,omitempty"`
}
