package parse

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/helve-ai/helve/tool"
)

// Ordinary prose, code and JSON calls nothing, and is handed on unchanged.
func TestPlain(t *testing.T) {
	files, err := filepath.Glob("testdata/plain/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	tools := NewTools(testTools...)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		m := Read(Auto.New(tools), text)
		for _, c := range m.Calls {
			t.Errorf("%s: %s %s was read as a call", file, c.Name, c.Args)
		}
		if m.Content != text || m.Thinking != "" {
			t.Errorf("%s was changed to %q, and %q of reasoning", file, m.Content, m.Thinking)
		}
		check(t, Auto, tools, text, func(s string) []string { return bytewise(s, 7) })
	}
}

// commonTools are names that stand in much text without being calls.
var commonTools = []string{"search", "read_file", "write_file", "list", "print", "get", "set", "run", "test", "now", "get_weather", "add", "send_email", "foo", "bar", "main", "echo", "fetch", "read", "write", "open", "close", "find", "execute", "build", "install", "start", "create", "delete", "update", "calculator", "bash", "python", "shell", "browser", "edit", "glob", "grep"}

// TestPlainTrees reads whole trees of files as if they were messages.
func TestPlainTrees(t *testing.T) {
	trees := os.Getenv("HELVE_PARSE_TREES")
	if trees == "" {
		t.Skip("set HELVE_PARSE_TREES to folders to read, separated by colons")
	}
	var offers []Offer
	for _, n := range commonTools {
		offers = append(offers, Offer{Name: n})
	}
	tools := NewTools(offers...)
	files, size, calls := 0, 0, 0
	for _, tree := range filepath.SplitList(trees) {
		err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) > 2<<20 || bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
				return nil
			}
			files++
			size += len(data)
			m := Read(Auto.New(tools), string(data))
			for _, c := range m.Calls {
				calls++
				t.Errorf("%s: %s %.200s", path, c.Name, c.Args)
			}
			if !strings.Contains(string(data), "<think") && m.Thinking != "" {
				t.Errorf("%s: %d bytes of reasoning", path, len(m.Thinking))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %.1f MB: %d calls", files, float64(size)/1e6, calls)
}

// Calls within comments are text, in every format; a comment that is not closed
// is none.
func TestComments(t *testing.T) {
	tools := NewTools(testTools...)
	calls := []tool.Call{{ID: "0", Name: "get_weather", Args: []byte(`{"city": "Paris"}`)}}
	for _, f := range Formats() {
		if f == Phi4Mini || f == Labelled { // what they write begins a line or the reply
			continue
		}
		shown := f.Calls(calls)
		for text, want := range map[string]int{
			"Before.\n<!-- " + shown + " -->\nAfter.":            0,
			"<!-- not " + shown + " -->\n" + shown:               1,
			"So begins a comment: <!--\n" + shown:                1,
			"<!-- one --><!-- " + shown + "\n--> two.\n" + shown: 1,
		} {
			if m := Read(f.New(tools), text); len(m.Calls) != want {
				t.Errorf("%s: %q gives %+v", f.Name, text, m)
			}
			check(t, f, tools, text, func(s string) []string { return bytewise(s, 3) })
		}
	}
}
