package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

func (c *cli) chatCommand() *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use: "chat APP.yaml", Short: "Talk to an agent", Args: cobra.MaximumNArgs(1),
		Long: `Talk to the agent that an app file declares. Answers come as they are made; each
call is shown with what was decided about it, and what the policy asks about is
asked here, with what would change.

Ctrl-C interrupts an answer; the conversation goes on. A line that ends with a
backslash goes on with the next, and lines that are pasted together are one
message. /help lists the commands, /quit or Ctrl-D ends.`,
		Example: "  helve chat helve.yaml\n  helve chat helve.yaml --resume last",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if c.appFile != "" {
					return usage("there are two app files, %s and %s", c.appFile, args[0])
				}
				c.appFile = args[0]
			}
			if c.demo && c.appFile != "" {
				return usage("--demo stands in place of the app file")
			}
			if c.appFile == "" && !c.demo {
				return usage("helve chat needs an app file. %s", c.howToBegin(cmd.Context(), "chat helve.yaml"))
			}
			if _, err := os.Stat(c.appFile); err != nil && !c.demo {
				return usage("there is no app file %s. %s", c.appFile, c.howToBegin(cmd.Context(), "chat helve.yaml"))
			}
			if c.json {
				return usage("helve chat is for people; helve run --json is for programs")
			}
			return c.chat(cmd.Context(), r)
		},
		ValidArgsFunction: completeAppFile,
	}
	fl := cmd.Flags()
	fl.StringVar(&r.agent, "agent", "", "which agent of the app (default runtime.entry_agent, or the first)")
	fl.BoolVar(&c.demo, "demo", false, "the scripted demonstration in place of an app file: no model, no network")
	fl.StringVar(&r.session, "resume", "", "the session to take up again; the beginning of its id is enough, and last is the one before")
	return cmd
}

// A chat is one conversation at the terminal.
type chat struct {
	*cli
	app   *app.App
	agent *agent.Agent
	conv  *agent.Conversation
	spent llm.Usage
	money float64
	fresh bool // the cursor is at the beginning of a line; lines.now guards it while agents work
}

func (c *cli) chat(ctx context.Context, r running) (err error) {
	c.lines = newLineReader(c.in)
	t := &chat{cli: c, fresh: true}
	c.heard = t.inner
	a, err := c.open(ctx, c.chatApprover(c.lines), false)
	c.settled()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	ag, conv, err := c.agentFor(ctx, a, r)
	if err != nil {
		return err
	}
	c.lines.now(func() { t.app, t.agent, t.conv = a, ag, conv })
	s := c.style(c.out)
	fmt.Fprintf(c.out, "%s %s\n", t.speaker(), s.dim("session "+t.conv.ID+"; /help lists the commands"))
	return t.talk(ctx)
}

// speaker says with whom the user speaks.
func (t *chat) speaker() string {
	s := t.style(t.out)
	return s.bold(t.agent.From.Agent) + " " + s.dim("("+t.agent.Brains[0].Name+")")
}

// talk reads what the user says until they leave. SIGINT interrupts an answer
// only; SIGTERM ends the conversation.
func (t *chat) talk(ctx context.Context) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	terms, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	for {
		text, err := t.read(terms, interrupts)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), errors.Is(err, errQuit):
			t.goodbye()
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(text, "/"):
			if t.command(terms, text) {
				t.goodbye()
				return nil
			}
		case text != "":
			t.answer(terms, interrupts, text)
		}
	}
}

var errQuit = errors.New("quit")

// read reads what the user says next.
func (t *chat) read(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	var all []string
	prompt := "> "
	t.lines.hold()
	defer t.lines.release()
	for {
		fmt.Fprint(t.out, t.style(t.out).bold(prompt))
		ctx, cancel := context.WithCancelCause(ctx)
		done := make(chan struct{})
		go func() {
			select {
			case <-interrupts:
				cancel(errQuit)
			case <-done:
			}
		}()
		line, err := t.lines.next(ctx, time.Time{})
		close(done)
		cancel(nil)
		if err != nil {
			t.fresh = false // the prompt stands there
			return "", err
		}
		text, more := strings.CutSuffix(line, `\`)
		all = append(all, text)
		if !more {
			if !strings.HasPrefix(all[0], "/") {
				all = append(all, t.lines.pasted()...)
			}
			return strings.TrimSpace(strings.Join(all, "\n")), nil
		}
		prompt = "… "
	}
}

// answer has the agent answer, and shows how.
func (t *chat) answer(ctx context.Context, interrupts <-chan os.Signal, text string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-interrupts:
			t.lines.now(func() { t.fresh = false }) // terminals show ^C
			cancel(errors.New("you interrupted it"))
		case <-done:
		}
	}()
	from := t.agent.From
	from.Session = t.conv.ID
	t.app.Said(from, text)
	thinking := false
	for e := range t.agent.Run(ctx, t.conv, llm.Said(llm.User, text)) {
		t.lines.now(func() {
			if thinking && e.Thinking == "" {
				thinking = false
				t.line()
			}
			thinking = thinking || e.Thinking != ""
			t.show(e)
		})
	}
	t.lines.now(t.line)
}

// inner shows what agents do that calls of this conversation set to work: what
// they call, what was decided, and how they end.
func (t *chat) inner(h app.Heard) {
	line := t.innerLine(h) // at once: the call goes on
	if line == "" && h.Event.Usage == nil {
		return
	}
	t.lines.show(func() {
		switch {
		case t.conv == nil || h.Session != t.conv.ID:
		case h.Event.Usage != nil:
			t.spent = t.spent.Add(*h.Event.Usage)
		default:
			t.line()
			t.print(strings.Repeat("  ", h.Depth) + line + "\n")
		}
	})
}

// innerLine is what inner shows of an event; "": nothing.
func (t *chat) innerLine(h app.Heard) string {
	s, e, who := t.style(t.out), h.Event, h.From.Agent
	if u := h.From.Under; u != nil && u.By.App != h.From.App {
		who = h.From.App + "/" + who
	}
	taken := len(who) + 2*h.Depth + 1
	who = s.bold(who) + " "
	switch {
	case e.Result != nil:
		return who + t.resultLine(e, taken)
	case e.Call != nil:
		return who + t.callLine(dotted(e.Call.Name), e, taken)
	case e.Notice != "":
		return who + s.dim("· "+cleanText(e.Notice))
	case e.Done != nil:
		said := e.Done.Text
		if e.Done.Reason != agent.Answered {
			said = e.Done.Detail
		}
		return who + s.dim(clip(fmt.Sprintf("%s: %s", e.Done.Reason, cleanText(said)), t.room(taken)))
	}
	return ""
}

// show shows an event.
func (t *chat) show(e agent.Event) {
	s := t.style(t.out)
	switch {
	case e.Text != "":
		t.print(cleanPiece(e.Text))
	case e.Thinking != "":
		t.print(s.dim(cleanPiece(e.Thinking)))
	case e.Discard:
		t.line()
		t.print(s.dim("(asked again)\n"))
	case e.Result != nil:
		t.line()
		t.print(t.resultLine(e, 0) + "\n")
	case e.Call != nil:
		t.line()
		name := e.Call.Name
		if named, err := t.app.Tools().Resolve(name, nil); err == nil {
			name = named.Name
		}
		t.print(t.callLine(name, e, 0) + "\n")
	case e.Agent != nil:
		t.agent = e.Agent
		t.line()
		t.print(t.speaker() + "\n")
	case e.Notice != "":
		t.line()
		t.print(s.dim("· "+cleanText(e.Notice)) + "\n")
	case e.Usage != nil:
		t.spent = t.spent.Add(*e.Usage)
	case e.Done != nil:
		t.money += e.Done.Money
		t.line()
		t.print(t.footer(e.Done))
	}
}

// room returns how many columns of a line are left.
func (t *chat) room(taken int) int {
	w := t.width()
	if w == 0 {
		return 40
	}
	return max(w-taken, 12)
}

// callLine shows a call. taken is how much of the line's width stands before it.
func (t *chat) callLine(name string, e agent.Event, taken int) string {
	s := t.style(t.out)
	return s.dim("→ ") + s.bold(cleanText(name)) + " " + s.dim(clip(cleanText(string(e.Call.Args)), t.room(taken+len(name)+4)))
}

// resultLine shows what was decided about a call, and what came of it.
func (t *chat) resultLine(e agent.Event, taken int) string {
	s := t.style(t.out)
	decided := ""
	if tr := e.Call.Trail; tr != nil {
		switch {
		case tr.Approver != "":
			decided = "approved by " + tr.Approver
		case tr.Stage != "":
			decided = tr.Decision.String() + " by " + tr.Stage
		default:
			decided = "allowed"
		}
	}
	width := t.room(taken + len(toolOf(e)) + len(decided) + 7)
	if e.Result.Err != nil {
		return s.bad("✗ ") + toolOf(e) + " " + s.dim("("+decided+")") + " " + s.bad(clip(cleanText(e.Result.Err.Error()), width))
	}
	text, _, _ := strings.Cut(strings.TrimSpace(e.Result.JoinText()), "\n")
	return s.good("✓ ") + toolOf(e) + " " + s.dim("("+decided+") "+clip(cleanText(text), width))
}

// footer tells how an answer ended and what it cost.
func (t *chat) footer(out *agent.Outcome) string {
	s := t.style(t.out)
	var b strings.Builder
	if out.Detail != "" {
		b.WriteString(s.warn(string(out.Reason)+": "+cleanText(out.Detail)) + "\n")
	}
	cost := count(out.Turns, "turn", "turns") + ", " + count(out.Calls, "call", "calls")
	if u := out.Usage; u.Input+u.Output > 0 {
		cost += fmt.Sprintf(", %d tokens in and %d out", u.Input, u.Output)
		if u.Cached > 0 {
			cost += fmt.Sprintf(" (%d from the cache)", u.Cached)
		}
	}
	if out.Money > 0 {
		cost += fmt.Sprintf(", $%.4f", out.Money)
	}
	b.WriteString(s.dim(cost) + "\n")
	return b.String()
}

func (t *chat) print(text string) {
	fmt.Fprint(t.out, text)
	t.fresh = text == "" && t.fresh || strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\x1b[0m")
}

// line begins a new line, if something stands on this one.
func (t *chat) line() {
	if !t.fresh {
		t.print("\n")
	}
}

// command does what a line that begins with a slash says. It reports whether
// the conversation is to end.
func (t *chat) command(ctx context.Context, text string) (end bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	switch name {
	case "quit", "exit", "q":
		return true
	case "tools":
		for _, it := range t.agent.Show(t.from(), &t.agent.Brains[0]) {
			fmt.Fprintf(t.out, "%s  %s\n", cleanText(dotted(it.Name)), t.style(t.out).dim(firstLine(it.Description)))
		}
	case "prompt":
		p, err := t.agent.System(ctx, t.conv, &t.agent.Brains[0])
		fmt.Fprintln(t.out, orError(p, err))
	case "session":
		fmt.Fprintf(t.out, "%s, %d messages; helve chat %s --resume %s takes it up again\n", t.conv.ID, t.conv.Base+len(t.conv.Messages), t.appName(), t.conv.ID)
	case "cost":
		fmt.Fprintf(t.out, "%d tokens in (%d from the cache), %d out, $%.4f since the chat began\n", t.spent.Input, t.spent.Cached, t.spent.Output, t.money)
	default:
		fmt.Fprintln(t.out, "/tools    the tools that the agent sees now\n/prompt   what it is told first\n/session  the id of this session\n/cost     what the chat has cost\n/quit     end (so does Ctrl-D)\nCtrl-C interrupts an answer. helve undo takes back what calls changed.")
	}
	return false
}

func (t *chat) from() tool.Origin {
	from := t.agent.From
	from.Session = t.conv.ID
	return from
}

func (t *chat) goodbye() {
	t.line()
	fmt.Fprintln(t.out, t.style(t.out).dim("helve chat "+t.appName()+" --resume "+t.conv.ID+" goes on here"))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func orError(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

// clip returns s in one line of at most n columns.
func clip(s string, n int) string {
	return displaywidth.TruncateString(strings.Join(strings.Fields(s), " "), n, "…")
}

// chatApprover asks the person who talks.
func (c *cli) chatApprover(lines *lineReader) guard.Approver {
	return func(ctx context.Context, q guard.Question) (guard.Answer, error) {
		leave, err := lines.turn(ctx)
		if err != nil {
			return guard.Answer{}, err
		}
		defer leave()
		return c.askApproval(q, func() (string, error) {
			line, err := lines.next(ctx, time.Now())
			if errors.Is(err, io.EOF) {
				err = errors.New("nobody answers: the input has ended")
			}
			return line, err
		})
	}
}

// A lineReader reads lines of a stream that several ask for, one at a time.
type lineReader struct {
	mu    sync.Mutex // held by who waits for a line
	lines chan typed
	aside []typed   // they came before what they would have answered was asked
	last  time.Time // when the last one came that was taken
	err   error     // valid when lines is closed
	once  sync.Once
	in    io.Reader
	tty   bool          // people type
	asks  chan struct{} // holds what is asked: one question at a time

	screen sync.Mutex // held by who shows something
	held   int        // how many wait for a line: what they asked is not written over
	later  []func()   // what is shown then
}

// A typed is a line, and when it came.
type typed struct {
	text string
	at   time.Time
}

// now has something shown at once.
func (l *lineReader) now(f func()) {
	l.screen.Lock()
	defer l.screen.Unlock()
	f()
}

// show has something shown: at once, or when nobody waits for a line any more.
func (l *lineReader) show(f func()) {
	l.screen.Lock()
	defer l.screen.Unlock()
	if l.held > 0 {
		l.later = append(l.later, f)
		return
	}
	f()
}

// hold has what others show wait until release.
func (l *lineReader) hold() {
	l.screen.Lock()
	defer l.screen.Unlock()
	l.held++
}

func (l *lineReader) release() {
	l.screen.Lock()
	defer l.screen.Unlock()
	if l.held--; l.held > 0 {
		return
	}
	for _, f := range l.later {
		f()
	}
	l.later = nil
}

func newLineReader(in io.Reader) *lineReader {
	l := &lineReader{in: in, lines: make(chan typed), asks: make(chan struct{}, 1), tty: isTerminal(in)}
	if l.tty {
		l.lines = make(chan typed, 1000) // so that it is known when they came
	}
	return l
}

// turn waits until nobody else asks: agents that work at the same time ask one
// after the other. Call leave when the answer is there.
func (l *lineReader) turn(ctx context.Context) (leave func(), err error) {
	select {
	case l.asks <- struct{}{}:
		l.hold()
		return func() { l.release(); <-l.asks }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// next returns the next line without its end. At a terminal lines that came
// before since are left for later: what was typed or pasted before a question
// was shown is no answer to it. The zero time takes any.
func (l *lineReader) next(ctx context.Context, since time.Time) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once.Do(func() { go l.read() }) // it waits for the terminal as long as the process lives
	if since.IsZero() && len(l.aside) > 0 {
		line := l.aside[0]
		l.aside = l.aside[1:]
		l.last = line.at
		return line.text, nil
	}
	for {
		select {
		case line, ok := <-l.lines:
			switch {
			case !ok:
				return "", l.err
			case l.tty && line.at.Before(since):
				l.aside = append(l.aside, line)
			default:
				l.last = line.at
				return line.text, nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// together is how close lines come that were pasted, or nearly so: nobody types that fast.
const together = 30 * time.Millisecond

// pasted returns the lines that came at a terminal together with the one
// before: they are one text.
func (l *lineReader) pasted() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.tty {
		if len(l.aside) == 0 {
			if len(l.lines) == 0 {
				time.Sleep(time.Until(l.last.Add(together)))
			}
			select {
			case line, ok := <-l.lines:
				if !ok {
					return all
				}
				l.aside = append(l.aside, line)
			default:
				return all
			}
		}
		line := l.aside[0]
		if line.at.Sub(l.last) > together {
			return all
		}
		l.aside, l.last = l.aside[1:], line.at
		all = append(all, line.text)
	}
	return nil
}

func (l *lineReader) read() {
	in := bufio.NewReader(l.in)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			l.lines <- typed{strings.TrimRight(line, "\r\n"), time.Now()}
		}
		if err != nil {
			l.err = err
			close(l.lines)
			return
		}
	}
}
