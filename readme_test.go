package helve

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/internal/cli"
	"github.com/helve-ai/helve/modules/std"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// blocks returns the code blocks of the given language in the documents.
func blocks(t *testing.T, language string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			if m[1] == language {
				out[doc] = append(out[doc], m[2])
			}
		}
	}
	return out
}

// Go code in the documents stands in an example that is compiled and run.
func TestGoBlocks(t *testing.T) {
	var examples strings.Builder
	files, _ := filepath.Glob("*/example_test.go")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		examples.WriteString(flatten(string(text)))
	}
	n := 0
	for doc, codes := range blocks(t, "go") {
		for _, code := range codes {
			n++
			if !strings.Contains(examples.String(), flatten(code)) {
				t.Errorf("%s: this code stands in no example_test.go, so nothing compiles it:\n%s", doc, code)
			}
		}
	}
	if n == 0 {
		t.Error("no Go code was found in the documents")
	}
}

// flatten drops indentation and empty lines.
func flatten(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// App files in the documents are good. The files that they name are those of examples/.
func TestYAMLBlocks(t *testing.T) {
	n := 0
	for doc, codes := range blocks(t, "yaml") {
		for _, code := range codes {
			n++
			if _, err := app.Parse(filepath.Join("examples", filepath.Base(doc)), []byte(code), app.LoadOptions{Modules: std.Modules(), Env: func(string) (string, bool) { return "", false }}); err != nil {
				t.Errorf("%s: %v\n%s", doc, err, code)
			}
		}
	}
	if n == 0 {
		t.Error("no app file was found in the documents")
	}
}

// Recorded terminals show what the commands print.
func TestConsoleBlocks(t *testing.T) {
	n := 0
	for doc, codes := range blocks(t, "console") {
		for _, code := range codes {
			n++
			got := replay(t, code)
			if got != code {
				t.Errorf("%s: the commands now print\n%s\nwant\n%s", doc, got, code)
			}
		}
	}
	if n == 0 {
		t.Error("no recorded terminal was found in the documents")
	}
}

// replay runs the commands of a recording in a fresh folder, and returns the
// recording as it is now.
func replay(t *testing.T, recording string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("remember the milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	defer func() { t.Chdir(rootDir) }()
	var b strings.Builder
	for line := range strings.Lines(recording) {
		command, ok := strings.CutPrefix(line, "$ helve ")
		if !ok {
			continue
		}
		b.WriteString(line)
		var out, notes bytes.Buffer
		cli.Run(context.Background(), words(t, command), strings.NewReader(""), &out, &notes)
		b.Write(out.Bytes())
		for note := range strings.Lines(notes.String()) {
			if !strings.HasPrefix(note, "note: ") { // digests and such: not shown
				b.WriteString(note)
			}
		}
	}
	return b.String()
}

var rootDir, _ = os.Getwd()

var word = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// words splits a line as a shell would, as far as the recordings need it.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	for _, w := range word.FindAllString(line, -1) {
		out = append(out, strings.Trim(w, `'"`))
	}
	return out
}

// Commands in the documents exist.
func TestShellBlocks(t *testing.T) {
	for doc, codes := range blocks(t, "sh") {
		for _, code := range codes {
			for line := range strings.Lines(code) {
				command, ok := strings.CutPrefix(strings.TrimSpace(line), "helve ")
				if !ok {
					continue
				}
				command, _, _ = strings.Cut(command, " #")
				var out, errs bytes.Buffer
				if exit := cli.Run(context.Background(), append(words(t, command), "--help"), strings.NewReader(""), &out, &errs); exit != 0 {
					t.Errorf("%s: helve %s: exit code %d: %s", doc, command, exit, errs.String())
				}
			}
		}
	}
}
