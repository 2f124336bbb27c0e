package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/checkpoint"
	module "github.com/helve-ai/helve/modules/checkpoint"
	"github.com/helve-ai/helve/tool"
)

// A restoring is how a restore is asked for and confirmed.
type restoring struct {
	checkpoint.Selection
	yes, dry bool
}

func (r *restoring) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&r.yes, "yes", "y", false, "do it without asking")
	cmd.Flags().BoolVar(&r.dry, "dry-run", false, "only tell what would be done")
	cmd.Flags().BoolVar(&r.Force, "force", false, "also restore what others have changed since")
}

func (c *cli) checkpointsRestore() *cobra.Command {
	var r restoring
	cmd := &cobra.Command{
		Use: "restore ID", Short: "Put files back to what they were before a call", Args: cobra.ExactArgs(1),
		Long: `Put back the files of one call, one of them (--file), or everything that this call
and all later ones changed (--since). What others have changed since is not
restored without --force. Restoring makes a checkpoint of its own.`,
		Example:           "  helve checkpoints restore 12 --file src/main.go\n  helve checkpoints restore 12 --since --dry-run",
		ValidArgsFunction: c.completeCheckpoint,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.ID, err = idOf(args[0]); err != nil {
				return err
			}
			return c.restoreApp(cmd.Context(), r, func(a *app.App) (checkpoint.Selection, error) {
				r.Path = relOf(a, r.Path)
				return r.Selection, nil
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.Path, "file", "", "only this file, or what lies in this folder")
	cmd.Flags().BoolVar(&r.Since, "since", false, "take back this call and all later ones, not this one alone")
	return cmd
}

func (c *cli) undoCommand() *cobra.Command {
	var r restoring
	cmd := &cobra.Command{
		Use: "undo [N]", Short: "Take back the last call that changed files, or the last N", Args: cobra.MaximumNArgs(1),
		Long: `Take back the last N calls that changed files (1 if left out): of any session of
the app, in this root. Calls that were taken back already do not count, so that
undo after undo goes further back. What is going to be done is shown first.

An undo is itself taken back by restoring its own checkpoint, whose id it prints.`,
		Example: "  helve undo\n  helve undo 3 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			n := 1
			if len(args) > 0 {
				var err error
				if n, err = strconv.Atoi(args[0]); err != nil || n < 1 {
					return usage("%q: want how many calls to take back, such as 3", args[0])
				}
			}
			return c.restoreApp(cmd.Context(), r, func(a *app.App) (checkpoint.Selection, error) {
				id, found, err := a.Checkpoints.Last(cmd.Context(), n)
				switch {
				case err != nil:
					return r.Selection, err
				case found == 0:
					return r.Selection, errors.New("there is no call to take back; helve checkpoints lists what there was")
				case id == 0:
					return r.Selection, usage("there are only %d calls to take back", found)
				}
				r.ID, r.Since = id, true
				return r.Selection, nil
			})
		},
	}
	r.flags(cmd)
	return cmd
}

// restoreApp opens the app, shows what a restore would do, asks, and does it by
// the tool that does it for models, through the same guards.
func (c *cli) restoreApp(ctx context.Context, r restoring, choose func(*app.App) (checkpoint.Selection, error)) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if m := cfg.Tools.Modules; m != nil { // the operator may, whichever modules the app opens for models
		if _, ok := m[module.Module.Name]; !ok {
			m[module.Module.Name] = app.ModuleBlock{}
		}
	}
	var sel checkpoint.Selection
	var plan *checkpoint.Plan
	err = c.checkpoints(ctx, true, func(a *app.App) (err error) {
		if sel, err = choose(a); err == nil {
			plan, err = a.Checkpoints.Plan(ctx, sel)
		}
		return noSuch(err)
	})
	if err != nil {
		return err
	}
	if done, err := c.confirm(ctx, r, plan); done || err != nil {
		return err
	}
	a, err := c.openConfig(ctx, cfg, c.terminalApprover(true), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	args := map[string]any{"id": sel.ID, "since": sel.Since, "force": sel.Force}
	if sel.Path != "" {
		args["path"] = sel.Path
	}
	params, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := a.Call(ctx, &tool.Call{Name: module.Module.Name + ".restore", Args: params, From: c.operator(a)})
	if err != nil {
		return err
	}
	if res.Err == nil {
		if made, err := a.Checkpoints.List(ctx, checkpoint.Filter{Limit: 1}); err == nil && len(made) > 0 && made[0].ID > sel.ID && !c.json {
			defer fmt.Fprintf(c.err, "To take this back: helve checkpoints restore %d\n", made[0].ID)
		}
	}
	return c.showResult(res)
}

// A shownPlan is what a restore would do, as --json prints it.
type shownPlan struct {
	Calls   []checkpoint.Checkpoint `json:"calls"`
	Changes []shownChange           `json:"changes"`
}

type shownChange struct {
	Path     string           `json:"path"`
	Now      checkpoint.State `json:"now"`
	Then     checkpoint.State `json:"then"`
	Conflict string           `json:"conflict,omitempty"`
	Skip     string           `json:"skip,omitempty"`
}

// confirm shows a plan and asks whether it is to be carried out. It is done
// when nothing remains to be.
func (c *cli) confirm(ctx context.Context, r restoring, plan *checkpoint.Plan) (done bool, err error) {
	if r.dry && c.json {
		shown := shownPlan{Calls: plan.Calls, Changes: []shownChange{}}
		for _, ch := range plan.Changes {
			shown.Changes = append(shown.Changes, shownChange{ch.Path, ch.Now, ch.Then, ch.Conflict, ch.Skip})
		}
		return true, c.printJSON(shown)
	}
	if len(plan.Changes) == 0 && !c.json {
		fmt.Fprintln(c.err, "Everything is as it was before: there is nothing to restore.")
		return true, nil
	}
	if !c.json {
		c.showPlan(plan)
	}
	if conflicts := plan.Conflicts(); len(conflicts) > 0 {
		return true, &codedError{code: exitRefused, err: fmt.Errorf("nothing was restored: %s; look at helve checkpoints diff, then add --force to restore it all the same", strings.Join(conflicts, "; "))}
	}
	if r.dry || r.yes {
		return r.dry, nil
	}
	if !isTerminal(c.in) {
		return true, &codedError{code: exitRefused, err: errors.New("there is no terminal to ask at; run it with --yes to confirm in advance")}
	}
	fmt.Fprint(c.err, "Restore it? [y/N] ")
	line, err := readLine(ctx, c.in)
	if err != nil {
		return true, err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))) {
		return true, &codedError{code: exitRefused, err: errors.New("nothing was restored")}
	}
	return false, nil
}

// becomes says what happens to a path in a few words.
func becomes(ch checkpoint.Change) string {
	switch {
	case ch.Then.Kind == checkpoint.Absent:
		return "is removed, " + ch.Now.String()
	case ch.Now.Kind == checkpoint.Absent:
		return "comes back, " + ch.Then.String()
	case ch.Then.Kind == ch.Now.Kind && ch.Then.Size == ch.Now.Size && ch.Then.Mode == ch.Now.Mode && ch.Then.Target == ch.Now.Target:
		return "gets its former content"
	}
	return fmt.Sprintf("becomes %s; now it is %s", ch.Then, ch.Now)
}

// showPlan tells what a restore would do.
func (c *cli) showPlan(plan *checkpoint.Plan) {
	const most = 50
	s := c.style(c.err)
	for _, cp := range plan.Calls {
		if !cp.Undone && cp.Undoes == nil {
			fmt.Fprintf(c.err, "%s %s\n", s.bold("taking back"), clean(module.Line(cp)))
		}
	}
	for i, ch := range plan.Changes {
		if i == most {
			fmt.Fprintf(c.err, "  and %d more\n", len(plan.Changes)-most)
			break
		}
		line := fmt.Sprintf("  %s: %s", ch.Path, becomes(ch))
		switch {
		case ch.Skip != "":
			line = s.warn(clean(fmt.Sprintf("  %s: not restored: %s", ch.Path, ch.Skip)))
		case ch.Conflict != "":
			line = s.warn(clean("  " + ch.Conflict))
		default:
			line = clean(line)
		}
		fmt.Fprintln(c.err, line)
	}
}
