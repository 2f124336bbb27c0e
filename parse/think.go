package parse

import "strings"

// reasoning returns an opener of reasoning that one of the closers ends.
// In the middle of a line it counts only if it is closed.
func reasoning(open string, closers ...string) opener {
	return opener{tag: open, read: func(e *env) verdict {
		e.n = len(open)
		if !e.m.line && e.m.endless {
			return not
		}
		if !e.m.line {
			e.m.aside(closers)
			return more
		}
		e.closers, e.trim = closers, true
		return took
	}}
}

// rethink reads the end of reasoning that began before the message.
func rethink(e *env) verdict {
	if e.m.called || e.m.thought {
		return not
	}
	e.n = len(e.opener.tag)
	e.m.thought = true
	if !e.m.blank {
		e.out = append(e.out, Event{Kind: Rethink})
		e.m.blank = true
	}
	e.trim = true
	return took
}

// dropped returns openers of strings that models write and nobody wants to read.
func dropped(tags ...string) []opener {
	var out []opener
	for _, t := range tags {
		out = append(out, opener{tag: t, read: func(e *env) verdict {
			e.n = len(t)
			return took
		}})
	}
	return out
}

func (m *machine) aside(closers []string) {
	m.mode, m.look = inAside, 0
	m.closers = closers
}

// think reads reasoning up to its end, or to where a call seems to begin in
// it; or text in which nothing is looked for.
func (m *machine) think(s string, eof bool) (int, bool) {
	for i := 0; i < len(s); i++ {
		if !m.t.special[s[i]] && s[i] != m.closers[0][0] || s[i] == '\n' {
			continue
		}
		tag, wait := prefixOf(s[i:], m.closers, eof)
		call := false
		if tag == "" && !wait && m.say == Thinking {
			call, wait = m.callOpens(s[i:], eof)
		}
		if tag == "" && !call && !wait {
			continue
		}
		m.said(s[:i])
		switch {
		case wait:
			return i, true
		case call:
			m.mode, m.look = inLimbo, 0
			return i, false
		}
		m.endFrame(tag)
		if beginsFrame(tag) {
			return i, false
		}
		return i + len(tag), false
	}
	m.said(s)
	return len(s), false
}

func (m *machine) said(s string) {
	m.emit(m.say, s)
	m.blank = m.blank && (m.say != Text || strings.TrimSpace(s) == "")
}

// endFrame ends what the closers end. What comes next begins anew.
func (m *machine) endFrame(tag string) {
	m.trim = m.say == Thinking && !m.framed
	m.closers, m.say, m.line, m.framed = nil, Thinking, true, false
}

// beginsFrame reports whether the tag that ends a frame begins the next.
func beginsFrame(tag string) bool { return tag == "<|start|>" || tag == "<|channel|>" }

// prefixOf returns the tag with which s begins; it waits while one may yet come.
func prefixOf(s string, tags []string, eof bool) (tag string, wait bool) {
	for _, t := range tags {
		if strings.HasPrefix(s, t) {
			return t, false
		}
		if !eof && len(s) < len(t) && strings.HasPrefix(t, s) {
			wait = true
		}
	}
	return "", wait
}

func (m *machine) callOpens(s string, eof bool) (yes, wait bool) {
	for _, o := range m.t.first[s[0]] {
		if !o.call {
			continue
		}
		if strings.HasPrefix(s, o.tag) {
			return true, false
		}
		if !eof && len(s) < len(o.tag) && strings.HasPrefix(o.tag, s) {
			wait = true
		}
	}
	return false, wait
}

// limbo holds reasoning until it is known whether it is closed. If it is not,
// and nothing but calls follows, they count: models that forget to close their
// reasoning end it with the call.
func (m *machine) limbo(s string, eof bool) (int, bool) {
	at, tag := -1, ""
	longest := 0
	for _, c := range m.closers {
		longest = max(longest, len(c))
		if j := strings.Index(s[m.look:], c); j >= 0 && (at < 0 || m.look+j < at) {
			at, tag = m.look+j, c
		}
	}
	if at >= 0 {
		start := 0
		if m.mode == inAside {
			start = len(m.e.opener.tag)
			m.thought = true
		}
		m.emit(Thinking, s[min(start, at):at])
		m.mode, m.closers, m.trim, m.line = inText, nil, true, true
		return at + len(tag), false
	}
	if !eof {
		m.look = max(0, len(s)-longest+1)
		return 0, true
	}
	if m.mode == inAside {
		m.mode, m.closers, m.endless = inText, nil, true
		m.pass(s[0])
		m.emit(Text, s[:1])
		return 1, false
	}
	m.mode, m.closers = inText, nil
	if !m.onlyCalls(s) {
		m.emit(Thinking, s)
	}
	return len(s), false
}

// onlyCalls takes over the calls of s if there is nothing else in it.
func (m *machine) onlyCalls(s string) bool {
	sub := newMachine(m.g, m.tools)
	sub.nested = true
	msg := Read(sub, s)
	if len(msg.Calls) == 0 || strings.TrimSpace(msg.Content+msg.Thinking) != "" {
		return false
	}
	m.called = true
	for _, n := range msg.Notes {
		m.emit(Note, n)
	}
	for i := range msg.Calls {
		m.out = append(m.out, Event{Kind: Called, Call: &msg.Calls[i]})
	}
	return true
}
