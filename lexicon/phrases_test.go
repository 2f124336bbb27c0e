package lexicon

import (
	"os"
	"strings"
	"testing"
)

// Requests in inflected words, through the lexicon that comes with the program.
func TestPhrases(t *testing.T) {
	raw, err := os.ReadFile("testdata/phrases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		code, rest, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		text, want, _ := strings.Cut(rest, " = ")
		missing(t, code, text, strings.Fields(want))
	}
}

func missing(t *testing.T, code, text string, want []string) {
	l := Default()
	found := map[string]float32{}
	var all []string
	for _, m := range l.Match(nil, text, Hint{}) {
		found[l.Name(m.Concept)] = max(found[l.Name(m.Concept)], m.Weight)
		all = append(all, text[m.From:m.To]+"="+l.Name(m.Concept))
	}
	for _, w := range want {
		if found[w] < .3 {
			t.Errorf("%s: %q: %s is not among %s", code, text, w, strings.Join(all, " "))
		}
	}
}
