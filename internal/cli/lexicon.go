package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/lexicon"
)

func (c *cli) lexiconCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "lexicon", Short: "Show and check the concepts by which search understands words", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.lexiconShow(), c.lexiconCheck())
	return cmd
}

// A conceptRow is a concept that a phrase stands for, or was asked for by name.
type conceptRow struct {
	Concept string              `json:"concept"`
	Kind    string              `json:"kind"`
	Word    string              `json:"word,omitempty"` // the part of the phrase
	Weight  float64             `json:"weight,omitempty"`
	Read    string              `json:"understood_in,omitempty"` // languages
	Broader []string            `json:"broader,omitempty"`
	Near    []string            `json:"near,omitempty"`
	Words   map[string][]string `json:"words"` // by language; ambiguous ones end in "?"
}

func (c *cli) lexiconShow() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "show PHRASE|CONCEPT", Short: "Show which concepts a phrase stands for, and the words of each", Args: cobra.MinimumNArgs(1),
		Long: `Show which concepts the words of a phrase stand for, in any of the languages, how
sure that is (1 at most), and the words of each concept. The name of a concept,
such as pull_request, shows that concept. With --app, words that the app adds
count as well.`,
		Example: "  helve lexicon show \"supprimer un fichier\"\n  helve lexicon show delete --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.lexicon(files)
			if err != nil {
				return err
			}
			rows, err := conceptRows(l, strings.Join(args, " "))
			if err != nil {
				return err
			}
			return c.showConcepts(rows)
		},
	}
	cmd.Flags().StringArrayVar(&files, "file", nil, "a further data file; may be given several times")
	return cmd
}

// lexicon returns the app's lexicon with data files on top.
func (c *cli) lexicon(files []string) (*lexicon.Lexicon, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	l := cfg.Lexicon()
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if l, err = l.Extend(name, text); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func conceptRows(l *lexicon.Lexicon, phrase string) ([]conceptRow, error) {
	rows := []conceptRow{}
	if id, ok := l.Find(phrase); ok {
		row, err := conceptRowOf(l, id)
		return append(rows, row), err
	}
	for _, m := range l.Match(nil, phrase, lexicon.Hint{}) {
		row, err := conceptRowOf(l, m.Concept)
		if err != nil {
			return nil, err
		}
		row.Word, row.Weight, row.Read = phrase[m.From:m.To], float64(int(m.Weight*100+.5))/100, m.Langs.String()
		rows = append(rows, row)
	}
	return rows, nil
}

func conceptRowOf(l *lexicon.Lexicon, id lexicon.ID) (conceptRow, error) {
	row := conceptRow{Concept: l.Name(id), Kind: l.Kind(id).String(), Words: map[string][]string{}}
	for _, b := range l.Broader(id) {
		row.Broader = append(row.Broader, l.Name(b))
	}
	for _, n := range l.Near(id) {
		row.Near = append(row.Near, l.Name(n))
	}
	entries, err := l.Entries(id)
	for _, e := range entries {
		text := e.Text
		if e.Ambiguous {
			text += "?"
		}
		row.Words[e.Lang] = append(row.Words[e.Lang], text)
	}
	return row, err
}

func (c *cli) showConcepts(rows []conceptRow) error {
	if c.json {
		return c.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.out, "no concept is known by these words")
		return nil
	}
	if rows[0].Word != "" {
		cells := make([][]string, len(rows))
		for i, r := range rows {
			cells[i] = []string{r.Word, r.Concept, r.Kind, fmt.Sprintf("%.2f", r.Weight), r.Read}
		}
		c.table([]string{"WORD", "CONCEPT", "KIND", "WEIGHT", "LANGUAGES"}, cells)
	}
	shown := map[string]bool{}
	for _, r := range rows {
		if !shown[r.Concept] {
			c.showConcept(r)
		}
		shown[r.Concept] = true
	}
	return nil
}

func (c *cli) showConcept(r conceptRow) {
	head := fmt.Sprintf("%s (%s)", r.Concept, r.Kind)
	if len(r.Broader) > 0 {
		head += " is " + strings.Join(r.Broader, ", ")
	}
	fmt.Fprintf(c.out, "\n%s\n", c.style(c.out).bold(head))
	for _, code := range lexicon.Codes() {
		if words := r.Words[code]; len(words) > 0 {
			fmt.Fprintf(c.out, "  %s: %s\n", code, clean(strings.Join(words, ", ")))
		}
	}
	if len(r.Near) > 0 {
		fmt.Fprintf(c.out, "  near %s\n", strings.Join(r.Near, ", "))
	}
}

func (c *cli) lexiconCheck() *cobra.Command {
	var collisions bool
	cmd := &cobra.Command{
		Use: "check [FILE…]", Short: "Check data files of the lexicon, and print what they cover", Args: cobra.ArbitraryArgs,
		Long: `Check data files of the lexicon as one: what cannot be read, concepts and words
that stand there twice, letters that a language is not written with, languages
that a concept lacks, and words that stand in several concepts without being
marked as ambiguous. Without FILE, the data that Helve comes with.`,
		Example: "  helve lexicon check\n  helve lexicon check ours.txt --collisions",
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := dataFiles(args)
			if err != nil {
				return err
			}
			report := lexicon.Check(files...)
			if err := c.showLexiconReport(report, collisions); err != nil {
				return err
			}
			if n := len(report.Errors()); n > 0 {
				return &codedError{code: exitError, err: fmt.Errorf("%d errors", n), told: c.json}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&collisions, "collisions", false, "list the words that stand in several concepts")
	return cmd
}

func dataFiles(names []string) ([]lexicon.File, error) {
	if len(names) == 0 {
		return lexicon.Shipped()
	}
	var out []lexicon.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, lexicon.File{Name: name, Text: text})
	}
	return out, nil
}

func (c *cli) showLexiconReport(r *lexicon.Report, collisions bool) error {
	if c.json {
		return c.printJSON(r)
	}
	for _, p := range r.Problems {
		kind := c.style(c.out).bad("error")
		if p.Warning {
			kind = c.style(c.out).warn("warning")
		}
		fmt.Fprintf(c.out, "%s %s\n", kind, clean(p.Error()))
	}
	if collisions {
		for _, x := range r.Collisions {
			fmt.Fprintf(c.out, "%s %s: %s\n", x.Lang, clean(x.Word), strings.Join(x.Concepts, ", "))
		}
	}
	cells := make([][]string, len(r.Languages))
	for i, l := range r.Languages {
		cells[i] = []string{l.Code, fmt.Sprint(l.Concepts), fmt.Sprintf("%.0f%%", 100*l.Share), fmt.Sprint(l.Entries), fmt.Sprint(l.Ambiguous), fmt.Sprint(l.Colliding)}
	}
	c.table([]string{"LANGUAGE", "CONCEPTS", "COVERED", "ENTRIES", "AMBIGUOUS", "COLLIDING"}, cells)
	fmt.Fprintf(c.out, "%d concepts (%d actions, %d objects, %d domains, %d qualities), %d entries, %d collisions, %d errors, %d warnings\n",
		r.Concepts, r.Kinds["action"], r.Kinds["object"], r.Kinds["domain"], r.Kinds["quality"], r.Entries, len(r.Collisions),
		len(r.Errors()), len(r.Problems)-len(r.Errors()))
	return nil
}
