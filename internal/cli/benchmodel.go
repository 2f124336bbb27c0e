package cli

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/embed"
	"github.com/helve-ai/helve/embed/hub"
	"github.com/helve-ai/helve/search"
)

// A benchModel is the model with which search is measured.
type benchModel struct{ name, query, document string }

func (b *benchModel) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.name, "model", "", "find tools by a model as well: its folder, or its name")
	f.StringVar(&b.query, "query-prefix", "", "what the model wants before queries")
	f.StringVar(&b.document, "document-prefix", "", "what it wants before the texts of tools")
	cmd.MarkFlagDirname("model")
}

// modelFolder returns the folder that is named, or that of the fetched model
// of that name.
func modelFolder(name string) (string, error) {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && hub.CheckName(name) == nil {
		return hub.Find(modelsDir(), name)
	}
	return name, nil
}

// benchPatience is longer than a query takes on any machine: quality is not
// measured by the clock.
const benchPatience = time.Minute

func (b *benchModel) open() (search.Meaning, func() error, error) {
	if b.name == "" {
		return search.Meaning{}, func() error { return nil }, nil
	}
	dir, err := modelFolder(b.name)
	if err != nil {
		return search.Meaning{}, nil, err
	}
	src := embed.Folder(dir)
	return search.Meaning{Embedder: src, Query: b.query, Document: b.document, Patience: benchPatience}, src.Close, nil
}
