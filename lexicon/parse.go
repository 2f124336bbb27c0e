package lexicon

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A file is a data file that was read.
type file struct {
	name     string
	concepts []concept
}

// A concept is a block of a data file.
type concept struct {
	name    string
	kind    Kind
	line    int
	words   [langCount][]entry
	lines   [langCount]int // of each language; zero where there is none
	broader []entry
	near    []entry
}

// An entry is a word or phrase of a concept.
type entry struct {
	text      string
	ambiguous bool // often means something else
	line      int
}

// A Problem is something that is wrong with a data file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Warning bool   `json:"warning,omitempty"` // the file is taken all the same
	Text    string `json:"problem"`
}

func (p Problem) Error() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

var headForm = regexp.MustCompile(`^([a-z][a-z0-9_]*) \((action|object|domain|quality)\)$`)

// A parser reads one data file.
type parser struct {
	file     file
	at       *concept
	line     int
	problems []Problem
}

// parse reads a data file as far as it can be understood.
func parse(name string, text []byte) (file, []Problem) {
	p := parser{file: file{name: name}}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		p.line++
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			p.end()
		case strings.HasPrefix(line, "#"):
		case p.at == nil:
			p.head(line)
		default:
			p.words(line)
		}
	}
	p.end()
	return p.file, p.problems
}

func (p *parser) wrong(format string, args ...any) {
	p.problems = append(p.problems, Problem{File: p.file.name, Line: p.line, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) end() {
	if p.at != nil {
		p.file.concepts = append(p.file.concepts, *p.at)
	}
	p.at = nil
}

func (p *parser) head(line string) {
	p.at = &concept{line: p.line}
	m := headForm.FindStringSubmatch(line)
	if m == nil {
		p.wrong("%q does not begin a concept; want its name in lower case and its kind, as in: pull_request (object); kinds are action, object, domain and quality; within a concept there is no empty line", line)
		return
	}
	p.at.name, p.at.kind = m[1], Kind(slices.Index(kinds[:], m[2]))
}

func (p *parser) words(line string) {
	code, rest, ok := strings.Cut(line, ":")
	lang := LangOf(code)
	switch {
	case !ok:
		p.wrong("%q has no colon; want a language and its words, as in: en: delete, remove", line)
		return
	case code == "is":
		p.at.broader = append(p.at.broader, p.entries(rest)...)
		return
	case code == "near":
		p.at.near = append(p.at.near, p.entries(rest)...)
		return
	case lang == 0:
		p.wrong("there is no language %q; want one of %s, is: for broader concepts, or near: for related ones", code, strings.Join(codes[:], " "))
		return
	case p.at.lines[lang.index()] != 0:
		p.wrong("%s stands in line %d already; put all words into one line", code, p.at.lines[lang.index()])
		return
	}
	p.at.lines[lang.index()] = p.line
	p.at.words[lang.index()] = p.entries(rest)
}

// entries reads words between commas, Western or not.
func (p *parser) entries(text string) []entry {
	var out []entry
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '、' || r == '，' || r == '،' }) {
		w = strings.Join(strings.Fields(w), " ")
		bare := strings.TrimSpace(strings.TrimRight(w, "?？؟"))
		if bare == "" {
			continue
		}
		out = append(out, entry{bare, bare != w, p.line})
	}
	return out
}
