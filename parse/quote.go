package parse

import "strings"

// tick reads a run of backticks or tildes: it opens or closes a code span, or
// opens a fenced block. Of a block nothing is read yet.
func (m *machine) tick(s string, eof bool) (n int, wait bool) {
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n == len(s) && !eof {
		return 0, true
	}
	if m.line && n >= 3 {
		if opened, wait := m.openFence(s, n, eof); opened || wait {
			return 0, wait
		}
	}
	if s[0] == '`' {
		switch m.ticks {
		case 0:
			m.ticks = n
		case n:
			m.ticks = 0
		}
	}
	return n, false
}

// openFence opens the block that s begins with, if it is one: its first line
// holds no further backtick.
func (m *machine) openFence(s string, n int, eof bool) (opened, wait bool) {
	info, _, ended := strings.Cut(s[n:], "\n")
	if s[0] == '`' && strings.IndexByte(info, '`') >= 0 {
		return false, false
	}
	if !ended {
		return false, !eof
	}
	if m.blank && !m.nested {
		whole, wait := m.begins(s[n+len(info)+1:], eof)
		if wait {
			return false, true
		}
		if whole {
			m.mode, m.look, m.e.look = inBlock, n+len(info), n+len(info)+1
		}
	}
	m.ticks = 0
	m.fence, m.fenceN = s[0], n
	m.line = false
	return true, false
}

// begins reports whether what a block holds may begin with a call.
func (m *machine) begins(s string, eof bool) (yes, wait bool) {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return false, !eof
	}
	for _, o := range m.t.first[s[0]] {
		switch {
		case strings.HasPrefix(s, o.tag):
			return true, false
		case !eof && strings.HasPrefix(o.tag, s):
			wait = true
		}
	}
	return false, wait
}

// closing reports whether a line closes the fence, and its length without the
// line's end.
func (m *machine) closing(line string, eof bool) (n int, closed, wait bool) {
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	run := n
	for n < len(line) && line[n] == m.fence {
		n++
	}
	if n == len(line) && !eof {
		return 0, false, true
	}
	if n-run < m.fenceN {
		return 0, false, false
	}
	for n < len(line) && line[n] != '\n' {
		if c := line[n]; c != ' ' && c != '\t' && c != '\r' {
			return 0, false, false
		}
		n++
	}
	if n == len(line) && !eof {
		return 0, false, true
	}
	return n, true, false
}

// fenced reads a fenced block, which is text, up to its end.
func (m *machine) fenced(s string, eof bool) (int, bool) {
	for i := 0; i < len(s); {
		if !m.line {
			nl := strings.IndexByte(s[i:], '\n')
			if nl < 0 {
				break
			}
			i += nl + 1
			m.line = true
			continue
		}
		n, closed, wait := m.closing(s[i:], eof)
		if wait {
			m.emit(Text, s[:i])
			return i, true
		}
		m.line, m.blank = false, false
		if closed {
			m.fence = 0
			m.emit(Text, s[:i+n])
			return i + n, false
		}
	}
	m.emit(Text, s)
	return len(s), false
}

// block reads a fenced block with which the reply begins, and which may hold a
// call if nothing follows it. m.look is the end of the last line seen, and
// m.e.look the place up to which the next was.
func (m *machine) block(s string, eof bool) (int, bool) {
	for {
		at := m.look + 1
		n, closed, wait := m.closing(s[min(at, len(s)):], eof)
		switch {
		case wait:
			return 0, true
		case closed:
			return m.closeBlock(s, at, at+n, eof)
		}
		nl := strings.IndexByte(s[min(m.e.look, len(s)):], '\n')
		if nl < 0 && !eof {
			m.e.look = len(s)
			return 0, true
		}
		if nl < 0 {
			return m.closeBlock(s, len(s), len(s), eof)
		}
		m.look = m.e.look + nl
		m.e.look = m.look + 1
	}
}

// closeBlock reads a block whose content ends at inner, and which itself ends at end.
func (m *machine) closeBlock(s string, inner, end int, eof bool) (int, bool) {
	if strings.TrimSpace(s[end:]) != "" {
		m.mode = inText // an ordinary block after all
		m.line = false
		return 0, false
	}
	if !eof {
		return 0, true
	}
	m.mode, m.fence = inText, 0
	start := strings.IndexByte(s, '\n') + 1
	if !m.adopt(s[start:max(start, inner)]) {
		m.literal(s)
	}
	return len(s), false
}

// adopt reads s for itself and takes over its events if there are calls in it.
func (m *machine) adopt(s string) bool {
	sub := newMachine(m.g, m.tools)
	sub.nested = true
	events := append(append([]Event(nil), sub.Write(s)...), sub.Close()...)
	m.spent += len(s)
	if !sub.called {
		for _, e := range events {
			if e.Kind == Note {
				m.out = append(m.out, e)
			}
		}
		return false
	}
	for _, e := range events {
		if e.Kind != Text || strings.TrimSpace(e.Text) != "" {
			m.out = append(m.out, e)
		}
	}
	m.called = true
	return true
}

// span waits for the end of the code span in which an opener stands. A span
// that does not end within its paragraph is none.
func (m *machine) span(s string, eof bool) (int, bool) {
	for i := m.look; i < len(s); {
		j := strings.IndexAny(s[i:], "`\n")
		if j < 0 {
			i = len(s)
			m.look = i
			break
		}
		i += j
		m.look = i
		if s[i] == '\n' {
			k := i + 1
			for k < len(s) && (s[k] == ' ' || s[k] == '\t' || s[k] == '\r') {
				k++
			}
			if k == len(s) && !eof {
				return 0, true
			}
			if k == len(s) || s[k] == '\n' {
				break
			}
			i = k
			continue
		}
		k := i
		for k < len(s) && s[k] == '`' {
			k++
		}
		if k == len(s) && !eof {
			return 0, true
		}
		if k-i == m.ticks {
			m.ticks, m.mode = 0, inText
			m.literal(s[:k])
			return k, false
		}
		i = k
		m.look = i
	}
	if m.look >= len(s) && !eof {
		return 0, true
	}
	m.ticks, m.mode = 0, inCall
	return 0, false
}
