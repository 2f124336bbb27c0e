package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/examples"
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
	if c.demo {
		cfg, err := app.Parse("demo.yaml", examples.Demo, c.loadOptions())
		if err == nil {
			cfg.App.ID = app.Default().App.ID // so that helve audit, checkpoints and undo show what it did
		}
		return cfg, err
	}
	if c.appFile == "" {
		return app.DefaultOf(std.Modules()), nil
	}
	return app.Load(c.appFile, c.loadOptions())
}

func (c *cli) loadOptions() app.LoadOptions {
	return app.LoadOptions{Modules: std.Modules(), Env: os.LookupEnv, Workdir: c.root_}
}

// credentialStore returns where secrets and logins are kept: the same store
// each time, so that a keyring which fails is asked once.
func (c *cli) credentialStore(cfg *app.Config) *credentials.Store {
	o := credentials.Options{Backend: credentials.Backend(cfg.Security.Credentials),
		Dir: os.Getenv("HELVE_CREDENTIALS_DIR"), Key: os.Getenv("HELVE_CREDENTIALS_KEY")}
	kept, _ := c.stores.LoadOrStore(o, credentials.New(o))
	return kept.(*credentials.Store)
}

// secrets resolves references to secrets: from the environment under
// HELVE_SECRET_ and the name, from what is kept, and from the environment
// under the name alone.
func secrets(kept *credentials.Store) func(name string) (string, error) {
	return func(name string) (string, error) {
		if v, ok := os.LookupEnv("HELVE_SECRET_" + name); ok {
			return v, nil
		}
		v, err := kept.Get(name)
		if err == nil {
			return v, nil
		}
		if v, ok := os.LookupEnv(name); ok {
			return v, nil
		}
		if errors.Is(err, credentials.ErrNotFound) {
			return "", fmt.Errorf("the secret %q is not set; helve secrets set %s keeps it, or export HELVE_SECRET_%s", name, name, name)
		}
		return "", fmt.Errorf("the secret %q is not in the environment, and what is kept cannot be read: %w", name, err)
	}
}

// options returns the options of the app that the flags name.
func (c *cli) options(cfg *app.Config) app.Options {
	kept := c.credentialStore(cfg)
	return app.Options{Config: cfg, File: c.appFile, Modules: std.Modules(), Root: c.rootOf(cfg), State: c.state, Store: c.store,
		Secret: secrets(kept), Credentials: kept, Log: c.logger(), Version: version(), Watchdog: watchdog(), Models: modelsDir(), Telemetry: c.telemetry}
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
	if !inspect {
		c.startTelemetry()
	}
	o := c.options(cfg)
	o.Approver, o.Inspect = approver, inspect
	o.Conceal, o.Blocked, o.Protected, o.Sessions, o.Confine = []string{c.conceal}, c.blocked, c.protected, c.sessions, confine()
	o.Heard = c.heard
	if c.lines != nil {
		o.Asker = c.asker(c.lines)
	}
	a, err := app.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	c.warnUnread(a.Config.Unread())
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
		return c.askApproval(q, func() (string, error) { return readLine(ctx, c.in) })
	}
}

// askApproval asks a person about a call: y runs it, N does not, and any other
// words deny it and are read by the model.
func (c *cli) askApproval(q guard.Question, read func() (string, error)) (guard.Answer, error) {
	s := c.style(c.err)
	who := ""
	if q.Call.From.Under != nil {
		who = ", for the agent " + cleanText(q.Call.From.Agent)
	}
	fmt.Fprintf(c.err, "%s wants to run%s\n  %s\n", s.bold(q.Call.Name), who, cleanText(indent(string(q.Args), "  ")))
	for _, r := range q.Reasons {
		fmt.Fprintf(c.err, "It is asked because %s.\n", cleanText(r))
	}
	if q.Diff != "" {
		fmt.Fprintf(c.err, "It would change:\n%s", s.diff(q.Diff))
	}
	fmt.Fprint(c.err, "Run it, or say why not? [y/N] ")
	line, err := read()
	if err != nil {
		return guard.Answer{}, err
	}
	switch line = strings.TrimSpace(line); strings.ToLower(line) {
	case "y", "yes":
		return guard.Answer{Approved: true, By: userName()}, nil
	case "", "n", "no":
		return guard.Answer{Feedback: "the operator said no"}, nil
	}
	return guard.Answer{Feedback: line}, nil
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
