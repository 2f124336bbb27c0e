package filesystem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/filesystem"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// A world is a folder and the module's tools behind the guards.
type world struct {
	t     testing.TB
	dir   string
	root  *root.Root
	ex    *pipeline.Executor
	tools *tool.Set
	judge func(context.Context, *tool.Call) (tool.Verdict, string)
}

// open makes a folder with the files given, and opens the module on it.
func open(t testing.TB, config string, content map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir}
	for name, text := range content {
		w.put(name, text)
	}
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	w.root = r
	ts, err := filesystem.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Root: r}, json.RawMessage(config))
	if err != nil {
		t.Fatal(err)
	}
	w.judge = ts.Judge
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	w.tools = reg.Set()
	w.ex = pipeline.New(&reg, guard.Output(), guard.Resolve(&reg, nil, nil, nil), guard.Validate(), guard.Paths(r))
	return w
}

func (w *world) put(name, text string) {
	w.t.Helper()
	full := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// get returns a file's content; "<none>" if there is none.
func (w *world) get(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		return "<none>"
	}
	return string(data)
}

// call runs a tool with arguments that are encoded as JSON.
func (w *world) call(name string, args map[string]any) *tool.Result {
	w.t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.ex.Do(w.t.Context(), &tool.Call{Name: name, Args: data})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// ok runs a tool that must succeed and returns its text.
func (w *world) ok(name string, args map[string]any) string {
	w.t.Helper()
	res := w.call(name, args)
	if res.Err != nil {
		w.t.Fatalf("%s %v: %v", name, args, res.Err)
	}
	return res.JoinText()
}

// refused runs a tool that must fail with the code and the words given.
func (w *world) refused(code tool.Code, words, name string, args map[string]any) *tool.Error {
	w.t.Helper()
	res := w.call(name, args)
	if res.Err == nil {
		w.t.Errorf("%s %v succeeded with %q; want %s", name, args, res.JoinText(), code)
		return &tool.Error{}
	}
	if res.Err.Code != code || !strings.Contains(res.Err.Message, words) {
		w.t.Errorf("%s %v: %v; want %s with %q", name, args, res.Err, code, words)
	}
	if strings.Contains(res.Err.Message, w.dir) {
		w.t.Errorf("%s %v: the error names a folder of the machine: %v", name, args, res.Err)
	}
	return res.Err
}

// contains checks that each of the words stands in text.
func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
}

type args = map[string]any

func TestRead(t *testing.T) {
	w := open(t, "", map[string]string{
		"a.txt": "one\ntwo\nthree", "empty": "", "dir/notes.md": "# Notes\n", "crlf": "a\r\nb\r\n",
		"bom": "\ufeffx\n", "utf16": "\xff\xfeh\x00\xe9\x00\n\x00", "latin": "caf\xe9 au lait\n", "bin": "\x7fELF\x00\x01",
		"sjis": "\x93\xfa\x96\x7b\n", ".helveignore": "secret.txt\n", "secret.txt": "x",
		"img.png": "\x89PNG\r\n\x1a\n\x00\x00",
	})
	for _, test := range []struct {
		args  args
		want  string
		notes string
	}{
		{args{"path": "a.txt"}, "one\ntwo\nthree", "sha256 "},
		{args{"path": "./dir/../a.txt"}, "one\ntwo\nthree", ""},
		{args{"path": filepath.Join(w.dir, "a.txt")}, "one\ntwo\nthree", ""},
		{args{"path": "a.txt", "offset": 2, "limit": 1}, "two\n", "lines 2 to 2 of 3"},
		{args{"path": "a.txt", "offset": 3, "limit": 9}, "three", "lines 3 to 3 of 3"},
		{args{"path": "a.txt", "limit": 3}, "one\ntwo\nthree", ""},
		{args{"path": "a.txt", "offset": 2, "numbered": true}, "2\ttwo\n3\tthree", ""},
		{args{"path": "empty"}, "", "empty"},
		{args{"path": "crlf", "offset": 2}, "b\r\n", ""},
		{args{"path": "bom"}, "x\n", "byte order mark"},
		{args{"path": "utf16"}, "hé\n", "UTF-16"},
		{args{"path": "latin"}, "café au lait\n", "Latin-1"},
		{args{"path": "sjis", "encoding": "shift_jis"}, "日本\n", ""},
	} {
		res := w.call("filesystem.read", test.args)
		if res.Err != nil || res.JoinText() != test.want || !strings.Contains(strings.Join(res.Notes, "\n"), test.notes) {
			t.Errorf("read %v = %q, notes %q, %v; want %q, notes %q", test.args, res.JoinText(), res.Notes, res.Err, test.want, test.notes)
		}
	}
	contains(t, w.ok("filesystem.read", args{"path": "bin"}), "bin is not text", "6 bytes", "sha256 ")
	img := w.call("FileRead", args{"path": "img.png"})
	if len(img.Content) != 2 || img.Content[1].MIME != "image/png" || len(img.Content[1].Data) != 10 {
		t.Errorf("the image came as %+v", img.Content)
	}
	w.refused(tool.CodeValidation, "only 3 lines", "read_file", args{"path": "a.txt", "offset": 4})
	w.refused(tool.CodeRuntime, "did you mean a.txt", "read", args{"path": "aa.txt"})
	w.refused(tool.CodeRuntime, "did you mean dir/notes.md", "read", args{"path": "dir/notes.mb"})
	w.refused(tool.CodeRuntime, "there is no folder dri; did you mean dir", "read", args{"path": "dri/notes.md"})
	w.refused(tool.CodeRuntime, "is a folder", "read", args{"path": "dir"})
	w.refused(tool.CodeValidation, "encoding", "read", args{"path": "a.txt", "encoding": "klingon"})
	w.refused(tool.CodeIgnoredPath, "", "read", args{"path": "secret.txt"})
	w.refused(tool.CodePermission, "", "read", args{"path": "../x"})
	w.refused(tool.CodePermission, "", "read", args{"path": "/etc/passwd"})
	if e := w.refused(tool.CodeRuntime, "", "read", args{"path": "secret.tx"}); strings.Contains(e.Message, "secret.txt") {
		t.Errorf("an ignored file was suggested: %v", e)
	}
}

func TestReadLargeFiles(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	w := open(t, `{"max_read_bytes": 100}`, map[string]string{"big": b.String(), "long": strings.Repeat("x", 1000)})
	w.refused(tool.CodeRuntime, "offset (the first line) and limit", "read", args{"path": "big"})
	if got := w.ok("read", args{"path": "big", "offset": 99, "limit": 5}); got != "line 99\nline 100\n" {
		t.Errorf("the end came as %q", got)
	}
	if got := w.ok("read", args{"path": "big", "limit": 2, "numbered": true}); got != "1\tline 1\n2\tline 2\n" {
		t.Errorf("the beginning came as %q", got)
	}
	w.refused(tool.CodeRuntime, "smaller limit", "read", args{"path": "big", "offset": 2})
	w.refused(tool.CodeRuntime, "smaller limit", "read", args{"path": "long", "limit": 1})
	w.refused(tool.CodeValidation, "only 100 lines", "read", args{"path": "big", "offset": 101})
}

func TestWrite(t *testing.T) {
	w := open(t, "", map[string]string{"a.txt": "old", "dir/x": "", "prot/a": "x", ".helveprotect": "prot/\n"})
	os.Chmod(filepath.Join(w.dir, "a.txt"), 0o750)
	var out struct {
		Path, Action, SHA256 string
		Bytes, Lines         int
	}
	res := w.call("write_file", args{"path": "a.txt", "content": "new\ntext"})
	if err := json.Unmarshal(res.Structured, &out); err != nil || out.Action != "overwritten" || out.Bytes != 8 || out.Lines != 2 || len(out.SHA256) != 64 {
		t.Errorf("write = %s, %v, %v", res.Structured, res.Err, res.Notes)
	}
	if info, _ := os.Stat(filepath.Join(w.dir, "a.txt")); info.Mode().Perm() != 0o750 || w.get("a.txt") != "new\ntext" {
		t.Errorf("a.txt is %q with mode %v", w.get("a.txt"), info.Mode())
	}
	contains(t, w.ok("filesystem.write", args{"path": "n/e/w.md", "content": ""}), `"created"`, `"n/e/w.md"`)
	w.refused(tool.CodeRuntime, "exists already", "write", args{"path": "a.txt", "content": "", "if_exists": "error"})
	w.refused(tool.CodeRuntime, "folder no does not exist", "write", args{"path": "no/x", "content": "", "create_dirs": false})
	w.refused(tool.CodeRuntime, "is a folder", "write", args{"path": "dir", "content": ""})
	w.refused(tool.CodePermission, "", "write", args{"path": "a.txt/b", "content": ""})
	w.refused(tool.CodeIgnoredPath, "", "write", args{"path": "prot/a", "content": ""})
	w.refused(tool.CodeIgnoredPath, "", "write", args{"path": ".helveprotect", "content": ""})
	w.refused(tool.CodeIgnoredPath, "", "write", args{"path": ".git/hooks/pre-commit", "content": ""})
	w.refused(tool.CodePermission, "", "write", args{"path": "../x", "content": ""})
	w.refused(tool.CodeValidation, "content", "write", args{"path": "a.txt"})
	e := w.refused(tool.CodeStaleFile, out.SHA256, "write", args{"path": "a.txt", "content": "", "expected_sha256": strings.Repeat("0", 64)})
	contains(t, string(e.Details), out.SHA256)
	w.refused(tool.CodeStaleFile, "does not exist", "write", args{"path": "b.txt", "content": "", "expected_sha256": out.SHA256})
	w.ok("write", args{"path": "a.txt", "content": "third", "expected_sha256": strings.ToUpper(out.SHA256[:16])})
	if w.get("a.txt") != "third" {
		t.Errorf("a.txt is %q", w.get("a.txt"))
	}
	small := open(t, `{"max_write_bytes": 3}`, nil)
	small.refused(tool.CodeValidation, "at most 3", "write", args{"path": "a", "content": "four"})
}

func TestEdit(t *testing.T) {
	w := open(t, "", map[string]string{
		"a.go": "func a() {\n\treturn nil\n}\n\nfunc b() {\n\treturn nil\n}\n", "crlf": "one\r\ntwo\r\nthree", "bom": "\ufeffx\ny\n",
		"utf16": "\xff\xfeh\x00\xe9\x00\n\x00", "latin": "caf\xe9\n", "bin": "a\x00b",
	})
	before := w.get("a.go")
	w.refused(tool.CodeRuntime, "lines 2, 6", "edit", args{"path": "a.go", "old": "return nil", "new": "return err"})
	w.refused(tool.CodeRuntime, "lines 1 to 2 of the file differ from it only in indentation", "edit",
		args{"path": "a.go", "old": "func a() {\n    return nil", "new": "x"})
	w.refused(tool.CodeRuntime, "nor does anything like it", "edit", args{"path": "a.go", "old": "qqqq zzzz", "new": "x"})
	w.refused(tool.CodeValidation, "same", "edit", args{"path": "a.go", "old": "func", "new": "func"})
	w.refused(tool.CodeValidation, "empty", "edit", args{"path": "a.go", "old": "", "new": "x"})
	w.refused(tool.CodeValidation, "give old", "edit", args{"path": "a.go", "old": "func a"})
	w.refused(tool.CodeValidation, "not both", "edit", args{"path": "a.go", "old": "a", "new": "b", "edits": []args{{"old": "x", "new": "y"}}})
	w.refused(tool.CodeRuntime, "did you mean a.go", "edit", args{"path": "b.go", "old": "a", "new": "b"})
	w.refused(tool.CodeRuntime, "not text", "edit", args{"path": "bin", "old": "a", "new": "b"})
	w.refused(tool.CodeStaleFile, "has changed", "edit", args{"path": "a.go", "old": "func a", "new": "x", "expected_sha256": strings.Repeat("a", 64)})
	e := w.refused(tool.CodeRuntime, "edits/1 (looked for after the edits before it; none was made)", "edit",
		args{"path": "a.go", "edits": []args{{"old": "func a", "new": "func c"}, {"old": "func a", "new": "func d"}}})
	contains(t, string(e.Details), `"edit":1`)
	if w.get("a.go") != before {
		t.Errorf("a refused edit changed the file: %q", w.get("a.go"))
	}
	got := w.ok("edit_file", args{"path": "a.go", "edits": []args{{"old": "func a() {\r\n\treturn nil", "new": "func a() {\n\treturn err"}, {"old": "func b", "new": "func c"}}})
	contains(t, got, "2 passages replaced", "--- a/a.go\n+++ b/a.go\n@@ -1,7 +1,7 @@\n", "-\treturn nil\n+\treturn err\n", "sha256 ")
	w.ok("edit", args{"path": "a.go", "old": "func ", "new": "fn ", "all": true})
	if want := "fn a() {\n\treturn err\n}\n\nfn c() {\n\treturn nil\n}\n"; w.get("a.go") != want {
		t.Errorf("a.go is %q, want %q", w.get("a.go"), want)
	}
	for _, test := range []struct{ path, old, new, want string }{
		{"crlf", "one\ntwo", "1\n2\n2½", "1\r\n2\r\n2½\r\nthree"},
		{"bom", "x\n", "z\n", "\ufeffz\ny\n"},
		{"utf16", "é", "è", "\xff\xfeh\x00\xe8\x00\n\x00"},
		{"latin", "é", "è", "caf\xe8\n"},
	} {
		w.ok("edit", args{"path": test.path, "old": test.old, "new": test.new})
		if got := w.get(test.path); got != test.want {
			t.Errorf("%s is %q, want %q", test.path, got, test.want)
		}
	}
	w.refused(tool.CodeRuntime, "Latin-1", "edit", args{"path": "latin", "old": "c", "new": "☕"})
}

func TestList(t *testing.T) {
	w := open(t, "", map[string]string{"b.txt": "12345", "a/x/y": "", "a/z": "", ".hid": "", ".helveignore": "no\n", "no": "", ".git/config": ""})
	if err := os.Symlink("b.txt", filepath.Join(w.dir, "link")); err != nil {
		t.Skip(err)
	}
	os.Symlink("/etc", filepath.Join(w.dir, "out"))
	if got, want := w.ok("list_files", args{}), "a/\nb.txt (5 bytes)\nlink -> b.txt\n[3 entries; 2 more with names that begin with a dot are not shown]"; got != want {
		t.Errorf("list = %q, want %q", got, want)
	}
	if got, want := w.ok("list", args{"path": "a", "depth": 2}), "x/\nx/y (0 bytes)\nz (0 bytes)\n[3 entries]"; got != want {
		t.Errorf("list = %q, want %q", got, want)
	}
	contains(t, w.ok("list", args{"hidden": true, "limit": 1}), ".helveignore (3 bytes)\n[5 entries; 4 of them are not shown: raise limit")
	w.refused(tool.CodeRuntime, "is a file", "list", args{"path": "b.txt"})
	w.refused(tool.CodeRuntime, "does not exist", "list", args{"path": "c"})
	w.refused(tool.CodePermission, "", "list", args{"path": "out"})
	w.refused(tool.CodeIgnoredPath, "", "list", args{"path": ".git"})
	w.refused(tool.CodeValidation, "depth", "list", args{"depth": 6})
}
