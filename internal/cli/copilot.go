package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/llm/copilot"
)

// isCopilot reports whether a login is to GitHub Copilot: unless the app has a
// server of that name.
func isCopilot(cfg *app.Config, name string) bool {
	_, server := cfg.Tools.MCPServers[name]
	return name == "copilot" && !server
}

// loginCopilot signs in to GitHub Copilot, as the app's brains say.
func (c *cli) loginCopilot(ctx context.Context, cfg *app.Config, timeout time.Duration, browse bool) error {
	client, address, ok := cfg.CopilotBrain()
	if !ok {
		return errors.New("no brain of this app is of GitHub Copilot: give one backend: github_copilot, and config.client_id; --app names the app file")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("nobody signed in within %s; nothing has changed", timeout))
	defer cancel()
	g := copilot.GitHub{ClientID: client, URL: address}
	token, err := g.SignIn(ctx, func(code copilot.Code) error {
		fmt.Fprintf(c.err, "Enter the code %s when you are asked for it.\n", c.style(c.err).bold(clean(code.User)))
		return c.showLogin(code.Address, min(timeout, code.Expires), browse)
	})
	if err != nil {
		return fmt.Errorf("copilot: %w", err)
	}
	tokens := &copilot.Tokens{GitHub: g, Login: func() (string, error) { return token, nil }}
	if _, err := tokens.Get(ctx); err != nil {
		return fmt.Errorf("copilot: %w", err)
	}
	if err := c.credentialStore(cfg).Set(copilot.Kept, token); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"server": "copilot", "signed_in": true})
	}
	fmt.Fprintln(c.out, "Signed in to GitHub Copilot.")
	return nil
}

// logoutCopilot forgets the login to GitHub Copilot.
func (c *cli) logoutCopilot(cfg *app.Config) error {
	kept := c.credentialStore(cfg)
	_, err := kept.Get(copilot.Kept)
	was := err == nil
	if was {
		if err := kept.Delete(copilot.Kept); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(map[string]any{"server": "copilot", "was_signed_in": was})
	}
	if !was {
		fmt.Fprintln(c.err, "Nobody was signed in.")
		return nil
	}
	fmt.Fprintln(c.err, "Signed out.")
	return nil
}
