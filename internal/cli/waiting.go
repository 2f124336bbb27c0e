package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/mcpbridge"
)

const (
	waitPatience = 15 * time.Second // for servers whose tools are not known
	waitQuiet    = time.Second      // of that, before a person is told of it
)

// waitFlag adds the flag for how long a command waits for servers.
func waitFlag(cmd *cobra.Command) *time.Duration {
	return cmd.Flags().Duration("wait", waitPatience, "how long to wait for MCP servers that have not said yet which tools they have")
}

// awaitServers waits until every MCP server has answered or failed once, or
// for that long. At a terminal it says what it waits for. Which servers gave
// no answer is said in any case.
func (c *cli) awaitServers(ctx context.Context, a *app.App, patience time.Duration) {
	wait := func(d time.Duration) string {
		some, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		a.MCPServers().Wait(some)
		return unanswered(a)
	}
	quiet := min(waitQuiet, patience/2)
	names := wait(quiet)
	if names != "" && isTerminal(c.err) {
		fmt.Fprintf(c.err, "Waiting up to %s for the tools of %s…\n", patience, names)
	}
	if names != "" {
		names = wait(patience - quiet)
	}
	if names != "" && ctx.Err() == nil {
		fmt.Fprintf(c.err, "%s no answer within %s, so their tools are missing: %s\n", c.style(c.err).warn("warning:"), patience, names)
	}
}

// awaitTool says at a terminal for which MCP server a command waits until it
// knows a tool of that name, and is silent where nothing is waited for.
func (c *cli) awaitTool(ctx context.Context, a *app.App, name string) {
	if !isTerminal(c.err) {
		return
	}
	some, cancel := context.WithTimeout(ctx, waitQuiet)
	defer cancel()
	a.WaitTool(some, name)
	if some.Err() == nil || ctx.Err() != nil {
		return
	}
	names := unanswered(a)
	if server, of := a.MCPServers().Serving(name); of {
		names = clean(server)
	}
	if names != "" {
		fmt.Fprintf(c.err, "Waiting up to %s for the tools of %s…\n", app.UpstreamPatience, names)
	}
}

// tellStart says at a terminal that a call waits for its MCP server to start,
// if it does, until stop is called.
func (c *cli) tellStart(a *app.App, name string) (stop func()) {
	server, of := a.MCPServers().Serving(name)
	if !of || !isTerminal(c.err) {
		return func() {}
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(waitQuiet)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if a.MCPServers().Awaited(server) {
				fmt.Fprintf(c.err, "Waiting for the MCP server %s to start…\n", clean(server))
				return
			}
		}
	}()
	return func() {
		close(done)
		<-told
	}
}

// unanswered returns the servers that have neither answered nor failed.
func unanswered(a *app.App) string {
	var names []string
	for _, u := range a.Upstreams() {
		if u.State == mcpbridge.Configured {
			names = append(names, u.Name)
		}
	}
	return clean(strings.Join(names, ", "))
}
