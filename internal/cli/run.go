package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/llm"
)

// exitCancelled is the exit code of a run that was interrupted, as shells have it.
const exitCancelled = 130

// A running says how an agent is run.
type running struct {
	agent   string
	session string
	yes     bool
	input   string // the file of what a one-shot app is given; "": the task says it
}

func (c *cli) runCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use: "run APP.yaml TASK", Short: "Have an agent do a task", Args: cobra.RangeArgs(0, 2),
		Long: `Run the agent that an app file declares until it has done the task, and print
its answer. TASK is a text, or - to read it from standard input.

What the policy asks about is asked at the terminal; without one it waits for
helve approvals, or is denied. The session is kept: helve sessions lists them,
and --session takes one up again.

An app with mode: one_shot may declare, by JSON Schemas, what it is given
(runtime.input) and what it gives back (runtime.output). It is given the JSON of
--input, or TASK if that is JSON; its answer is checked, and asked for again if
it does not fit.

With --json every event is a line of JSON: text, thinking, call, result,
agent (who goes on), notice, usage, and at the end done. What agents do that
it sets to work, by agents.spawn or call_app, comes as inner: of (who it is) and
event.

The exit code is 0 if the agent answered, 2 if it could not, 3 if the model
refused, 4 if a limit was reached, and 130 if it was interrupted.`,
		Example: `  helve run helve.yaml "Which of these files are never imported?"
  git diff | helve run review.yaml -
  helve run helve.yaml "Go on" --session 20261120-1030`,
		RunE: func(cmd *cobra.Command, args []string) error {
			task, err := c.taskOrInput(cmd.Context(), args, r.input)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), r, task)
		},
		ValidArgsFunction: completeAppFile,
	}
	c.runFlags(cmd, &r)
	cmd.Flags().StringVar(&r.input, "input", "", "a `FILE` with the JSON that a one-shot app is given, or - for standard input")
	return cmd
}

func (c *cli) runFlags(cmd *cobra.Command, r *running) {
	fl := cmd.Flags()
	fl.StringVar(&r.agent, "agent", "", "which agent of the app (default runtime.entry_agent, or the first)")
	fl.StringVar(&r.session, "session", "", "the session to take up again; the beginning of its id is enough, and last is the one before")
	fl.BoolVar(&c.demo, "demo", false, "the scripted demonstration in place of an app file: no model, no network")
	fl.BoolVarP(&r.yes, "yes", "y", false, "approve in advance what the policy would ask about")
}

func completeAppFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// task reads [APP] TASK. Where --app names the file, or --demo stands for one,
// TASK is all there is.
func (c *cli) task(ctx context.Context, args []string) (string, error) {
	switch {
	case c.demo && c.appFile == "" && len(args) == 0:
		return "Show me", nil
	case c.demo && (c.appFile != "" || len(args) == 2):
		return "", usage("--demo stands in place of the app file: helve run --demo \"Show me\"")
	case c.demo:
	case c.appFile == "" && len(args) == 0:
		return "", usage("helve run needs an app file and a task, as in: helve run helve.yaml \"Summarize the README\". %s", c.howToBegin(ctx, `run helve.yaml "…"`))
	case c.appFile == "":
		c.appFile, args = args[0], args[1:]
		if _, err := os.Stat(c.appFile); err != nil {
			if len(args) == 0 { // they may have meant it for the task
				return "", usage("there is no app file %q, and helve run needs one before the task. %s", c.appFile, c.howToBegin(ctx, `run helve.yaml "…"`))
			}
			return "", usage("there is no app file %s. %s", c.appFile, c.howToBegin(ctx, `run helve.yaml "…"`))
		}
	case len(args) == 2:
		return "", usage("there are two app files, %s and %s", c.appFile, args[0])
	}
	if len(args) == 0 {
		return "", usage("the task is missing: helve run %s \"…\", or - to read it from standard input", c.appFile)
	}
	if args[0] != "-" {
		return args[0], nil
	}
	data, err := io.ReadAll(c.in)
	return string(data), err
}

// taskOrInput reads what an agent is told: the task, or the file of --input.
func (c *cli) taskOrInput(ctx context.Context, args []string, input string) (string, error) {
	if input == "" {
		return c.task(ctx, args)
	}
	if c.appFile == "" && len(args) == 1 {
		c.appFile, args = args[0], nil
	}
	if c.appFile == "" || len(args) > 0 {
		return "", usage("with --input there is an app file and no task: helve run helve.yaml --input %s", input)
	}
	if input == "-" {
		data, err := io.ReadAll(c.in)
		return string(data), err
	}
	data, err := os.ReadFile(input)
	return string(data), err
}

// run has an agent do a task.
func (c *cli) run(ctx context.Context, r running, task string) (err error) {
	if strings.TrimSpace(task) == "" {
		return usage("the task is empty")
	}
	var printed printing
	if c.json {
		c.heard = func(h app.Heard) { c.printInner(&printed, h) }
	}
	a, err := c.open(ctx, c.runApprover(r.yes), false)
	c.settled()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.Config.CheckInput(task); err != nil {
		return usage("%v", err)
	}
	ag, conv, err := c.agentFor(ctx, a, r)
	if err != nil {
		return err
	}
	from := ag.From
	from.Session = conv.ID
	a.Said(from, task)
	printed.begin(conv.ID)
	if c.json {
		printed.print(c.out, shownEvent{Type: "session", Session: conv.ID})
	}
	out := c.follow(&printed, ag.Run(ctx, conv, llm.Said(llm.User, task)))
	if !c.json {
		c.sayOutcome(out, conv.ID)
	}
	return outcomeError(out)
}

// runApprover asks at the terminal where there is one; elsewhere the call waits
// for an operator.
func (c *cli) runApprover(yes bool) guard.Approver {
	if isTerminal(c.in) {
		c.lines = newLineReader(c.in)
	}
	switch {
	case yes:
		return c.terminalApprover(true)
	case c.lines != nil:
		return c.chatApprover(c.lines)
	}
	return nil
}

// agentFor opens an agent, and the conversation that it is to go on with.
func (c *cli) agentFor(ctx context.Context, a *app.App, r running) (*agent.Agent, *agent.Conversation, error) {
	book, user := a.Conversations(), userName()
	if len(a.Config.Agents) == 0 {
		return nil, nil, usage("the app %s declares no agent. %s", a.Config.App.ID, c.howToAddAgent(ctx))
	}
	if r.session == "" {
		ag, err := a.Agent(ctx, r.agent, user)
		return ag, &agent.Conversation{ID: book.NewID()}, err
	}
	mine := func(k agent.Kept) bool { return k.App == a.Config.App.ID && k.User == user }
	if r.session == "last" {
		all, err := book.List(ctx, func(k agent.Kept) bool { return mine(k) && k.Parent == "" })
		if err != nil {
			return nil, nil, err
		}
		if len(all) == 0 {
			return nil, nil, fmt.Errorf("there is no session yet that could be taken up again")
		}
		r.session = all[0].ID
	}
	ag, conv, err := a.TakeUp(ctx, r.session, r.agent, mine)
	if err != nil && conv == nil {
		err = fmt.Errorf("%w; helve sessions lists them", err)
	}
	return ag, conv, err
}

// follow goes through a run: as lines of JSON, or quietly.
func (c *cli) follow(p *printing, events func(func(agent.Event) bool)) agent.Outcome {
	var out agent.Outcome
	for e := range events {
		if e.Done != nil {
			out = *e.Done
		}
		if c.json {
			p.print(c.out, eventShown(e))
		} else if e.Notice != "" && c.verbose {
			fmt.Fprintln(c.err, c.style(c.err).dim(cleanText(e.Notice)))
		}
	}
	return out
}

// A shownEvent is an event as --json prints it.
type shownEvent struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	Call     string          `json:"call_id,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Decision string          `json:"decision,omitempty"`
	Stage    string          `json:"stage,omitempty"`
	Result   *shownResult    `json:"result,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Session  string          `json:"session,omitempty"`
	Usage    *llm.Usage      `json:"usage,omitempty"`
	Outcome  *agent.Outcome  `json:"outcome,omitempty"`
	Of       *shownAgent     `json:"of,omitempty"`
	Event    *shownEvent     `json:"event,omitempty"` // of that agent
}

// A shownAgent is an agent that a call has set to work.
type shownAgent struct {
	App     string `json:"app"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Call    string `json:"call_id"` // by which it was set to work
	Depth   int    `json:"depth"`
}

// A printing prints the events of a run, which agents that it sets to work
// have at the same time.
type printing struct {
	mu      sync.Mutex
	session string
}

// begin has the events printed that belong to a session.
func (p *printing) begin(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = session
}

func (p *printing) print(w io.Writer, s shownEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a reader that is gone misses nothing
}

// of reports whether something belongs to the run.
func (p *printing) of(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session == session
}

// printInner prints an event of an agent that the run has set to work.
func (c *cli) printInner(p *printing, h app.Heard) {
	if !p.of(h.Session) {
		return
	}
	s := eventShown(h.Event)
	of := &shownAgent{App: h.From.App, Agent: h.From.Agent, Session: h.From.Session, Depth: h.Depth}
	if h.From.Under != nil {
		of.Call = h.From.Under.Call
	}
	p.print(c.out, shownEvent{Type: "inner", Of: of, Event: &s})
}

// eventShown returns an event as --json prints it.
func eventShown(e agent.Event) shownEvent {
	var s shownEvent
	switch {
	case e.Done != nil:
		s = shownEvent{Type: "done", Outcome: e.Done}
	case e.Result != nil:
		s = shownEvent{Type: "result", Call: e.Call.ID, Tool: toolOf(e), Result: &shownResult{e.Result.Err == nil, e.Result.JoinText(), e.Result.Structured, e.Result.Err, e.Result.Notes}}
		if e.Call.Trail != nil {
			s.Decision, s.Stage = e.Call.Trail.Decision.String(), e.Call.Trail.Stage
		}
	case e.Call != nil:
		s = shownEvent{Type: "call", Call: e.Call.ID, Tool: e.Call.Name, Args: e.Call.Args}
		if !json.Valid(s.Args) {
			s.Args, s.Text = nil, string(e.Call.Args)
		}
	case e.Agent != nil:
		s = shownEvent{Type: "agent", Agent: e.Agent.From.Agent}
	case e.Usage != nil:
		s = shownEvent{Type: "usage", Usage: e.Usage}
	case e.Discard:
		s = shownEvent{Type: "discard"}
	case e.Notice != "":
		s = shownEvent{Type: "notice", Text: e.Notice}
	case e.Thinking != "":
		s = shownEvent{Type: "thinking", Text: e.Thinking}
	default:
		s = shownEvent{Type: "text", Text: e.Text}
	}
	return s
}

// toolOf returns the name of the tool that a call resolved to, else what it said.
func toolOf(e agent.Event) string {
	if e.Call.Tool != nil {
		return e.Call.Tool.Name
	}
	return e.Call.Name
}

// sayOutcome prints the answer of a run, and beside it why there is none.
func (c *cli) sayOutcome(out agent.Outcome, session string) {
	if out.Text != "" {
		text := out.Text
		if isTerminal(c.out) {
			text = cleanText(text)
		}
		fmt.Fprintln(c.out, strings.TrimRight(text, "\n"))
	}
	s := c.style(c.err)
	switch {
	case out.Reason == agent.Answered && out.Detail != "":
		fmt.Fprintf(c.err, "%s %s\n", s.warn("note:"), cleanText(out.Detail))
	case out.Reason != agent.Answered:
		if out.Reason == agent.Cancelled && isTerminal(c.err) { // which shows ^C
			fmt.Fprintln(c.err)
		}
		fmt.Fprintf(c.err, "%s %s\n", s.bad(string(out.Reason)+":"), cleanText(out.Detail))
		fmt.Fprintf(c.err, "%s\n", s.dim("The session is kept: helve run "+c.appName()+" \"…\" --session "+session))
	}
}

// outcomeError returns the error whose exit code tells how a run ended.
func outcomeError(out agent.Outcome) error {
	code := map[agent.Reason]int{agent.Failed: exitTool, agent.Mistaken: exitTool, agent.Refused: exitRefused, agent.OutOf: 4, agent.Cancelled: exitCancelled}[out.Reason]
	if code == 0 {
		return nil
	}
	return &codedError{code: code, err: errors.New(out.Detail), told: true}
}

// appName returns how the app is named on a command line.
func (c *cli) appName() string {
	if c.demo {
		return "--demo"
	}
	return c.appFile
}
