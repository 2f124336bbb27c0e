package cli

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/tool"
)

// cliSession is the session of the person at the terminal: the same from
// command to command, so that what one cut short the next can read on.
const cliSession = "cli"

func (c *cli) logger() *slog.Logger {
	level := slog.LevelWarn
	if c.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: level}))
}

// config reads the app file, or returns the defaults if there is none.
func (c *cli) config() (*app.Config, error) {
	if c.appFile == "" {
		return app.Default(), nil
	}
	return app.Load(c.appFile, c.loadOptions())
}

func (c *cli) loadOptions() app.LoadOptions {
	return app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv, Secret: secret, Workdir: c.root_}
}

// secret resolves a reference to a secret: from the environment, where the
// name is the variable's, or HELVE_SECRET_ and the name.
func secret(name string) (string, error) {
	for _, key := range []string{"HELVE_SECRET_" + name, name} {
		if v, ok := os.LookupEnv(key); ok {
			return v, nil
		}
	}
	return "", fmt.Errorf("the secret %q is not set; export HELVE_SECRET_%s", name, name)
}

// open opens the app that the flags name.
func (c *cli) open(ctx context.Context, approver guard.Approver, inspect bool) (*app.App, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	return c.openConfig(ctx, cfg, approver, inspect)
}

// openConfig opens an app as it was declared.
func (c *cli) openConfig(ctx context.Context, cfg *app.Config, approver guard.Approver, inspect bool) (*app.App, error) {
	a, err := app.Open(ctx, app.Options{
		Config: cfg, File: c.appFile, Modules: std.Modules(), Root: c.rootOf(cfg), State: c.state, Store: c.store,
		Approver: approver, Secret: secret, Conceal: []string{c.conceal}, Blocked: c.blocked, Log: c.logger(), Version: version(), Inspect: inspect,
		Watchdog: watchdog(), Sessions: c.sessions,
		Confine: confine(),
	})
	if err != nil {
		return nil, err
	}
	for _, f := range a.Failures() {
		fmt.Fprintf(c.err, "%s the module %s did not load: %s\n", c.style(c.err).bad("warning:"), f.Module, f.Error)
	}
	return a, nil
}

// rootOf returns the folder that tools may touch: that of --root, else that of the app.
func (c *cli) rootOf(cfg *app.Config) string {
	dir := cfg.Runtime.Workdir
	switch {
	case dir == "" || c.root_ != ".":
		return c.root_
	case filepath.IsAbs(dir):
		return dir
	}
	return filepath.Join(filepath.Dir(c.appFile), dir)
}

// openLive opens the app that the flags name, and follows its file.
func (c *cli) openLive(ctx context.Context) (*app.Live, error) {
	c.sessions = new(guard.Sessions)
	return app.OpenLive(ctx, c.logger(), func(ctx context.Context) (*app.App, error) {
		return c.open(context.WithoutCancel(ctx), nil, false)
	})
}

// operator returns the origin of calls that the person at the terminal makes.
func (c *cli) operator(a *app.App) tool.Origin {
	return a.Origin(tool.KindCLI, cliSession, userName())
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "operator"
}

// terminalApprover asks the person at the terminal. Without a terminal, only
// an answer given in advance approves.
func (c *cli) terminalApprover(yes bool) guard.Approver {
	return func(ctx context.Context, q guard.Question) (guard.Answer, error) {
		by := userName()
		if yes {
			return guard.Answer{Approved: true, By: by + " (--yes)"}, nil
		}
		if !isTerminal(c.in) {
			return guard.Answer{}, fmt.Errorf("there is no terminal to ask at; run it with --yes to approve in advance (%s)", strings.Join(q.Reasons, "; "))
		}
		s := c.style(c.err)
		fmt.Fprintf(c.err, "%s wants to run\n  %s\n", s.bold(q.Call.Name), indent(string(q.Args), "  "))
		for _, r := range q.Reasons {
			fmt.Fprintf(c.err, "It is asked because %s.\n", r)
		}
		if q.Diff != "" {
			fmt.Fprintf(c.err, "It would change:\n%s", s.diff(q.Diff))
		}
		fmt.Fprint(c.err, "Run it? [y/N] ")
		line, err := readLine(ctx, c.in)
		if err != nil {
			return guard.Answer{}, err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return guard.Answer{Approved: true, By: by}, nil
		}
		return guard.Answer{Feedback: "the operator said no"}, nil
	}
}

// readLine reads a line, or gives up when ctx ends.
func readLine(ctx context.Context, in interface{ Read([]byte) (int, error) }) (string, error) {
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // outlives the call only if the process is about to end
		line, err := bufio.NewReader(in).ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		if a.line != "" {
			return a.line, nil
		}
		return "", fmt.Errorf("no answer was given: %w", a.err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func indent(s, by string) string { return strings.ReplaceAll(s, "\n", "\n"+by) }
