package files

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SummarizePaths returns what a listing or a glob found that is too long to be
// shown: how many paths each folder has, and its first ones.
func SummarizePaths(whole string, most int) string {
	lines, end := foundLines(whole)
	o := outline{kind: "entry", end: end}
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " -> ")
		o.add(path.Dir(strings.TrimSuffix(name, "/"))+"/", line, 1)
	}
	return o.fit(most)
}

// SummarizeMatches returns what Grep found that is too long to be shown: how
// many matches each file has, and its first ones.
func SummarizeMatches(whole string, most int) string {
	lines, end := foundLines(whole)
	o := outline{kind: "match", end: end}
	for _, line := range lines {
		if m := matchLine.FindStringSubmatch(line); m != nil {
			o.add(m[1], m[2], 1)
		} else if m := matchedFile.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			o.add(m[1], "", n)
		}
	}
	return o.fit(most)
}

var (
	matchLine   = regexp.MustCompile(`^(.+?):(\d+: .*)$`)
	matchedFile = regexp.MustCompile(`^(.+) \((\d+)(?: or more)? match(?:es)?\)$`)
)

// foundLines returns the lines of what was found, and the last one, which says
// how much that is.
func foundLines(whole string) (lines []string, end string) {
	lines = strings.Split(strings.TrimRight(whole, "\n"), "\n")
	last := len(lines) - 1
	if strings.HasPrefix(lines[last], "[") {
		return lines[:last], lines[last]
	}
	return lines, ""
}

// An outline is lines by what they belong to.
type outline struct {
	kind   string // what is counted, a key of plurals
	end    string // the last line
	groups []*group
	byName map[string]*group
}

type group struct {
	name  string
	items []string
	count int
}

// add counts n more of a group, and keeps an item of it that is not "".
func (o *outline) add(name, item string, n int) {
	if item == "" {
		o.take(name, nil, n)
		return
	}
	o.take(name, []string{item}, n)
}

func (o *outline) take(name string, items []string, n int) {
	g := o.byName[name]
	if g == nil {
		if o.byName == nil {
			o.byName = map[string]*group{}
		}
		g = &group{name: name}
		o.byName[name] = g
		o.groups = append(o.groups, g)
	}
	g.items = append(g.items, items...)
	g.count += n
}

var plurals = map[string]string{"entry": "entries", "match": "matches"}

// maxItem bounds the characters of one line of an outline.
const maxItem = 160

// fit returns the outline with as many lines of each group as most characters
// hold; where the groups alone are too many, those of a folder become one.
func (o *outline) fit(most int) string {
	most -= utf8.RuneCountInString(o.end) + 1
	if len(o.groups) == 0 || most <= 0 {
		return ""
	}
	for level := o; level != nil; level = level.coarser() {
		for _, each := range []int{300, 100, 50, 20, 10, 5, 3, 2, 1} {
			if text, ok := level.write(each, most); ok {
				return text + o.end
			}
		}
		o = level
	}
	text, _ := o.write(1, most)
	return text + o.end
}

// write returns the outline with each group's first items, and whether that is
// all of it within most characters.
func (o *outline) write(each, most int) (string, bool) {
	var b strings.Builder
	used := 0
	for i, g := range o.groups {
		part := g.text(each, o.kind)
		rest := fmt.Sprintf("… %d more\n", len(o.groups)-i)
		n := utf8.RuneCountInString(part)
		if used+n > most-utf8.RuneCountInString(rest) && (i+1 < len(o.groups) || used+n > most) {
			if used+utf8.RuneCountInString(rest) <= most {
				b.WriteString(rest)
			}
			return b.String(), false
		}
		used += n
		b.WriteString(part)
	}
	return b.String(), true
}

func (g *group) text(each int, kind string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", clipLine(g.name), count(g.count, kind, plurals[kind]))
	shown := min(each, len(g.items))
	for _, item := range g.items[:shown] {
		b.WriteString("  " + clipLine(item) + "\n")
	}
	if left := len(g.items) - shown; left > 0 {
		fmt.Fprintf(&b, "  … %d more\n", left)
	}
	return b.String()
}

func clipLine(s string) string {
	if utf8.RuneCountInString(s) <= maxItem {
		return s
	}
	return string([]rune(s)[:maxItem-1]) + "…"
}

// coarser returns the outline with the deepest groups in those of their
// folders, with the first item of each; nil if there is only one level left.
func (o *outline) coarser() *outline {
	deepest := 0
	for _, g := range o.groups {
		deepest = max(deepest, depth(g.name))
	}
	if deepest == 0 {
		return nil
	}
	next := &outline{kind: o.kind, end: o.end}
	for _, g := range o.groups {
		if depth(g.name) < deepest {
			next.take(g.name, g.items, g.count)
			continue
		}
		items := g.items[:min(1, len(g.items))]
		if !strings.HasSuffix(g.name, "/") { // what is of a file tells which
			items = []string{strings.TrimSuffix(path.Base(g.name)+":"+strings.Join(items, ""), ":")}
		}
		next.take(path.Dir(strings.TrimSuffix(g.name, "/"))+"/", items, g.count)
	}
	return next
}

// depth returns how many folders stand above what a group is named after; the
// folder itself, "./", has none.
func depth(name string) int {
	clean := strings.TrimSuffix(name, "/")
	if clean == "." {
		return 0
	}
	return 1 + strings.Count(clean, "/")
}
