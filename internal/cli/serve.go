package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/tool"
)

func (c *cli) serveCommand() *cobra.Command {
	var addr, token string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the tools over HTTP to any MCP client", Args: cobra.NoArgs,
		Long: `Serve the tools to MCP clients over streamable HTTP. Without an app file it
serves the built-in modules with the current folder as root, on loopback.

It ends at SIGINT or SIGTERM, when the calls under way have finished.`,
		Example: "  helve serve\n  helve serve --app helve.yaml --addr 127.0.0.1:0\n  HELVE_TOKEN=… helve serve --addr 0.0.0.0:7777",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if token == "" {
				token = os.Getenv("HELVE_TOKEN")
			}
			return c.serve(cmd.Context(), addr, token)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", daemon.DefaultAddr, "where to listen")
	cmd.Flags().StringVar(&token, "token", "", "what clients must present (better in HELVE_TOKEN)")
	return cmd
}

func (c *cli) serve(ctx context.Context, addr, token string) (err error) {
	l, err := c.openLive(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	a := l.App()
	d, err := daemon.Listen(daemon.Options{App: l, Addr: addr, Token: token, Log: c.logger(), Version: version()})
	if errors.Is(err, daemon.ErrAddr) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	c.announce(a, d)
	told := make(chan struct{})
	go func() {
		defer close(told)
		c.announceUpstreams(ctx, a)
	}()
	err = d.Serve(ctx)
	<-told
	return err
}

// announceUpstreams says how the upstream servers answered, once they have.
func (c *cli) announceUpstreams(ctx context.Context, a *app.App) {
	if len(a.Upstreams()) == 0 || c.json {
		return
	}
	a.WaitUpstreams(ctx)
	s := c.style(c.out)
	for _, u := range a.Upstreams() {
		if u.Error != "" {
			fmt.Fprintf(c.out, "  %s upstream %s: %s: %s\n", s.bad("✗"), u.Name, u.State, cleanText(u.Error))
		} else {
			fmt.Fprintf(c.out, "  %s upstream %s (%s): %s, %s\n", s.good("✓"), u.Name, u.Transport, amount(u), u.State)
		}
	}
}

// announce says what is served and where.
func (c *cli) announce(a *app.App, d *daemon.Daemon) {
	decision := a.View(a.Origin(tool.KindMCP, "", ""), inject.Discovery).Decision
	if c.json {
		c.printJSON(map[string]any{"url": d.URL(), "mcp": d.URL() + "/mcp", "tools": decision.Tools, "root": a.Root.Dir(), "state": a.State, "app": a.Config.App.ID})
		return
	}
	s := c.style(c.out)
	fmt.Fprintf(c.out, "Helve %s serves the app %s: %d tools, root %s\n", version(), s.bold(a.Config.App.ID), decision.Tools, a.Root.Dir())
	notes := map[inject.Mode]string{
		"":               "decided by size",
		inject.Direct:    "every tool with its full schema",
		inject.Compact:   "every tool on one line",
		inject.Discovery: "a few meta-tools that find and call the rest",
	}
	views := daemon.Views()
	for _, path := range slices.Sorted(maps.Keys(views)) {
		fmt.Fprintf(c.out, "  %-40s %s\n", s.bold(d.URL()+path), notes[views[path]])
	}
	fmt.Fprintf(c.out, "State is kept in %s. Stop with Ctrl-C.\n", a.State)
}
