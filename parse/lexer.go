package parse

// A lexer follows brackets and strings of JSON and of Python literals, well
// enough to find their end when they are not quite valid.
type lexer struct {
	depth int
	quote byte // of the open string; 0: none
	esc   bool
	prev  byte // the last visible character outside strings
	stack [64]byte
}

// step follows one byte.
func (l *lexer) step(c byte) {
	if l.quote != 0 {
		l.inString(c)
		return
	}
	switch c {
	case '"':
		l.quote = c
	case '\'':
		if l.opens() {
			l.quote = c
		}
	case '{', '[', '(':
		if l.depth < len(l.stack) {
			l.stack[l.depth] = c
		}
		l.depth++
	case '}', ']', ')':
		if l.depth > 0 {
			l.depth--
		}
	case ' ', '\t', '\r', '\n':
		return
	}
	l.prev = c
}

func (l *lexer) inString(c byte) {
	switch {
	case l.esc:
		l.esc = false
	case c == '\\':
		l.esc = true
	case c == l.quote:
		l.quote = 0
		l.prev = c
	}
}

// opens reports whether an apostrophe here begins a string, rather than standing in a word.
func (l *lexer) opens() bool {
	switch l.prev {
	case 0, '{', '[', '(', ',', ':', '=':
		return true
	}
	return false
}

// open returns the brackets that are open, outermost first.
func (l *lexer) open() string { return string(l.stack[:min(l.depth, len(l.stack))]) }
