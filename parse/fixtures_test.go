package parse

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the fixtures give")

// TestFixtures reads testdata/FORMAT/*.txt and compares with the .json beside
// each. Every format has some.
func TestFixtures(t *testing.T) {
	tools := NewTools(testTools...)
	for _, f := range Formats() {
		files, _ := filepath.Glob(filepath.Join("testdata", f.Name, "*.txt"))
		if len(files) == 0 {
			t.Errorf("%s has no fixtures in testdata/%s", f.Name, f.Name)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".json"
			got := fixtureJSON(t, Read(f.New(tools), string(data)))
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Error(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s gives\n%s\nwant\n%s\nTo accept it: go test ./parse -run TestFixtures -update", file, got, want)
			}
			for n := range 5 {
				check(t, f, tools, string(data), func(s string) []string { return bytewise(s, n+2) })
			}
		}
	}
}

func fixtureJSON(t *testing.T, m Message) []byte {
	type call struct {
		Name      string          `json:"name"`
		ID        string          `json:"id,omitempty"`
		Arguments json.RawMessage `json:"arguments"`
	}
	out := struct {
		Content  string   `json:"content"`
		Thinking string   `json:"thinking,omitempty"`
		Calls    []call   `json:"calls"`
		Notes    []string `json:"notes,omitempty"`
	}{m.Content, m.Thinking, []call{}, m.Notes}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, call{c.Name, c.ID, c.Args})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
