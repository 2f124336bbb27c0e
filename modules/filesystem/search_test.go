package filesystem_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

func TestGlob(t *testing.T) {
	w := open(t, "", map[string]string{
		"a.go": "", "src/b.go": "", "src/c.md": "", "src/deep/er/d.go": "", "src-x/e.go": "", ".github/f.yml": "",
		".helveignore": "hidden/\n", "hidden/g.go": "", ".git/h.go": "",
	})
	os.Symlink("src", filepath.Join(w.dir, "link"))
	os.Symlink(t.TempDir(), filepath.Join(w.dir, "out"))
	for _, test := range []struct {
		args args
		want string
	}{
		{args{"pattern": "**/*.go"}, "a.go\nsrc-x/e.go\nsrc/b.go\nsrc/deep/er/d.go\n[4 paths match]"},
		{args{"pattern": "*.go"}, "a.go\n[1 path matches]"},
		{args{"pattern": "./src/*.{go,md}"}, "src/b.go\nsrc/c.md\n[2 paths match]"},
		{args{"pattern": "**/*.go", "path": "src"}, "src/b.go\nsrc/deep/er/d.go\n[2 paths match]"},
		{args{"pattern": "src/**/er"}, "src/deep/er/\n[1 path matches]"},
		{args{"pattern": "src/**/"}, "src/deep/\nsrc/deep/er/\n[2 paths match]"},
		{args{"pattern": "**/*.yml"}, ".github/f.yml\n[1 path matches]"},
		{args{"pattern": "**/*.go", "limit": 1}, "a.go\n[4 paths match; 3 of them are not shown: narrow the pattern, or raise limit]"},
		{args{"pattern": "hidden/**"}, "[no path matches]"},
		{args{"pattern": "nowhere/*.x"}, "[no path matches]"},
		{args{"pattern": "link/*.go"}, "[no path matches]"},
		{args{"pattern": "b.go"}, "[no path matches; b.go looks only in the folder itself: write **/b.go to look beneath it, too]"},
		{args{"pattern": "link"}, "link\n[1 path matches]"},
	} {
		if got := w.ok("glob", test.args); got != test.want {
			t.Errorf("glob %v = %q, want %q", test.args, got, test.want)
		}
	}
	w.refused(tool.CodeValidation, "absolute", "glob", args{"pattern": "/etc/*"})
	w.refused(tool.CodeValidation, "goes up", "glob", args{"pattern": "../*"})
	w.refused(tool.CodeValidation, "not a pattern", "glob", args{"pattern": "a[b"})
	w.refused(tool.CodePermission, "", "glob", args{"pattern": "*", "path": "out"})
	w.refused(tool.CodeRuntime, "is a file", "glob", args{"pattern": "*", "path": "a.go"})
}

func TestGrep(t *testing.T) {
	w := open(t, `{"max_read_bytes": 50000}`, map[string]string{
		"a.txt": "alpha\nbeta\r\ngamma (x)\nalpha beta\n", "b/c.go": "package c\n\nfunc Alpha() {\n\treturn\n}\n",
		"bin": "alpha\x00", "utf16": "\xff\xfea\x00l\x00p\x00h\x00a\x00", "big": strings.Repeat("alpha\n", 10_000),
		"long": strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000), ".helveignore": "no.txt\n", "no.txt": "alpha",
		"latin": "caf\xe9 needle\n",
	})
	os.Symlink("a.txt", filepath.Join(w.dir, "link.txt"))
	os.Symlink("/etc", filepath.Join(w.dir, "out"))
	for _, test := range []struct {
		args args
		want string
	}{
		{args{"pattern": "^alpha"}, "a.txt:1: alpha\na.txt:4: alpha beta\nutf16:1: alpha\n[3 matches in 2 files; 6 files searched, 1 not text, 1 too large]"},
		{args{"pattern": "beta$", "path": "a.txt"}, "a.txt:2: beta\na.txt:4: alpha beta\n[2 matches in 1 file; 1 file searched]"},
		{args{"pattern": "(x)", "literal": true}, "a.txt:3: gamma (x)\n[1 match in 1 file; 6 files searched, 1 not text, 1 too large]"},
		{args{"pattern": "ALPHA", "ignore_case": true, "glob": "*.go"}, "b/c.go:3: func Alpha() {\n[1 match in 1 file; 1 file searched]"},
		{args{"pattern": "alpha", "files_only": true}, "a.txt (2 matches)\nutf16 (1 match)\n[2 files match; 6 files searched, 1 not text, 1 too large]"},
		{args{"pattern": "beta", "path": "a.txt", "context": 1}, "a.txt-1- alpha\na.txt:2: beta\na.txt-3- gamma (x)\na.txt:4: alpha beta\n[2 matches in 1 file; 1 file searched]"},
		{args{"pattern": "package|return", "path": "b", "context": 1}, "b/c.go:1: package c\nb/c.go-2- \nb/c.go-3- func Alpha() {\nb/c.go:4: \treturn\nb/c.go-5- }\n[2 matches in 1 file; 1 file searched]"},
		{args{"pattern": "c\n\nfunc", "multiline": true, "literal": true, "path": "b"}, "b/c.go:1: package c\nb/c.go-2- \nb/c.go-3- func Alpha() {\n[1 match in 1 file; 1 file searched]"},
		{args{"pattern": `(?s)func.*\}`, "multiline": true, "path": "b"}, "b/c.go:3: func Alpha() {\nb/c.go-4- \treturn\nb/c.go-5- }\n[1 match in 1 file; 1 file searched]"},
		{args{"pattern": `c\n`, "path": "b"}, "[no match; 1 file searched; a pattern with a line break matches only with multiline]"},
		{args{"pattern": "nothing", "glob": "*.rs"}, "[no match; no file searched; no file's name matches the glob]"},
		{args{"pattern": "a", "path": "a.txt", "limit": 2}, "a.txt:1: alpha\na.txt:2: beta\n[2 matches in 1 file; 1 file searched; there are more matches: narrow the search by path, glob or pattern, or raise limit]"},
		{args{"pattern": "needle", "glob": "latin"}, "latin:1: caf\uFFFD needle\n[1 match in 1 file; 1 file searched]"},
		{args{"pattern": "func", "glob": "b/*.go"}, "b/c.go:3: func Alpha() {\n[1 match in 1 file; 1 file searched]"},
	} {
		if got := w.ok("filesystem.grep", test.args); got != test.want {
			t.Errorf("grep %v = %q, want %q", test.args, got, test.want)
		}
	}
	long := w.ok("grep", args{"pattern": "needle", "path": "long"})
	if contains(t, long, "xneedley", "long:1: …", "y…\n"); len(long) > 500 {
		t.Errorf("a long line came with %d bytes", len(long))
	}
	w.refused(tool.CodeValidation, "RE2", "grep", args{"pattern": "(?=x)"})
	w.refused(tool.CodeValidation, "/glob", "grep", args{"pattern": "x", "glob": "[a"})
	w.refused(tool.CodeRuntime, "did you mean a.txt", "grep", args{"pattern": "x", "path": "b.txt"})
	w.refused(tool.CodeIgnoredPath, "", "grep", args{"pattern": "x", "path": "no.txt"})
	w.refused(tool.CodePermission, "", "grep", args{"pattern": "root", "path": "out"})
	w.refused(tool.CodeValidation, "context", "grep", args{"pattern": "x", "context": 11})
}

// The matches that are shown do not depend on which worker was first.
func TestGrepLimitIsStable(t *testing.T) {
	content := map[string]string{}
	for i := range 200 {
		content[fmt.Sprintf("f%03d", i)] = "hit\nhit\n"
	}
	w := open(t, "", content)
	for range 20 {
		got := w.ok("grep", args{"pattern": "hit", "limit": 5})
		contains(t, got, "f000:1: hit\nf000:2: hit\nf001:1: hit\nf001:2: hit\nf002:1: hit\n[5 matches in 3 files; ", "there are more matches")
	}
}

func TestStat(t *testing.T) {
	w := open(t, "", map[string]string{"a.txt": "one\ntwo", "d/x": "\x00"})
	os.Symlink("a.txt", filepath.Join(w.dir, "link"))
	os.Symlink("/etc/passwd", filepath.Join(w.dir, "out"))
	contains(t, w.ok("stat", args{"path": "a.txt"}), `"type":"file"`, `"size":7`, `"mode":"0644"`, `"lines":2`, `"mime":"text/plain"`,
		`"sha256":"`, "T", `Z"`)
	contains(t, w.ok("stat", args{"path": "d/"}), `"type":"folder"`)
	contains(t, w.ok("stat", args{"path": "link"}), `"path":"link"`, `"leads_to":"a.txt"`)
	if got := w.ok("stat", args{"path": "d/x"}); strings.Contains(got, "lines") {
		t.Errorf("lines of a binary file: %s", got)
	}
	w.refused(tool.CodeRuntime, "did you mean a.txt", "stat", args{"path": "b.txt"})
	w.refused(tool.CodePermission, "", "stat", args{"path": "out"})
}

func BenchmarkReadSmall(b *testing.B) {
	w := open(b, "", map[string]string{"a.txt": strings.Repeat("some line of text\n", 50)})
	for b.Loop() {
		w.ok("filesystem.read", args{"path": "a.txt"})
	}
}

func BenchmarkGrep2000Files(b *testing.B) {
	content := map[string]string{}
	for i := range 2000 {
		content[fmt.Sprintf("d%02d/f%d.go", i%40, i)] = strings.Repeat("func some(line int) error { return nil }\n", 100) + fmt.Sprintf("needle%d\n", i)
	}
	w := open(b, "", content)
	for _, pattern := range []string{"needle1999", `need\w+1999`, `[a-z]+eedle1999$`} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				if got := w.ok("filesystem.grep", args{"pattern": pattern}); !strings.Contains(got, "f1999.go:101: needle1999") {
					b.Fatal(got)
				}
			}
		})
	}
}
