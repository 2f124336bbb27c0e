package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// kinds are those whose calls can be explained.
var kinds = []tool.Kind{tool.KindCLI, tool.KindMCP, tool.KindModel, tool.KindHTTP, tool.KindSetup, tool.KindHook,
	tool.KindChannel, tool.KindBackground, tool.KindWatcher, tool.KindSchedule, tool.KindScript}

func (c *cli) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Explain what the policy decides", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var as string
	explain := &cobra.Command{
		Use: "explain TOOL [ARGS]", Short: "Say what would become of a call, by which stage and why, without running it", Args: cobra.RangeArgs(1, 2),
		Long: `Say what would become of a call, without running it: allow, ask or deny, the
stage that decides, and the reason. A call that makes other calls (execute_tool,
run_parallel) is judged on those too: the most severe verdict counts.`,
		Example: `  helve policy explain filesystem.write '{"path":"a.txt","content":"x"}'
  helve policy explain shell.run '{"cmd":"git status"}' --json`,
		ValidArgsFunction: c.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(kinds, tool.Kind(as)) {
				return usage("--as %q: want one of %v", as, kinds)
			}
			params, err := c.params(args[1:])
			if err != nil {
				return err
			}
			return c.inspect(cmd.Context(), func(a *app.App) error {
				from := c.operator(a)
				from.Kind = tool.Kind(as)
				return c.explainCall(cmd.Context(), a, &tool.Call{Name: args[0], Args: params, From: from})
			})
		},
	}
	explain.Flags().StringVar(&as, "as", string(tool.KindCLI), "the kind of caller: cli, mcp, model, setup, …")
	cmd.AddCommand(explain)
	return cmd
}

func (c *cli) explainCall(ctx context.Context, a *app.App, call *tool.Call) error {
	x := a.Explain(ctx, call)
	diff, err := a.Preview(ctx, call)
	if err != nil {
		x.Notes = append(x.Notes, "what it would change cannot be shown: "+err.Error())
	}
	if c.json {
		return c.printJSON(struct {
			pipeline.Explanation
			Diff string `json:"diff,omitempty"`
		}{x, diff})
	}
	s := c.style(c.out)
	word := map[string]func(string) string{"allow": s.good, "ask": s.warn, "deny": s.bad}[x.Decision]
	fmt.Fprintf(c.out, "%s  %s\n", word(x.Decision), s.bold(x.Tool))
	fmt.Fprintf(c.out, "stage   %s\nreason  %s\n", x.Stage, indent(cleanText(x.Reason), "        "))
	for _, n := range x.Notes {
		fmt.Fprintf(c.out, "note    %s\n", clean(n))
	}
	if diff != "" {
		fmt.Fprintf(c.out, "\n%s", s.diff(diff))
	}
	return nil
}
