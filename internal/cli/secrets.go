package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/credentials"
)

func (c *cli) secretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secrets", Short: "Keep the secrets that app files refer to",
		Long: `Keep the secrets that app files refer to as {{secret.NAME}}.

They are kept for the user, not for one app, in a file sealed with a key that
the system's keyring holds, or where none answers a file beside it that only
the user can read; security.credentials of the app file chooses. A variable
HELVE_SECRET_NAME of the environment goes before what is kept.`,
		Example: `  helve secrets set GITHUB_TOKEN
  pass show github | helve secrets set GITHUB_TOKEN
  helve secrets list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.setSecretCommand(), c.listSecretsCommand(), c.deleteSecretCommand())
	return cmd
}

// kept returns the store of the app that the flags name.
func (c *cli) kept() (*credentials.Store, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	return c.credentialStore(cfg), nil
}

func (c *cli) setSecretCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Keep a secret, read from standard input or asked for at the terminal",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want one name: the value is read from standard input, since others can see the arguments of commands")
			}
			return cobra.ExactArgs(1)(nil, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if !app.IsSecretName(name) {
				return usage("%q cannot name a secret: use letters, digits, and _ . / - after the first", name)
			}
			kept, err := c.kept()
			if err != nil {
				return err
			}
			value, err := c.readSecret(name)
			if err != nil {
				return err
			}
			if err := kept.Set(name, value); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"name": name, "kept": true})
			}
			fmt.Fprintf(c.err, "Kept. App files refer to it as {{secret.%s}}.\n", name)
			if overridden(name) {
				fmt.Fprintf(c.err, "%s HELVE_SECRET_%s is set here, and goes before it.\n", c.style(c.err).warn("warning:"), name)
			}
			return nil
		},
	}
}

func overridden(name string) bool {
	_, set := os.LookupEnv("HELVE_SECRET_" + name)
	return set
}

// readSecret reads a value without showing it. One newline at its end is not
// part of it.
func (c *cli) readSecret(name string) (string, error) {
	var data []byte
	var err error
	if isTerminal(c.in) {
		fmt.Fprintf(c.err, "Value of %s (it is not shown): ", name)
		data, err = term.ReadPassword(int(c.in.(*os.File).Fd()))
		fmt.Fprintln(c.err)
	} else {
		data, err = io.ReadAll(io.LimitReader(c.in, credentials.MaxValue+3))
	}
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return "", usage("no value was given: write it to standard input")
	}
	return value, nil
}

// A keptSecret is one that is kept, without its value.
type keptSecret struct {
	Name       string `json:"name"`
	Overridden bool   `json:"overridden"` // by the environment
}

func (c *cli) listSecretsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the names of the secrets that are kept", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			kept, err := c.kept()
			if err != nil {
				return err
			}
			names, err := kept.List()
			if err != nil {
				return err
			}
			found := []keptSecret{}
			for _, name := range names {
				if app.IsSecretName(name) { // the others are logins
					found = append(found, keptSecret{name, overridden(name)})
				}
			}
			if c.json {
				return c.printJSON(map[string]any{"secrets": found})
			}
			if len(found) == 0 {
				fmt.Fprintln(c.err, "No secrets are kept. helve secrets set NAME keeps one.")
			}
			for _, s := range found {
				note := ""
				if s.Overridden {
					note = "  (HELVE_SECRET_" + s.Name + " goes before it)"
				}
				fmt.Fprintln(c.out, s.Name+c.style(c.out).dim(note))
			}
			return nil
		},
	}
}

func (c *cli) deleteSecretCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Forget a secret", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kept, err := c.kept()
			if err != nil {
				return err
			}
			switch err := kept.Delete(args[0]); {
			case errors.Is(err, credentials.ErrNotFound):
				return fmt.Errorf("no secret %q is kept; helve secrets list names those that are", args[0])
			case err != nil:
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"name": args[0], "deleted": true})
			}
			fmt.Fprintln(c.err, "Forgotten.")
			return nil
		},
	}
}
