package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/embed/encoder"
	"github.com/helve-ai/helve/embed/hub"
)

// modelsDir returns the folder of models that were fetched; "" if this user
// has none and HELVE_MODELS_DIR names none.
func modelsDir() string {
	if dir := os.Getenv("HELVE_MODELS_DIR"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "helve", "models")
}

func (c *cli) modelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Fetch and check the sentence models by which search finds tools", Args: cobra.NoArgs,
		Long: `Fetch and check sentence models, by which search finds tools whose words are
other than the query's. A model is used where the app file names it under
tools.search.model. Nothing is fetched but by helve model pull.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.modelPull(), c.modelList(), c.modelCheck())
	return cmd
}

func (c *cli) modelPull() *cobra.Command {
	p := hub.Pull{}
	cmd := &cobra.Command{
		Use: "pull [OWNER/NAME]", Short: "Fetch a model from Hugging Face or a mirror", Args: cobra.MaximumNArgs(1),
		Long: `Fetch a model by https into the folder of models, with the files that are used
and no others; without a name, ` + hub.Default + `
(about 500 MB). What broke off goes on where it ended. Each file is held to the
digest that the server names for it; the sha256 of each is printed and kept. For
what is fetched to be the same for ever, name a commit by --revision.`,
		Example: "  helve model pull\n  helve model pull intfloat/multilingual-e5-small --base-url https://mirror.example",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = strings.Join(args, "")
			if p.Models == "" {
				p.Models = modelsDir()
			}
			if p.Models == "" {
				return usage("there is no folder for models; name one by --dir or HELVE_MODELS_DIR")
			}
			p.Progress = c.progress()
			m, err := p.Run(cmd.Context())
			if err != nil {
				return err
			}
			return c.showFetched([]hub.Fetched{m})
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.BaseURL, "base-url", hub.DefaultURL, "where to fetch from: Hugging Face, or a mirror that answers as it does")
	f.StringVar(&p.Revision, "revision", "main", "a branch, a tag or a commit")
	f.StringVar(&p.Models, "dir", "", "the folder of models (default HELVE_MODELS_DIR, or helve/models in the user's cache)")
	return cmd
}

// progress returns what shows how much of a file is there: on a terminal as it
// grows, elsewhere when it is whole.
func (c *cli) progress() func(string, int64, int64) {
	shown, terminal := time.Time{}, isTerminal(c.err)
	return func(file string, done, size int64) {
		switch {
		case done == size:
			end := "\n"
			if terminal {
				end = "\x1b[K\n"
			}
			fmt.Fprintf(c.err, "\r%s %s%s", file, megabytes(size), end)
		case terminal && time.Since(shown) > 200*time.Millisecond:
			shown = time.Now()
			fmt.Fprintf(c.err, "\r%s %s of %s\x1b[K", file, megabytes(done), megabytes(size))
		}
	}
}

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d kB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func (c *cli) showFetched(list []hub.Fetched) error {
	if c.json {
		rows := []map[string]any{}
		for _, m := range list {
			rows = append(rows, map[string]any{"name": m.Name, "folder": m.Dir, "revision": m.Revision, "from": m.From, "files": m.Files})
		}
		return c.printJSON(rows)
	}
	for _, m := range list {
		fmt.Fprintf(c.out, "%s\n  folder    %s\n  from      %s, revision %s\n", m.Name, m.Dir, m.From, m.Revision)
		var names []string
		for name := range m.Files {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(c.out, "  sha256    %s  %s\n", m.Files[name].SHA256, name)
		}
		fmt.Fprintf(c.out, "  use       tools: {search: {model: %s}}\n", m.Name)
	}
	return nil
}

func (c *cli) modelList() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the models that were fetched", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := hub.List(modelsDir())
			if err != nil {
				return err
			}
			if len(list) == 0 && !c.json {
				fmt.Fprintf(c.err, "There are no models in %s. helve model pull fetches one.\n", modelsDir())
				return nil
			}
			return c.showFetched(list)
		}}
}

// A modelRow is what is found of a model.
type modelRow struct {
	Folder    string `json:"folder"`
	ID        string `json:"id"`
	Dims      int    `json:"dimensions"`
	MaxTokens int    `json:"max_tokens"`
	LoadMS    int64  `json:"load_ms"`
	EmbedMS   int64  `json:"embed_ms"`
	Verified  bool   `json:"verified"` // its files are as they were fetched
}

func (c *cli) modelCheck() *cobra.Command {
	return &cobra.Command{Use: "check FOLDER|OWNER/NAME", Short: "Load a model, and say whether it can be used", Args: cobra.ExactArgs(1),
		Example: "  helve model check ./my-model\n  helve model check " + hub.Default,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := modelFolder(args[0])
			if err != nil {
				return err
			}
			row, err := checkFolder(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(row)
			}
			verified := "it was not fetched by helve model pull"
			if row.Verified {
				verified = "its files are as they were fetched"
			}
			fmt.Fprintf(c.out, "%s can be used: %d dimensions, %d tokens of a text, loaded in %d ms, a sentence in %d ms; %s\n",
				row.Folder, row.Dims, row.MaxTokens, row.LoadMS, row.EmbedMS, verified)
			return nil
		}}
}

func checkFolder(ctx context.Context, dir string) (row modelRow, err error) {
	m, err := hub.ReadManifest(dir)
	if err == nil {
		err, row.Verified = m.Verify(dir), true
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return row, err
	}
	began := time.Now()
	e, err := encoder.Open(dir)
	if err != nil {
		return row, err
	}
	defer e.Close()
	row.Folder, row.ID, row.Dims, row.MaxTokens, row.LoadMS = dir, e.ID(), e.Dims(), e.MaxTokens(), time.Since(began).Milliseconds()
	began = time.Now()
	_, err = e.Embed(ctx, []string{"Read a file and send it to the team by mail."})
	row.EmbedMS = time.Since(began).Milliseconds()
	return row, err
}

// checkSearch says by what tools are found.
func checkSearch(ctx context.Context, a *app.App) finding {
	m := a.Model()
	if m.Name == "" {
		f := ok("search", "tools are found by their words; no model is named that would find them by their meaning as well")
		f.Remedy = "helve model pull fetches one; docs/models.md tells more"
		return f
	}
	dims, err := m.Try(ctx)
	if err != nil {
		return failure("search", "until then tools are found by their words alone; docs/models.md tells more", fmt.Errorf("the model %s: %w", m.Name, err))
	}
	return ok("search", "tools are found by their words, and by the model %s, %d dimensions", m.Name, dims)
}
