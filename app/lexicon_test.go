package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/helve-ai/helve/app"
)

// The files that extend the lexicon count among the app's: calls cannot write
// them, and the app is opened anew when they change.
func TestLexiconFilesAreTheApps(t *testing.T) {
	dir := t.TempDir()
	words, file := filepath.Join(dir, "words.txt"), filepath.Join(dir, "helve.yaml")
	for name, text := range map[string]string{words: "gizmo (object)\nen: gizmo\n", file: "app: {app_id: x, name: X}\ntools: {search: {lexicon: [words.txt]}}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := app.Load(file, options())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.Files(), words) {
		t.Errorf("the files of the app are %q, without %q", c.Files(), words)
	}
	if _, ok := c.Lexicon().Find("gizmo"); !ok {
		t.Error("the app's lexicon has no gizmo")
	}
	if _, ok := app.Default().Lexicon().Find("gizmo"); ok {
		t.Error("the lexicon of other apps has a gizmo")
	}
}
