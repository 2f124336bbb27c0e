package schema_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
)

// evals gives the folder with the evaluation data of this package.
func evals(t testing.TB) string {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	return filepath.Join(dir, "schema")
}

// lines decodes a file of JSON lines.
func lines[T any](t testing.TB, path string) []T {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var row T
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(path, err)
		}
		out = append(out, row)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEvalsSuite(t *testing.T) {
	root := filepath.Join(evals(t), "JSON-Schema-Test-Suite")
	load := func(url string) ([]byte, error) {
		rel, ok := strings.CutPrefix(url, "http://localhost:1234/")
		if !ok {
			return nil, fmt.Errorf("not part of the suite: %s", url)
		}
		return os.ReadFile(filepath.Join(root, "remotes", filepath.FromSlash(rel)))
	}
	for _, c := range []struct {
		glob string
		opts schema.Options
		want int
	}{
		{"draft7/*.json", schema.Options{Draft: 7, Load: load}, 927},
		{"draft2020-12/*.json", schema.Options{Draft: 2020, Load: load}, 1299},
	} {
		files, err := filepath.Glob(filepath.Join(root, "tests", filepath.FromSlash(c.glob)))
		if err != nil {
			t.Fatal(err)
		}
		passed, total := 0, 0
		for _, file := range files {
			p, n := suiteFile(t, file, c.opts)
			passed, total = passed+p, total+n
		}
		t.Logf("%s: %d of %d", c.glob, passed, total)
		if passed != c.want {
			t.Errorf("%s: %d passed, want %d", c.glob, passed, c.want)
		}
	}
}

func suiteFile(t *testing.T, file string, opts schema.Options) (passed, total int) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		s, err := schema.ParseWith(g.Schema, opts)
		if err != nil {
			t.Errorf("%s: %s: %v", filepath.Base(file), g.Description, err)
			continue
		}
		for _, test := range g.Tests {
			total++
			problems := s.Validate(test.Data)
			if (problems == nil) == test.Valid {
				passed++
				continue
			}
			t.Logf("%s: %s: %s: want valid %v, got %v", filepath.Base(file), g.Description, test.Description, test.Valid, problems)
		}
	}
	return passed, total
}

func TestEvalsRealSchemas(t *testing.T) {
	rows := lines[struct {
		Name   string
		Schema json.RawMessage
	}](t, filepath.Join(evals(t), "real-schemas.jsonl"))
	wrong := 0
	for _, row := range rows {
		s, err := schema.Parse(row.Schema)
		if err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		if !bytes.Equal(s.Raw(), row.Schema) {
			t.Errorf("%s: the text changed", row.Name)
		}
		if err := s.Compile(); err != nil {
			t.Errorf("%s: %v", row.Name, err)
		}
		for _, w := range s.Warnings() {
			t.Logf("%s: %s", row.Name, w)
		}
		if ps := s.Validate(s.Example()); ps != nil {
			wrong++
			t.Logf("%s: the example %s is not valid: %v", row.Name, s.Example(), ps)
		}
	}
	t.Logf("%d schemas, %d whose example is not valid", len(rows), wrong)
}

func TestEvalsCheckIsCompile(t *testing.T) {
	rows := lines[struct {
		Schema json.RawMessage `json:"schema"`
	}](t, filepath.Join(evals(t), "real-schemas.jsonl"))
	plain := 0
	for i, row := range rows {
		s, err := schema.Parse(row.Schema)
		if err != nil {
			t.Errorf("row %d: %v", i, err)
			continue
		}
		if s.Plain() {
			plain++
		}
		if checked, compiled := s.Check(), s.Compile(); (checked == nil) != (compiled == nil) {
			t.Errorf("row %d: Check says %v, Compile %v", i, checked, compiled)
		}
	}
	t.Logf("%d of %d real schemas need not be compiled to be checked", plain, len(rows))
}

type realCall struct {
	Name   string
	Schema json.RawMessage
	Args   json.RawMessage
	Valid  bool `json:"valid_draft7"`
}

func TestEvalsRealCalls(t *testing.T) {
	rows := lines[realCall](t, filepath.Join(evals(t), "real-calls.jsonl"))
	var valid, refused, restored, union, fuzzyUnion int
	for i, row := range rows {
		s, err := schema.Parse(row.Schema)
		if err != nil {
			t.Errorf("row %d: %v", i, err)
			continue
		}
		if !row.Valid {
			continue
		}
		valid++
		if ps := s.Validate(row.Args); ps != nil {
			refused++
			t.Errorf("row %d %s: valid arguments refused: %v", i, row.Name, ps)
		}
		if out, notes := s.Coerce(row.Args); !bytes.Equal(out, row.Args) {
			t.Errorf("row %d %s: valid arguments coerced: %v", i, row.Name, notes)
		}
		text := stringified(t, row.Args)
		out, notes := s.Coerce(text)
		switch {
		case reflect.DeepEqual(decoded(t, out), decoded(t, row.Args)):
			restored++
		case s.Validate(text) == nil:
			union++
		default:
			fuzzyUnion++
			t.Logf("row %d %s: %s\n from %s\n made %s %q", i, row.Name, row.Schema, text, out, notes)
		}
	}
	t.Logf("%d valid rows, %d refused, %d restored (%.2f%%), %d not restored because the texts are valid already, %d else",
		valid, refused, restored, 100*float64(restored)/float64(valid), union, fuzzyUnion)
	if float64(restored) < 0.98*float64(valid) {
		t.Errorf("%d of %d rows restored, want 98%%", restored, valid)
	}
}

func decoded(t *testing.T, doc []byte) any {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// stringified writes every scalar in doc as a string.
func stringified(t *testing.T, doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(stringify(v))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stringify(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = stringify(v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = stringify(v[i])
		}
		return v
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}
