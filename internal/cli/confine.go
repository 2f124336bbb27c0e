package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/sandbox"
)

// confine returns the command that confines others by Landlock, and limits them.
func confine() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, "__confine"}
}

func (c *cli) confineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "__confine", Short: "Confine a command of a helve", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			if code := sandbox.Help(c.err); code != 0 {
				return &codedError{code: code, told: true, err: errors.New("the command was not confined")}
			}
			return nil
		},
	}
}
