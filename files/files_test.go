package files_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/root"
)

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		data, text string
		enc        files.Encoding
	}{
		{"", "", files.UTF8},
		{"plain ü\n", "plain ü\n", files.UTF8},
		{"\ufeffx", "x", files.UTF8BOM},
		{"\xff\xfea\x00=\xd8\x00\xde", "a😀", files.UTF16LE},
		{"\xfe\xff\x00a\xd8\x3d\xde\x00", "a😀", files.UTF16BE},
		{"na\xefve caf\xe9", "naïve café", files.Latin1},
		{"<svg xmlns='http://www.w3.org/2000/svg'/>", "<svg xmlns='http://www.w3.org/2000/svg'/>", files.UTF8},
	} {
		text, enc, ok := files.Decode([]byte(test.data))
		if !ok || text != test.text || enc != test.enc {
			t.Errorf("Decode(%q) = %q, %s, %v; want %q, %s", test.data, text, enc, ok, test.text, test.enc)
		}
	}
	for _, data := range []string{"a\x00b", "\xff\xd8\xff\xe0 JFIF", "%PDF-1.7\ntext only", "\x1f\x8b\x08 gzip", "\xff\xfea", "\xff\xfea\x00\x00\x00", "\xe9\xe8\xea\xeb\xec", "a\x01\xff"} {
		if text, enc, ok := files.Decode([]byte(data)); ok {
			t.Errorf("Decode(%q) takes it for text: %q, %s", data, text, enc)
		}
	}
}

// What is decoded and encoded again is what it was, unless it was no proper text.
func FuzzEncoding(f *testing.F) {
	for _, s := range []string{"", "a", "\ufeffa", "\xff\xfea\x00", "\xfe\xff\x00a", "caf\xe9 au lait", "a\x00", "\xff\xfe\x00\xd8"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, enc, ok := files.Decode(data)
		if !ok {
			return
		}
		back, err := enc.Encode(text)
		if err != nil {
			t.Fatalf("%q was read as %s, but cannot be written so: %v", data, enc, err)
		}
		if !bytes.Equal(back, data) && !strings.Contains(text, "\uFFFD") {
			t.Fatalf("%q became %q by way of %q (%s)", data, back, text, enc)
		}
	})
}

// Lines read from a file that is too large to be read whole are those of the whole.
func TestPartsOfLargeFiles(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("%d %s\n", i+1, strings.Repeat("ü", i%150)))
	}
	lines = append(lines, strings.Repeat("wide ", 30_000)+"\n", "last, without an end")
	os.WriteFile(filepath.Join(dir, "big"), []byte(strings.Join(lines, "")), 0o644)
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &files.Folder{Root: r, MaxRead: 200_000}
	for _, span := range [][2]int{{1, 1}, {1, 50}, {777, 3}, {2990, 10}, {3001, 1}, {3001, 2}, {3002, 1}, {3002, 9}} {
		res, err := f.Read(context.Background(), files.Read{Path: "big", Offset: span[0], Limit: span[1]})
		want := strings.Join(lines[span[0]-1:min(len(lines), span[0]-1+span[1])], "")
		if err != nil || res.JoinText() != want {
			t.Errorf("lines from %d, %d of them: %v, %d bytes; want %d", span[0], span[1], err, len(res.JoinText()), len(want))
		}
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("line\n"), 10_000), 0o644)
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &files.Folder{Root: r, MaxRead: 100}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, err := range map[string]error{
		"read": second(f.Read(ctx, files.Read{Path: "big", Offset: 9000})),
		"grep": second(f.Grep(ctx, files.Grep{Pattern: "x"})),
		"list": second(f.List(ctx, files.List{})),
		"glob": second(f.Glob(ctx, files.Glob{Pattern: "*"})),
	} {
		if err != context.Canceled {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
}

func second[T any](_ T, err error) error { return err }
