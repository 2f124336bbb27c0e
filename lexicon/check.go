package lexicon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/helve-ai/helve/letters"
)

// A File is a data file with its text.
type File struct {
	Name string
	Text []byte
}

// A Report is what Check found.
type Report struct {
	Concepts   int            `json:"concepts"`
	Kinds      map[string]int `json:"kinds"`
	Entries    int            `json:"entries"`
	Languages  []Coverage     `json:"languages"`
	Collisions []Collision    `json:"collisions"`
	Problems   []Problem      `json:"problems"`
}

// Coverage says how much of a language there is.
type Coverage struct {
	Code      string  `json:"language"`
	Concepts  int     `json:"concepts"`  // that have a word in it
	Share     float64 `json:"share"`     // of all concepts
	Entries   int     `json:"entries"`   // words and phrases
	Ambiguous int     `json:"ambiguous"` // those that count half
	Colliding int     `json:"colliding"` // those that are in several concepts
}

// A Collision is a word that stands in several concepts without being marked
// as ambiguous in all but one of them.
type Collision struct {
	Lang     string   `json:"language"`
	Word     string   `json:"word"`
	Concepts []string `json:"concepts"`
	File     string   `json:"file"` // of the last
	Line     int      `json:"line"`
}

// Errors returns the problems for which a file is not taken.
func (r *Report) Errors() []Problem {
	return slices.DeleteFunc(slices.Clone(r.Problems), func(p Problem) bool { return p.Warning })
}

// Check reads data files as one lexicon. Problems are in the order of the files.
func Check(files ...File) *Report {
	c := checker{report: &Report{Kinds: map[string]int{}, Collisions: []Collision{}, Problems: []Problem{}},
		names: map[string]Problem{}, words: map[string][]use{}}
	for _, code := range codes {
		c.report.Languages = append(c.report.Languages, Coverage{Code: code})
	}
	for _, f := range files {
		parsed, problems := parse(f.Name, f.Text)
		c.report.Problems = append(c.report.Problems, problems...)
		c.file = f.Name
		for i := range parsed.concepts {
			c.concept(&parsed.concepts[i])
		}
		c.read = append(c.read, parsed)
	}
	c.finish()
	return c.report
}

// A checker is at work on some files.
type checker struct {
	report *Report
	file   string
	read   []file
	names  map[string]Problem // where each concept stands
	words  map[string][]use   // by language and folded word
	z      atomiser
}

// A use is an entry, and the concept that has it.
type use struct {
	lang    int
	concept string
	entry   entry
	file    string
}

func (c *checker) found(line int, warning bool, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Problem{c.file, line, warning, fmt.Sprintf(format, args...)})
}

func (c *checker) concept(x *concept) {
	if x.name == "" {
		return
	}
	if before, ok := c.names[x.name]; ok {
		c.found(x.line, false, "%s stands in %s:%d already; put the words there", x.name, before.File, before.Line)
		return
	}
	c.names[x.name] = Problem{File: c.file, Line: x.line}
	c.report.Concepts++
	c.report.Kinds[x.kind.String()]++
	var missing []string
	for lang := range x.words {
		if len(x.words[lang]) == 0 {
			missing = append(missing, codes[lang])
			continue
		}
		c.language(x, lang)
	}
	if len(missing) > 0 {
		c.found(x.line, true, "%s has no words in %s", x.name, strings.Join(missing, " "))
	}
}

func (c *checker) language(x *concept, lang int) {
	cover := &c.report.Languages[lang]
	cover.Concepts++
	before := map[string]bool{}
	for _, e := range x.words[lang] {
		cover.Entries++
		c.report.Entries++
		if e.ambiguous {
			cover.Ambiguous++
		}
		key := c.key(e.text)
		switch {
		case key == "":
			c.found(e.line, false, "%s: %s %q has no letters", x.name, codes[lang], e.text)
			continue
		case before[key]:
			if c.twice(x.words[lang], e) {
				c.found(e.line, false, "%s: %s has %q twice; want each once", x.name, codes[lang], e.text)
			}
			continue
		}
		before[key] = true
		c.spelling(x, lang, e)
		k := codes[lang] + " " + key
		c.words[k] = append(c.words[k], use{lang, x.name, e, c.file})
	}
}

// twice reports whether an entry stands in a list twice in the same spelling;
// those that differ in accents only do no harm.
func (c *checker) twice(list []entry, e entry) bool {
	n := 0
	for _, o := range list {
		if strings.EqualFold(o.text, e.text) {
			n++
		}
	}
	return n > 1
}

// key returns what is told apart of a word.
func (c *checker) key(text string) string {
	c.z.split(strings.ToLower(letters.Compose(text)))
	var b strings.Builder
	for i := range c.z.atoms {
		a := &c.z.atoms[i]
		if i > 0 && !a.unspaced() {
			b.WriteByte(' ')
		}
		b.Write(c.z.folding(a))
	}
	return b.String()
}

// spelling looks for letters of other scripts and characters that no word has.
func (c *checker) spelling(x *concept, lang int, e entry) {
	own, foreign, before := false, rune(0), letters.None
	for _, r := range e.text {
		s := letters.ScriptOf(r)
		if s == letters.Latin && (before == letters.Cyrillic || before == letters.Arabic) || before == letters.Latin && (s == letters.Cyrillic || s == letters.Arabic) {
			c.found(e.line, false, "%s: %s %q is written in two scripts; want one", x.name, codes[lang], e.text)
			return
		}
		before = s
		switch {
		case s == letters.None && !strings.ContainsRune(" -'’./+#&_·・", r):
			c.found(e.line, false, "%s: %s %q has the character %q; want words and commas only", x.name, codes[lang], e.text, r)
			return
		case s == letters.None, s == letters.Digits, s == letters.Mark:
		case writtenIn(s)&(1<<lang) != 0:
			own = true
		case s != letters.Latin || unicode.Is(unicode.Latin, r) && r >= 0x80:
			foreign = r
		}
	}
	switch {
	case foreign != 0 && !(Langs(1)<<lang == Korean && letters.ScriptOf(foreign) == letters.Han):
		c.found(e.line, false, "%s: %s %q has %q, which is not written in that language", x.name, codes[lang], e.text, foreign)
	case !own && len(e.text) > 12:
		c.found(e.line, true, "%s: %s %q is not in its script", x.name, codes[lang], e.text)
	}
}

// finish looks for what can only be seen of all files together.
func (c *checker) finish() {
	for _, f := range c.read {
		for _, x := range f.concepts {
			c.named(f.name, x.name+" is", x.broader)
			c.named(f.name, x.name+" is near", x.near)
		}
	}
	for key, uses := range c.words {
		if len(uses) < 2 {
			continue
		}
		c.report.Languages[uses[0].lang].Colliding += len(uses)
		if clear := slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return u.entry.ambiguous }); len(clear) > 1 || len(uses) > 3 {
			c.report.Collisions = append(c.report.Collisions, collision(key, uses))
		}
	}
	slices.SortFunc(c.report.Collisions, func(a, b Collision) int {
		return cmp.Or(slices.Index(codes[:], a.Lang)-slices.Index(codes[:], b.Lang), cmp.Compare(a.Word, b.Word))
	})
	for i := range c.report.Languages {
		l := &c.report.Languages[i]
		l.Share = float64(l.Concepts) / float64(max(1, c.report.Concepts))
	}
}

// named looks for concepts in a list that there are none of.
func (c *checker) named(file, what string, list []entry) {
	for _, e := range list {
		if _, ok := c.names[e.text]; !ok {
			c.report.Problems = append(c.report.Problems, Problem{file, e.line, false, fmt.Sprintf("%s %s, which is no concept; want the name of one", what, e.text)})
		}
	}
}

func collision(key string, uses []use) Collision {
	lang, word, _ := strings.Cut(key, " ")
	out := Collision{Lang: lang, Word: word}
	for _, u := range uses {
		name := u.concept
		if u.entry.ambiguous {
			name += "?"
		}
		out.Concepts, out.File, out.Line = append(out.Concepts, name), u.file, u.entry.line
	}
	return out
}
