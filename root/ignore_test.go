package root_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
)

// needGit skips the test without git, or fails it where HELVE_TEST_REQUIRE lists git.
func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err == nil {
		return
	}
	if slices.Contains(strings.FieldsFunc(os.Getenv("HELVE_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), "git") {
		t.Fatal("git is required here and is not installed")
	}
	t.Skip("install git to compare the ignore rules with its own")
}

// A trial is one rule file and the paths to judge by it. Paths that end in a slash are folders.
type trial struct {
	rules string
	paths []string
}

// gitJudges asks git which paths each trial's rules exclude, in either case of core.ignorecase. Every trial gets a
// folder of one repository.
func gitJudges(t testing.TB, trials []trial) map[bool][][]bool {
	t.Helper()
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null")
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("git %v: %v\n%s", args, err, stderr.String())
		}
		return string(out)
	}
	git("", "init", "-q")
	var stdin strings.Builder
	for i, tr := range trials {
		base := filepath.Join(dir, fmt.Sprint("t", i))
		must(t, os.MkdirAll(base, 0o755))
		must(t, os.WriteFile(filepath.Join(base, ".gitignore"), []byte(tr.rules), 0o644))
		for _, p := range tr.paths {
			if strings.HasSuffix(p, "/") {
				must(t, os.MkdirAll(filepath.Join(base, p), 0o755))
			}
			fmt.Fprintf(&stdin, "t%d/%s\x00", i, strings.TrimSuffix(p, "/"))
		}
	}
	verdicts := map[bool][][]bool{}
	for _, fold := range []bool{false, true} {
		out := git(stdin.String(), "-c", fmt.Sprint("core.ignorecase=", fold), "check-ignore", "--no-index", "-v", "-n", "--stdin", "-z")
		verdicts[fold] = readVerdicts(t, trials, strings.Split(out, "\x00"))
	}
	return verdicts
}

// readVerdicts reads what check-ignore says: source, line, pattern and path for each path.
func readVerdicts(t testing.TB, trials []trial, fields []string) [][]bool {
	t.Helper()
	verdicts := make([][]bool, len(trials))
	for i, tr := range trials {
		for _, p := range tr.paths {
			if len(fields) < 5 {
				t.Fatalf("git answered too little at trial %d, path %q", i, p)
			}
			if want := fmt.Sprintf("t%d/%s", i, strings.TrimSuffix(p, "/")); fields[3] != want {
				t.Fatalf("git answered for %q, want %q", fields[3], want)
			}
			verdicts[i] = append(verdicts[i], fields[0] != "" && !strings.HasPrefix(fields[2], "!"))
			fields = fields[4:]
		}
	}
	return verdicts
}

// compare judges every trial and reports each verdict that is not git's.
func compare(t *testing.T, trials []trial) (pairs int) {
	t.Helper()
	for fold, want := range gitJudges(t, trials) {
		for i, tr := range trials {
			excluded, err := root.Excluded(tr.rules, fold)
			must(t, err)
			for j, p := range tr.paths {
				pairs++
				rel, isDir := strings.CutSuffix(p, "/")
				if got := excluded(rel, isDir); got != want[i][j] {
					t.Errorf("rules %q, path %q, fold %v: excluded = %v, git says %v", tr.rules, p, fold, got, want[i][j])
				}
			}
		}
	}
	return pairs
}

var samples = []string{
	"b", "bar", "foo/", "dir/", "dir/a", "dir/foo", "dir/sub/", "dir/sub/a", "dir/sub/foo", "dir/sub/deep/", "dir/sub/deep/x.o",
	"a.txt", "b.txt", "dir/a.txt", "dir/sub/b.txt", "x.o", "foo.o", "dir/foo.o", "build/", "build/out", "build/keep.txt", "src/build/",
	"src/build/out", "src/a/b/c", "src/a/b/", "a/b/", "a/b/c", "a/x/b", "a/x/y/b", "foo/bar/", "foo/bar/baz", "bin/foo", "bin/a", "foo/x/bar", "foobar", "fooXbar",
	"foo bar", "foo ", " foo", "#hash", "!bang", "a[b]c", "[ab]", "a*b", "a?b", `a\b`, `back\`, "-", "a-b", "]", "^", "é.txt", "日本.md",
	"A", "FOO", "Foo.TXT", "0", "9z", "a\tb", ".hidden/", ".hidden/x", "dir/.env", ".env", ".env.local", "z/z/z/z/z", "aaa", "aaaa", "**",
	"foo**", "foo/**", "dir/**/a", "a:b", "q/b/c/d/e/f/", "ab", "abc", "a.b.c", "a..b", "...",
}

func TestIgnoreAgreesWithGit(t *testing.T) {
	needGit(t)
	var trials []trial
	for _, rules := range []string{
		"", "foo", "/foo", "foo/", "/foo/", "foo/bar", "/foo/bar", "foo/bar/", "*/foo", "*.o", "/*.o", "dir/*.o", "dir/*", "/dir/*", "dir/**", "**/dir", "**/foo",
		"**/foo/bar", "foo/**", "foo/**/bar", "foo/**/", "a/**/b", "/**", "**", "**/", "*/", "*", "/*", "/*/", "?", "??", "???", "a?b", "foo?bar",
		"[ab]", "[!a]", "[^a]", "[a-c]", "[c-a]", "[]]", "[!]]", "[]-]", "[-a]", "[a-]", "[--/]", "[[]", "[a", "[", "[]", "[!", "[^", "[a-", `[\]]`, `[\a]`, `[a\-c]`, `[\`,
		"[[:alpha:]]", "[[:digit:]]*", "[[:upper:]]", "[![:lower:]]", "[[:space:]]", "[[:foo:]]", "[[:alpha:]", "[[:alpha]", "[[::]]", "[[:]]", "[[:]", "[a[:digit:]-z]",
		"[[:alnum:]-z]", "[[:punct:]]", "[[:blank:]]*", "[[:xdigit:]]", "[[:cntrl:]]", "[[:graph:]]", "[[:print:]]", "a[[:blank:]]b", "a[/]b", "a[^x]b", "foo[^x]bar",
		"#hash", `\#hash`, "!bang", `\!bang`, "foo ", `foo\ `, `foo\  `, "foo\t", "foo bar", " foo", `a\*b`, `a\?b`, `a\[b]c`, `a\\b`, `back\\`, `back\`, `\f\o\o`, `\`, `\\`, "!", "/", "//", "///", "foo//", "//foo", "foo//bar",
		"*\n!foo", "*\n!*/\n!a.txt", "foo/\n!foo/bar", "foo/*\n!foo/bar", "dir/*\n!dir/sub/\ndir/sub/*\n!dir/sub/a", "build/\n!build/keep.txt", "build/*\n!build/keep.txt",
		"*.txt\n!a.txt\n/dir/a.txt", "!foo\nfoo", "foo\n!foo", "foo\n!/foo", "**/build\n!src/build", "/build\n!/build/", "!build/\nbuild",
		"foo\r\nbar\r\n", "foo\r", "foo\r\r\n", "\r\n*.o\r\n", "\ufefffoo", "foo\n\n\n", "   ", "  \nfoo", "foo**", "foo**bar", "a**", "**a", "a**b", "foo**/bar", "x/foo**/bar", "**.o", "**/*.o", "dir/**/*.o", "***", "***/foo", "a/***/b", "a/**b", "a/b**", "**/**/b", "a/**/**/b", "**/**", `a/**\/b`, `**\/b`, `a\/b`,
		"*a*a*a", "*a*a*a*b", "a*", "*b", "*.b.*", "a.*.c", "*.*", ".*", ".*/", ".env*", "!.env\n.env*", "é.txt", "?.txt", "??.txt", "[é].txt", "日本.md", "日?.md", "???????.md", "*.md", "A", "a", "foo.txt", "Foo.TXT", "**foo**", "*/*/*", "*/*/*/", "src/*/b", "src/**/c", "src/**/b/", "z/**/z", "z/*/z/**", "./foo", "../foo", "foo/.", "foo/./bar", "dir/sub/..", ".", "..", "...",
		"-", "]", "^", "a-b", "a:b", ":a", "0", "[0-9]*", "[0-9][a-z]", "[!0-9]", "[a-z]oo", "[A-Z]*", "dir/[s]ub", "dir[/]sub", "dir?sub", "dir/*/deep", "dir/*/deep/", "dir/sub/deep/*", "*dir*", "dir*/", "/dir/sub/deep/x.o", "sub", "sub/", "deep/x.o", "/sub", "sub/deep",
	} {
		trials = append(trials, trial{rules, samples})
	}
	t.Logf("compared %d pairs", compare(t, trials))
}

// randomRules makes a rule file of pieces that meet the matcher's corners.
func randomRules(rng *rand.Rand) string {
	pieces := []string{
		"a", "b", "ab", "foo", "bar", "dir", "sub", ".txt", ".o", "/", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]",
		"[[:digit:]-z]", "[[:x:]]", "[", "]", "[a", "-", `\`, `\*`, `\a`, `\/`, " ", `\ `, "!", "#", ".", "é", "A", "^", ":", "\t", "\r", "x", "y",
	}
	var text strings.Builder
	for range 1 + rng.IntN(5) {
		if rng.IntN(4) == 0 {
			text.WriteString("!")
		}
		for range 1 + rng.IntN(6) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		text.WriteString("\n")
	}
	return text.String()
}

// randomPaths makes paths of which none is both a file and a folder: git looks on the disk which one it is.
func randomPaths(rng *rand.Rand, n int) []string {
	names := []string{"a", "b", "ab", "aab", "foo", "bar", "foobar", "dir", "sub", "a.txt", "b.o", "foo.o", "x", "y", "A", "é", "-", "]", "[a", "^b", " ", "a ", `a\`, "!a", "#a", "**", "*", "a*", "z9", "...", "a:b"}
	var paths []string
	files, dirs := map[string]bool{}, map[string]bool{}
	for len(paths) < n {
		var parts []string
		for range 1 + rng.IntN(4) {
			parts = append(parts, names[rng.IntN(len(names))])
		}
		p := strings.Join(parts, "/")
		clash := files[p] || dirs[p]
		for i := range parts[:len(parts)-1] {
			clash = clash || files[strings.Join(parts[:i+1], "/")]
		}
		if clash {
			continue
		}
		for i := range parts[:len(parts)-1] {
			dirs[strings.Join(parts[:i+1], "/")] = true
		}
		if rng.IntN(5) == 0 {
			dirs[p] = true
			p += "/"
		} else {
			files[p] = true
		}
		paths = append(paths, p)
	}
	return paths
}

func TestIgnoreAgreesWithGitAtRandom(t *testing.T) {
	needGit(t)
	seeds, perSeed := 5, 25
	if os.Getenv("HELVE_TEST_LONG") != "" {
		seeds, perSeed = 60, 400
	}
	pairs := 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		paths := randomPaths(rng, 40)
		var trials []trial
		for range perSeed {
			trials = append(trials, trial{randomRules(rng), paths})
		}
		pairs += compare(t, trials)
		if t.Failed() {
			t.Fatalf("first difference with seed %d", seed)
		}
	}
	t.Logf("compared %d pairs", pairs)
}

func FuzzIgnoreAgreesWithGit(f *testing.F) {
	needGit(f)
	f.Add("foo/**/bar\n!x", "foo/a/bar")
	f.Add("[[:alpha:]]*\\ ", "a/b")
	f.Add("a**b/", "aXb/c/")
	f.Fuzz(func(t *testing.T, rules, path string) {
		trimmed := strings.TrimSuffix(path, "/")
		if len(path) > 200 || strings.ContainsRune(path, 0) || !filepath.IsLocal(trimmed) || filepath.Clean(trimmed) != trimmed || trimmed == "." {
			t.Skip()
		}
		excluded, err := root.Excluded(rules, false)
		if err != nil || strings.Contains(strings.ToLower(path), ".git") {
			t.Skip()
		}
		want := gitJudges(t, []trial{{rules, []string{path}}})[false][0][0]
		if got := excluded(trimmed, strings.HasSuffix(path, "/")); got != want {
			t.Errorf("rules %q, path %q: excluded = %v, git says %v", rules, path, got, want)
		}
	})
}

// A pattern may be written to make its matcher try for ever; this test ends only when it does not.
func TestHostilePatterns(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("a/", 60), "/")
	for _, rules := range []string{
		strings.Repeat("**/", 60) + "b", strings.Repeat("**/a/", 30) + "b", strings.Repeat("a*", 60) + "b", strings.Repeat("**a", 40) + "b", "/" + strings.Repeat("*a*/", 40) + "b",
		strings.Repeat("**/*a*/", 30) + "b", strings.Repeat("*?", 60) + "b", "x/" + strings.Repeat("[a]*", 60) + "b", strings.Repeat("a/**/", 40) + "**b",
	} {
		excluded, err := root.Excluded(rules, false)
		must(t, err)
		for _, path := range []string{deep, strings.Repeat("a", 200), "x/" + strings.Repeat("a", 200)} {
			if excluded(path, false) {
				t.Errorf("rules %q exclude %q", rules, path)
			}
		}
	}
}
