package root

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// pattern is one line of a rule file.
type pattern struct {
	text     string // without "!", the closing slash and the leading one
	line     int
	source   string // as it was written
	negated  bool
	dirOnly  bool
	basename bool // no slash inside: matched against the last component alone
	literal  int  // bytes before the first special one
	suffix   bool // "*" and a literal
}

// matcher holds the patterns of one rule file, with the meaning that git gives them in a .gitignore.
type matcher struct {
	file     string
	patterns []pattern
	fold     bool
}

// newMatcher reads a rule file. It fails for text that is not UTF-8 or holds a NUL byte.
func newMatcher(file, text string, fold bool) (*matcher, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%s: not UTF-8 text; save it as UTF-8", file)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("%s: holds a NUL byte; write one pattern per line", file)
	}
	m := &matcher{file: file, fold: fold}
	text = strings.TrimPrefix(text, "\ufeff")
	number := 0
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		number++
		if line == "" || line[0] == '#' {
			continue
		}
		m.patterns = append(m.patterns, newPattern(trimSpaces(strings.TrimSuffix(line, "\r")), number))
	}
	return m, nil
}

// trimSpaces cuts off trailing spaces, save those behind a backslash. Tabs stay, as in git.
func trimSpaces(line string) string {
	end := -1
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
			continue
		case '\\':
			i++
			if i >= len(line) {
				return line
			}
		}
		end = -1
	}
	if end >= 0 {
		return line[:end]
	}
	return line
}

func newPattern(line string, number int) pattern {
	p := pattern{text: line, source: line, line: number}
	if strings.HasPrefix(p.text, "!") {
		p.negated = true
		p.text = p.text[1:]
	}
	p.suffix = strings.HasPrefix(p.text, "*") && plain(p.text[1:]) == len(p.text)-1
	if strings.HasSuffix(p.text, "/") {
		p.dirOnly = true
		p.text = p.text[:len(p.text)-1]
	}
	p.basename = !strings.Contains(p.text, "/")
	p.text = strings.TrimPrefix(p.text, "/")
	p.literal = plain(p.text)
	return p
}

// plain counts the bytes of s before the first special one.
func plain(s string) int {
	for i := 0; i < len(s); i++ {
		if special(s[i]) {
			return i
		}
	}
	return len(s)
}

// match returns the pattern that excludes rel, or nil. As in git a path lies outside the reach of "!" when one of its
// parents is excluded.
func (m *matcher) match(rel string, isDir bool) *pattern {
	if m == nil || len(m.patterns) == 0 {
		return nil
	}
	for i := 0; i < len(rel); i++ {
		if rel[i] == '/' {
			if p := m.last(rel[:i], true); p != nil {
				return p
			}
		}
	}
	return m.last(rel, isDir)
}

// last judges rel alone, without its parents: the last pattern that matches decides.
func (m *matcher) last(rel string, isDir bool) *pattern {
	if m == nil {
		return nil
	}
	base := rel[strings.LastIndexByte(rel, '/')+1:]
	for i := len(m.patterns) - 1; i >= 0; i-- {
		p := &m.patterns[i]
		if p.dirOnly && !isDir {
			continue
		}
		if p.basename && m.matchBase(p, base) || !p.basename && m.matchPath(p, rel) {
			if p.negated {
				return nil
			}
			return p
		}
	}
	return nil
}

func (m *matcher) matchBase(p *pattern, base string) bool {
	switch {
	case p.literal == len(p.text):
		return m.equal(p.text, base)
	case p.suffix:
		want := p.text[1:]
		return len(want) <= len(base) && m.equal(want, base[len(base)-len(want):])
	}
	return glob{fold: m.fold}.matches(p.text, base)
}

func (m *matcher) matchPath(p *pattern, rel string) bool {
	if p.literal > len(rel) || !m.equal(p.text[:p.literal], rel[:p.literal]) {
		return false
	}
	if p.literal == len(p.text) && p.literal == len(rel) {
		return true
	}
	return glob{path: true, fold: m.fold}.matches(p.text[p.literal:], rel[p.literal:])
}

// equal compares bytes, ASCII letters in either case when the matcher folds.
func (m *matcher) equal(a, b string) bool {
	if !m.fold || len(a) != len(b) {
		return a == b
	}
	g := glob{fold: true}
	for i := 0; i < len(a); i++ {
		if g.lower(a[i]) != g.lower(b[i]) {
			return false
		}
	}
	return true
}
