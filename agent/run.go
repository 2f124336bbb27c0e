package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

// Run says something to the agent, and goes on until it has answered or a
// limit is reached. The last event has Done, whatever happened. To stop
// listening ends the run as the end of ctx does: nothing goes on behind, and
// the conversation can be taken up again.
func (a *Agent) Run(ctx context.Context, c *Conversation, said llm.Message) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		if a.Limits.Time > 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeoutCause(ctx, a.Limits.Time, errTime)
			defer end()
		}
		r := &run{Agent: a, c: c, from: a.From, log: a.Log}
		r.from.Session = c.ID
		if r.log == nil {
			r.log = slog.New(slog.DiscardHandler)
		}
		ctx, ended := r.begin(ctx)
		listening := true
		r.tell = func(e Event) {
			if listening && !yield(e) {
				listening = false
				stop(errLeft)
			}
		}
		r.out.Reason, r.out.Detail = r.all(ctx, said)
		ended(&r.out)
		r.tell(Event{Done: &r.out})
	}
}

var (
	errTime = errors.New("the time is over")
	errLeft = errors.New("nobody listens any more")
)

// A run is one run of an agent.
type run struct {
	*Agent
	c     *Conversation
	from  tool.Origin
	log   *slog.Logger
	tell  func(Event)
	brain int      // which of them thinks
	asked int      // how often the answer was not of the form asked for
	vain  int      // answers in a row that neither said nor called anything
	calls int      // so far, for ids
	moves int      // how often the conversation was handed over
	notes []string // what the parser has to say to the model of its last answer
	out   Outcome
}

func (r *run) notice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.log.Info(text, "session", r.c.ID)
	r.tell(Event{Notice: text})
}

// begin tells that the present agent begins to work.
func (r *run) begin(ctx context.Context) (context.Context, func(*Outcome)) {
	if r.Begin == nil {
		return ctx, func(*Outcome) {}
	}
	return r.Begin(ctx, r.from)
}

// takeOver is begin for an agent to whom the conversation was handed over. left
// is told why its part ended.
func (r *run) takeOver(ctx context.Context) (_ context.Context, left func(Reason)) {
	before := r.out
	ctx, ended := r.begin(ctx)
	return ctx, func(why Reason) {
		ended(&Outcome{Reason: why, Turns: r.out.Turns - before.Turns, Calls: r.out.Calls - before.Calls,
			Usage: r.out.Usage.Sub(before.Usage), Money: r.out.Money - before.Money})
	}
}

// all is the whole run.
func (r *run) all(ctx context.Context, said llm.Message) (Reason, string) {
	if len(r.Brains) == 0 {
		return Failed, "the agent has no brain"
	}
	r.c.mend()
	if t := r.c.told; t != nil && time.Since(t.at) > cachedFor {
		r.c.told = nil
	}
	if len(said.Content) > 0 {
		r.c.add(said)
	}
	if err := r.save(ctx); err != nil {
		return Failed, err.Error()
	}
	part, left := ctx, func(Reason) {}
	for {
		who := r.Agent
		reason, detail := r.step(part)
		if reason != "" {
			left(reason)
			return reason, detail
		}
		if r.Agent != who {
			left(Answered)
			part, left = r.takeOver(ctx)
		}
	}
}

// step is a turn, if there may be another, and keeps what was said.
func (r *run) step(ctx context.Context) (Reason, string) {
	if why := r.over(); why != "" {
		return OutOf, why
	}
	reason, detail := r.turn(ctx)
	if err := r.save(ctx); err != nil {
		return Failed, err.Error()
	}
	if reason == "" {
		return "", ""
	}
	return r.ended(ctx, reason, detail)
}

// ended tells the end of a run by its context from other failures.
func (r *run) ended(ctx context.Context, reason Reason, detail string) (Reason, string) {
	switch cause := context.Cause(ctx); {
	case cause == nil || reason == Answered:
		return reason, detail
	case errors.Is(cause, errTime):
		return OutOf, fmt.Sprintf("the time of %s is over (runtime.timeout)", r.Limits.Time)
	default:
		return Cancelled, cause.Error()
	}
}

// over says which limit of the run is reached; "": none.
func (r *run) over() string {
	l := r.Limits
	switch {
	case l.Turns > 0 && r.out.Turns >= l.Turns:
		if l.Turns == 1 {
			return "1 turn was taken, which is the limit (runtime.max_turns)"
		}
		return fmt.Sprintf("%d turns were taken, which is the limit (runtime.max_turns)", r.out.Turns)
	case l.Tokens > 0 && r.out.Usage.Input+r.out.Usage.Output >= l.Tokens:
		return fmt.Sprintf("%d tokens were used, the limit is %d (runtime.budget)", r.out.Usage.Input+r.out.Usage.Output, l.Tokens)
	case l.Money > 0 && r.out.Money >= l.Money:
		return fmt.Sprintf("$%.4g was spent, the limit is $%.4g (runtime.budget, or that of the task)", r.out.Money, l.Money)
	}
	return ""
}

// save keeps what was added, also when the run has been cancelled.
func (r *run) save(ctx context.Context) error {
	if r.Save == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if err := r.Save(ctx, r.c); err != nil {
		return fmt.Errorf("the conversation cannot be kept: %w", err)
	}
	return nil
}

// saveTime bounds how long a store may take.
const saveTime = 30 * time.Second

// turn is one answer of the model and what it asks for. The run goes on if
// there is no reason to end it.
func (r *run) turn(ctx context.Context) (Reason, string) {
	reply, err := r.answer(ctx)
	if err != nil {
		return Failed, err.Error()
	}
	r.out.Turns++
	r.c.add(reply.Message)
	if len(reply.Calls) == 0 {
		return r.finish(ctx, reply)
	}
	r.vain = 0
	return r.act(ctx, reply.Calls)
}

// finish takes an answer without calls for the last one.
func (r *run) finish(ctx context.Context, reply *llm.Reply) (Reason, string) {
	text := reply.Text()
	switch {
	case reply.Stop == llm.StopRefusal:
		r.out.Text = text
		return Refused, "the model or its provider would not answer"
	case r.Output != nil && (len(r.notes) == 0 || r.isFormed(text)):
		return r.form(text)
	case len(r.notes) > 0:
		return r.unread(text)
	case strings.TrimSpace(text) == "" && reply.Stop == llm.StopLength:
		return Failed, "the answer was cut off before anything was said: it is longer than the brain's max_tokens allow"
	case strings.TrimSpace(text) == "":
		return r.silent()
	case reply.Stop == llm.StopLength:
		r.out.Text = text
		return Answered, "the answer was cut off: it is longer than the brain's max_tokens allow"
	}
	r.out.Text = text
	return Answered, ""
}

// maxForms is how often a model is told that its answer is not of the form
// asked for.
const maxForms = 2

// form checks the last answer by the schema of the agent's output.
func (r *run) form(text string) (Reason, string) {
	raw, problem := r.formed(text)
	if problem == "" {
		r.out.Text, r.out.Output = string(raw), raw // without a fence, which programs would stumble over
		return Answered, ""
	}
	if r.asked++; r.asked > maxForms {
		r.out.Text = text
		return Failed, "the answer is not of the form asked for: " + problem
	}
	r.notice("the answer is not of the form asked for; the model is asked again")
	r.c.add(llm.Said(llm.User, "Your answer must be one JSON value by this schema, and nothing else: "+r.Output.String()+"\nIt is not: "+problem))
	return "", ""
}

// maxVain is how often in a row a model is told that its answer was nothing
// to go on by.
const maxVain = 2

// unread tells the model what was wrong with calls in its text that could not
// be read. An answer that only speaks of calls is asked for again as well: who
// reads it could not tell them from calls either.
func (r *run) unread(text string) (Reason, string) {
	if r.vain++; r.vain > maxVain {
		r.out.Text = text
		return Mistaken, fmt.Sprintf("%d answers in a row held calls that cannot be read; the last: %s", r.vain, r.notes[len(r.notes)-1])
	}
	r.notice("nothing was called; the model is asked again")
	r.c.add(llm.Said(llm.User, "Nothing was called by your last answer:\n- "+strings.Join(r.notes, "\n- ")+
		"\nWrite what you want to call again, whole. If nothing was to be called, answer again, with what only looks like a call in a fenced block of code."))
	return "", ""
}

// silent asks a model again that said nothing.
func (r *run) silent() (Reason, string) {
	if r.vain++; r.vain > maxVain {
		return Failed, fmt.Sprintf("the model said nothing, %d times in a row", r.vain)
	}
	r.notice("the answer was empty; the model is asked again")
	r.c.add(llm.Said(llm.User, "Your last answer was empty. Go on with the work, or say what came of it."))
	return "", ""
}

func (r *run) isFormed(text string) bool {
	_, problem := r.formed(text)
	return problem == ""
}

func (r *run) formed(text string) (json.RawMessage, string) {
	raw := json.RawMessage(unfence(text))
	if !json.Valid(raw) {
		return nil, "it is no JSON"
	}
	return raw, conforms(r.Output, raw)
}

// act runs the calls of an answer.
func (r *run) act(ctx context.Context, calls []llm.Call) (Reason, string) {
	todo := make([]*tool.Call, len(calls))
	for i, c := range calls {
		todo[i] = &tool.Call{ID: r.callID(c.ID), Name: c.Name, Args: arguments(c.Args), From: r.from, Trail: new(tool.Trail)}
		r.tell(Event{Call: todo[i]})
	}
	r.out.Calls += len(calls)
	if err := r.save(ctx); err != nil { // what is begun now must be known, should the process end
		return Failed, err.Error()
	}
	var results []*tool.Result
	err := context.Cause(ctx)
	if err == nil {
		results, err = r.Do(ctx, todo)
	}
	answered := answers(calls, results)
	for _, n := range r.notes {
		last := &answered.Answers[len(calls)-1]
		last.Content = append(last.Content, tool.Content{Text: "[note] " + n})
	}
	r.c.add(answered)
	for i, res := range results {
		if res != nil {
			r.tell(Event{Call: todo[i], Result: res})
		}
	}
	if r.Spent != nil {
		s := r.Spent(r.c.ID)
		r.out.Usage = r.out.Usage.Add(s.Usage)
		r.out.Money += s.Money
	}
	r.handOver()
	if err != nil {
		return Cancelled, err.Error()
	}
	if r.moves > maxMoves {
		return OutOf, fmt.Sprintf("the conversation was handed over %d times, the limit is %d", r.moves, maxMoves)
	}
	return r.judge(todo, results)
}

// maxMoves is how often agents may hand a conversation over in one run: those
// that do it more often send it round and round.
const maxMoves = 8

// handOver lets the agent go on to whom the conversation was handed over, if it was.
func (r *run) handOver() {
	if r.Handed == nil {
		return
	}
	next := r.Handed(r.c.ID)
	if next == nil {
		return
	}
	next.Limits, next.Output = r.Limits, r.Output
	r.Agent, r.brain, r.moves = next, 0, r.moves+1
	r.from = next.From
	r.from.Session = r.c.ID
	r.tell(Event{Agent: next})
}

// judge says whether the run ends by what its calls came to.
func (r *run) judge(calls []*tool.Call, results []*tool.Result) (Reason, string) {
	for i, res := range results {
		if res == nil {
			continue
		}
		if m := guard.MistakesOf(res); m.Stop {
			why, _, _ := strings.Cut(res.Err.Message, "\n") // the rest is for models
			return Mistaken, fmt.Sprintf("%d calls in a row failed; the last: %s", m.InARow, why)
		}
		if r.Final != "" && calls[i].Tool != nil && calls[i].Tool.Name == r.Final && res.Err == nil {
			r.out.Text = res.JoinText()
			if r.Output == nil {
				return Answered, ""
			}
			return r.form(r.out.Text)
		}
	}
	return "", ""
}

// callID returns an id that no other call has, in this session or in another:
// models reuse theirs.
func (r *run) callID(theirs string) string {
	r.calls++
	session := r.c.ID[strings.LastIndexByte(r.c.ID, '-')+1:]
	return fmt.Sprintf("%s-%d.%d-%s", orElse(theirs, "call"), len(r.c.Messages)+r.c.Base, r.calls, session)
}

// arguments returns what a model wrote as the arguments of a call; nothing
// stands for none.
func arguments(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
