package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/checkpoint"
	module "github.com/helve-ai/helve/modules/checkpoint"
)

// checkpoints opens the checkpoints of the app that the flags name, and calls fn.
func (c *cli) checkpoints(ctx context.Context, inspect bool, fn func(*app.App) error) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	a, err := app.OpenCheckpoints(ctx, app.Options{Config: cfg, File: c.appFile, Root: c.rootOf(cfg), State: c.state, Store: c.store,
		Log: c.logger(), Inspect: inspect})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return fn(a)
}

func (c *cli) checkpointsCommand() *cobra.Command {
	var f checkpoint.Filter
	var since string
	cmd := &cobra.Command{
		Use: "checkpoints", Short: "Show and restore what files were before calls changed them", Args: cobra.NoArgs,
		Long: `List the calls that changed files, the newest first. Before every call that may
write or delete, the files it may change are saved; the others are not listed.`,
		Example: `  helve checkpoints --path src --since 2h
  helve checkpoints diff 12
  helve checkpoints restore 12 --file src/main.go`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := sinceTime(since, &f.Since); err != nil {
				return err
			}
			if f.Limit < 0 {
				return usage("--limit %d: want 1 or more, or 0 for all", f.Limit)
			}
			return c.checkpoints(cmd.Context(), true, func(a *app.App) error {
				f.Path = relOf(a, f.Path)
				all, err := a.Checkpoints.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				return c.showCheckpoints(all)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Session, "session", "", "only this session")
	fl.StringVar(&f.Tool, "tool", "", "only this tool")
	fl.StringVar(&f.Path, "path", "", "only calls that changed this file, or what lies in this folder")
	fl.StringVar(&since, "since", "", "only later than this: a time (RFC 3339), a date or a duration such as 2h")
	fl.IntVar(&f.Limit, "limit", 50, "the newest so many; 0 for all")
	cmd.AddCommand(c.checkpointsShow(), c.checkpointsDiff(), c.checkpointsRestore(), c.checkpointsPrune())
	return cmd
}

// relOf returns a path as one that counts from the root.
func relOf(a *app.App, name string) string {
	if name == "" {
		return ""
	}
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(a.Root.Dir(), name); err == nil {
			name = rel
		}
	}
	return filepath.ToSlash(filepath.Clean(name))
}

func (c *cli) showCheckpoints(all []checkpoint.Checkpoint) error {
	if c.json {
		if all == nil {
			all = []checkpoint.Checkpoint{}
		}
		return c.printJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.err, "There is no checkpoint that fits. The first is made when a call changes a file.")
		return nil
	}
	rows := make([][]string, len(all))
	for i, cp := range all {
		state := ""
		switch {
		case cp.Undone:
			state = "undone"
		case cp.Open:
			state = "open"
		}
		rows[i] = []string{strconv.FormatInt(cp.ID, 10), cp.Time.Local().Format("2006-01-02 15:04:05"), cp.Tool, cp.Session, state, module.About(cp)}
	}
	c.table([]string{"ID", "TIME", "TOOL", "SESSION", "STATE", "FILES"}, rows)
	return nil
}

// idOf reads a checkpoint's id.
func idOf(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usage("%q is not the id of a checkpoint; helve checkpoints lists them", text)
	}
	return id, nil
}

// noSuch makes the error about a checkpoint that does not exist one about the command line.
func noSuch(err error) error {
	if errors.Is(err, checkpoint.ErrNone) {
		return usage("%v; helve checkpoints lists those that there are", err)
	}
	return err
}

// completeCheckpoint completes ids.
func (c *cli) completeCheckpoint(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	err := c.checkpoints(cmd.Context(), true, func(a *app.App) error {
		all, err := a.Checkpoints.List(cmd.Context(), checkpoint.Filter{Limit: 100})
		for _, cp := range all {
			if id := strconv.FormatInt(cp.ID, 10); strings.HasPrefix(id, begun) {
				ids = append(ids, id+"\t"+clean(cp.Tool+" "+module.About(cp)))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// A shownCheckpoint is a checkpoint with its files, as --json prints it.
type shownCheckpoint struct {
	checkpoint.Checkpoint
	All []checkpoint.File `json:"all_files"`
}

func (c *cli) checkpointsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show all that is known of a checkpoint", Args: cobra.ExactArgs(1),
		Example: "  helve checkpoints show 12", ValidArgsFunction: c.completeCheckpoint,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			return c.checkpoints(cmd.Context(), true, func(a *app.App) error {
				cp, files, err := a.Checkpoints.Get(cmd.Context(), id)
				if err != nil {
					return noSuch(err)
				}
				if c.json {
					return c.printJSON(shownCheckpoint{cp, files})
				}
				c.showCheckpoint(cp, files)
				return nil
			})
		},
	}
}

func (c *cli) showCheckpoint(cp checkpoint.Checkpoint, files []checkpoint.File) {
	s := c.style(c.out)
	for _, line := range [][2]string{
		{"checkpoint", strconv.FormatInt(cp.ID, 10)}, {"time", cp.Time.Local().Format(time.RFC3339)}, {"tool", cp.Tool}, {"call", cp.Call},
		{"task", cp.Task}, {"session", cp.Session}, {"agent", cp.Agent}, {"user", cp.User}, {"detail", cp.Detail}, {"machine", cp.Host},
	} {
		if line[1] != "" {
			fmt.Fprintf(c.out, "%-11s %s\n", line[0], clean(line[1]))
		}
	}
	if cp.Undoes != nil {
		fmt.Fprintf(c.out, "%-11s %d to %d\n", "takes back", cp.Undoes.First, cp.Undoes.Last)
	}
	if cp.Open {
		fmt.Fprintln(c.out, s.warn("The call is under way, or was cut short: what became of the files is not known."))
	}
	fmt.Fprintln(c.out)
	rows := make([][]string, len(files))
	for i, f := range files {
		after := "not known"
		if f.After != nil {
			after = f.After.String()
		}
		rows[i] = []string{f.Path, f.Before.String(), after}
	}
	c.table([]string{"PATH", "BEFORE", "AFTER"}, rows)
}

// maxShownDiff bounds the bytes of a diff that a command prints.
const maxShownDiff = 4 << 20

func (c *cli) checkpointsDiff() *cobra.Command {
	var sel checkpoint.Selection
	cmd := &cobra.Command{
		Use: "diff ID", Short: "Show how files differ now from what they were before a call", Args: cobra.ExactArgs(1),
		Example: "  helve checkpoints diff 12\n  helve checkpoints diff 12 --since --file src", ValidArgsFunction: c.completeCheckpoint,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if sel.ID, err = idOf(args[0]); err != nil {
				return err
			}
			sel.Force = true // to look is no conflict
			return c.checkpoints(cmd.Context(), true, func(a *app.App) error {
				sel.Path = relOf(a, sel.Path)
				plan, err := a.Checkpoints.Plan(cmd.Context(), sel)
				if err != nil {
					return noSuch(err)
				}
				text, err := a.Checkpoints.DiffSince(cmd.Context(), plan, maxShownDiff)
				if err != nil {
					return err
				}
				return c.showDiff(text)
			})
		},
	}
	cmd.Flags().StringVar(&sel.Path, "file", "", "only this file, or what lies in this folder")
	cmd.Flags().BoolVar(&sel.Since, "since", false, "what this call and all later ones changed, not this one alone")
	return cmd
}

func (c *cli) showDiff(text string) error {
	switch {
	case c.json:
		return c.printJSON(map[string]string{"diff": text})
	case text == "":
		fmt.Fprintln(c.err, "Everything is as it was before.")
		return nil
	case isTerminal(c.out):
		text = c.style(c.out).diff(text)
	}
	_, err := fmt.Fprint(c.out, text)
	return err
}

func (c *cli) checkpointsPrune() *cobra.Command {
	var age, size string
	var dry bool
	cmd := &cobra.Command{
		Use: "prune", Short: "Drop old checkpoints and the contents that none needs", Args: cobra.NoArgs,
		Long: `Drop the app's checkpoints that are older than --max-age, then the oldest until
what is kept takes at most --max-size on disk, then all contents that no
checkpoint needs. Without flags the app's own limits hold, which are enforced
once a day anyway.`,
		Example: "  helve checkpoints prune --max-age 7d --dry-run\n  helve checkpoints prune --max-size 500M",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := checkpoint.Pruning{DryRun: dry}
			return c.checkpoints(cmd.Context(), dry, func(a *app.App) (err error) {
				limits := a.Config.Runtime.Checkpoints
				p.MaxAge, p.MaxBytes = time.Duration(limits.MaxAge)*24*time.Hour, limits.MaxTotal
				if age != "" {
					if p.MaxAge, err = parseAge(age); err != nil {
						return err
					}
				}
				if size != "" {
					if p.MaxBytes, err = parseSize(size); err != nil {
						return err
					}
				}
				got, err := a.Checkpoints.Prune(cmd.Context(), p)
				if err != nil {
					return err
				}
				return c.showPruned(got, dry)
			})
		},
	}
	cmd.Flags().StringVar(&age, "max-age", "", "drop what is older: days (30d) or a duration (12h); the app's limit if left out")
	cmd.Flags().StringVar(&size, "max-size", "", "keep at most so much on disk: bytes, or 500M, 2G; the app's limit if left out")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only tell what would be dropped")
	return cmd
}

func (c *cli) showPruned(got checkpoint.Pruned, dry bool) error {
	if c.json {
		return c.printJSON(got)
	}
	did := "Dropped"
	if dry {
		did = "Would drop"
	}
	fmt.Fprintf(c.out, "%s %d checkpoints and %d contents (%s). %d checkpoints are kept (%s).\n",
		did, got.Checkpoints, got.Contents, sizeText(got.Freed), got.Kept, sizeText(got.KeptBytes))
	return nil
}

// parseAge reads a duration; days may be written as 30d.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usage("--max-age %q: want days such as 30d, or a duration such as 12h", text)
	}
	return d, nil
}

// parseSize reads a number of bytes; K, M, G and T stand for powers of 1024.
func parseSize(text string) (int64, error) {
	number, unit := strings.TrimSuffix(strings.ToUpper(text), "B"), int64(1)
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if n, ok := strings.CutSuffix(strings.TrimSuffix(number, "I"), suffix); ok {
			number, unit = n, int64(1)<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, usage("--max-size %q: want bytes, or a number with K, M, G or T", text)
	}
	return n * unit, nil
}

func sizeText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
