package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/internal/tokens"
)

func (c *cli) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tokens", Short: "The tokens of the clients of helve serve", Args: cobra.NoArgs,
		Long: `A token lets a client in to helve serve, and may bind it to an app, a profile
and a view. As soon as there is one, clients must present one, also on loopback.

Tokens are kept, as hashes, where the daemon keeps its state: in that of --app,
--root and --state, or in --store, which several daemons may share. Changes
reach a running daemon within a second.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.tokensCreate(), c.tokensList(), c.tokensRevoke(), c.tokensPrune())
	return cmd
}

// withTokens calls fn with the tokens that the flags name. Reading makes no file.
func (c *cli) withTokens(ctx context.Context, reading bool, fn func(s *tokens.Store, home string) error) (err error) {
	if c.store == "memory" {
		return usage("--store memory keeps no tokens: it ends with this command; name a file or postgres://…")
	}
	home := c.stateOf(c.root_)
	if c.appFile != "" {
		cfg, err := c.config()
		if err != nil {
			return err
		}
		home = c.stateOf(c.rootOf(cfg))
	}
	s, err := app.OpenStore(ctx, c.store, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if reading {
		s = app.IfThere(s)
	}
	return fn(tokens.In(s), home)
}

func (c *cli) tokensCreate() *cobra.Command {
	var t tokens.Token
	var appName, expires string
	cmd := &cobra.Command{
		Use: "create --name NAME", Short: "Make a token, and print it once", Args: cobra.NoArgs,
		Example: `  helve tokens create --name ci
  helve tokens create --name cursor --view discovery --profile read,web --expires 90d
  helve tokens create --name mail --app mail    # may reach the app mail only`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.bind(&t, appName); err != nil {
				return err
			}
			at, err := expiry(expires, time.Now())
			if err != nil {
				return usage("--expires %q: %v", expires, err)
			}
			t.Expires = at
			return c.withTokens(cmd.Context(), false, func(s *tokens.Store, home string) error {
				made, text, err := s.Create(cmd.Context(), t, time.Now())
				switch {
				case errors.Is(err, tokens.ErrName) || errors.Is(err, tokens.ErrTaken):
					return usage("--name: %v", err)
				case err != nil:
					return err
				}
				return c.showToken(made, text, home)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&t.Name, "name", "", "what audits call its user (token:NAME)")
	fl.StringVar(&appName, "app", "", "the only app that it reaches: an app_id, or an app file, whose state then has the token")
	fl.StringVar(&t.Profile, "profile", "", "what it may use: groups (read, vault, edit, web, agent, mcp, skill), +NAME, -NAME (of a tool, module, server or pattern), or an agent of the app")
	fl.StringVar(&t.View, "view", "", "the view that every path shows: full, compact or discovery")
	fl.StringVar(&expires, "expires", "", "until when it works: a date, an RFC 3339 time, or a duration such as 90d or 12h; for ever if left out")
	cmd.MarkFlagRequired("name")
	return cmd
}

// bind checks to what a token is to be bound, and notes it.
func (c *cli) bind(t *tokens.Token, appName string) error {
	if t.View != "" {
		mode, err := inject.ParseMode(t.View)
		if err != nil || mode == "" {
			return usage("--view %q: want full, compact or discovery", t.View)
		}
	}
	t.App = appName
	if _, err := os.Stat(appName); err == nil && appName != "" && (strings.HasSuffix(appName, ".yaml") || strings.HasSuffix(appName, ".yml")) {
		c.appFile = appName
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if c.appFile != "" {
		t.App = cfg.App.ID
	} else if t.App != "" && !app.ValidID(t.App) {
		return usage("--app %q: want an app_id (lower-case letters, digits, _ and -) or an app file that there is", t.App)
	}
	if t.Profile == "" || c.appFile != "" {
		return c.checkProfile(t.Profile)
	}
	if _, err := app.ProfileItems(t.Profile); err != nil { // what agents there are only the file tells
		return usage("--profile: %v; or, with --app FILE, the id of an agent of that app", err)
	}
	return nil
}

// expiry reads until when a token works. Zero: for ever.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 36500 {
			return now.AddDate(0, 0, n).UTC(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			if !at.After(now) {
				return at, errors.New("that is past")
			}
			return at.UTC(), nil
		}
	}
	return time.Time{}, errors.New("want a date such as 2027-01-31, an RFC 3339 time, or a duration such as 90d or 12h")
}

// A shownToken is a token as lists show it: never its hash.
type shownToken struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	App     string     `json:"app,omitempty"`
	Profile string     `json:"profile,omitempty"`
	View    string     `json:"view,omitempty"`
	State   string     `json:"state"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Revoked *time.Time `json:"revoked,omitempty"`
	Token   string     `json:"token,omitempty"` // where it was just made
}

func shown(t tokens.Token) shownToken {
	out := shownToken{ID: t.ID, Name: t.Name, App: t.App, Profile: t.Profile, View: t.View, State: t.State(time.Now()), Created: t.Created}
	if !t.Expires.IsZero() {
		out.Expires = &t.Expires
	}
	if !t.Revoked.IsZero() {
		out.Revoked = &t.Revoked
	}
	return out
}

func (c *cli) showToken(t tokens.Token, text, home string) error {
	if c.json {
		out := shown(t)
		out.Token = text
		return c.printJSON(out)
	}
	where := home
	if c.store != "" {
		where = c.store
		if u, err := url.Parse(where); err == nil {
			where = u.Redacted()
		}
	}
	fmt.Fprintln(c.out, text)
	fmt.Fprintf(c.err, "This is the token %s; it is not shown again. Clients send it as Authorization: Bearer TOKEN.\nIts hash is kept in %s, where the daemon must keep its state, too.\n", t.Name, where)
	return nil
}

func (c *cli) tokensList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens, without themselves", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withTokens(cmd.Context(), true, func(s *tokens.Store, home string) error {
				all, err := s.All(cmd.Context())
				if err != nil {
					return err
				}
				return c.showTokens(all, fmt.Sprintf("There are no tokens in %s. Make one with helve tokens create --name NAME.", home))
			})
		},
	}
}

func (c *cli) showTokens(all []tokens.Token, none string) error {
	list := make([]shownToken, len(all))
	rows := make([][]string, len(all))
	for i, t := range all {
		list[i] = shown(t)
		until := "never"
		if !t.Expires.IsZero() {
			until = t.Expires.Local().Format("2006-01-02 15:04")
		}
		rows[i] = []string{t.Name, list[i].State, orAll(t.App), orAll(t.Profile), orAll(t.View), until, t.ID}
	}
	switch {
	case c.json:
		return c.printJSON(list)
	case len(all) == 0:
		fmt.Fprintln(c.err, none)
		return nil
	}
	c.table([]string{"NAME", "STATE", "APP", "PROFILE", "VIEW", "EXPIRES", "ID"}, rows)
	return nil
}

func orAll(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

func (c *cli) tokensRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token, by its name or id", Args: cobra.ExactArgs(1),
		Long: `Revoke a token, by its name or id. Daemons notice within a second, and end the
sessions and requests of the token. It stays in the list, and a daemon goes on
to want tokens; helve tokens prune forgets it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withTokens(cmd.Context(), false, func(s *tokens.Store, home string) error {
				t, err := s.Revoke(cmd.Context(), args[0], time.Now())
				if errors.Is(err, tokens.ErrUnknown) {
					return usage("%v in %s; helve tokens list shows those that there are", err, home)
				}
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(shown(t))
				}
				fmt.Fprintf(c.out, "The token %s (%s) is revoked.\n", t.Name, t.ID)
				return nil
			})
		},
	}
}

func (c *cli) tokensPrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune", Short: "Forget the tokens that were revoked or have expired", Args: cobra.NoArgs,
		Long: `Forget the tokens that were revoked or have expired. If none is left, a daemon
on loopback without --token lets everybody in again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withTokens(cmd.Context(), false, func(s *tokens.Store, _ string) error {
				gone, err := s.Prune(cmd.Context(), time.Now())
				if err != nil {
					return err
				}
				return c.showTokens(gone, "No token was revoked or has expired.")
			})
		},
	}
}
