package parse

import (
	"strings"
)

// A machine is the parser of every format: it tells text, quoted code,
// reasoning and calls apart, and hands what begins with an opener to its reader.
type machine struct {
	g     *grammar
	t     *table
	tools *Tools
	out   []Event
	held  strings.Builder // text that later text may change

	line      bool     // only white space stands before in this line
	indent    int      // columns of it
	blank     bool     // only white space stands before in the reply
	ticks     int      // of the code span that may be open
	fence     byte     // of the fenced block that is open; 0: none
	fenceN    int      // its length
	nested    bool     // this machine reads a part of another's text
	trim      bool     // white space is dropped until the next visible character
	called    bool     // a call was read
	over      bool     // nothing that follows counts
	thought   bool     // reasoning was read
	inJSON    lexer    // ordinary JSON that text is within
	look      int      // up to where the held text was looked at
	spent     int      // bytes looked at in vain since the end is known
	flattened int      // bytes of values that were read twice
	mode      mode     // what is under way
	endless   bool     // reasoning in the middle of a line was not closed up to the end
	closers   []string // they end what is neither searched nor quoted
	say       Kind     // what that is: Thinking, or Text
	framed    bool     // it is a message of a format that has only such

	cands []*opener // that begin the held text, the longest first
	tried int       // how many of them were not it
	e     env
}

type mode uint8

const (
	inText  mode = iota
	inSpan       // an opener within a code span that may be open
	inCall       // an opener's reader wants more
	inBlock      // a fenced block that may be the whole reply
	inLimbo      // reasoning that may have turned into a call
	inAside      // reasoning that began in the middle of a line
)

// newMachine returns a parser by a grammar that was compiled.
func newMachine(g *grammar, tools *Tools) *machine {
	m := &machine{g: g, t: g.table, tools: tools, line: true, blank: true, say: Thinking}
	m.e.tools = tools
	return m
}

// Write implements Parser.
func (m *machine) Write(chunk string) []Event {
	m.out = m.out[:0]
	if m.held.Len() == 0 {
		m.keep(m.run(chunk, false))
		return m.out
	}
	m.held.WriteString(chunk)
	s := m.held.String()
	if rest := m.run(s, false); len(rest) < len(s) {
		m.held.Reset()
		m.keep(rest)
	}
	return m.out
}

// Close implements Parser.
func (m *machine) Close() []Event {
	m.out = m.out[:0]
	s := m.held.String()
	m.held.Reset()
	m.run(s, true)
	return m.out
}

func (m *machine) keep(rest string) {
	if rest != "" {
		m.held.WriteString(rest)
	}
}

// run reads s and returns what must wait for more text.
func (m *machine) run(s string, eof bool) string {
	for s != "" {
		n, wait := m.step(s, eof)
		s = s[n:]
		if wait {
			break
		}
	}
	return s
}

// step reads some of s. Without eof it may wait for more text.
func (m *machine) step(s string, eof bool) (n int, wait bool) {
	switch m.mode {
	case inSpan:
		return m.span(s, eof)
	case inCall:
		return m.call(s, eof)
	case inBlock:
		return m.block(s, eof)
	case inLimbo, inAside:
		return m.limbo(s, eof)
	}
	switch {
	case m.over:
		return len(s), false
	case m.trim:
		return m.trimmed(s)
	case m.closers != nil:
		return m.think(s, eof)
	case m.fence != 0:
		return m.fenced(s, eof)
	}
	return m.text(s, eof)
}

func (m *machine) emit(k Kind, s string) {
	if s != "" {
		m.out = append(m.out, Event{Kind: k, Text: s})
	}
}

func (m *machine) trimmed(s string) (int, bool) {
	n := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	m.trim = n == len(s)
	if n > 0 {
		m.line, m.indent = true, 0
	}
	return n, false
}

// text reads ordinary text up to what may begin something else.
func (m *machine) text(s string, eof bool) (int, bool) {
	special := &m.t.special
	for i := 0; i < len(s); {
		if !m.line && m.inJSON.depth == 0 {
			for i < len(s) && !special[s[i]] {
				i++
			}
			if i == len(s) {
				break
			}
		}
		c := s[i]
		switch c {
		case '\n':
			if m.line {
				m.ticks = 0 // a paragraph ends
			}
			m.line, m.indent = true, 0
			i++
			continue
		case ' ', '\t', '\r':
			m.indent++
			if c == '\t' {
				m.indent += 3
			}
			i++
			continue
		}
		if m.t.first[c] != nil && (m.line || special[c]) {
			found, wait := m.match(s[i:], eof)
			if wait || len(found) > 0 {
				m.emit(Text, s[:i])
				if !wait {
					m.begin()
				}
				return i, wait
			}
		}
		if c == '`' || c == '~' && m.line {
			n, wait := m.tick(s[i:], eof)
			if wait || m.fence != 0 || m.mode != inText {
				m.emit(Text, s[:i])
				return i, wait
			}
			m.line, m.blank = false, false
			i += n
			continue
		}
		m.pass(s[i])
		i++
	}
	m.emit(Text, s)
	return len(s), false
}

// pass notes that a visible character is text.
func (m *machine) pass(c byte) {
	m.line, m.blank = false, false
	if m.inJSON.depth > 0 {
		m.inJSON.step(c)
	}
}

// begin starts reading with the openers that were matched.
func (m *machine) begin() {
	m.look, m.tried = 0, 0
	m.mode = inCall
	if m.ticks > 0 {
		m.mode = inSpan
	}
	m.e.reset()
}

// call lets the readers of the matched openers read.
func (m *machine) call(s string, eof bool) (int, bool) {
	e := &m.e
	for ; m.tried < len(m.cands); m.tried++ {
		o := m.cands[m.tried]
		e.s, e.eof, e.opener, e.m = s, eof, o, m
		v := more
		if m.spent <= 1<<22 {
			v = o.read(e)
		}
		if m.mode != inCall { // reasoning that must be closed to count
			return 0, false
		}
		if v == more && !eof {
			return 0, true
		}
		if eof && v != took {
			m.spent += len(s)
		}
		if v == took || v == not && e.n > 0 {
			m.mode = inText
			return m.settle(s[:e.n], v), false
		}
		m.notes(e)
		e.reset()
	}
	m.mode = inText
	m.pass(s[0])
	m.emit(Text, s[:1])
	return 1, false
}

func (m *machine) notes(e *env) {
	for _, o := range e.out {
		if o.Kind == Note {
			m.out = append(m.out, o)
		}
	}
}

// settle takes over what a reader found in raw.
func (m *machine) settle(raw string, v verdict) int {
	e := &m.e
	if v == not {
		m.notes(e)
		m.literal(raw)
		return len(raw)
	}
	if e.rejected > 0 && !e.accepted {
		m.notes(e)
		m.literal(raw)
		return len(raw)
	}
	for _, o := range e.out {
		switch o.Kind {
		case Called:
			m.called = true
		case Text:
			m.blank = m.blank && strings.TrimSpace(o.Text) == ""
		case Thinking:
			m.thought = true
		}
		m.out = append(m.out, o)
	}
	if e.accepted {
		m.ticks, m.blank, m.line, m.indent = 0, false, true, 0
	}
	if e.closers != nil {
		m.closers, m.say, m.framed = e.closers, Thinking, e.framed
		m.thought = true
		if e.verbatim {
			m.say = Text
		}
	}
	m.trim = m.trim || e.trim
	return len(raw)
}

// literal emits text in which nothing is looked for.
func (m *machine) literal(raw string) {
	if raw == "" {
		return
	}
	m.emit(Text, raw)
	m.blank = m.blank && strings.TrimSpace(raw) == ""
	tail := raw[strings.LastIndexByte(raw, '\n')+1:]
	m.line = (m.line || len(tail) < len(raw)) && strings.TrimSpace(tail) == ""
	m.indent = len(tail)
}
