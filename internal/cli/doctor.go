package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/audit"
	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/internal/daemon"
	"github.com/helve-ai/helve/llm/provider"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/store"
)

// A finding is what one check of the doctor found.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warning, error
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
	Detail any    `json:"detail,omitempty"` // for programs that read it
}

func ok(check, format string, args ...any) finding {
	return finding{Check: check, Status: "ok", Text: fmt.Sprintf(format, args...)}
}

func warning(check, remedy, format string, args ...any) finding {
	return finding{Check: check, Status: "warning", Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

func failure(check, remedy string, err error) finding {
	return finding{Check: check, Status: "error", Text: err.Error(), Remedy: remedy}
}

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check this machine, the app and its state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := c.diagnose(cmd.Context())
			bad := 0
			for _, f := range found {
				if f.Status == "error" {
					bad++
				}
			}
			if c.json {
				if err := c.printJSON(map[string]any{"ok": bad == 0, "checks": found}); err != nil {
					return err
				}
			} else {
				c.showFindings(found)
			}
			if bad > 0 {
				return &codedError{code: exitError, told: true, err: fmt.Errorf("%d checks failed", bad)}
			}
			return nil
		},
	}
}

func (c *cli) showFindings(found []finding) {
	s := c.style(c.out)
	for _, f := range found {
		mark := map[string]string{"ok": s.good("✓"), "warning": s.warn("!"), "error": s.bad("✗")}[f.Status]
		fmt.Fprintf(c.out, "%s %-12s %s\n", mark, f.Check, cleanText(f.Text))
		if f.Remedy != "" {
			fmt.Fprintf(c.out, "  %-12s %s\n", "", s.dim(f.Remedy))
		}
	}
}

func (c *cli) diagnose(ctx context.Context) []finding {
	found := []finding{ok("version", "helve %s", version()), c.checkRoot(), c.checkAddr()}
	a, err := c.open(ctx, nil, false)
	if err != nil {
		found = append(found, checkSandbox(sandbox.New(sandbox.Options{Helper: confine()})))
		return append(found, failure("app", "helve app check FILE tells more about an app file; --state names another folder for what is kept", err))
	}
	defer a.Close()
	found = append(found, checkSandbox(a.Sandbox), ok("app", "%s: %d tools", a.Config.App.ID, a.Tools().Len()))
	for _, f := range a.Failures() {
		found = append(found, failure("module "+f.Module, "the other modules serve", errors.New(f.Error)))
	}
	found = append(found, checkSearch(ctx, a), checkStore(ctx, a), checkAudit(a), c.checkCredentials(a.Config), c.checkModels(ctx, a.Config))
	found = append(found, c.checkTelemetry())
	return append(found, c.checkUpstreams(ctx, a)...)
}

func (c *cli) checkRoot() finding {
	dir := c.root_
	if cfg, err := c.config(); err == nil {
		dir = c.rootOf(cfg)
	}
	r, err := root.Open(dir)
	if err != nil {
		return failure("root", "name an existing folder with --root", err)
	}
	defer r.Close()
	if _, err := r.Resolve(".", root.ToList); err != nil {
		return failure("root", "mend .helveignore and .helveprotect: until then every path is refused", err)
	}
	return ok("root", "%s", r.Dir())
}

func (c *cli) checkAddr() finding {
	l, err := net.Listen("tcp", daemon.DefaultAddr)
	if err != nil {
		return warning("address", "helve serve --addr 127.0.0.1:0 takes a free port", "%s is taken; perhaps helve serve is running", daemon.DefaultAddr)
	}
	l.Close()
	return ok("address", "%s is free", daemon.DefaultAddr)
}

// checkSandbox says what confines commands on this machine, and how to get
// something stronger.
func checkSandbox(box *sandbox.Runner) finding {
	s := box.Status()
	text := fmt.Sprintf("%s (%s) confines commands", s.Active, s.Detail)
	if s.Active == sandbox.None {
		text = map[sandbox.Mode]string{
			sandbox.Require: "nothing confines commands, so shell.run is refused",
			sandbox.Prefer:  "nothing confines commands; they run with limits alone, and results say so",
			sandbox.Off:     "commands run with limits alone",
		}[box.Mode()]
	}
	if s.Groups != "" {
		text += "; each command that writes has a control group (" + s.Groups + ")"
	}
	for _, more := range slices.Concat(s.Missing, s.Weak) {
		text += "; " + more
	}
	f := finding{Check: "sandbox", Status: "ok", Text: text, Remedy: s.Remedy, Detail: struct {
		Mode sandbox.Mode `json:"mode"`
		sandbox.Status
	}{box.Mode(), s}}
	if s.Active == sandbox.None {
		f.Status = "warning"
		if box.Mode() != sandbox.Off && s.Remedy == "" {
			f.Remedy = "security.sandbox: prefer in the app file runs commands all the same"
		}
	}
	return f
}

func checkStore(ctx context.Context, a *app.App) finding {
	bucket := store.Bucket[string]("doctor")
	err := a.Store.Update(ctx, func(w store.Writer) error {
		if err := bucket.Put(w, "check", "ok"); err != nil {
			return err
		}
		return bucket.Delete(w, "check")
	})
	if err != nil {
		return failure("store", "name another with --store, or a writable folder with --state", err)
	}
	return ok("store", "written and read")
}

func checkAudit(a *app.App) finding {
	report, err := audit.Verify(a.AuditDir())
	switch {
	case err != nil:
		return failure("audit", "", err)
	case len(report.Problems) > 0:
		return failure("audit", "helve audit verify lists them", fmt.Errorf("%d problems in the log, the first: %s", len(report.Problems), report.Problems[0]))
	}
	return ok("audit", "%d lines, all as they were written", report.Lines)
}

// checkCredentials opens what is kept, and says where that is.
func (c *cli) checkCredentials(cfg *app.Config) finding {
	kept := c.credentialStore(cfg)
	names, err := kept.List()
	switch {
	case errors.Is(err, credentials.ErrNoFolder):
		return warning("credentials", "nobody can sign in to servers until then", "%v", err)
	case err != nil:
		return failure("credentials", "", err)
	}
	file, key := kept.Place()
	if file == "" {
		return ok("credentials", "no secrets and no logins are kept")
	}
	return ok("credentials", "%d secrets and logins are kept in %s; the key is in %s", len(names), file, key)
}

// ollamaTime is how long an Ollama may take to say that it is there.
const ollamaTime = 500 * time.Millisecond

// checkModels says whose models agents can think by. Keys are not shown.
func (c *cli) checkModels(ctx context.Context, cfg *app.Config) finding {
	secret := secrets(c.credentialStore(cfg))
	env := func(name string) string {
		v, err := secret(name)
		if err != nil {
			return ""
		}
		return v
	}
	var keys []string
	for _, p := range provider.Providers() {
		if p.KeyEnv != "" && env(p.KeyEnv) != "" {
			keys = append(keys, p.Name)
		}
	}
	text := "there are no keys of providers"
	if len(keys) > 0 {
		text = "there are keys of " + strings.Join(keys, ", ")
	}
	ctx, cancel := context.WithTimeout(ctx, ollamaTime)
	defer cancel()
	at := provider.OllamaAddress(env)
	models, err := provider.OllamaModels(ctx, nil, at)
	if err == nil {
		return ok("models", "%s; Ollama answers at %s and has %s", text, at, count(len(models), "model", "models"))
	}
	f := ok("models", "%s; no Ollama answers at %s", text, at)
	if len(keys) == 0 {
		f.Remedy = "agents need one: set ANTHROPIC_API_KEY or that of another provider, or helve secrets set ANTHROPIC_API_KEY; helve run --demo needs none"
	}
	return f
}

func (c *cli) checkUpstreams(ctx context.Context, a *app.App) []finding {
	c.awaitServers(ctx, a, waitPatience)
	var found []finding
	for _, u := range a.Upstreams() {
		if u.State == mcpbridge.NeedsSetup {
			found = append(found, failure("mcp "+u.Name, "the other servers serve; this one does too once that is there", fmt.Errorf("%s: %s", u.State, u.Error)))
			continue
		}
		if u.State == mcpbridge.NeedsLogin {
			found = append(found, warning("mcp "+u.Name, "helve logout forgets a login; the other servers serve", "%s", u.Error))
			continue
		}
		if u.Error != "" {
			what := "command and environment"
			if u.Transport != "stdio" {
				what = "url and headers"
			}
			found = append(found, failure("mcp "+u.Name, "check its "+what+" in the app file", fmt.Errorf("%s: %s", u.State, u.Error)))
			continue
		}
		if len(u.Held) > 0 {
			found = append(found, warning("mcp "+u.Name, "helve upstreams review "+u.Name+" shows what changed", "%s, %s; %s held back, the first: %s",
				amount(u), u.State, count(len(u.Held), "tool is", "tools are"), u.Held[0]))
			continue
		}
		if len(u.Flagged) > 0 {
			found = append(found, warning("mcp "+u.Name, "read its definition with helve tools get; on_flagged: hold holds such tools back", "%s, %s; %s suspicious, the first: %s",
				amount(u), u.State, count(len(u.Flagged), "is", "are"), u.Flagged[0]))
			continue
		}
		if len(u.LeftOut) > 0 {
			found = append(found, warning("mcp "+u.Name, "the server must mend them; mcp.list_servers names all of them",
				"%s, %s; %d more cannot be used, the first: %s", amount(u), u.State, len(u.LeftOut), u.LeftOut[0]))
			continue
		}
		if len(u.BadSkills) > 0 {
			found = append(found, warning("mcp "+u.Name, "the server must mend them; mcp.list_servers names them",
				"%s, %s; %s cannot be used, the first: %s", amount(u), u.State, count(len(u.BadSkills), "skill", "skills"), u.BadSkills[0]))
			continue
		}
		found = append(found, ok("mcp "+u.Name, "%s, %s", amount(u), u.State))
	}
	return found
}
