package filesystem_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/helve-ai/helve/modules/filesystem"
	"github.com/helve-ai/helve/tool"
)

func TestAppend(t *testing.T) {
	w := open(t, `{"max_write_bytes": 40}`, map[string]string{"a": "one\n", "open": "one", "crlf": "a\r\nb\r\n", "utf16": "\xff\xfea\x00\n\x00", "big": strings.Repeat("0123456789", 5)})
	contains(t, w.ok("append", args{"path": "a", "content": "two\n"}), `"appended"`, `"lines":2`, `"bytes":8`)
	res := w.call("append_file", args{"path": "open", "content": "two"})
	contains(t, strings.Join(res.Notes, "\n"), "did not end in a line end")
	w.ok("append", args{"path": "crlf", "content": "c\nd\n"})
	w.ok("append", args{"path": "utf16", "content": "é"})
	contains(t, w.ok("append", args{"path": "new/file", "content": "x"}), `"created"`)
	contains(t, w.ok("append", args{"path": "big", "content": "end"}), `"bytes":53`)
	for name, want := range map[string]string{"a": "one\ntwo\n", "open": "onetwo", "crlf": "a\r\nb\r\nc\r\nd\r\n", "utf16": "\xff\xfea\x00\n\x00\xe9\x00", "new/file": "x", "big": strings.Repeat("0123456789", 5) + "end"} {
		if got := w.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	w.refused(tool.CodeValidation, "at most 40", "append", args{"path": "a", "content": strings.Repeat("x", 41)})
	w.refused(tool.CodeRuntime, "is a folder", "append", args{"path": "new", "content": "x"})
	w.refused(tool.CodeIgnoredPath, "", "append", args{"path": ".helve/state", "content": "x"})
}

func TestMove(t *testing.T) {
	w := open(t, "", map[string]string{"a": "A", "b": "B", "d/x": "X", "d/sub/y": "Y", "e/z": "Z", ".helveprotect": "keep/\nq/sub/\n", "keep/k": "K"})
	contains(t, w.ok("move_file", args{"from": "a", "to": "new/place"}), `"from":"a"`, `"to":"new/place"`)
	w.refused(tool.CodeRuntime, "exists already", "move", args{"from": "new/place", "to": "b"})
	contains(t, w.ok("move", args{"from": "new/place", "to": "b", "overwrite": true}), `"replaced":true`)
	w.ok("move", args{"from": "d", "to": "f"})
	w.refused(tool.CodeRuntime, "such as e/f", "move", args{"from": "f", "to": "e"})
	w.refused(tool.CodeRuntime, "folder cannot take its place", "move", args{"from": "e", "to": "b", "overwrite": true})
	w.refused(tool.CodeValidation, "into itself", "move", args{"from": "f", "to": "f/g"})
	w.refused(tool.CodeValidation, "already", "move", args{"from": "b", "to": "./b"})
	w.refused(tool.CodeRuntime, "does not exist", "move", args{"from": "zzz", "to": "b"})
	w.refused(tool.CodeIgnoredPath, "", "move", args{"from": "keep/k", "to": "k"})
	w.refused(tool.CodeIgnoredPath, "", "move", args{"from": "b", "to": "keep/b"})
	w.refused(tool.CodeIgnoredPath, "", "move", args{"from": "f", "to": "q"}) // f/sub would become q/sub
	w.refused(tool.CodePermission, "", "move", args{"from": "b", "to": "../b"})
	w.refused(tool.CodeIgnoredPath, "root itself", "move", args{"from": ".", "to": "x"})
	for name, want := range map[string]string{"b": "A", "a": "<none>", "f/x": "X", "f/sub/y": "Y", "keep/k": "K", "e/z": "Z"} {
		if got := w.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestDelete(t *testing.T) {
	w := open(t, "", map[string]string{"a": "A", "d/x": "X", "d/y/z": "Z", "m/.git/config": "", "m/a": "", "target": "T", ".helveignore": "p/*.key\n", "p/a.key": "", "p/b": ""})
	os.Mkdir(filepath.Join(w.dir, "empty"), 0o755)
	os.Symlink("target", filepath.Join(w.dir, "link"))
	contains(t, w.ok("delete_file", args{"path": "a"}), `"kind":"file"`)
	contains(t, w.ok("delete", args{"path": "empty"}), `"kind":"folder"`)
	contains(t, w.ok("delete", args{"path": "link"}), `"kind":"link"`)
	w.refused(tool.CodeRuntime, "holds 3 entries; set recursive", "delete", args{"path": "d"})
	contains(t, w.ok("delete", args{"path": "d", "recursive": true}), `"entries":3`)
	w.refused(tool.CodeIgnoredPath, "", "delete", args{"path": "m", "recursive": true})
	w.refused(tool.CodeIgnoredPath, "", "delete", args{"path": "p", "recursive": true})
	w.refused(tool.CodeRuntime, "does not exist", "delete", args{"path": "a"})
	for _, name := range []string{".", "./", "d/..", w.dir} {
		if res := w.call("delete", args{"path": name, "recursive": true}); res.Err == nil || !res.Err.Code.Refusal() && name != "d/.." {
			t.Errorf("delete %s: %v", name, res.Err)
		}
	}
	for name, want := range map[string]string{"a": "<none>", "d/x": "<none>", "link": "<none>", "target": "T", "m/a": "", "p/b": ""} {
		if got := w.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestMkdir(t *testing.T) {
	w := open(t, "", map[string]string{"file": ""})
	contains(t, w.ok("create_directory", args{"path": "a/b/c"}), `"created":true`)
	contains(t, w.ok("mkdir", args{"path": "a/b/c/"}), `"created":false`)
	w.refused(tool.CodeRuntime, "folder x does not exist", "mkdir", args{"path": "x/y", "parents": false})
	w.ok("mkdir", args{"path": "a/d", "parents": false})
	w.refused(tool.CodeRuntime, "is a file", "mkdir", args{"path": "file"})
	w.refused(tool.CodePermission, "", "mkdir", args{"path": "../x"})
	if info, err := os.Stat(filepath.Join(w.dir, "a/b/c")); err != nil || !info.IsDir() {
		t.Errorf("a/b/c: %v", err)
	}
}

func TestConstraints(t *testing.T) {
	files := map[string]string{"docs/a.md": "alpha", "docs/sub/b.md": "alpha", "src/a.go": "alpha", "docs.txt": "alpha"}
	w := open(t, `{"constraints": {"paths": ["docs/**", "*.out"]}}`, files)
	w.ok("read", args{"path": "docs/a.md"})
	w.ok("write", args{"path": "x.out", "content": ""})
	w.refused(tool.CodePermission, "only docs/**, *.out", "read", args{"path": "src/a.go"})
	w.refused(tool.CodePermission, "only docs/**", "write", args{"path": "docs.txt", "content": ""})
	w.refused(tool.CodePermission, "only docs/**", "move", args{"from": "docs/a.md", "to": "src/a.md"})
	w.refused(tool.CodePermission, "only docs/**", "delete", args{"path": "src", "recursive": true})
	w.refused(tool.CodePermission, "only docs/**", "list", args{"path": "src"})
	os.Symlink("../src/a.go", filepath.Join(w.dir, "docs/link"))
	w.refused(tool.CodePermission, "only docs/**", "read", args{"path": "docs/link"})
	if got, want := w.ok("list", args{"depth": 2}), "docs/\ndocs/a.md (5 bytes)\ndocs/sub/\nx.out (0 bytes)\n[4 entries]"; got != want && !strings.Contains(got, "docs/link") {
		t.Errorf("list = %q, want %q", got, want)
	}
	if got := w.ok("grep", args{"pattern": "alpha", "files_only": true}); strings.Contains(got, "src") || strings.Contains(got, "docs.txt") {
		t.Errorf("grep = %q", got)
	}
	if got := w.ok("glob", args{"pattern": "**"}); strings.Contains(got, "src") || strings.Contains(got, "docs.txt") {
		t.Errorf("glob = %q", got)
	}

	ro := open(t, `{"constraints": {"read_only": true}}`, files)
	ro.ok("read", args{"path": "docs/a.md"})
	for name, in := range map[string]args{
		"write": {"path": "a", "content": ""}, "edit": {"path": "docs.txt", "old": "alpha", "new": "b"}, "append": {"path": "a", "content": "x"},
		"move": {"from": "docs.txt", "to": "b"}, "delete": {"path": "docs.txt"}, "mkdir": {"path": "x"}, "extract_zip": {"path": "docs.txt", "to": "x"},
	} {
		ro.refused(tool.CodePermission, "read_only", name, in)
	}
	if ro.get("docs.txt") != "alpha" {
		t.Error("read_only did not hold")
	}
}

// The module's policy says in explanations what the handlers do.
func TestJudge(t *testing.T) {
	w := open(t, `{"constraints": {"paths": ["docs/**"]}}`, map[string]string{"docs/a": "", "src/a": ""})
	ro := open(t, `{"constraints": {"read_only": true}}`, nil)
	for _, test := range []struct {
		w       *world
		name    string
		args    string
		verdict tool.Verdict
		words   string
	}{
		{w, "read", `{"path":"docs/a"}`, tool.Silent, ""},
		{w, "read", `{"path":"src/a"}`, tool.Deny, "only docs/**"},
		{w, "move", `{"from":"docs/a","to":"b"}`, tool.Deny, "only docs/**"},
		{ro, "read", `{"path":"src/a"}`, tool.Silent, ""},
		{ro, "write", `{"path":"a","content":""}`, tool.Deny, "read_only"},
	} {
		tl, ok := test.w.tools.Lookup("filesystem." + test.name)
		if !ok {
			t.Fatal(test.name)
		}
		verdict, why := test.w.judge(t.Context(), &tool.Call{Name: tl.Name, Tool: tl, Args: json.RawMessage(test.args)})
		if verdict != test.verdict || !strings.Contains(why, test.words) {
			t.Errorf("%s %s: %v, %q; want %v, %q", test.name, test.args, verdict, why, test.verdict, test.words)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, want := range map[string]string{
		`{"max_read_bytes": 0}`:                  "max_read_bytes: 0 is not above zero",
		`{"max_results": -1}`:                    "max_results",
		`{"constraints": {"paths": ["a[b"]}}`:    "constraints.paths[0]: \"a[b\" is not a valid glob",
		`{"constraints": {"paths": ["/etc/*"]}}`: "does not count from the root",
		`{"constraints": {"read": true}}`:        "read",
		`{"nope": 1}`:                            "nope",
	} {
		_, err := filesystem.Module.Open(t.Context(), nil, json.RawMessage(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// The definitions are complete, and their examples are valid.
func TestDefinitions(t *testing.T) {
	tools, err := filesystem.Module.Describe(t.Context())
	if err != nil || len(tools) != 12 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for _, tl := range tools {
		if tl.Help == "" || len(tl.Examples) == 0 || len(tl.Aliases) < 15 || !tl.IsRead() && len(tl.SideEffects) == 0 || tl.ParallelSafe != tl.IsRead() {
			t.Errorf("the definition of %s is not complete", tl.Name)
		}
		for _, e := range tl.Examples {
			if problems := tl.Input.Validate(e); len(problems) > 0 {
				t.Errorf("%s: the example %s: %v", tl.Name, e, problems)
			}
		}
		res, err := tl.Handle(t.Context(), &tool.Call{Args: tl.Examples[0]})
		if err == nil || !strings.Contains(err.Error(), "no root folder") {
			t.Errorf("%s without a root: %v, %v", tl.Name, res, err)
		}
	}
}

// No change is lost when calls change one file at once, and readers never see half of one.
func TestConcurrentChanges(t *testing.T) {
	w := open(t, "", map[string]string{"list": "start\n", "whole": strings.Repeat("a", 4096)})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				w.ok("edit", args{"path": "list", "old": "start\n", "new": fmt.Sprintf("start\nedit %d %d\n", i, j)})
				w.ok("append", args{"path": "list", "content": fmt.Sprintf("append %d %d\n", i, j)})
				w.ok("write", args{"path": "whole", "content": strings.Repeat(string(rune('a'+i)), 4096)})
				text := w.ok("read", args{"path": "whole"})
				if len(text) != 4096 || strings.Trim(text, text[:1]) != "" {
					t.Errorf("a reader saw a half-written file: %d bytes", len(text))
				}
			}
		})
	}
	wg.Wait()
	if got := strings.Count(w.get("list"), "\n"); got != 161 {
		t.Errorf("the list has %d lines, want 161", got)
	}
	entries, _ := os.ReadDir(w.dir)
	if len(entries) != 2 {
		t.Errorf("files were left behind: %v", entries)
	}
}

// What a killed writer leaves behind is seen by no tool.
func TestTempFilesAreInvisible(t *testing.T) {
	w := open(t, "", map[string]string{"a": "x", ".helve-tmp-0123456789abcdef": "half a file"})
	for name, in := range map[string]args{"list": {"hidden": true}, "glob": {"pattern": "**"}, "grep": {"pattern": "half"}} {
		if got := w.ok(name, in); strings.Contains(got, "helve-tmp") {
			t.Errorf("%s shows it: %s", name, got)
		}
	}
	w.refused(tool.CodeIgnoredPath, "", "read", args{"path": ".helve-tmp-0123456789abcdef"})
}

func TestLinks(t *testing.T) {
	w := open(t, "", map[string]string{"in/a": "inside", ".helveignore": "secret/\n", "secret/s": "S"})
	outside := t.TempDir()
	os.WriteFile(filepath.Join(outside, "o"), []byte("outside"), 0o644)
	for link, target := range map[string]string{"good": "in", "out": outside, "out2": filepath.Join(outside, "o"), "dangling": filepath.Join(outside, "new"), "sneaky": "secret", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Skip(err)
		}
	}
	w.ok("write", args{"path": "good/b", "content": "B"})
	if w.get("in/b") != "B" {
		t.Error("a link inside of the root was not followed")
	}
	for _, path := range []string{"out/o", "out/new", "out2", "dangling", "sneaky/s", "loop", "good/../../x", "out/../in/a"} {
		for name, in := range map[string]args{
			"read": {}, "write": {"content": "x"}, "edit": {"old": "outside", "new": "x"}, "append": {"content": "x"}, "stat": {}, "mkdir": {},
		} {
			in["path"] = path
			if res := w.call(name, in); res.Err == nil || !res.Err.Code.Refusal() {
				t.Errorf("%s %s: %v, %v", name, path, res.JoinText(), res.Err)
			}
		}
	}
	if data, _ := os.ReadFile(filepath.Join(outside, "o")); string(data) != "outside" {
		t.Errorf("the file outside is %q", data)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("files were made outside: %v", entries)
	}
}
