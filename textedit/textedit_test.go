package textedit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/helve-ai/helve/textedit"
)

func TestApply(t *testing.T) {
	for _, test := range []struct {
		text  string
		edits []textedit.Edit
		want  string
		n     int
	}{
		{"a b c", []textedit.Edit{{Old: "b", New: "x"}}, "a x c", 1},
		{"a b c", []textedit.Edit{{Old: "b ", New: ""}}, "a c", 1},
		{"aaa", []textedit.Edit{{Old: "a", New: "aa", All: true}}, "aaaaaa", 3},
		{"one\ntwo\n", []textedit.Edit{{Old: "one", New: "two"}, {Old: "two\ntwo", New: "x"}}, "x\n", 2},
		{"one\r\ntwo\r\n", []textedit.Edit{{Old: "one\ntwo", New: "1\n2"}}, "1\r\n2\r\n", 1},
		{"one\ntwo\n", []textedit.Edit{{Old: "one\r\ntwo", New: "1\r\n2"}}, "1\n2\n", 1},
		{"one\r\ntwo\nthree", []textedit.Edit{{Old: "two\nthree", New: "2\n3"}}, "one\r\n2\n3", 1}, // mixed: as given
		{"x", []textedit.Edit{{Old: "x", New: "a\r\nb"}}, "a\r\nb", 1},
	} {
		got, n, err := textedit.Apply(test.text, test.edits...)
		if err != nil || got != test.want || n != test.n {
			t.Errorf("Apply(%q, %+v) = %q, %d, %v; want %q, %d", test.text, test.edits, got, n, err, test.want, test.n)
		}
	}
}

func TestRefusals(t *testing.T) {
	file := "package a\n\nfunc first() {\n\tx := \"it's\"\n\treturn x\n}\n\nfunc second() {\n\tx := 2\n\treturn x\n}\n"
	for _, test := range []struct {
		name, text, old, new string
		kind                 textedit.Kind
		lines                []int
		words                string
	}{
		{"empty", file, "", "x", textedit.Empty, nil, "old is empty"},
		{"same", file, "x", "x", textedit.Same, nil, "the same"},
		{"ambiguous", file, "\treturn x\n", "y", textedit.Ambiguous, []int{5, 10}, "occurs 2 times, beginning on lines 5, 10"},
		{"overlapping", "aaa", "aa", "y", textedit.Ambiguous, []int{1, 1}, "2 times"},
		{"many", strings.Repeat("x\n", 5000), "x", "y", textedit.Ambiguous, nil, "1000 or more times, beginning on lines 1, 2"},
		{"indentation", file, "func second() {\n  x := 2\n  return x", "y", textedit.NotFound, []int{8}, "only in indentation:\nfunc second() {\n\tx := 2\n\treturn x"},
		{"ends of lines", file, "func second() {  \n\tx := 2", "y", textedit.NotFound, []int{8}, "white space at the ends of lines"},
		{"white space", file, "x:=2", "y", textedit.NotFound, []int{9}, "only in white space or line breaks"},
		{"outer", file, " \nfunc second", "y", textedit.NotFound, []int{8}, "at the beginning or the end"},
		{"line break", "a b c", "b\n", "y", textedit.NotFound, []int{1}, "line break at the beginning or the end"},
		{"mixed line ends", "a\r\nb\nc\n", "a\nb", "y", textedit.NotFound, []int{1}, "line endings"},
		{"quotes", file, "x := \"it’s\"", "y", textedit.NotFound, []int{4}, "quotes"},
		{"quotes and space", file, "x  :=  “it’s”", "y", textedit.NotFound, []int{4}, "white space and in quotes"},
		{"case", file, "FUNC second", "y", textedit.NotFound, []int{8}, "upper and lower case"},
		{"numbers", file, "9\t\tx := 2\n10\t\treturn x", "y", textedit.NotFound, []int{9}, "line numbers"},
		{"escapes", file, `x := \"it's\"`, "y", textedit.NotFound, []int{4}, "escape sequences"},
		{"entities", "if a < b {", "if a &lt; b {", "y", textedit.NotFound, []int{1}, "entities"},
		{"similar block", file, "func second() {\n\tx := 3\n\treturn x\n}", "y", textedit.NotFound, []int{8}, "lines 8 to 11 of the file come nearest:\nfunc second() {\n\tx := 2"},
		{"similar line", file, "func sekond()", "y", textedit.NotFound, []int{8}, "line 8 of the file come"},
		{"nothing near", file, "Ω≈ç√∫", "y", textedit.NotFound, nil, "nor does anything like it"},
		{"empty text", "\n", "x", "y", textedit.NotFound, nil, "the text is empty"},
	} {
		_, _, err := textedit.Apply(test.text, textedit.Edit{Old: test.old, New: test.new})
		var e *textedit.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: no refusal: %v", test.name, err)
			continue
		}
		if e.Kind != test.kind || !strings.Contains(e.Message, test.words) || test.lines != nil && fmt.Sprint(e.Lines) != fmt.Sprint(test.lines) {
			t.Errorf("%s: kind %d, lines %v, %q; want kind %d, lines %v, %q", test.name, e.Kind, e.Lines, e.Message, test.kind, test.lines, test.words)
		}
	}
	_, _, err := textedit.Apply("a b", textedit.Edit{Old: "a", New: "b"}, textedit.Edit{Old: "b", New: "c"})
	var e *textedit.Error
	if !errors.As(err, &e) || e.Index != 1 || e.Kind != textedit.Ambiguous {
		t.Errorf("the second edit was not refused: %v", err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "two", "2")
	f.Add("a\r\nb\r\n", "a\nb", "c\nd")
	f.Add("aaa", "aa", "b")
	f.Add("\u200bx ’y’ ", "'Y'", "z")
	f.Fuzz(func(t *testing.T, text, old, new string) {
		got, _, err := textedit.Apply(text, textedit.Edit{Old: old, New: new})
		old, new = textedit.Conform(old, text), textedit.Conform(new, text)
		if err != nil {
			if old != "" && old != new && strings.Count(text, old) == 1 && !strings.Contains(text[strings.Index(text, old)+1:], old) && textedit.Conform("\n", text) == "\n" {
				t.Fatalf("a passage that occurs once was refused: %v", err)
			}
			return
		}
		if want := strings.Replace(text, old, new, 1); got != want {
			t.Fatalf("Apply = %q, want %q", got, want)
		}
		back, err := patch(text, textedit.Diff("a", "b", text, got))
		if err != nil || back != got {
			t.Fatalf("the diff gives %q, %v; want %q", back, err, got)
		}
	})
}

// patch applies a unified diff, checking every line of it.
func patch(text, diff string) (string, error) {
	src := lines(text)
	var out []string
	at := 0
	in := strings.SplitAfter(diff, "\n")
	for i := 0; i < len(in); i++ {
		line := in[i]
		switch {
		case line == "" || i < 2 && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
			continue
		case strings.HasPrefix(line, "@@ -"):
			old, _, _ := strings.Cut(line[4:], " ")
			start, count, ok := strings.Cut(old, ",")
			n, err := strconv.Atoi(start)
			if err != nil {
				return "", err
			}
			if !(ok && count == "0") {
				n--
			}
			out = append(out, src[at:n]...)
			at = n
			continue
		}
		body := line[1:]
		if i+1 < len(in) && strings.HasPrefix(in[i+1], `\ No newline`) {
			body = strings.TrimSuffix(body, "\n")
		}
		switch line[0] {
		case ' ', '-':
			if at >= len(src) || src[at] != body {
				return "", fmt.Errorf("line %d of the diff, %q, does not fit", i+1, line)
			}
			if line[0] == ' ' {
				out = append(out, body)
			}
			at++
		case '+':
			out = append(out, body)
		case '\\':
		default:
			return "", fmt.Errorf("line %d of the diff is %q", i+1, line)
		}
	}
	return strings.Join(append(out, src[at:]...), ""), nil
}

func lines(text string) []string {
	out := strings.SplitAfter(text, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func FuzzDiff(f *testing.F) {
	f.Add("", "a\n")
	f.Add("a\nb\nc\n", "a\nc\n")
	f.Add("a\nb\nc", "a\nb\nc\n")
	f.Add("{\n}\n{\n}\n", "{\n}\n\n{\nx\n}\n")
	f.Add(strings.Repeat("a\nb\n", 20), strings.Repeat("b\na\nc\n", 15))
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := patch(a, textedit.Diff("a", "b", a, b))
		if err != nil || got != b {
			t.Fatalf("the diff from %q to %q gives %q, %v:\n%s", a, b, got, err, textedit.Diff("a", "b", a, b))
		}
	})
}

func TestDiffText(t *testing.T) {
	a := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16"
	b := "1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"
	want := "--- old\n+++ new\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n" +
		"@@ -13,4 +13,4 @@\n 13\n 14\n 15\n-16\n\\ No newline at end of file\n+16\n"
	if got := textedit.Diff("old", "new", a, b); got != want {
		t.Errorf("Diff =\n%s\nwant\n%s", got, want)
	}
	if got := textedit.Diff("", "", "", "x\n"); got != "@@ -0,0 +1 @@\n+x\n" {
		t.Errorf("Diff from nothing = %q", got)
	}
	if got := textedit.Diff("a", "b", a, a); got != "" {
		t.Errorf("Diff of equal texts = %q", got)
	}
	if got, want := textedit.Bound(textedit.Diff("", "", a, b), 40), "@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n[8 more lines of the diff are left out]\n"; got != want {
		t.Errorf("Bound = %q, want %q", got, want)
	}
}

// Far apart texts must not cost the square of their length, and the diff must still be right.
func TestDiffOfFarTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&a, "%d\n", i*7919%101)
		fmt.Fprintf(&b, "%d\n", i*6271%103)
	}
	got, err := patch(a.String(), textedit.Diff("a", "b", a.String(), b.String()))
	if err != nil || got != b.String() {
		t.Errorf("the diff does not apply: %v", err)
	}
}

// Git is the judge of the format.
func TestDiffByGit(t *testing.T) {
	need(t, "git")
	for i, test := range [][2]string{
		{"a\nb\nc\n", "a\nx\nc\n"}, {"a", "a\n"}, {"a\n", "a"}, {"a\nb", "b\nc"}, {"x\n", "x\n\n\ny\n"}, {strings.Repeat("k\n", 30), strings.Repeat("k\n", 11) + "z\n" + strings.Repeat("k\n", 18)},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		os.WriteFile(file, []byte(test[0]), 0o644)
		cmd := exec.Command("git", "apply", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(textedit.Diff("a/f", "b/f", test[0], test[1]))
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := cmd.CombinedOutput()
		if got, _ := os.ReadFile(file); err != nil || string(got) != test[1] {
			t.Errorf("%d: git made %q of it: %v %s", i, got, err, out)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	text := strings.Repeat("some line of code\nanother one\n}\n", 3000)
	changed := strings.Replace(text, "another", "other", 5)
	for b.Loop() {
		textedit.Diff("a", "b", text, changed)
	}
}

// need skips a test that needs a program which is not installed, or fails it
// where HELVE_TEST_REQUIRE names the program.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if strings.Contains(","+os.Getenv("HELVE_TEST_REQUIRE")+",", ","+program+",") {
		t.Fatalf("%s is not installed, but HELVE_TEST_REQUIRE names it", program)
	}
	t.Skipf("%s is not installed; on Debian: apt-get install %s", program, program)
}
