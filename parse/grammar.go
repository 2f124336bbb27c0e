package parse

import (
	"slices"
	"sort"
	"strings"
	"sync"
)

// A grammar is what a parser looks for in text.
type grammar struct {
	openers []opener
	implied []string // closers of reasoning that the prompt may have opened

	once  sync.Once
	table *table
}

// An opener is a string with which something other than text begins.
type opener struct {
	tag  string
	at   place
	bare bool // looks like ordinary text: not tried within other JSON
	call bool // a call may begin here: reasoning that is never closed ends here
	read func(e *env) verdict
}

// A place says where an opener counts.
type place uint8

const (
	anywhere place = iota
	lineStart
	replyStart
)

// A verdict is what a reader says of the text from its opener on.
type verdict uint8

const (
	more verdict = iota // there is too little text to say; at its end: no
	took                // e.n bytes were read, and stand in e.out
	not                 // no; e.n bytes are text, and the next opener is tried if that is 0
)

type table struct {
	special [256]bool // bytes at which text is looked at
	first   [256][]*opener
	longest int
}

// compile makes the table of a grammar. result is how results begin, which
// after calls are made up; "": they are not known by that.
func (g *grammar) compile(result string, at place) {
	g.once.Do(func() {
		t := &table{}
		for _, c := range "\n`" {
			t.special[c] = true
		}
		add := func(o *opener) {
			t.special[o.tag[0]] = t.special[o.tag[0]] || o.at == anywhere
			t.first[o.tag[0]] = append(t.first[o.tag[0]], o)
			t.longest = max(t.longest, len(o.tag))
		}
		add(&comment)
		if result != "" && !g.frames(result) {
			add(&opener{tag: result, at: at, read: madeUp})
		}
		for i := range g.openers {
			add(&g.openers[i])
		}
		for _, c := range g.implied {
			add(&opener{tag: c, read: rethink})
		}
		for c := range t.first {
			sort.SliceStable(t.first[c], func(i, j int) bool { return len(t.first[c][i].tag) > len(t.first[c][j].tag) })
		}
		g.table = t
	})
}

// frames reports whether a reader of calls reads what begins so, too.
func (g *grammar) frames(tag string) bool {
	return slices.ContainsFunc(g.openers, func(o opener) bool { return o.call && strings.HasPrefix(tag, o.tag) })
}

func (g *grammar) impliedCloser() string {
	if len(g.implied) == 0 {
		return ""
	}
	return g.implied[0]
}

// match returns the openers with which s begins, the longest first. It waits
// while a longer one may yet come.
func (m *machine) match(s string, eof bool) (found []*opener, wait bool) {
	m.cands = m.cands[:0]
	for _, o := range m.t.first[s[0]] {
		if o.at == lineStart && !m.line || o.at == replyStart && !(m.line && m.blank) || o.bare && m.inJSON.depth > 0 {
			continue
		}
		if strings.HasPrefix(s, o.tag) {
			m.cands = append(m.cands, o)
		} else if !eof && len(s) < len(o.tag) && strings.HasPrefix(o.tag, s) {
			return nil, true
		}
	}
	return m.cands, false
}
