package parse

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An env is what a reader sees, and what it keeps between two looks at the
// same opener with more text.
type env struct {
	s      string // the text from the opener on
	eof    bool   // nothing follows s
	tools  *Tools // what was offered; nil: everything
	m      *machine
	opener *opener

	pos, look, stage int // the reader's own
	lex              lexer
	name             string
	params           []param
	sep              bool // a separator stood after the name
	within           within
	nested           int // elements that are open in a value

	n        int      // how much was read
	out      []Event  // what was found
	closers  []string // reasoning begins, up to one of these
	verbatim bool     // it is no reasoning, but text in which nothing is looked for
	framed   bool     // white space within and after it counts
	trim     bool     // white space after what was read is dropped
	none     bool     // nothing like a call stands here
	accepted bool     // a call was read
	rejected int      // calls of tools that were not offered
}

func (e *env) reset() {
	*e = env{tools: e.tools, params: e.params[:0], out: e.out[:0]}
}

// done ends a reading that took n bytes: what was found stands if there is a
// call in it, and is text otherwise.
func (e *env) done(n int) verdict {
	e.n = n
	if e.accepted {
		return took
	}
	return not
}

func (e *env) note(format string, args ...any) {
	e.out = append(e.out, Event{Kind: Note, Text: fmt.Sprintf(format, args...)})
}

func (e *env) text(s string) {
	if s != "" {
		e.out = append(e.out, Event{Kind: Text, Text: s})
	}
}

// call adds a call, if its tool was offered. raw is how it was written: what
// stays of it if it was not.
func (e *env) call(name, id string, args json.RawMessage, raw string) {
	full, ok := e.offered(name)
	if !ok {
		e.rejected++
		e.note("%s", e.tools.unknown(name))
		e.text(raw)
		return
	}
	e.accepted = true
	e.out = append(e.out, Event{Kind: Called, Call: callOf(full, id, args)})
}

// offered returns the name under which a tool was offered, without the
// namespace that some models put before it.
func (e *env) offered(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	if e.tools == nil {
		return strings.TrimPrefix(name, "functions."), true
	}
	if e.tools.lookup(name) != nil {
		return name, true
	}
	for _, ns := range []string{"functions.", "tools.", "default_api."} {
		if short, ok := strings.CutPrefix(name, ns); ok && e.tools.lookup(short) != nil {
			return short, true
		}
	}
	return name, false
}

// find returns the first place at or after e.look where one of the tags stands.
// If there is none it remembers where to look when there is more text.
func (e *env) find(tags ...string) (int, string) {
	at, found, longest := -1, "", 0
	rest := e.s[e.look:]
	for _, t := range tags {
		longest = max(longest, len(t))
		if at >= 0 {
			rest = e.s[e.look:min(len(e.s), at+len(t)-1)]
		}
		if i := strings.Index(rest, t); i >= 0 && (at < 0 || e.look+i < at) {
			at, found = e.look+i, t
		}
	}
	if at < 0 {
		e.look = max(e.look, len(e.s)-longest+1)
	}
	return at, found
}

// outside is find, but passes over tags within strings of JSON. A tag that may
// yet come is waited for.
func (e *env) outside(tags ...string) (int, string) {
	for ; e.look < len(e.s); e.look++ {
		c := e.s[e.look]
		if e.lex.quote == 0 {
			for _, t := range tags {
				if c != t[0] {
					continue
				}
				if strings.HasPrefix(e.s[e.look:], t) {
					return e.look, t
				}
				if !e.eof && len(e.s)-e.look < len(t) && strings.HasPrefix(t, e.s[e.look:]) {
					return -1, ""
				}
			}
		} else if c != '\\' && c != e.lex.quote && !e.lex.esc {
			continue
		}
		e.lex.step(c)
	}
	return -1, ""
}

// balanced returns the place after the bracket that closes the one at or after
// from, or -1.
func (e *env) balanced(from int) int {
	e.look = max(e.look, from)
	for ; e.look < len(e.s); e.look++ {
		was := e.lex.depth
		e.lex.step(e.s[e.look])
		if was == 1 && e.lex.depth == 0 {
			e.look++
			return e.look
		}
	}
	return -1
}

// skip returns the first place from i on that holds no white space.
func (e *env) skip(i int) int {
	for i < len(e.s) && isSpace(e.s[i]) {
		i++
	}
	return i
}

// at reports whether a tag stands at i; it waits while it may yet come.
func (e *env) at(i int, tag string) (yes, wait bool) {
	rest := e.s[min(i, len(e.s)):]
	if strings.HasPrefix(rest, tag) {
		return true, false
	}
	return false, !e.eof && strings.HasPrefix(tag, rest)
}

// close returns the place after the tag that may follow at i after white
// space, or i itself. It waits while the tag may yet come.
func (e *env) close(i int, tag string) (end int, wait bool) {
	j := e.skip(i)
	yes, wait := e.at(j, tag)
	if yes {
		return j + len(tag), false
	}
	return i, wait
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isIdent(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
