package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/std"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

func (c *cli) appCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "app", Short: "Check and explain app files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.appCheck(), c.appExplain(), c.appPrompt(), c.appSchema())
	return cmd
}

// fileOr returns the file that is named as an argument, or by --app.
func (c *cli) fileOr(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		c.appFile = args[0]
	}
	if c.appFile == "" {
		return usage("no app file is named; write %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return nil
}

func (c *cli) appCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check an app file: every problem with its line and column", Args: cobra.MaximumNArgs(1),
		Example: "  helve app check helve.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.fileOr(cmd, args); err != nil {
				return err
			}
			cfg, err := app.Load(c.appFile, c.loadOptions())
			problems, unset, unread := app.ProblemsOf(err), app.Problems{}, app.Problems{}
			if cfg != nil {
				unset, unread = cfg.Unset(), cfg.Unread()
			}
			if c.json {
				if err := c.printJSON(map[string]any{"ok": err == nil, "file": c.appFile, "problems": problems, "unset": unset, "unread": unread}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintln(c.err, p.Error())
				}
				c.warnUnset(unset)
				c.warnUnread(unread)
			}
			switch {
			case len(problems) > 0:
				return &codedError{code: exitError, err: err, told: true}
			case err != nil:
				return err
			}
			if !c.json {
				fmt.Fprintf(c.out, "%s %s is fine.\n", c.style(c.out).good("✓"), c.appFile)
			}
			return nil
		},
	}
}

// warnUnset tells of what single servers lack in this environment.
func (c *cli) warnUnset(unset app.Problems) {
	for _, p := range unset {
		fmt.Fprintf(c.err, "%s %s. This server cannot be started as things are; all else is as it should be.\n", c.style(c.err).warn("warning:"), p.Error())
	}
}

// warnUnread tells of skills that cannot be read.
func (c *cli) warnUnread(unread app.Problems) {
	for _, p := range unread {
		fmt.Fprintf(c.err, "%s %s. Agents do without it; all else is as it should be.\n", c.style(c.err).warn("warning:"), p.Error())
	}
}

// An explanation is what `helve app explain` tells of an app.
type explanation struct {
	App        string              `json:"app"`
	Decision   inject.Decision     `json:"decision"`
	Tokens     map[inject.Mode]int `json:"tokens"` // what each mode's listing costs
	Modules    []moduleRow         `json:"modules"`
	Failures   []app.Failure       `json:"failures,omitempty"`
	MCPServers any                 `json:"mcp_servers,omitempty"`
	Policy     policyRow           `json:"policy"`
	Views      map[string][]string `json:"shown"` // the names that each mode shows
}

type moduleRow struct {
	Module string `json:"module"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
}

type policyRow struct {
	Default string `json:"default_policy"`
	MaxRisk string `json:"max_risk_level"`
	Grant   int    `json:"grant"`
	Approve int    `json:"approve"`
	Deny    int    `json:"deny"`
	Hidden  int    `json:"hidden"`
}

func (c *cli) appExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain [FILE]", Short: "Explain how an app presents its tools, and what each way costs", Args: cobra.MaximumNArgs(1),
		Example: "  helve app explain helve.yaml\n  helve app explain --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.appFile = args[0]
			}
			return c.inspect(cmd.Context(), func(a *app.App) error {
				c.awaitServers(cmd.Context(), a, waitPatience)
				x := explain(a, a.Origin(tool.KindMCP, "", ""))
				if c.json {
					return c.printJSON(x)
				}
				c.showExplanation(x)
				return nil
			})
		},
	}
}

func explain(a *app.App, from tool.Origin) explanation {
	p := a.Config.Tools.Capabilities
	x := explanation{App: a.Config.App.ID, Decision: a.View(from, "").Decision, Tokens: map[inject.Mode]int{},
		Failures: a.Failures(), Views: map[string][]string{},
		Policy: policyRow{p.DefaultPolicy, p.MaxRiskLevel, len(p.Grant), len(p.Approve), len(p.Deny), len(p.Hidden) + len(p.HiddenModules)}}
	if ups := a.Upstreams(); len(ups) > 0 {
		x.MCPServers = ups
	}
	at := map[string]int{}
	for _, it := range a.View(from, inject.Direct).Items {
		m := it.Tool.ModuleName()
		if _, ok := at[m]; !ok {
			at[m] = len(x.Modules)
			x.Modules = append(x.Modules, moduleRow{Module: m})
		}
		x.Modules[at[m]].Tools++
		x.Modules[at[m]].Tokens += it.Tokens()
	}
	for _, mode := range []inject.Mode{inject.Direct, inject.Compact, inject.Discovery} {
		v := a.View(from, mode)
		x.Tokens[mode] = v.Tokens()
		if mode == inject.Discovery {
			for _, it := range v.Items {
				x.Views[string(mode)] = append(x.Views[string(mode)], it.Name)
			}
		}
	}
	return x
}

func (c *cli) showExplanation(x explanation) {
	s := c.style(c.out)
	d := x.Decision
	why := fmt.Sprintf("the budget is a fifth of a window of %d tokens: %d", d.Window, d.Budget)
	if d.Forced {
		why = "forced by runtime.tool_injection"
	}
	fmt.Fprintf(c.out, "The app %s presents its %d tools as %s (%s).\n\n", s.bold(x.App), d.Tools, s.bold(string(d.Mode)), why)
	rows := [][]string{}
	for _, m := range []inject.Mode{inject.Direct, inject.Compact, inject.Discovery} {
		basis := ""
		switch m {
		case inject.Direct:
			basis = fmt.Sprintf("full schemas; decided by %d ≤ %d", d.DirectTokens, d.Budget)
		case inject.Compact:
			basis = fmt.Sprintf("a line each; decided by 30 × %d = %d ≤ %d", d.Tools, d.CompactTokens, d.Budget)
		case inject.Discovery:
			basis = "the meta-tools alone"
		}
		mark := ""
		if m == d.Mode {
			mark = "←"
		}
		rows = append(rows, []string{string(m), strconv.Itoa(x.Tokens[m]), mark, basis})
	}
	c.table([]string{"MODE", "TOKENS", "", "BASIS"}, rows)
	fmt.Fprintln(c.out)
	rows = rows[:0]
	for _, m := range x.Modules {
		rows = append(rows, []string{m.Module, strconv.Itoa(m.Tools), strconv.Itoa(m.Tokens)})
	}
	c.table([]string{"MODULE", "TOOLS", "TOKENS IN FULL"}, rows)
	fmt.Fprintf(c.out, "\nPolicy: default %s, maximum risk %s; rules: %d grant, %d approve, %d deny, %d hidden.\n",
		x.Policy.Default, x.Policy.MaxRisk, x.Policy.Grant, x.Policy.Approve, x.Policy.Deny, x.Policy.Hidden)
}

func (c *cli) appSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema [MODULE]", Short: "Print the JSON Schema of app files, or a module's configuration and actions", Args: cobra.MaximumNArgs(1),
		Example: "  helve app schema > app.schema.json\n  helve app schema filesystem",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return moduleNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintf(c.out, "%s\n", app.JSONSchema(app.Known(std.Modules())))
				return err
			}
			m := findModule(args[0])
			if m == nil {
				near := schema.Closest(args[0], moduleNames(), 3)
				if len(near) == 0 {
					near = moduleNames()
				}
				return usage("no module is named %q; there are for example %s", args[0], strings.Join(near, ", "))
			}
			doc, err := app.DescribeModule(cmd.Context(), m)
			if err != nil {
				return err
			}
			if c.json || !isTerminal(c.out) {
				return c.printJSON(doc)
			}
			c.showModule(cmd, m)
			return nil
		},
	}
}

func findModule(name string) *module.Module {
	for _, m := range app.Known(std.Modules()) {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func moduleNames() []string {
	var names []string
	for _, m := range app.Known(std.Modules()) {
		names = append(names, m.Name)
	}
	return names
}

func (c *cli) showModule(cmd *cobra.Command, m *module.Module) {
	s := c.style(c.out)
	fmt.Fprintf(c.out, "%s: %s\n\nConfiguration\n", s.bold(m.Name), m.Doc)
	var rows [][]string
	for _, p := range m.Config.Parameters() {
		rows = append(rows, []string{p.Name, p.Type, p.Description})
	}
	c.table([]string{"KEY", "TYPE", "DESCRIPTION"}, rows)
	tools, err := m.Describe(cmd.Context())
	if err != nil {
		fmt.Fprintln(c.err, err)
		return
	}
	for _, t := range tools {
		fmt.Fprintln(c.out)
		c.showTool(t)
	}
}
