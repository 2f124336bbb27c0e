package skill_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/skill"
)

// Plain values are read by the core schema of YAML 1.2, as most readers of
// front matter do.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\ndescription: D.":                          `{"description":"D.","name":"x"}`,
		"a: 2024-01-01\nb: yes\nc: 010\nd: 0x1f\ne: 0o17":   `{"a":"2024-01-01","b":"yes","c":10,"d":31,"e":15}`,
		"a: 1.50\nb: +7\nc: 1e3\nd: .inf\ne: \"1\"\nf: '~'": `{"a":1.5,"b":7,"c":1000,"d":".inf","e":"1","f":"~"}`,
		"a: ~\nb:\nc: null\nd: True\ne: !!str 5":            `{"a":null,"b":null,"c":null,"d":true,"e":"5"}`,
		"a: [x, {b: 1}]\nm: |\n  one\n  two":                `{"a":["x",{"b":1}],"m":"one\ntwo"}`,
		"a: &x {k: v}\nb: *x":                               `{"a":{"k":"v"},"b":{"k":"v"}}`,
		"n: 123456789012345678901234567890":                 `{"n":123456789012345678901234567890}`,
		"<<: {a: 1}\nb: <tag> & co":                         `{"<<":{"a":1},"b":"<tag> & co"}`,
	} {
		for _, form := range []string{"---\n%s\n---\nBody\n", "\ufeff---\r\n%s\r\n--- \r\nBody\r\n"} {
			if strings.HasPrefix(form, "\ufeff") {
				text = strings.ReplaceAll(text, "\n", "\r\n")
			}
			front, body, err := skill.Split(fmt.Appendf(nil, form, text))
			if err != nil || string(front) != want || strings.TrimSpace(string(body)) != "Body" {
				t.Errorf("%q: %s, %q, %v; want %s", text, front, body, err, want)
			}
		}
	}
	deep := "a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70)
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d]"
	for text, want := range map[string]string{
		"name: x": "does not begin", "---\nname: x\n": "without an end", "---\n- x\n---\n": "no map", "---\n---\n": "no map", "---\na: b: c\n---\n": "no YAML",
		"---\na: 1\na: 2\n---\n": "twice", "---\n? [x]\n: 1\n---\n": "no text", "---\n" + deep + "\n---\n": "deep", "---\n" + laughs + "\n---\n": "10000 values",
		"---\na: &a [*a]\n---\n": "", "---\na: " + strings.Repeat("x", 300<<10) + "\n---\n": "256 KiB",
	} {
		if front, _, err := skill.Split([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %s, %v; want …%s…", text, front, err, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("---\nname: x\nb: [1, 2.5, {c: ~}]\n---\nBody"))
	f.Add([]byte("---\na: &a [x]\nb: *a\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		front, _, err := skill.Split(text)
		if err == nil && (!json.Valid(front) || front[0] != '{') {
			t.Errorf("%q: %s", text, front)
		}
		if err == nil { // what is listed as it is read is loaded
			e := &skill.Entry{URI: "skill://x/SKILL.md", Frontmatter: front, Files: []skill.Resource{{URI: "skill://x/SKILL.md", Digest: skill.Digest(text), Size: int64(len(text))}}}
			if _, err := e.Instructions(text); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// The front matter is compared field by field, by what it says.
func TestInstructions(t *testing.T) {
	text := []byte("---\nname: x\ndescription: D.\nn: 1.0\nm: {a: [1, b]}\nempty:\n---\n\nBody.\n\n")
	entry := func(front string) *skill.Entry {
		return &skill.Entry{URI: "skill://x/SKILL.md", Frontmatter: json.RawMessage(front),
			Files: []skill.Resource{{URI: "skill://x/SKILL.md", Digest: skill.Digest(text), Size: int64(len(text))}}}
	}
	for front, want := range map[string]string{
		`{"m":{"a":[1.0,"b"]},"n":1,"description":"D.","name":"x"}`:              "",
		`{"name":"x","description":"D.","n":1,"m":{"a":[1,"b"]},"empty":null}`:   "",
		`{"name":"x","description":"D.","n":1,"m":{"a":[1,"b"]},"last":"one\n"}`: `"last"`,
		`{"name":"x","description":"D!","n":1,"m":{"a":[1,"b"]}}`:                "description",
		`{"name":"x","description":"D.","n":"1","m":{"a":[1,"b"]}}`:              `"n"`,
		`{"name":"x","description":"D.","n":1,"m":{"a":[1,"b","c"]}}`:            `"m"`,
		`{"name":"x","description":"D.","n":1}`:                                  `"m"`,
		`{"name":"x","description":"D.","n":1,"m":{"a":[1,"b"]},"tools":"*"}`:    `"tools"`,
		`[]`: "---",
	} {
		got, err := entry(front).Instructions(text)
		if want == "" && (err != nil || got != "Body.") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v; want …%s…", front, got, err, want)
		}
	}
}

// Whether the last value of a front matter ends in a line break is seen in two
// ways, both of which are right.
func TestLastLine(t *testing.T) {
	text := []byte("---\nname: x\ndescription: |\n  One.\n---\nBody")
	for front, fits := range map[string]bool{`{"name":"x","description":"One."}`: true, `{"name":"x","description":"One.\n"}`: true, `{"name":"x","description":"One.\n\n"}`: false} {
		e := &skill.Entry{URI: "skill://x/SKILL.md", Frontmatter: json.RawMessage(front),
			Files: []skill.Resource{{URI: "skill://x/SKILL.md", Digest: skill.Digest(text), Size: int64(len(text))}}}
		if _, err := e.Instructions(text); (err == nil) != fits {
			t.Errorf("%s: %v", front, err)
		}
	}
}

// A folder is served as the rules of its root let it be read.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("s/x/SKILL.md", "---\nname: x\ndescription: D.\n---\nBody")
	put("s/x/deep/er/f.txt", "one")
	put("s/x/.env", "TOKEN=1")
	put("s/x/no/f", "ignored")
	put("s/y.txt", "beside")
	put(".helveignore", "no/\n")
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	f := skill.NewFolder("x", "x", r, "s/x")
	uris := func() (all []string) {
		t.Helper()
		e, err := f.Entry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range e.Files {
			all = append(all, one.URI+" "+one.Digest)
		}
		return all
	}
	first := uris()
	if len(first) != 2 || !strings.HasPrefix(first[0], "skill://x/SKILL.md ") || !strings.HasPrefix(first[1], "skill://x/deep/er/f.txt "+skill.Digest([]byte("one"))) {
		t.Errorf("listed %q", first)
	}
	if again := uris(); !slices.Equal(first, again) {
		t.Errorf("listed %q, and then %q", first, again)
	}
	put("s/x/deep/er/f.txt", "two")
	if again := uris(); !strings.HasSuffix(again[1], skill.Digest([]byte("two"))) {
		t.Errorf("a change is not seen: %q", again)
	}
	for _, name := range []string{".env", "no/f", "../y.txt", "deep", "", ".", "/etc/passwd", "deep/../SKILL.md", "none"} {
		if data, err := f.Read(name); err == nil {
			t.Errorf("read %q: %q", name, data)
		}
	}
	if _, ok := (&skill.Entry{URI: "skill://x/SKILL.md"}).Children("skill://x"); ok {
		t.Error("a skill without files has a folder")
	}
	for i := range skill.MaxFiles - 1 {
		put(fmt.Sprintf("s/x/many/%d", i), "")
	}
	if _, err := f.Entry(t.Context()); err == nil || !strings.Contains(err.Error(), "512 files") {
		t.Errorf("513 files: %v", err)
	}
	os.RemoveAll(filepath.Join(dir, "s", "x", "many"))
	put("s/x/large", strings.Repeat("x", skill.MaxSize))
	if _, err := f.Entry(t.Context()); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("too large: %v", err)
	}
	os.Remove(filepath.Join(dir, "s", "x", "large"))
	put("s/x/SKILL.md", "---\nname: z\ndescription: D.\n---\nBody")
	if _, err := f.Entry(t.Context()); err == nil || !strings.Contains(err.Error(), "folder of its name z") {
		t.Errorf("another name: %v", err)
	}
}
