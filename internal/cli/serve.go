package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/internal/tokens"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/tool"
)

// A serving is what helve serve was asked for.
type serving struct {
	addr, token string
	files       []string
	most        int
	idle        time.Duration
	stream      time.Duration
}

func (c *cli) serveCommand() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use: "serve [APP.yaml]...", Short: "Serve the tools over HTTP to any MCP client",
		Long: `Serve the tools to MCP clients over streamable HTTP. Without an app file it
serves the built-in modules with the current folder as root, on loopback.

Several apps are served at /mcp/apps/APP each, and the first at /mcp, too; each
keeps its state in a folder of its own, STATE/apps/APP.

As soon as there is a token (--token, or those of helve tokens create) clients
must present one.

It ends at SIGINT or SIGTERM, when the calls under way have finished.`,
		Example: "  helve serve\n  helve serve helve.yaml --addr 127.0.0.1:0\n  helve serve mail.yaml code.yaml\n  HELVE_TOKEN=… helve serve --addr 0.0.0.0:7777",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.token == "" {
				s.token = os.Getenv("HELVE_TOKEN")
			}
			for _, file := range args {
				if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
					return usage("there is no app file %s", file)
				}
			}
			s.files = args
			if c.appFile != "" {
				s.files = append([]string{c.appFile}, args...)
			}
			if s.most < 0 || s.idle < 0 || s.stream < 0 {
				return usage("--max-sessions, --session-idle and --stream-limit cannot be negative")
			}
			return c.serve(cmd.Context(), s)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&s.addr, "addr", daemon.DefaultAddr, "where to listen")
	fl.StringVar(&s.token, "token", "", "the operator's token, which reaches everything (better in HELVE_TOKEN)")
	fl.IntVar(&s.most, "max-sessions", mcpbridge.DefaultMaxSessions, "how many sessions clients may have at one time")
	fl.DurationVar(&s.stream, "stream-limit", 0, "how long a client of revision 2025-11-25 waits on the connection of a call before it is told to come back for the rest; 0: as long as it takes")
	fl.DurationVar(&s.idle, "session-idle", mcpbridge.DefaultSessionIdle, "after which a session without requests and streams ends")
	return cmd
}

func (c *cli) serve(ctx context.Context, s serving) (err error) {
	c.startTelemetry()
	apps, home, err := c.openApps(ctx, s)
	defer func() {
		for _, l := range apps {
			err = errors.Join(err, l.Close())
		}
	}()
	if err != nil {
		return err
	}
	kept, err := app.OpenStore(ctx, c.store, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	d, err := daemon.Listen(daemon.Options{Apps: apps, Addr: s.addr, Token: s.token, Log: c.logger(), Version: version(),
		Tokens: tokens.NewBook(tokens.In(app.IfThere(kept))), MaxSessions: s.most, SessionIdle: s.idle, StreamLimit: s.stream, Telemetry: c.telemetry})
	if errors.Is(err, daemon.ErrAddr) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	told := make(chan struct{})
	go func() { // nobody who calls waits for it
		defer close(told)
		c.announce(apps, d, d.NeedsToken(ctx))
		for _, l := range apps {
			l.App().WaitUpstreams(ctx)
			c.announceUpstreams(l.App())
		}
		c.settled()
	}()
	err = d.Serve(ctx)
	<-told
	return err
}

// openApps opens the apps of the files, those of the built-in defaults if
// there are none, and returns them with the folder of the daemon's own state.
// All files are read before anything is opened. Apps that were opened are
// returned with the error.
func (c *cli) openApps(ctx context.Context, s serving) (apps []*app.Live, home string, err error) {
	files := s.files
	if len(files) == 0 {
		files = []string{""}
	}
	ids := map[string]string{}
	var each []*cli
	var policy []string
	for _, file := range files {
		one := *c
		one.appFile, one.conceal = file, s.token
		cfg, err := one.config()
		if err != nil {
			return nil, "", err
		}
		id := cfg.App.ID
		if other, taken := ids[id]; taken {
			return nil, "", usage("%s and %s both have the app_id %q; give one of them another", other, file, id)
		}
		ids[id] = file
		home = c.stateOf(one.rootOf(cfg))
		if len(files) > 1 {
			home = c.stateOf(c.root_)
			one.state, one.blocked = filepath.Join(home, "apps", id), []string{home}
		}
		policy = append(append(policy, file), cfg.Files()...)
		each = append(each, &one)
	}
	policy = slices.DeleteFunc(policy, func(file string) bool { return file == "" })
	for _, one := range each {
		one.protected = policy // an app's calls change no other app, either
		l, err := one.openLive(ctx)
		if err != nil {
			if len(files) > 1 {
				err = fmt.Errorf("app %s: %w", one.appFile, err)
			}
			return apps, "", err
		}
		apps = append(apps, l)
	}
	return apps, home, nil
}

// stateOf returns the folder of what is kept for a root.
func (c *cli) stateOf(root string) string {
	dir := c.state
	if dir == "" {
		dir = filepath.Join(root, ".helve")
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// announceUpstreams says how the upstream servers answered, once they have.
func (c *cli) announceUpstreams(a *app.App) {
	if len(a.Upstreams()) == 0 || c.json {
		return
	}
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
func (c *cli) announce(apps []*app.Live, d *daemon.Daemon, token bool) {
	type served struct {
		App   string `json:"app"`
		MCP   string `json:"mcp"`
		Tools int    `json:"tools"`
		Root  string `json:"root"`
		State string `json:"state"`
	}
	var all []served
	for _, l := range apps {
		a := l.App()
		tools := a.View(a.Origin(tool.KindMCP, "", ""), inject.Discovery).Decision.Tools
		all = append(all, served{a.Config.App.ID, d.URL() + "/mcp/apps/" + a.Config.App.ID, tools, a.Root.Dir(), a.State})
	}
	first := all[0]
	if c.json {
		c.printJSON(map[string]any{"url": d.URL(), "mcp": d.URL() + "/mcp", "tools": first.Tools, "root": first.Root, "state": first.State,
			"app": first.App, "apps": all, "token": token})
		return
	}
	s := c.style(c.out)
	for i, a := range all {
		fmt.Fprintf(c.out, "Helve %s serves the app %s: %d tools, root %s\n", version(), s.bold(a.App), a.Tools, a.Root)
		at := a.MCP
		if i == 0 {
			at = d.URL() + "/mcp"
		}
		c.announceViews(at)
		fmt.Fprintf(c.out, "State is kept in %s.\n", a.State)
	}
	if token {
		fmt.Fprintln(c.out, "Clients must present a token.")
	}
	fmt.Fprintln(c.out, "Stop with Ctrl-C.")
}

func (c *cli) announceViews(at string) {
	s := c.style(c.out)
	notes := map[inject.Mode]string{
		"":               "decided by size",
		inject.Direct:    "every tool with its full schema",
		inject.Compact:   "every tool on one line",
		inject.Discovery: "a few meta-tools that find and call the rest",
	}
	views := daemon.Views()
	for _, path := range slices.Sorted(maps.Keys(views)) {
		url := at + strings.TrimPrefix(path, "/mcp")
		fmt.Fprintf(c.out, "  %s%s  %s\n", s.bold(url), strings.Repeat(" ", max(0, len(at)+len("/discovery")-len(url))), notes[views[path]])
	}
}
