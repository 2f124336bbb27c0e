package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
)

// withStore opens the store of the app that the flags name, without the app.
// One that is only read is not made by it.
func (c *cli) withStore(ctx context.Context, write bool, fn func(*app.Config, store.Store) error) (err error) {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	state := c.state
	if state == "" {
		state = filepath.Join(c.rootOf(cfg), ".helve")
	}
	s, err := app.OpenStore(ctx, c.store, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !write {
		return fn(cfg, app.IfThere(s))
	}
	return fn(cfg, s)
}

func (c *cli) costCommand() *cobra.Command {
	var by, since string
	cmd := &cobra.Command{
		Use: "cost", Short: "Show what calls cost: tokens and money", Args: cobra.NoArgs,
		Long: `Show what calls of tools and models cost, of all apps that share the store.

Tokens are an estimate of what arguments and results take of a model's context
(bytes / 4). Money is the declared price of the calls of tools that cost money;
those without a known end (pending) count as paid. Models stand among the tools
as model:NAME, with the tokens that their providers counted, those of the tools'
results included, and with their price if it is known. Days are UTC days.`,
		Example: "  helve cost\n  helve cost --by session --since 24h\n  helve cost --by day --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(guard.CostBy(), by) {
				return usage("--by %q: want %s", by, strings.Join(guard.CostBy(), ", "))
			}
			var from time.Time
			if err := sinceTime(since, &from); err != nil {
				return err
			}
			return c.withStore(cmd.Context(), false, func(_ *app.Config, s store.Store) error {
				costs, err := guard.Costs(cmd.Context(), store.Sub(s, app.UsagePart), store.Sub(s, app.LedgerPart), by, from)
				if err != nil {
					return err
				}
				return c.showCosts(by, costs)
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", "tool", "what to add up by: "+strings.Join(guard.CostBy(), ", "))
	cmd.Flags().StringVar(&since, "since", "", "only later than this: a time (RFC 3339), a date or a duration such as 24h")
	return cmd
}

func (c *cli) showCosts(by string, costs []guard.Cost) error {
	if c.json {
		return c.printJSON(costs)
	}
	if len(costs) == 0 {
		fmt.Fprintln(c.err, "No call has been counted yet.")
		return nil
	}
	rows := make([][]string, len(costs))
	for i, x := range costs {
		var money []string
		for _, currency := range slices.Sorted(maps.Keys(x.Money)) {
			money = append(money, x.Money[currency])
		}
		rows[i] = []string{x.Of, strconv.Itoa(x.Calls), strconv.Itoa(x.Errors), strconv.Itoa(x.TokensIn), strconv.Itoa(x.TokensOut),
			strconv.Itoa(x.Metered), strconv.Itoa(x.Pending), strings.Join(money, " + ")}
	}
	c.table([]string{strings.ToUpper(by), "CALLS", "ERRORS", "TOKENS IN", "TOKENS OUT", "PAID", "PENDING", "MONEY"}, rows)
	return nil
}

func (c *cli) ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Sign off the files that tools which cost money may work on", Args: cobra.NoArgs,
		Long: `Tools that cost money run on files only that a person has looked at: the review
ledger has their digests. A file that changes needs another review.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.ledgerReview(), c.ledgerList(), c.ledgerRevoke())
	return cmd
}

// rooted opens the app's root.
func (c *cli) rooted(cfg *app.Config, fn func(*root.Root) error) (err error) {
	r, err := root.Open(c.rootOf(cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return fn(r)
}

func (c *cli) ledgerReview() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "review FILE…", Short: "Say that these files, as they are now, have been looked at", Args: cobra.MinimumNArgs(1),
		Example: "  helve ledger review report/draft.md --note 'checked the figures'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), true, func(cfg *app.Config, s store.Store) error {
				var reviews []guard.Review
				err := c.rooted(cfg, func(r *root.Root) error {
					for _, name := range args {
						in, err := guard.DigestOf(r, name)
						if err != nil {
							return usage("%v; files are named from the root, %s", err, r.Dir())
						}
						reviews = append(reviews, guard.Review{Path: in.Path, Digest: in.Digest, By: userName(), Time: time.Now().UTC(), Note: note})
					}
					return nil
				})
				if err != nil {
					return err
				}
				if err := guard.SignOff(cmd.Context(), store.Sub(s, app.LedgerPart), cfg.App.ID, reviews...); err != nil {
					return err
				}
				return c.showReviews(reviews)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what was looked at")
	return cmd
}

func (c *cli) ledgerList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the files that were reviewed, and whether they are still the same", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd.Context(), false, func(cfg *app.Config, s store.Store) error {
				reviews, err := guard.Reviews(cmd.Context(), store.Sub(s, app.LedgerPart), cfg.App.ID)
				if err != nil {
					return err
				}
				return c.rooted(cfg, func(r *root.Root) error { return c.showReviewed(r, reviews) })
			})
		},
	}
}

// A reviewRow is a review, and what has become of its file.
type reviewRow struct {
	guard.Review
	State string `json:"state"` // same, changed, or why it cannot be read
}

func (c *cli) showReviewed(r *root.Root, reviews []guard.Review) error {
	rows, cells := make([]reviewRow, len(reviews)), make([][]string, len(reviews))
	for i, review := range reviews {
		rows[i] = reviewRow{review, "same"}
		if in, err := guard.DigestOf(r, review.Path); err != nil {
			rows[i].State = err.Error()
		} else if in.Digest != review.Digest {
			rows[i].State = "changed"
		}
		cells[i] = []string{review.Path, review.Digest[:min(19, len(review.Digest))], review.Time.Local().Format("2006-01-02 15:04"), review.By, rows[i].State, review.Note}
	}
	switch {
	case c.json:
		return c.printJSON(rows)
	case len(rows) == 0:
		fmt.Fprintln(c.err, "No file has been reviewed. helve ledger review FILE signs one off.")
		return nil
	}
	c.table([]string{"FILE", "DIGEST", "REVIEWED", "BY", "STATE", "NOTE"}, cells)
	return nil
}

func (c *cli) showReviews(reviews []guard.Review) error {
	if c.json {
		return c.printJSON(reviews)
	}
	for _, r := range reviews {
		fmt.Fprintf(c.out, "%s %s is reviewed as %s\n", c.style(c.out).good("✓"), clean(r.Path), r.Digest)
	}
	return nil
}

func (c *cli) ledgerRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke FILE…", Short: "Take back the reviews of these files", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), true, func(cfg *app.Config, s store.Store) error {
				names := make([]string, len(args))
				for i, a := range args {
					names[i] = filepath.ToSlash(filepath.Clean(a))
				}
				missing, err := guard.Revoke(cmd.Context(), store.Sub(s, app.LedgerPart), cfg.App.ID, names...)
				if err != nil {
					return err
				}
				if len(missing) > 0 {
					return usage("no review of %s; helve ledger list shows those that there are", strings.Join(missing, ", "))
				}
				if !c.json {
					fmt.Fprintf(c.out, "%s taken back: %s\n", c.style(c.out).good("✓"), strings.Join(names, ", "))
					return nil
				}
				return c.printJSON(map[string]any{"revoked": names})
			})
		},
	}
}
