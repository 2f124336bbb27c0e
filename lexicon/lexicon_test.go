package lexicon

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "compile the data files anew")

// What is embedded is what the data files compile to.
func TestCompiled(t *testing.T) {
	files, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := compile(files)
	switch {
	case err != nil:
		t.Fatal(err)
	case *update:
		if err := os.WriteFile("lexicon.bin", bin, 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(bin, compiled):
		t.Error("lexicon.bin does not follow from the data; run: go generate ./lexicon")
	}
}

func TestShippedDataIsRight(t *testing.T) {
	files, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	r := Check(files...)
	for _, p := range r.Problems {
		t.Error(p)
	}
	if l := Default(); l.Len() != r.Concepts || l.Len() < 1000 {
		t.Errorf("the compiled lexicon has %d concepts, its data %d", l.Len(), r.Concepts)
	}
	for _, l := range r.Languages {
		if l.Share < 1 {
			t.Errorf("%s has words for %.1f%% of the concepts; want all", l.Code, 100*l.Share)
		}
	}
}
