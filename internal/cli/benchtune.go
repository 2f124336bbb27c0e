package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/search/measure"
)

// A tuneRun is what helve bench tune was asked for.
type tuneRun struct {
	dirs, only []string
	start, out string
	leaveOut   bool
	list       bool
	tuning     measure.Tuning
}

func (c *cli) benchTune() *cobra.Command {
	var run tuneRun
	cmd := &cobra.Command{
		Use: "tune --set DIR", Short: "Look for weights that find the tools of your sets better", Args: cobra.NoArgs,
		Long: `Look for weights by which the tools of sets are found better: one weight at a
time, in coarse steps, by the macro average of nDCG@10 and recall@5. The same
sets give the same weights.

What is gained on the sets that were tuned on is no proof: --leave-out tunes on
all sets but one, for each in turn, and prints what that is worth on that one.`,
		Example: "  helve bench tune --set evals/retrieval --leave-out --out weights.json\n  helve bench search --set evals/retrieval --weights weights.json\n  helve bench tune --list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run.list {
				return c.listWeights()
			}
			if len(run.dirs) == 0 {
				return usage("--set is missing: it names the folder of a set, or of several")
			}
			return c.tune(cmd, run)
		},
	}
	setFlag(cmd, &run.dirs)
	cmd.Flags().Lookup("set").Annotations = nil // --list does without
	cmd.Flags().StringVar(&run.out, "out", "", "the file to write the weights to, for --weights of helve bench search")
	cmd.Flags().StringVar(&run.start, "weights", "", "a file of weights to start with")
	cmd.Flags().StringSliceVar(&run.only, "only", nil, "the weights that may change (--list names them)")
	cmd.Flags().IntVar(&run.tuning.Rounds, "rounds", 3, "how often all weights are tried, at most")
	cmd.Flags().IntVar(&run.tuning.Queries, "queries", 500, "how many queries of a set are used, at most")
	cmd.Flags().BoolVar(&run.leaveOut, "leave-out", false, "measure on sets that were not tuned on, too")
	cmd.Flags().BoolVar(&run.list, "list", false, "list the weights and what they do")
	return cmd
}

// readWeights reads a file of weights; without a name there are none.
func readWeights(file string) (*search.Weights, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("--weights: %v", err)
	}
	w := new(search.Weights)
	if err := json.Unmarshal(data, w); err != nil {
		return nil, usage("--weights %s: %v", file, err)
	}
	return w, nil
}

func (c *cli) listWeights() error {
	if c.json {
		return c.printJSON(search.Knobs())
	}
	var rows [][]string
	for _, k := range search.Knobs() {
		rows = append(rows, []string{k.Name, fmt.Sprint(k.Default), k.What})
	}
	c.table([]string{"WEIGHT", "DEFAULT", "WHAT IT IS"}, rows)
	return nil
}

func (c *cli) tune(cmd *cobra.Command, run tuneRun) error {
	dirs, err := setsOf(run.dirs)
	if err != nil {
		return err
	}
	var sets []*measure.EvalSet
	var names []string
	for _, d := range dirs {
		set, err := measure.LoadSet(d)
		if err != nil {
			return err
		}
		sets, names = append(sets, set), append(names, filepath.Base(d))
	}
	start, err := readWeights(run.start)
	if err != nil {
		return err
	}
	if start != nil {
		run.tuning.Start = *start
	}
	for _, name := range run.only {
		if err := new(search.Weights).Set(name, 1); err != nil {
			return usage("--only: %v", err)
		}
	}
	run.tuning.Only = run.only
	run.tuning.Report = func(name string, value, score float64) { fmt.Fprintf(c.err, "%s = %g: %.4f\n", name, value, score) }
	got, err := run.tuning.Run(cmd.Context(), sets, names, run.leaveOut)
	if err != nil {
		return err
	}
	if run.out != "" {
		if err := writeWeights(run.out, got.Weights); err != nil {
			return err
		}
	}
	return c.showTuned(got)
}

func writeWeights(file string, w search.Weights) error {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func (c *cli) showTuned(t *measure.Tuned) error {
	if c.json {
		return c.printJSON(t)
	}
	var rows [][]string
	for _, ch := range t.Changes {
		rows = append(rows, []string{ch.Name, fmt.Sprintf("%.3g", ch.From), fmt.Sprintf("%.3g", ch.To), fmt.Sprintf("%+.4f", ch.Gain)})
	}
	if len(rows) > 0 {
		c.table([]string{"WEIGHT", "FROM", "TO", "GAIN"}, rows)
	}
	fmt.Fprintf(c.out, "on the sets tuned on: %.4f, before %.4f\n", t.After, t.Before)
	if len(t.LeftOut) == 0 {
		return nil
	}
	rows = nil
	var before, after float64
	for _, l := range t.LeftOut {
		rows = append(rows, []string{l.Set, fmt.Sprintf("%.4f", l.Before), fmt.Sprintf("%.4f", l.After), fmt.Sprintf("%+.4f", l.After-l.Before)})
		before, after = before+l.Before/float64(len(t.LeftOut)), after+l.After/float64(len(t.LeftOut))
	}
	rows = append(rows, []string{"macro", fmt.Sprintf("%.4f", before), fmt.Sprintf("%.4f", after), fmt.Sprintf("%+.4f", after-before)})
	fmt.Fprintln(c.out, "on each set, tuned on the others:")
	c.table([]string{"SET", "BEFORE", "AFTER", "GAIN"}, rows)
	return nil
}
