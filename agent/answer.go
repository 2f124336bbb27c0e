package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/tool"
)

// answer has a model continue the conversation: the agent's first brain that can.
func (r *run) answer(ctx context.Context) (*llm.Reply, error) {
	for {
		b := &r.Brains[r.brain]
		reply, err := r.persist(ctx, b)
		if err == nil || context.Cause(ctx) != nil || r.brain+1 == len(r.Brains) {
			return reply, err
		}
		r.brain++
		r.notice("%s cannot answer (%v); %s goes on", b.Name, err, r.Brains[r.brain].Name)
	}
}

const (
	usualRetries = 3
	firstPause   = time.Second
	maxPause     = time.Minute
	maxShorter   = 3 // how often a conversation is made shorter because the model says that it is too long
)

// persist asks one brain, and again after failures that may pass. No call is
// run before an answer is whole, so nothing happens twice.
func (r *run) persist(ctx context.Context, b *Brain) (*llm.Reply, error) {
	retries := b.Retries
	if retries == 0 {
		retries = usualRetries
	}
	for failed, shorter := 0, 0; ; {
		reply, begun, err := r.once(ctx, b, shorter)
		if err == nil {
			return reply, nil
		}
		if context.Cause(ctx) != nil {
			r.keepSaid(reply)
			return nil, err
		}
		if begun {
			r.tell(Event{Discard: true})
		}
		var e *llm.Error
		if !errors.As(err, &e) {
			return nil, err
		}
		switch {
		case e.TooLong && shorter < maxShorter:
			shorter++
			r.notice("the conversation is too long for %s; it is made shorter", b.Name)
			continue
		case e.Temporary && failed >= retries && failed > 0:
			return nil, fmt.Errorf("%w (it was asked %d times)", err, failed+1)
		case !e.Temporary || failed >= retries:
			return nil, err
		}
		failed++
		if err := r.pause(ctx, b, e, failed); err != nil {
			return nil, err
		}
	}
}

// keepSaid keeps what was said of an answer that was interrupted: who goes on
// with the conversation has read it. Its calls were not run, and are dropped.
func (r *run) keepSaid(reply *llm.Reply) {
	if reply == nil || strings.TrimSpace(reply.Text()) == "" {
		return
	}
	r.out.Text = reply.Text()
	r.c.add(llm.Said(llm.Assistant, strings.TrimSpace(reply.Text())+"\n"+cutOff))
}

// cutOff ends an answer that was interrupted.
const cutOff = "[the answer was interrupted here]"

// pause waits before the next attempt: as long as the provider says, or longer
// each time, by chance a little more or less so that many do not come at once.
func (r *run) pause(ctx context.Context, b *Brain, e *llm.Error, failed int) error {
	wait := min(firstPause<<(failed-1), maxPause)
	wait = wait*3/4 + rand.N(wait/2)
	if e.RetryAfter > 0 {
		wait = e.RetryAfter
	}
	if wait > maxPause {
		return fmt.Errorf("%w (that is too long to wait for)", e)
	}
	r.notice("%s: %v; asked again in %s", b.Name, e, wait.Round(100*time.Millisecond))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// once asks a brain once. begun reports that part of the answer was told.
func (r *run) once(ctx context.Context, b *Brain, shorter int) (_ *llm.Reply, begun bool, err error) {
	system, err := r.System(ctx, r.c, b)
	if err != nil {
		return nil, false, err
	}
	var items []inject.Item
	if r.Show != nil {
		items = r.Show(r.from, b)
	}
	req := &llm.Request{Settings: b.Settings, Session: r.c.ID}
	if r.Output != nil {
		req.Output = r.Output.Raw()
	}
	known := 0
	if b.Format == nil {
		req.Tools, known = native(items)
	}
	if err := r.fit(ctx, b, inject.Estimate(system)+known, shorter); err != nil {
		return nil, false, err
	}
	if req.System, err = r.System(ctx, r.c, b); err != nil { // anew, if the conversation was made shorter
		return nil, false, err
	}
	estimated := inject.Estimate(req.System) + known
	for _, n := range r.c.costs {
		estimated += n
	}
	req.Messages = r.c.Messages
	h := &hearing{run: r, reply: &llm.Reply{Message: llm.Message{Role: llm.Assistant}}}
	if b.Format != nil {
		req.Messages = inText(b.Format, r.c.Messages)
		req.MayStop = b.Format.Stop()
		h.parser = cmp.Or(b.Reads, b.Format).New(r.offered())
	}
	if b.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.Timeout, fmt.Errorf("%s did not answer within %s", b.Name, b.Timeout))
		defer cancel()
	}
	for chunk, err := range b.Model.Generate(ctx, req) {
		if err != nil {
			return h.reply, h.told, err
		}
		h.hear(chunk)
	}
	h.close()
	r.notes = h.notes
	r.spent(b, h.reply.Usage, estimated)
	return h.reply, h.told, nil
}

// offered returns the tools whose calls are read from the text.
func (r *run) offered() *parse.Tools {
	if r.Offered == nil {
		return parse.NewTools()
	}
	return r.Offered(r.from)
}

// native returns the tools as the API takes them, and about how many tokens
// they cost.
func native(items []inject.Item) (tools []llm.Tool, tokens int) {
	for _, it := range items {
		tools = append(tools, llm.Tool{Name: it.Name, Description: it.Description, Input: it.Input})
		tokens += it.Tokens()
	}
	return tools, tokens
}

// spent counts what an answer cost.
func (r *run) spent(b *Brain, u llm.Usage, estimated int) {
	money := 0.0
	if r.Price != nil {
		money = r.Price(b, u)
	}
	r.out.Usage, r.out.Money = r.out.Usage.Add(u), r.out.Money+money
	r.c.used, r.c.paid = r.c.used.Add(u), r.c.paid+money
	if r.Used != nil {
		r.Used(r.from, b, u, money)
	}
	r.c.learn(u.Input, estimated)
	r.tell(Event{Usage: &u})
}

// A hearing takes an answer piece by piece.
type hearing struct {
	*run
	reply  *llm.Reply
	parser parse.Parser // nil: calls come by the API
	told   bool         // something of it
	notes  []string     // of the parser
}

func (h *hearing) hear(c llm.Chunk) {
	if h.parser == nil || c.Text == "" {
		h.take(c)
		return
	}
	events := h.parser.Write(c.Text)
	c.Text = ""
	h.take(c)
	h.read(events)
}

// take adds a piece to the answer, and tells it.
func (h *hearing) take(c llm.Chunk) {
	h.reply.Add(c)
	switch {
	case c.Text != "":
		h.told = true
		h.tell(Event{Text: c.Text})
	case c.Thought != nil && c.Thought.Text != "":
		h.told = true
		h.tell(Event{Thinking: c.Thought.Text})
	}
}

// read takes what a parser made of a text.
func (h *hearing) read(events []parse.Event) {
	for _, e := range events {
		switch e.Kind {
		case parse.Text:
			h.take(llm.Chunk{Text: e.Text})
		case parse.Thinking:
			h.take(llm.Chunk{Thought: &llm.Thought{Text: e.Text}})
		case parse.Called:
			h.take(llm.Chunk{Call: &llm.Call{ID: e.Call.ID, Name: e.Call.Name, Args: e.Call.Args}})
		case parse.Note:
			h.notes = append(h.notes, e.Text)
			h.notice("%s", e.Text)
		case parse.Rethink:
			h.rethink()
		}
	}
}

// rethink takes all text so far for reasoning: only now did that become known.
func (h *hearing) rethink() {
	text := h.reply.Text()
	h.reply.Content = nil
	h.reply.Add(llm.Chunk{Thought: &llm.Thought{Text: text}})
	h.tell(Event{Discard: true})
	h.tell(Event{Thinking: text})
}

// enveloped takes for calls what a model wrote into its text between the tags of
// some format though it calls by the API: not every server reads its models' own
// (SPEC P1). JSON without tags is an answer here, and what cannot be read is text.
func (h *hearing) enveloped() {
	m := parse.Read(parse.YAgentMulti.New(h.offered()), h.reply.Text())
	if len(m.Calls) == 0 {
		return
	}
	h.notes = m.Notes
	h.reply.Content = slices.DeleteFunc(h.reply.Content, func(c tool.Content) bool { return c.Data == nil })
	if said := strings.TrimSpace(m.Content); said != "" {
		h.reply.Add(llm.Chunk{Text: said})
	}
	for _, c := range m.Calls {
		h.reply.Add(llm.Chunk{Call: &llm.Call{ID: c.ID, Name: c.Name, Args: c.Args}})
	}
}

func (h *hearing) close() {
	if h.parser != nil {
		h.read(h.parser.Close())
	} else if len(h.reply.Calls) == 0 && h.reply.Stop != llm.StopRefusal {
		h.enveloped()
	}
	for i := range h.reply.Calls {
		if h.reply.Calls[i].ID == "" {
			h.reply.Calls[i].ID = fmt.Sprintf("c%d", h.out.Calls+i+1)
		}
	}
}
