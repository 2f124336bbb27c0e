package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/mcpbridge"
)

func (c *cli) loginCommand() *cobra.Command {
	var noBrowser bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "login SERVER", Short: "Sign in to an upstream MCP server",
		Long: `Sign in, by OAuth, to an upstream MCP server of the app.

The address at which to sign in is opened in a browser ($BROWSER, or the
system's) and printed; after that the browser comes back to a port of this
machine. What the login gives is kept for the user like helve secrets, renewed
when it expires, and used by a helve that runs already from the next call on.

helve login copilot signs in to GitHub Copilot, for the brains of the app that
are of it: by a code that is entered at github.com.

On a machine without a browser, give the server an oauth.redirect_port and
forward that port (ssh -L PORT:127.0.0.1:PORT) from where the browser is.`,
		Example: "  helve login github --app helve.yaml\n  helve login github --app helve.yaml --no-browser",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usage("--timeout %s: want a time above zero, such as 5m", timeout)
			}
			cfg, err := c.config()
			if err != nil {
				return err
			}
			if isCopilot(cfg, args[0]) {
				return c.loginCopilot(cmd.Context(), cfg, timeout, !noBrowser)
			}
			report, err := app.Login(cmd.Context(), c.options(cfg), args[0], mcpbridge.LoginOptions{
				Timeout: timeout,
				Show:    func(address string) error { return c.showLogin(address, timeout, !noBrowser) },
				Waiting: func() {
					fmt.Fprintln(c.err, "Another login to this server is under way; waiting for its outcome.")
				},
			})
			if errors.Is(err, context.Canceled) {
				return errors.New("the login was given up; nothing has changed")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return c.showReport(report)
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	cmd.Flags().DurationVar(&timeout, "timeout", mcpbridge.DefaultLoginTimeout, "how long to wait for the person")
	return cmd
}

// showLogin prints where to sign in, and opens it in a browser.
func (c *cli) showLogin(address string, timeout time.Duration, browse bool) error {
	fmt.Fprintf(c.err, "Sign in within %s at:\n\n%s\n\n", timeout, clean(address))
	if browse {
		if err := openBrowser(address); err != nil {
			fmt.Fprintf(c.err, "No browser was opened (%v): open the address yourself.\n", err)
		}
	}
	return nil
}

func (c *cli) showReport(r *mcpbridge.LoginReport) error {
	if c.json {
		return c.printJSON(r)
	}
	how := "Signed in"
	if r.Already {
		how = "Another login has just signed in"
	}
	fmt.Fprintf(c.out, "%s to %s at %s: it has %d tools.\n", how, r.Server, clean(r.Issuer), r.Tools)
	switch {
	case r.Renews:
		fmt.Fprintln(c.out, "The login is renewed by itself.")
	case !r.Expires.IsZero():
		fmt.Fprintf(c.out, "The login ends %s, and cannot be renewed without another.\n", r.Expires.Local().Format(time.DateTime))
	}
	return nil
}

func (c *cli) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER", Short: "Forget the login to an upstream MCP server", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.config()
			if err != nil {
				return err
			}
			if isCopilot(cfg, args[0]) {
				return c.logoutCopilot(cfg)
			}
			was, err := app.Logout(cmd.Context(), c.options(cfg), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if c.json {
				return c.printJSON(map[string]any{"server": args[0], "was_signed_in": was})
			}
			if !was {
				fmt.Fprintln(c.err, "Nobody was signed in.")
				return nil
			}
			fmt.Fprintln(c.err, "Signed out.")
			return nil
		},
	}
}

// openBrowser starts a browser, by no shell. $BROWSER may name several,
// separated by colons, the first that starts is taken; %s stands for the address.
func openBrowser(address string) error {
	var tried []string
	switch list := os.Getenv("BROWSER"); {
	case list != "":
		tried = strings.Split(list, string(os.PathListSeparator))
	case runtime.GOOS == "darwin":
		tried = []string{"open"}
	case runtime.GOOS == "windows":
		tried = []string{"rundll32 url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return errors.New("there is no display")
	default:
		tried = []string{"xdg-open"}
	}
	err := errors.New("BROWSER names none")
	for _, command := range tried {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		if !strings.Contains(command, "%s") {
			words = append(words, "%s")
		}
		for i := range words[1:] {
			words[i+1] = strings.ReplaceAll(words[i+1], "%s", address)
		}
		cmd := exec.Command(words[0], words[1:]...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "HELVE_") { // secrets are none of its business
				cmd.Env = append(cmd.Env, v)
			}
		}
		if err = cmd.Start(); err == nil {
			go cmd.Wait() // how it ends does not matter
			return nil
		}
	}
	return err
}
