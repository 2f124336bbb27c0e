package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// reviews opens what is held back of the app's upstream servers, and calls fn.
func (c *cli) reviews(ctx context.Context, fn func(*app.App, mcpbridge.Reviews) error) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	a, v, err := app.OpenReviews(ctx, app.Options{Config: cfg, File: c.appFile, Root: c.rootOf(cfg), State: c.state, Store: c.store, Log: c.logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return fn(a, v)
}

func (c *cli) reviewCommand() *cobra.Command {
	return &cobra.Command{
		Use: "review [SERVER]", Short: "Show the tools that are held back, and what changed in them", Args: cobra.MaximumNArgs(1),
		Long: `Show the tools of upstream servers that are held back: their definition changed
after it was accepted, or something in it may mislead models or people. A tool
that is held is not listed, not found and not run until its definition has been
shown here and accepted.`,
		Example: "  helve upstreams review\n  helve upstreams review github --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reviews(cmd.Context(), func(a *app.App, v mcpbridge.Reviews) error {
				server := strings.Join(args, "")
				if err := knownServer(a, server); err != nil {
					return err
				}
				all, err := v.List(cmd.Context(), server)
				if err != nil {
					return err
				}
				return c.showHeld(all)
			})
		},
	}
}

func knownServer(a *app.App, server string) error {
	if _, ok := a.Config.Tools.MCPServers[server]; !ok && server != "" {
		return usage("the app has no MCP server %q; helve upstreams lists them", server)
	}
	return nil
}

func (c *cli) showHeld(all []mcpbridge.Review) error {
	if c.json {
		return c.printJSON(map[string]any{"held": all})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.err, "No tool is held back.")
	}
	s := c.style(c.out)
	for _, r := range all {
		fmt.Fprintf(c.out, "%s is held since %s: its definition %s.\n", s.bold("mcp."+r.Server+"."+clean(r.Tool)), r.Since.Local().Format(time.DateTime), whyHeld(r))
		for _, f := range r.Flags {
			fmt.Fprintf(c.out, "  %s %s\n", s.warn("warning:"), clean(f.String()))
		}
		fmt.Fprintf(c.out, "%s\n", s.diff(r.Diff))
	}
	if len(all) > 0 {
		fmt.Fprintln(c.err, "helve upstreams accept SERVER TOOL lets one pass as it is shown here; helve upstreams reject SERVER TOOL does not.")
	}
	return nil
}

func whyHeld(r mcpbridge.Review) string {
	what := "changed after it was accepted"
	if r.Why == "flagged" {
		what = "is suspicious"
	}
	if r.Changes > 0 {
		what += fmt.Sprintf(", and %d more times since", r.Changes)
	}
	if r.Back {
		what += "; the server has gone back to what was accepted"
	}
	return what
}

// decideCommand returns the command accept or reject.
func (c *cli) decideCommand(verb, short, long string, verdict tool.Verdict) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: verb + " SERVER [TOOL]...", Short: short, Long: long, Args: cobra.MinimumNArgs(1),
		Example: fmt.Sprintf("  helve upstreams %s github create_issue\n  helve upstreams %s github --all", verb, verb),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, names := args[0], args[1:]
			if all == (len(names) > 0) {
				return usage("name the tools, or say --all")
			}
			return c.reviews(cmd.Context(), func(a *app.App, v mcpbridge.Reviews) error {
				if err := knownServer(a, server); err != nil {
					return err
				}
				for i := range names {
					names[i] = strings.TrimPrefix(names[i], "mcp."+server+".")
				}
				decide := v.Accept
				if verdict == tool.Deny {
					decide = v.Reject
				}
				done, err := decide(cmd.Context(), server, names...)
				if err != nil {
					return err
				}
				if err := a.Reviewed(server, done, verdict, userName(), "an operator decided about the definition: "+verb); err != nil {
					return err
				}
				return c.showDecided(verb, server, done)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all tools of the server that are held")
	return cmd
}

func (c *cli) showDecided(verb, server string, done []string) error {
	if c.json {
		if done == nil {
			done = []string{}
		}
		return c.printJSON(map[string]any{"server": server, "decision": verb, "tools": done})
	}
	if len(done) == 0 {
		fmt.Fprintf(c.err, "No tool of %s is held back.\n", server)
	}
	for _, name := range done {
		fmt.Fprintf(c.out, "%s: %sed\n", clean("mcp."+server+"."+name), verb)
	}
	return nil
}

func (c *cli) acceptCommand() *cobra.Command {
	return c.decideCommand("accept", "Let tools pass that are held back", `Accept the definitions of tools as helve upstreams review showed them last. One
that has changed since is not accepted: look at it again. A helve that is
running offers them within seconds.`, tool.Allow)
}

func (c *cli) rejectCommand() *cobra.Command {
	return c.decideCommand("reject", "Turn down definitions of tools that are held back", `Reject the definitions that tools have now. They stay held until the server lists
them as they were accepted before; another definition is held anew.`, tool.Deny)
}

// warnHeld tells of tools that are held back, and of what was found in others.
func (c *cli) warnHeld(all []mcpbridge.ServerStatus) {
	s := c.style(c.err)
	for _, u := range all {
		if n := len(u.Held); n > 0 {
			fmt.Fprintf(c.err, "%s %s: %s held back, the first: %s; look at them with helve upstreams review %s\n", s.warn("warning:"), u.Name, count(n, "tool is", "tools are"), u.Held[0], u.Name)
		}
		for _, f := range u.Flagged {
			fmt.Fprintf(c.err, "%s %s: %s\n", s.warn("warning:"), u.Name, f)
		}
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
