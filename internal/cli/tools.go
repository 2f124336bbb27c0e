package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/modules/discovery"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

func (c *cli) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "List, find, show and call tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.toolsList(), c.toolsSearch(), c.toolsGet(), c.toolsCall(), c.toolsForget())
	return cmd
}

// A toolRow is a tool as listings show it.
type toolRow struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Effect      string  `json:"effect"`
	Risk        string  `json:"risk"`
	Group       string  `json:"group"`
	Module      string  `json:"module"`
	Score       float64 `json:"score,omitempty"`
	Why         string  `json:"why,omitempty"`

	Parts []search.Part `json:"parts,omitempty"`
}

func rowOf(t *tool.Tool) toolRow {
	return toolRow{Name: t.Name, Description: t.Summary(), Effect: t.Effect.String(), Risk: t.RiskLevel().String(),
		Group: string(t.GroupName()), Module: t.ModuleName()}
}

// inspect opens the app to be looked at, and calls fn.
func (c *cli) inspect(ctx context.Context, fn func(*app.App) error) (err error) {
	a, err := c.open(ctx, nil, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return fn(a)
}

func (c *cli) toolsList() *cobra.Command {
	var patience *time.Duration
	cmd := &cobra.Command{
		Use: "list [MODULE]", Short: "List the tools, or those of one module", Args: cobra.MaximumNArgs(1),
		Example: "  helve tools list\n  helve tools list filesystem --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inspect(cmd.Context(), func(a *app.App) error {
				c.awaitServers(cmd.Context(), a, *patience)
				rows := []toolRow{}
				for t := range a.Tools().All() {
					m := t.ModuleName()
					if a.Visible(c.operator(a), t) && (len(args) == 0 || m == args[0] || strings.HasPrefix(m, args[0]+".")) {
						rows = append(rows, rowOf(t))
					}
				}
				if len(rows) == 0 && len(args) > 0 {
					hint := didYouMean(schema.Closest(args[0], modulesOf(a), 2))
					return usage("no module named %q has tools%s; helve tools list shows all", args[0], strings.TrimSuffix(hint, "?"))
				}
				return c.showTools(rows)
			})
		},
	}
	patience = waitFlag(cmd)
	return cmd
}

// modulesOf lists the modules that have tools in an app.
func modulesOf(a *app.App) []string {
	var names []string
	for t := range a.Tools().All() {
		if m := t.ModuleName(); !slices.Contains(names, m) {
			names = append(names, m)
		}
	}
	return names
}

func (c *cli) showTools(rows []toolRow) error {
	if c.json {
		return c.printJSON(rows)
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = []string{r.Name, r.Risk, r.Description}
	}
	c.table([]string{"TOOL", "RISK", "DESCRIPTION"}, cells)
	return nil
}

func (c *cli) toolsSearch() *cobra.Command {
	var limit int
	var explain bool
	var patience *time.Duration
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "Find tools by what they do, in any language", Args: cobra.MinimumNArgs(1),
		Example: "  helve tools search \"supprimer un fichier\"\n  helve tools search read pdf --limit 3 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("--limit %d: want 1 or more", limit)
			}
			return c.inspect(cmd.Context(), func(a *app.App) error {
				c.awaitServers(cmd.Context(), a, *patience)
				a.WaitVectors(cmd.Context())
				hits, err := a.SearchKnown(cmd.Context(), search.Query{Text: strings.Join(args, " "), Limit: limit, Explain: explain || c.json,
					Accept: func(t *tool.Tool) bool { return !t.Meta && a.Visible(c.operator(a), t) }})
				if err != nil {
					return err
				}
				return c.showHits(hits, explain)
			})
		},
	}
	patience = waitFlag(cmd)
	cmd.Flags().IntVar(&limit, "limit", 10, "how many tools to show")
	cmd.Flags().BoolVar(&explain, "explain", false, "say why each matched, and what each channel adds to its score")
	return cmd
}

func (c *cli) showHits(hits []search.Hit, explain bool) error {
	rows := make([]toolRow, len(hits))
	for i, h := range hits {
		rows[i] = rowOf(h.Tool)
		rows[i].Score, rows[i].Why, rows[i].Parts = h.Score, h.Why, h.Parts
	}
	if c.json {
		return c.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.err, "Nothing matches. Try other words, or helve tools list.")
		return nil
	}
	if !explain {
		return c.showTools(rows)
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = []string{r.Name, fmt.Sprintf("%.3f", r.Score), partsText(r.Parts), r.Why}
	}
	c.table([]string{"TOOL", "SCORE", "OF WHICH", "WHY"}, cells)
	return nil
}

// partsText writes what makes up a score, as in "words 0.7, concepts 0.3".
func partsText(parts []search.Part) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = fmt.Sprintf("%s %.2f", p.Channel, p.Score)
	}
	return strings.Join(out, ", ")
}

func (c *cli) toolsGet() *cobra.Command {
	return &cobra.Command{
		Use: "get TOOL", Short: "Show all that is known of a tool", Args: cobra.ExactArgs(1),
		Example:           "  helve tools get filesystem.edit",
		ValidArgsFunction: c.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inspect(cmd.Context(), func(a *app.App) error {
				t, err := c.resolve(cmd.Context(), a, args[0])
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(discovery.Describe(t))
				}
				c.showTool(t)
				return nil
			})
		},
	}
}

// resolve finds the tool that a name means to the operator.
func (c *cli) resolve(ctx context.Context, a *app.App, name string) (*tool.Tool, error) {
	sees := func(t *tool.Tool) bool { return a.Visible(c.operator(a), t) }
	t, err := a.Tools().Resolve(name, sees)
	if err != nil {
		c.awaitTool(ctx, a, name)
		a.WaitTool(ctx, name)
		t, err = a.Tools().Resolve(name, sees)
	}
	if err != nil {
		if why := a.MCPServers().Missing(name, func(string) bool { return true }); why != nil {
			return nil, errors.New(why.Message)
		}
	}
	switch {
	case err != nil:
		return nil, usage("%s", tool.AsError(err).Message)
	case !sees(t):
		return nil, &codedError{code: exitRefused, err: fmt.Errorf("the tool %s is denied or hidden by the app's policy", name)}
	}
	return t, nil
}

func (c *cli) showTool(t *tool.Tool) {
	s := c.style(c.out)
	fmt.Fprintf(c.out, "%s  %s\n\n%s\n", s.bold(t.Name), s.dim(fmt.Sprintf("%s, %s risk, group %s", t.Effect, t.RiskLevel(), t.GroupName())), cleanText(t.Description))
	if t.Help != "" {
		fmt.Fprintf(c.out, "\n%s\n", cleanText(t.Help))
	}
	var rows [][]string
	for _, p := range t.Input.Parameters() {
		need := "optional"
		if p.Required {
			need = "required"
		}
		text := p.Description
		if p.Role != "" {
			text = strings.TrimSpace(text + " (" + string(p.Role) + ")")
		}
		rows = append(rows, []string{p.Name, p.Type, need, text})
	}
	if len(rows) > 0 {
		fmt.Fprintln(c.out)
		c.table([]string{"PARAMETER", "TYPE", "", "DESCRIPTION"}, rows)
	}
	for _, e := range t.Examples {
		fmt.Fprintf(c.out, "\n  helve tools call %s '%s'\n", t.Name, e)
	}
}

func (c *cli) toolsCall() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "call TOOL [ARGS]", Short: "Call a tool, through the same guards as a model's call", Args: cobra.RangeArgs(1, 2),
		Long: `Call a tool. ARGS is a JSON object, or - to read one from standard input.

The call goes through the same pipeline as a model's. What the policy would ask
about is confirmed here, or with --yes in advance.

The exit code is 0 if the tool succeeded, 2 if it failed, 3 if the call was
refused, and 64 if the tool does not exist or its arguments are wrong.`,
		Example: `  helve tools call filesystem.read '{"path":"README.md"}'
  helve tools call filesystem.write '{"path":"a.txt","content":"hello"}' --yes`,
		ValidArgsFunction: c.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := c.params(args[1:])
			if err != nil {
				return err
			}
			return c.call(cmd.Context(), args[0], params, yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve in advance what the policy would ask about")
	return cmd
}

func (c *cli) toolsForget() *cobra.Command {
	return &cobra.Command{
		Use: "forget", Short: "Forget what search learnt from usage", Args: cobra.NoArgs,
		Long: `Forget which tools were called after which queries. An app learns that where
its file says tools.search.learn: true. Nothing else is forgotten.`,
		Example: "  helve tools forget --app app.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.config()
			if err != nil {
				return err
			}
			n, err := app.ForgetHabits(cmd.Context(), app.Options{Config: cfg, File: c.appFile, Root: c.rootOf(cfg), State: c.state, Store: c.store, Log: c.logger()})
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]int{"forgotten": n})
			}
			fmt.Fprintf(c.out, "Forgotten: %d\n", n)
			return nil
		},
	}
}

// params returns the JSON object of the arguments.
func (c *cli) params(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage("{}"), nil
	}
	raw := []byte(args[0])
	if args[0] == "-" {
		var err error
		if raw, err = io.ReadAll(c.in); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, usage("the arguments are not a JSON object: %v; write for example '{\"path\":\"README.md\"}'", err)
	}
	return raw, nil
}

func (c *cli) call(ctx context.Context, name string, params json.RawMessage, yes bool) (err error) {
	a, err := c.open(ctx, c.terminalApprover(yes), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	c.awaitTool(ctx, a, name)
	a.WaitTool(ctx, name)
	call := &tool.Call{Name: name, Args: params, From: c.operator(a)}
	if isTerminal(c.err) {
		call.Progress = func(part tool.Content) {
			if text := clean(part.Text); text != "" {
				fmt.Fprintln(c.err, c.style(c.err).dim(text))
			}
		}
	}
	stop := c.tellStart(a, name)
	res, err := a.Call(ctx, call)
	stop()
	if err != nil {
		return err
	}
	return c.showResult(res)
}

// A shownResult is a result as --json prints it.
type shownResult struct {
	OK         bool            `json:"ok"`
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Error      *tool.Error     `json:"error,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
}

func (c *cli) showResult(res *tool.Result) error {
	if c.json {
		if err := c.printJSON(shownResult{res.Err == nil, res.JoinText(), res.Structured, res.Err, res.Notes}); err != nil {
			return err
		}
	} else {
		if text := res.JoinText(); text != "" {
			if isTerminal(c.out) {
				text = cleanText(text)
			}
			fmt.Fprintln(c.out, strings.TrimSuffix(text, "\n"))
		}
		for _, n := range res.Notes {
			fmt.Fprintln(c.err, c.style(c.err).dim("note: "+n))
		}
		if res.Err != nil {
			fmt.Fprintf(c.err, "%s %s\n", c.style(c.err).bad(string(res.Err.Code)+":"), cleanText(res.Err.Message))
		}
	}
	if res.Err != nil {
		return &codedError{code: exitCode(res.Err.Code), err: res.Err, told: true}
	}
	return nil
}

// completeTool completes the names of the tools that there are for the operator.
func (c *cli) completeTool(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	err := c.inspect(cmd.Context(), func(a *app.App) error {
		for t := range a.Tools().All() {
			if strings.HasPrefix(t.Name, begun) && a.Visible(c.operator(a), t) {
				names = append(names, t.Name+"\t"+t.Summary())
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
