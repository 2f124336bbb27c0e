package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/search/measure"
)

func (c *cli) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure Helve on sets of your own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.benchSearch(), c.benchTune())
	return cmd
}

func (c *cli) benchSearch() *cobra.Command {
	var dirs []string
	var weights string
	var model benchModel
	cmd := &cobra.Command{
		Use: "search --set DIR", Short: "Measure how well and how fast tools are found", Args: cobra.NoArgs,
		Long: `Measure how well and how fast tools are found, on folders that hold tools.jsonl
({name, tool, server, category, description, parameters}) and queries.jsonl
({id, query, relevant: [names], groups, lang}).

A folder that holds such folders stands for all of them. With one set, --json
prints one object; with several, an object by set, and their mean as "macro".
Where queries are of several languages, each has a row of its own.`,
		Example: "  helve bench search --set evals/retrieval/livemcpbench --json\n  helve bench search --set evals/retrieval",
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, err := setsOf(dirs)
			if err != nil {
				return err
			}
			var o search.Options
			if o.Weights, err = readWeights(weights); err != nil {
				return err
			}
			var done func() error
			if o.Meaning, done, err = model.open(); err != nil {
				return err
			}
			return errors.Join(c.benchSets(cmd.Context(), sets, o), done())
		},
	}
	setFlag(cmd, &dirs)
	model.flags(cmd)
	cmd.Flags().StringVar(&weights, "weights", "", "a file of weights, as helve bench tune writes it")
	cmd.MarkFlagFilename("weights", "json")
	return cmd
}

func setFlag(cmd *cobra.Command, dirs *[]string) {
	cmd.Flags().StringArrayVar(dirs, "set", nil, "the folder of a set, or of several (may be repeated)")
	cmd.MarkFlagRequired("set")
	cmd.MarkFlagDirname("set")
}

// setsOf returns the folders of sets: those named, or those within them.
func setsOf(dirs []string) ([]string, error) {
	var sets []string
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "tools.jsonl")); err == nil {
			sets = append(sets, d)
			continue
		}
		found, err := filepath.Glob(filepath.Join(d, "*", "tools.jsonl"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, usage("--set %s: neither it nor a folder in it holds tools.jsonl", d)
		}
		for _, f := range found {
			sets = append(sets, filepath.Dir(f))
		}
	}
	return sets, nil
}

func (c *cli) benchSets(ctx context.Context, sets []string, o search.Options) error {
	results := map[string]measure.Metrics{}
	var rows [][]string
	var all []measure.Metrics
	for _, dir := range sets {
		if !c.json && len(sets) > 1 {
			fmt.Fprintf(c.err, "measuring %s …\n", filepath.Base(dir))
		}
		m, err := benchSet(ctx, dir, o)
		if err != nil {
			return err
		}
		if c.json && len(sets) == 1 {
			return c.printJSON(m)
		}
		results[filepath.Base(dir)] = m
		all = append(all, m)
		rows = append(append(rows, metricsRow(filepath.Base(dir), m)), languageRows(m)...)
	}
	if len(all) > 1 {
		macro := mean(all)
		results["macro"] = macro
		rows = append(rows, metricsRow("macro", macro))
	}
	if c.json {
		return c.printJSON(results)
	}
	c.table([]string{"SET", "TOOLS", "QUERIES", "NDCG@10", "RECALL@1", "RECALL@5", "RECALL@10", "MRR", "P50 µs", "P99 µs", "BUILD ms", "BYTES/TOOL"}, rows)
	return nil
}

func benchSet(ctx context.Context, dir string, o search.Options) (measure.Metrics, error) {
	set, err := measure.LoadSet(dir)
	if err != nil {
		return measure.Metrics{}, err
	}
	ix, took, bytes, err := set.Index(o)
	if err != nil {
		return measure.Metrics{}, fmt.Errorf("set %s: %w", dir, err)
	}
	defer ix.Close()
	if err := ix.WaitVectors(ctx); err != nil {
		return measure.Metrics{}, fmt.Errorf("set %s: %w", dir, err)
	}
	m, err := measure.Measure(ix, set)
	if err != nil {
		return m, fmt.Errorf("set %s: %w", dir, err)
	}
	m.BuildMS = float64(took.Microseconds()) / 1000
	m.BytesPerTool = float64(bytes) / float64(max(m.Tools, 1))
	return m, nil
}

func metricsRow(name string, m measure.Metrics) []string {
	f := func(v float64, digits int) string { return fmt.Sprintf("%.*f", digits, v) }
	return []string{name, fmt.Sprint(m.Tools), fmt.Sprint(m.Queries), f(m.NDCG10, 3), f(m.Recall1, 3), f(m.Recall5, 3), f(m.Recall10, 3),
		f(m.MRR, 3), f(m.P50, 0), f(m.P99, 0), f(m.BuildMS, 1), f(m.BytesPerTool, 0)}
}

// languageRows returns a row for each language, if there are several.
func languageRows(m measure.Metrics) [][]string {
	var rows [][]string
	for _, l := range slices.Sorted(maps.Keys(m.Languages)) {
		q := m.Languages[l]
		rows = append(rows, []string{"  " + l, "", fmt.Sprint(q.Queries), fmt.Sprintf("%.3f", q.NDCG10), "", fmt.Sprintf("%.3f", q.Recall5), "", "", "", "", "", ""})
	}
	return rows
}

// mean returns the mean of each figure over the sets, each counting as one.
func mean(all []measure.Metrics) measure.Metrics {
	var sum measure.Metrics
	for _, m := range all {
		sum.Queries, sum.Tools = sum.Queries+m.Queries, sum.Tools+m.Tools
		sum.NDCG10, sum.Recall1, sum.Recall5, sum.Recall10, sum.MRR = sum.NDCG10+m.NDCG10, sum.Recall1+m.Recall1, sum.Recall5+m.Recall5, sum.Recall10+m.Recall10, sum.MRR+m.MRR
		sum.P50, sum.P99, sum.BuildMS, sum.BytesPerTool = sum.P50+m.P50, sum.P99+m.P99, sum.BuildMS+m.BuildMS, sum.BytesPerTool+m.BytesPerTool
	}
	n := float64(len(all))
	for _, v := range []*float64{&sum.NDCG10, &sum.Recall1, &sum.Recall5, &sum.Recall10, &sum.MRR, &sum.P50, &sum.P99, &sum.BuildMS, &sum.BytesPerTool} {
		*v /= n
	}
	return sum
}
