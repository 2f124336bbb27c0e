package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// A Conversation is what was said. The zero Conversation is a new one without
// a name. It is for one run at a time.
type Conversation struct {
	ID       string // the session of its calls
	Messages []llm.Message

	// Base is the number of the first message: those before it were left out
	// or summarized. Whoever keeps conversations keeps messages by number.
	Base int

	told *told // what it was told of the memory; nil: nothing yet

	used llm.Usage // by answers since it was last saved
	paid float64   // for them

	saved int     // the number up to which messages are kept
	costs []int   // estimated tokens of each message
	scale float64 // how many tokens the model counts for one that was estimated; zero: not known
}

// A told is what the agent of a conversation was told of the memory.
type told struct {
	agent  string
	memory string
	at     time.Time
}

// cachedFor is how long providers remember the beginning of a request, as a rule.
const cachedFor = time.Hour

// System returns what the model is told first in a conversation. The memory in
// it is that of when it was told first: what is remembered meanwhile stands in
// the conversation, and requests go on to begin alike, so that the provider
// need not read them anew. It is told as it is then to another agent, after
// messages were summarized or left out, and when the user speaks an hour later.
func (a *Agent) System(ctx context.Context, c *Conversation, b *Brain) (string, error) {
	if a.Prompt == nil {
		return "", nil
	}
	from := a.From
	from.Session = c.ID
	p, err := a.Prompt(ctx, from, b)
	if err != nil {
		return "", fmt.Errorf("the prompt cannot be made: %w", err)
	}
	if c.told == nil || c.told.agent != from.Agent {
		if a.Recall != nil {
			if p.Memory, err = a.Recall(ctx, from); err != nil {
				return "", fmt.Errorf("the memory cannot be read: %w", err)
			}
		}
		c.told = &told{from.Agent, p.Memory, time.Now()}
	}
	p.Memory = c.told.memory
	return p.String(), nil
}

// add appends a message.
func (c *Conversation) add(m llm.Message) {
	c.Messages = append(c.Messages, m)
}

// tokens estimates what the messages cost.
func (c *Conversation) tokens() int {
	for len(c.costs) < len(c.Messages) {
		c.costs = append(c.costs, estimate(&c.Messages[len(c.costs)]))
	}
	sum := 0
	for _, n := range c.costs {
		sum += n
	}
	return c.scaled(sum)
}

func (c *Conversation) scaled(tokens int) int {
	if c.scale == 0 {
		return tokens
	}
	return int(float64(tokens) * c.scale)
}

// learn takes from what a model counted how far the estimate is off.
func (c *Conversation) learn(counted, estimated int) {
	if counted <= 0 || estimated <= 0 {
		return
	}
	c.scale = min(max(float64(counted)/float64(estimated), .25), 4)
}

// What messages cost beside their texts, in tokens.
const (
	messageTokens = 4
	callTokens    = 12
	imageTokens   = 1500
)

// estimate returns what a message costs.
func estimate(m *llm.Message) int {
	n := messageTokens + contentTokens(m.Content)
	for _, t := range m.Thought {
		n += inject.Estimate(t.Text) + len(t.Opaque)/4
	}
	for _, c := range m.Calls {
		n += callTokens + inject.Estimate(string(c.Args)) + len(c.Opaque)/4
	}
	for _, a := range m.Answers {
		n += callTokens + contentTokens(a.Content)
	}
	return n
}

func contentTokens(all []tool.Content) int {
	n := 0
	for _, c := range all {
		if c.Data != nil {
			n += imageTokens
			continue
		}
		n += inject.Estimate(c.String())
	}
	return n
}

// mend makes a conversation whole that ended in the middle: calls that were
// never answered are answered by what is known of them.
func (c *Conversation) mend() bool {
	if len(c.Messages) == 0 {
		return false
	}
	last := &c.Messages[len(c.Messages)-1]
	if last.Role != llm.Assistant || len(last.Calls) == 0 {
		return false
	}
	c.add(answers(last.Calls, nil))
	return true
}

// interrupted is the answer to calls whose results are not known.
const interrupted = "interrupted: the run ended before this call was answered. It may or may not have had its effect; look before you call it again."

// answers returns the message that answers calls; results that are missing
// were interrupted.
func answers(calls []llm.Call, results []*tool.Result) llm.Message {
	m := llm.Message{Role: llm.Results}
	for i, c := range calls {
		a := llm.Answer{CallID: c.ID, Name: c.Name}
		if i < len(results) && results[i] != nil {
			a.Content, a.Failed = spoken(results[i]), results[i].Err != nil
		} else {
			a.Content, a.Failed = []tool.Content{{Text: interrupted}}, true
		}
		m.Answers = append(m.Answers, a)
	}
	return m
}

// spoken returns a result as a model reads it.
func spoken(res *tool.Result) []tool.Content {
	var out []tool.Content
	if res.Err != nil {
		out = append(out, tool.Content{Text: failure(res.Err)})
	}
	out = append(out, res.Content...)
	for _, n := range res.Notes {
		out = append(out, tool.Content{Text: "[note] " + n})
	}
	if len(out) == 0 {
		out = append(out, tool.Content{Text: "(no output)"})
	}
	return out
}

func failure(e *tool.Error) string {
	text := e.Error()
	if e.Retryable {
		text += "\n(The same call may succeed later.)"
	}
	return text
}
