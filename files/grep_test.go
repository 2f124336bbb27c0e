package files_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/root"
)

// Whatever is known of an expression to search faster, the outcome is that of
// trying it on every line.
func TestGrepFindsWhatTryingEachLineFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, n int) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	dir := t.TempDir()
	content := map[string]string{}
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		content[name] = word("aabb\n", 120) + word("\r\n", 3)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := &files.Folder{Root: r, MaxResults: 100_000}
	patterns := []string{"^", "$", "^$", "a*", "(ab)+", "a{2}b", "(?i)AB", "ab|ba", "^ab", "b$", "[^a]+b", "(a|b)ab", "a?bb", "(?:ab){0,2}a$", `\bab\b`}
	for range 60 {
		patterns = append(patterns, word("aabb", 5)+word("*+?", 2)+word("ab", 3))
	}
	for _, pattern := range patterns {
		re, err := regexp.Compile(pattern)
		if err != nil || pattern == "" {
			continue
		}
		var want strings.Builder
		for i := range 40 {
			name := fmt.Sprintf("f%02d", i)
			for j, line := range strings.Split(strings.TrimSuffix(content[name], "\n"), "\n") {
				line = strings.TrimSuffix(line, "\r")
				if content[name] != "" && re.MatchString(line) {
					fmt.Fprintf(&want, "%s:%d: %s\n", name, j+1, line)
				}
			}
		}
		for context := range 2 {
			got, err := f.Grep(t.Context(), files.Grep{Pattern: pattern, Limit: 100_000, Context: context * 3})
			if err != nil {
				t.Fatal(err)
			}
			if lines := onlyMatches(got); lines != want.String() {
				t.Errorf("grep %q =\n%swant\n%s", pattern, lines, want.String())
			}
			if context > 0 {
				checkContext(t, pattern, got, content)
			}
		}
	}
}

var matched = regexp.MustCompile(`^f\d\d:\d+: `)

func onlyMatches(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if matched.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var shown = regexp.MustCompile(`^(f\d\d)[-:](\d+)[-:] (.*)$`)

// checkContext checks that each line shown is the file's, once and in order.
func checkContext(t *testing.T, pattern, out string, content map[string]string) {
	t.Helper()
	last := ""
	for line := range strings.Lines(out) {
		m := shown.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		var n int
		fmt.Sscan(m[2], &n)
		lines := strings.Split(content[m[1]], "\n")
		if n > len(lines) || strings.TrimSuffix(lines[n-1], "\r") != m[3] {
			t.Fatalf("grep %q shows %q, which is not so in the file", pattern, line)
		}
		if key := fmt.Sprintf("%s %06d", m[1], n); key <= last {
			t.Fatalf("grep %q shows %s after %s", pattern, key, last)
		} else {
			last = key
		}
	}
}
