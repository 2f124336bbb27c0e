package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/approval"
)

func (c *cli) approvalsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "approvals", Short: "Show and answer the calls that wait for an approval", Args: cobra.NoArgs,
		Long: `List the calls that wait for an approval, and the approvals that were given for
a session. They are those of the app that --app, --root, --state and --store
name; a helve serve or helve mcp that runs with the same flags asks here.

A call waits only while somebody is there to answer: helve approvals watch, a
listener of the API, or the person at the MCP client that made the call. With
tools.capabilities.approval_wait: always it waits in any case, until
tools.capabilities.approval_timeout.`,
		Example: `  helve approvals watch
  helve approvals show 7KQ2XA
  helve approvals approve 7KQ2XA --for-session
  helve approvals deny 7KQ2XA --feedback "write to docs/, not to src/"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.approvals(cmd.Context(), func(t *approval.Table) error { return c.listApprovals(cmd.Context(), t, all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of the last day that were answered, too")
	cmd.AddCommand(c.approvalsShow(), c.approvalsApprove(), c.approvalsDeny(), c.approvalsRevoke(), c.approvalsWatch())
	return cmd
}

// approvals opens the questions of the app that the flags name, and calls fn.
func (c *cli) approvals(ctx context.Context, fn func(*approval.Table) error) (err error) {
	if c.store == "memory" {
		return usage("--store memory keeps no approvals: it ends with this command; use the API of helve serve, or name a file or postgres://…")
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	a, err := app.OpenApprovals(ctx, app.Options{Config: cfg, File: c.appFile, Root: c.rootOf(cfg), State: c.state, Store: c.store, Log: c.logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return fn(a.Approvals)
}

func (c *cli) listApprovals(ctx context.Context, t *approval.Table, all bool) error {
	list, err := t.List(ctx, all)
	if err != nil {
		return err
	}
	grants, err := t.Grants(ctx)
	if err != nil {
		return err
	}
	if c.json {
		if list == nil {
			list = []approval.Question{}
		}
		if grants == nil {
			grants = []approval.Grant{}
		}
		return c.printJSON(map[string]any{"questions": list, "grants": grants})
	}
	if len(list) == 0 {
		fmt.Fprintln(c.err, "No call waits for an approval.")
	} else {
		rows := make([][]string, len(list))
		for i, q := range list {
			state := string(q.State)
			if q.State == approval.Waiting {
				state = time.Until(q.Deadline).Round(time.Second).String() + " left"
			} else if q.Answer != nil {
				state += " by " + q.Answer.Who()
			}
			rows[i] = []string{q.ID, q.Asked.Local().Format("15:04:05"), q.Tool, state, q.Owner.Session, string(q.Args)}
		}
		c.table([]string{"ID", "ASKED", "TOOL", "STATE", "SESSION", "ARGUMENTS"}, rows)
	}
	if len(grants) > 0 {
		fmt.Fprintln(c.out, "\nApproved for a session:")
		rows := make([][]string, len(grants))
		for i, g := range grants {
			rows[i] = []string{g.ID, g.Owner.Session, g.By, g.Scope.Shown}
		}
		c.table([]string{"ID", "SESSION", "BY", "COVERS"}, rows)
	}
	return nil
}

// question finds the question that an id, or its beginning, means.
func question(ctx context.Context, t *approval.Table, id string) (approval.Question, error) {
	if len(id) < 6 {
		return approval.Question{}, usage("%q is no id of a question; give at least six characters of one; helve approvals lists them", id)
	}
	full, err := t.Find(ctx, id)
	if err != nil {
		return approval.Question{}, unknownQuestion(id, err)
	}
	q, err := t.Get(ctx, full)
	return q, unknownQuestion(id, err)
}

func unknownQuestion(id string, err error) error {
	if errors.Is(err, approval.ErrNone) {
		return usage("%s: %v; helve approvals lists those that wait", id, err)
	}
	return err
}

func (c *cli) approvalsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show what a call would do, and why it is asked about", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.approvals(cmd.Context(), func(t *approval.Table) error {
				q, err := question(cmd.Context(), t, args[0])
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(q)
				}
				c.showQuestion(c.out, q)
				return nil
			})
		},
	}
}

func (c *cli) showQuestion(w io.Writer, q approval.Question) {
	s := c.style(w)
	fmt.Fprintf(w, "%s  %s wants to run\n  %s\n", s.dim(q.ID), s.bold(clean(q.Tool)), indent(cleanText(string(q.Args)), "  "))
	from := q.Owner.Kind
	for _, part := range []string{q.Owner.Agent, q.Owner.User, q.Owner.Session} {
		if part != "" {
			from += ", " + part
		}
	}
	fmt.Fprintf(w, "Called by %s", clean(from))
	if len(q.Via) > 0 {
		fmt.Fprintf(w, " through %s", clean(strings.Join(q.Via, " → ")))
	}
	fmt.Fprintln(w, ".")
	for _, r := range q.Reasons {
		fmt.Fprintf(w, "It is asked because %s.\n", clean(r))
	}
	if q.Diff != "" {
		fmt.Fprintf(w, "It would change:\n%s", s.diff(q.Diff))
	}
	if q.Scope.Shown != "" {
		fmt.Fprintf(w, "For the session it would cover %s.\n", clean(q.Scope.Shown))
	}
	switch {
	case q.State == approval.Waiting:
		fmt.Fprintf(w, "It waits until %s.\n", q.Deadline.Local().Format("15:04:05"))
	case q.Answer != nil:
		fmt.Fprintf(w, "It is %s by %s.\n", q.State, clean(q.Answer.Who()))
	default:
		fmt.Fprintf(w, "It is %s.\n", q.State)
	}
}

func (c *cli) approvalsApprove() *cobra.Command {
	var a approval.Answer
	var edit string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Let a call run, as it is or with other arguments", Args: cobra.ExactArgs(1),
		Long: `Let a call run. With --edit it runs with the arguments in the file (- is
standard input): a JSON object in place of all of them, which is validated and
judged like any call's. What is shown as [redacted] stays as it is where it is
left as it is.

With --for-session calls that helve approvals show says it would cover run
without being asked about, until the session or the process that serves it ends.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if edit != "" {
				text, err := c.readEdit(edit)
				if err != nil {
					return err
				}
				a.Args = text
			}
			a.Approve = true
			return c.answer(cmd.Context(), args[0], a)
		},
	}
	cmd.Flags().BoolVar(&a.Session, "for-session", false, "and what it covers, as long as the session lasts")
	cmd.Flags().StringVar(&edit, "edit", "", "a file with the arguments to use instead; - for standard input")
	return cmd
}

// readEdit reads arguments that replace a call's.
func (c *cli) readEdit(file string) (json.RawMessage, error) {
	if file == "-" {
		return c.params([]string{"-"})
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("--edit: %v", err)
	}
	return c.params([]string{string(text)})
}

func (c *cli) approvalsDeny() *cobra.Command {
	var a approval.Answer
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Refuse a call, and tell the model why", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.answer(cmd.Context(), args[0], a) },
	}
	cmd.Flags().StringVar(&a.Feedback, "feedback", "", "what the model is told")
	return cmd
}

func (c *cli) answer(ctx context.Context, id string, a approval.Answer) error {
	return c.approvals(ctx, func(t *approval.Table) error {
		q, err := question(ctx, t, id)
		if err != nil {
			return err
		}
		a.By, a.How = userName(), "in the terminal"
		q, err = t.Answer(ctx, q.ID, a)
		switch {
		case errors.Is(err, approval.ErrOver):
			return &codedError{code: exitRefused, err: fmt.Errorf("%s: %w", id, err)}
		case errors.Is(err, approval.ErrBad):
			return usage("%v", err)
		case err != nil:
			return unknownQuestion(id, err)
		}
		if c.json {
			return c.printJSON(q)
		}
		fmt.Fprintf(c.out, "%s is %s.\n", clean(q.Tool), q.State)
		return nil
	})
}

func (c *cli) approvalsRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End an approval that was given for a session", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.approvals(cmd.Context(), func(t *approval.Table) error {
				if err := t.Revoke(cmd.Context(), args[0]); errors.Is(err, approval.ErrNone) {
					return usage("%s is no approval for a session; helve approvals lists them", args[0])
				} else if err != nil {
					return err
				}
				fmt.Fprintln(c.out, "It is asked about again.")
				return nil
			})
		},
	}
}

func (c *cli) approvalsWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Wait for calls that want an approval, and answer them", Args: cobra.NoArgs,
		Long: `Wait for calls that want an approval, until Ctrl-C. While it runs, calls wait for
an answer that would be refused at once if nobody were there.

At a terminal each is asked about: y lets it run, s also approves it for the
session, anything else denies it (n TEXT tells the model TEXT). Elsewhere each is
printed, with --json as a line of JSON, and answered by helve approvals approve
and deny.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.approvals(cmd.Context(), func(t *approval.Table) error {
				w := &watching{cli: c, table: t, seen: map[string]approval.State{}}
				err := w.run(cmd.Context())
				if cmd.Context().Err() != nil {
					return nil // it was told to end
				}
				return err
			})
		},
	}
}

// watchEvery is how often a watcher looks for questions.
const watchEvery = 400 * time.Millisecond

// A watching is a helve approvals watch.
type watching struct {
	*cli
	table *approval.Table
	seen  map[string]approval.State
	lines chan string // what is typed; nil: there is no terminal
}

func (w *watching) run(ctx context.Context) error {
	if err := w.table.Attend(ctx); err != nil {
		return err
	}
	if isTerminal(w.in) {
		w.lines = make(chan string)
		go func() { // ends with the process: a terminal cannot be told to stop
			defer close(w.lines)
			for r := bufio.NewScanner(w.in); r.Scan(); {
				w.lines <- r.Text()
			}
		}()
	}
	fmt.Fprintln(w.err, "Watching for calls that want an approval. Stop with Ctrl-C.")
	for {
		all, err := w.table.List(ctx, true)
		if err != nil {
			return err
		}
		for _, q := range all {
			if err := w.see(ctx, q); err != nil {
				return err
			}
		}
		if err := w.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits a little. What is typed meanwhile answers nothing.
func (w *watching) pause(ctx context.Context) error {
	tick := time.NewTimer(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			return nil
		case _, open := <-w.lines:
			if !open {
				w.lines = nil
				return errors.New("the terminal was closed")
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// see tells what is new about a question, and asks about it.
func (w *watching) see(ctx context.Context, q approval.Question) error {
	before, known := w.seen[q.ID]
	w.seen[q.ID] = q.State
	if known && before == q.State || !known && q.State != approval.Waiting {
		return nil
	}
	switch {
	case w.json:
		return json.NewEncoder(w.out).Encode(q)
	case q.State != approval.Waiting:
		fmt.Fprintf(w.out, "%s  %s is %s%s.\n", q.ID, clean(q.Tool), q.State, byWhom(q))
		return nil
	}
	w.showQuestion(w.out, q)
	if w.lines == nil {
		fmt.Fprintf(w.out, "Answer with: helve approvals approve %s, or deny\n", q.ID)
		return nil
	}
	return w.ask(ctx, q)
}

func byWhom(q approval.Question) string {
	if q.Answer == nil {
		return ""
	}
	return " by " + clean(q.Answer.Who())
}

// ask asks at the terminal, until somebody has answered, here or elsewhere.
func (w *watching) ask(ctx context.Context, q approval.Question) error {
	fmt.Fprint(w.out, "Run it? [y/N/s] ")
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, open := <-w.lines:
			if !open {
				return errors.New("the terminal was closed")
			}
			a := spoken(line)
			a.By, a.How = userName(), "in the terminal"
			got, err := w.table.Answer(ctx, q.ID, a)
			if err != nil {
				fmt.Fprintf(w.out, "That came to nothing: %v.\n", err)
				return nil
			}
			w.seen[q.ID] = got.State
			fmt.Fprintf(w.out, "%s.\n", got.State)
			return nil
		case <-tick.C:
			now, err := w.table.Get(ctx, q.ID)
			if err != nil {
				return err
			}
			if now.State != approval.Waiting {
				w.seen[q.ID] = now.State
				fmt.Fprintf(w.out, "\n%s%s.\n", now.State, byWhom(now))
				return nil
			}
		}
	}
}

// spoken reads an answer that was typed. What is no yes is a no.
func spoken(line string) approval.Answer {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		if rest == "" {
			return approval.Answer{Approve: true}
		}
	case "s":
		if rest == "" {
			return approval.Answer{Approve: true, Session: true}
		}
	case "n", "no":
		return approval.Answer{Feedback: strings.TrimSpace(rest)}
	}
	return approval.Answer{Feedback: "the operator said no"}
}
