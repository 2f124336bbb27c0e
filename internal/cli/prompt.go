package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/agent"
	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
)

func (c *cli) appPrompt() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use: "prompt FILE", Short: "Print what an agent is told first", Args: cobra.MaximumNArgs(1),
		Long: `Print the system prompt of an agent, section by section, and about how many
tokens each costs. Nothing is run, and upstream servers are not started.`,
		Example: "  helve app prompt helve.yaml\n  helve app prompt helve.yaml --agent reviewer --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.fileOr(cmd, args); err != nil {
				return err
			}
			return c.inspect(cmd.Context(), func(a *app.App) error { return c.showPrompt(cmd.Context(), a, id) })
		},
	}
	cmd.Flags().StringVar(&id, "agent", "", "which agent of the app (default runtime.entry_agent, or the first)")
	return cmd
}

// A shownSection is a section of a prompt as --json prints it.
type shownSection struct {
	agent.Section
	Tokens int `json:"tokens"`
}

func (c *cli) showPrompt(ctx context.Context, a *app.App, id string) error {
	p, err := a.PromptOf(ctx, id, userName())
	if err != nil {
		return err
	}
	var all []shownSection
	sum := 0
	for _, s := range p.Sections() {
		n := inject.Estimate(s.Text)
		all, sum = append(all, shownSection{s, n}), sum+n
	}
	if c.json {
		return c.printJSON(map[string]any{"text": p.String(), "sections": all, "tokens": sum})
	}
	if !isTerminal(c.out) {
		fmt.Fprintln(c.out, p.String())
		return nil
	}
	s := c.style(c.out)
	for _, part := range all {
		fmt.Fprintf(c.out, "%s\n%s\n\n", s.dim(fmt.Sprintf("── %s, about %d tokens", part.Name, part.Tokens)), cleanText(part.Text))
	}
	fmt.Fprintln(c.out, s.dim(fmt.Sprintf("about %d tokens in all", sum)))
	return nil
}
