package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/tool"
)

func (c *cli) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions", Short: "Show the conversations with agents, to take them up again", Args: cobra.NoArgs,
		Long: `List the sessions that helve run and helve chat have kept, the latest first.
Take one up again with helve chat --resume, or helve run --session.`,
		Example: "  helve sessions\n  helve sessions show 20261120-1030\n  helve sessions delete 20261120-1030",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withBook(cmd.Context(), func(b *agent.Book) error { return c.listSessions(cmd.Context(), b) })
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show SESSION", Short: "Show what was said in a session", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withBook(cmd.Context(), func(b *agent.Book) error { return c.showSession(cmd.Context(), b, args[0]) })
		},
	}, &cobra.Command{
		Use: "delete SESSION...", Short: "Forget sessions", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withBook(cmd.Context(), func(b *agent.Book) error { return c.deleteSessions(cmd.Context(), b, args) })
		},
	})
	return cmd
}

// withBook opens the kept sessions of the app that the flags name.
func (c *cli) withBook(ctx context.Context, fn func(*agent.Book) error) (err error) {
	if c.store == "memory" {
		return usage("--store memory keeps no sessions: it ends with this command")
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	a, err := app.OpenKept(ctx, app.Options{Config: cfg, File: c.appFile, Root: c.rootOf(cfg), State: c.state, Store: c.store, Log: c.logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return fn(a.Conversations())
}

func (c *cli) listSessions(ctx context.Context, b *agent.Book) error {
	all, err := b.List(ctx, nil)
	if err != nil {
		return err
	}
	if c.json {
		if all == nil {
			all = []agent.Kept{}
		}
		return c.printJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.out, "There are no sessions. helve run APP.yaml \"…\" and helve chat APP.yaml begin one.")
		return nil
	}
	rows := [][]string{}
	for _, k := range all {
		rows = append(rows, []string{k.ID, k.Last.Local().Format("2006-01-02 15:04"), k.Agent, fmt.Sprint(k.Count), fmt.Sprint(k.Usage.Input + k.Usage.Output), dollars(k.Money), cleanText(k.Title)})
	}
	c.table([]string{"SESSION", "LAST", "AGENT", "MESSAGES", "TOKENS", "MONEY", "TITLE"}, rows)
	return nil
}

// dollars writes what models cost; "-": nothing that is known.
func dollars(money float64) string {
	if money == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f USD", money)
}

func (c *cli) showSession(ctx context.Context, b *agent.Book, id string) error {
	_, kept, err := b.Load(ctx, id, nil)
	if err != nil {
		return fmt.Errorf("%w; helve sessions lists them", err)
	}
	all, err := b.Said(ctx, kept.ID)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"session": kept, "messages": all})
	}
	s := c.style(c.out)
	for i := range all {
		m := &all[i]
		if text := m.Text(); text != "" {
			fmt.Fprintf(c.out, "%s %s\n", s.bold(string(m.Role)+":"), cleanText(text))
		}
		for _, call := range m.Calls {
			fmt.Fprintf(c.out, "%s %s %s\n", s.dim("call"), cleanText(dotted(call.Name)), cleanText(string(call.Args)))
		}
		c.showAnswers(s, m)
	}
	return nil
}

// dotted returns a tool's name as people know it, of the one that models are shown.
func dotted(wire string) string { return strings.ReplaceAll(wire, "__", ".") }

func (c *cli) showAnswers(s style, m *llm.Message) {
	for _, a := range m.Answers {
		mark := s.dim("result of " + cleanText(dotted(a.Name)) + ":")
		if a.Failed {
			mark = s.bad("failure of " + cleanText(dotted(a.Name)) + ":")
		}
		fmt.Fprintf(c.out, "%s %s\n", mark, cleanText((&tool.Result{Content: a.Content}).JoinText()))
	}
}

func (c *cli) deleteSessions(ctx context.Context, b *agent.Book, ids []string) error {
	for _, id := range ids {
		_, kept, err := b.Load(ctx, id, nil)
		if err != nil {
			return err
		}
		if err := b.Delete(ctx, kept.ID); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "forgot %s\n", kept.ID)
	}
	return nil
}
