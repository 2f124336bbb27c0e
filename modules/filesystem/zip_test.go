package filesystem_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

// A member is an entry of an archive that a test makes.
type member struct {
	name, text string
	mode       fs.FileMode // zero: 0644
}

// archive returns a ZIP file with the members.
func archive(t testing.TB, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.mode == 0 {
			m.mode = 0o644
		}
		h.SetMode(m.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(m.name, "/") {
			io.WriteString(f, m.text)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExtractZip(t *testing.T) {
	w := open(t, "", map[string]string{
		"a.zip": archive(t, member{name: "dir/"}, member{name: "dir/a.txt", text: "A"}, member{"run.sh", "#!/bin/sh", 0o755 | fs.ModeSetuid | fs.ModeSetgid}, member{"ro", "r", 0o400}, member{"deep/er/b", "B", 0}, member{"empty/", "", 0}),
		"empty": archive(t),
	})
	contains(t, w.ok("unzip", args{"path": "a.zip", "to": "out/here"}), `"files":4`, `"bytes":12`, `"folders":6`)
	for name, want := range map[string]string{"dir/a.txt": "A", "run.sh": "#!/bin/sh", "ro": "r", "deep/er/b": "B"} {
		if got := w.get("out/here/" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, perm := range map[string]fs.FileMode{"run.sh": 0o755, "ro": 0o644} {
		if info, err := os.Stat(filepath.Join(w.dir, "out/here", name)); err != nil || info.Mode() != perm {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), perm)
		}
	}
	e := w.refused(tool.CodeRuntime, "4 files exist already", "extract_zip", args{"path": "a.zip", "to": "out/here"})
	contains(t, e.Message, "out/here/dir/a.txt", "overwrite")
	w.put("out/here/ro", "changed")
	w.ok("extract_zip", args{"path": "a.zip", "to": "out/here", "overwrite": true})
	if w.get("out/here/ro") != "r" {
		t.Errorf("ro is %q", w.get("out/here/ro"))
	}
	contains(t, w.ok("extract_zip", args{"path": "empty", "to": "none"}), `"files":0`)
	w.refused(tool.CodeRuntime, "is a file", "extract_zip", args{"path": "a.zip", "to": "a.zip"})
	w.refused(tool.CodeRuntime, "is not a ZIP", "extract_zip", args{"path": "out/here/ro", "to": "x"})
	w.refused(tool.CodeRuntime, "did you mean a.zip", "extract_zip", args{"path": "b.zip", "to": "x"})
	w.refused(tool.CodePermission, "", "extract_zip", args{"path": "a.zip", "to": "../x"})
}

// Each of these archives is refused whole: nothing of it is written, not even
// the honest entry at its beginning.
func TestHostileArchives(t *testing.T) {
	honest := member{name: "honest.txt", text: "fine"}
	link := fs.ModeSymlink | 0o777
	for _, test := range []struct {
		name    string
		members []member
		words   string
	}{
		{"parent", []member{{name: "../evil.txt"}}, `component ".."`},
		{"parent by backslash", []member{{name: `..\evil.txt`}}, "backslash"},
		{"absolute", []member{{name: "/abs/evil.txt"}}, "absolute"},
		{"out and elsewhere", []member{{name: "a/../../evil.txt"}}, `component ".."`},
		{"dot first", []member{{name: "./../evil.txt"}}, `component "."`},
		{"drive", []member{{name: `C:\evil.txt`}}, "absolute"},
		{"drive and slash", []member{{name: `c:/evil.txt`}}, "absolute"},
		{"link", []member{{"symlink", "/", link}, {name: "symlink/etc/x"}}, "is a link"},
		{"inner link", []member{{"symlink", "honest.txt", link}}, "is a link"},
		{"device", []member{{"dev", "", fs.ModeDevice | 0o666}}, "neither a file nor a folder"},
		{"pipe", []member{{"pipe", "", fs.ModeNamedPipe | 0o666}}, "neither a file nor a folder"},
		{"NUL", []member{{name: "a\x00b"}}, "control character"},
		{"escape", []member{{name: "a\x1b[2Kb"}}, "control character"},
		{"invalid text", []member{{name: "a\xffb"}}, "not UTF-8"},
		{"bomb", []member{{name: "zeros", text: strings.Repeat("\x00", 3<<20)}}, "no honest archive"},
		{"file then link", []member{{name: "same"}, {"same", "/", link}}, "is a link"},
		{"twice", []member{{name: "same"}, {name: "same"}}, "two entries"},
		{"differing in case", []member{{name: "Same"}, {name: "sAME"}}, "two entries"},
		{"differing in accents", []member{{name: "\u00e9"}, {name: "e\u0301"}}, "two entries"},
		{"folders differing in case", []member{{name: "Dir/a"}, {name: "dir/b"}}, "only in case"},
		{"file and folder", []member{{name: "x"}, {name: "x/y"}}, "both a file and a folder"},
		{"folder and file", []member{{name: "x/y"}, {name: "x"}}, "two entries"},
		{"long name", []member{{name: strings.Repeat("n", 5000)}}, "5000 bytes"},
		{"long component", []member{{name: "d/" + strings.Repeat("n", 256)}}, "component of 256 bytes"},
		{"no name", []member{{name: ""}}, "no name"},
		{"only a slash", []member{{name: "/"}}, "no name"},
		{"dot dot", []member{{name: ".."}}, `component ".."`},
		{"empty component", []member{{name: "a//b"}}, `component ""`},
		{"git hook", []member{{name: ".git/hooks/pre-commit"}}, ".git"},
		{"nested git", []member{{name: "a/.GIT/config"}}, ".GIT"},
		{"ignored", []member{{name: "secret/x"}}, "ignore"},
		{"rules", []member{{name: "../.helveignore"}}, "component"},
		{"through a link of the folder", []member{{name: "inner/x"}}, "through a link"},
		{"out by a link of the folder", []member{{name: "outer/x"}}, "out"},
	} {
		w := open(t, "", map[string]string{"a.zip": archive(t, append([]member{honest}, test.members...)...), ".helveignore": "secret/\n", "to/keep": "K", "other/f": ""})
		outside := t.TempDir()
		os.Symlink("../other", filepath.Join(w.dir, "to/inner"))
		os.Symlink(outside, filepath.Join(w.dir, "to/outer"))
		res := w.call("extract_zip", args{"path": "a.zip", "to": "to"})
		if res.Err == nil || !strings.Contains(res.Err.Message, test.words) {
			t.Errorf("%s: %v; want an error with %q", test.name, res.Err, test.words)
		}
		if entries, _ := os.ReadDir(filepath.Join(w.dir, "to")); len(entries) != 3 {
			t.Errorf("%s: files were left: %v", test.name, entries)
		}
		if entries, _ := os.ReadDir(outside); len(entries) != 0 {
			t.Errorf("%s: files were made outside: %v", test.name, entries)
		}
	}
}

func TestArchiveBounds(t *testing.T) {
	many := make([]member, 10_001)
	for i := range many {
		many[i].name = strings.Repeat("d/", i%3) + "f" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)[:min(i/26, 180)] + string(rune(0x4e00+i))
	}
	half := archive(t, member{name: "a", text: "first"}, member{name: "b", text: "second"})
	w := open(t, `{"max_zip_bytes": 100000}`, map[string]string{
		"many.zip":  archive(t, many...),
		"large.zip": archive(t, member{name: "a", text: noise(60_000)}, member{name: "b", text: noise(60_000)}),
		"cut.zip":   half[:len(half)-30],
		"bad.zip":   damage(half, "second"),
		"lies.zip":  lie(archive(t, member{name: "a", text: strings.Repeat("0", 90_000) + noise(90_000)})),
	})
	for name, words := range map[string]string{
		"many.zip": "10001 entries", "large.zip": "more than 100000 bytes", "cut.zip": "not a ZIP", "bad.zip": `nothing was unpacked: the entry "b"`, "lies.zip": "nothing was unpacked",
	} {
		w.refused(tool.CodeRuntime, words, "extract_zip", args{"path": name, "to": "out"})
	}
	if w.get("out/a") != "<none>" {
		t.Error("a part of an archive was unpacked")
	}
}

// noise returns n bytes that do not compress well.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// damage flips a bit in the packed form of the last entry's data.
func damage(data, _ string) string {
	b := []byte(data)
	i := bytes.LastIndex(b, []byte("PK\x03\x04"))
	b[i+32] ^= 0x10
	return string(b)
}

// lie makes the directory claim that the only entry unpacks to ten bytes.
func lie(data string) string {
	b := []byte(data)
	i := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[i+24:], 10)
	return string(b)
}

// Entries that overlap could make a small archive unpack to a huge one.
func TestOverlappingEntries(t *testing.T) {
	data := []byte(archive(t, member{name: "a", text: noise(5000)}, member{name: "b", text: "x"}))
	first := bytes.Index(data, []byte("PK\x01\x02"))
	second := first + bytes.Index(data[first+4:], []byte("PK\x01\x02")) + 4
	copy(data[second+16:second+28], data[first+16:first+28]) // checksum and sizes
	copy(data[second+42:second+46], data[first+42:first+46]) // place
	w := open(t, "", map[string]string{"a.zip": string(data)})
	w.refused(tool.CodeRuntime, "overlaps", "extract_zip", args{"path": "a.zip", "to": "out"})
}

// When writing fails midway, what was written goes and what was replaced comes back.
func TestExtractFailsMidway(t *testing.T) {
	w := open(t, "", map[string]string{"a.zip": archive(t, member{name: "a", text: "new"}, member{name: "n/b", text: "new"}, member{name: "locked", text: "new"}), "to/a": "old", "to/locked": "old"})
	if err := os.Chmod(filepath.Join(w.dir, "to/locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	w.refused(tool.CodeRuntime, "read-only", "extract_zip", args{"path": "a.zip", "to": "to", "overwrite": true})
	for name, want := range map[string]string{"to/a": "old", "to/locked": "old", "to/n/b": "<none>"} {
		if got := w.get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "to/n")); err == nil {
		t.Error("a folder was left behind")
	}
}
