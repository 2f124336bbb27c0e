package gen_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/helve-ai/helve/internal/gen"
)

var update = flag.Bool("update", false, "write the generated files")

func TestGenerated(t *testing.T) {
	files, err := gen.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		file := filepath.Join("..", "..", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is stale (%v). Run: go test ./internal/gen -update", name, err)
		}
	}
}
