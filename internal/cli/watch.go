package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/mcpbridge"
)

// watchdog returns the command that ends the MCP servers which a helve has
// started if it cannot do so itself.
func watchdog() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, "__watch"}
}

func (c *cli) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "__watch", Short: "End the servers of a helve that is gone", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return mcpbridge.Watch(c.in) },
	}
}
