package root

// The outcomes of wild. The two aborts end the search early: without them a pattern with many stars takes exponential
// time on a text that does not match.
const (
	wildMatch = iota
	wildMiss
	wildAbort     // the text ended: no later start can match either
	wildAbortStar // only an enclosing "**" may still match, by moving past a slash
)

// glob is git's wildmatch: it works on bytes, so that "?" is one byte and not one character, as in git.
type glob struct {
	path bool // "*", "?" and classes do not match a slash
	fold bool // ASCII letters match in either case
}

// matches reports whether the whole of text matches pattern.
func (g glob) matches(pattern, text string) bool { return g.wild(pattern, 0, text) == wildMatch }

// at is s[i], or 0 behind the end: patterns and names hold no NUL.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func (g glob) lower(c byte) byte {
	if g.fold && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// wild matches text against pattern[p:]; the part before p is known to have matched.
func (g glob) wild(pattern string, p int, text string) int {
	t := 0
	for ; p < len(pattern); p, t = p+1, t+1 {
		pc, tc := g.lower(pattern[p]), g.lower(at(text, t))
		if t >= len(text) && pc != '*' {
			return wildAbort
		}
		switch pc {
		case '?':
			if g.path && tc == '/' {
				return wildMiss
			}
		case '*':
			next, result, done := g.star(pattern, p, text[t:])
			if done {
				return result
			}
			p, t = next.p, t+next.t
		case '[':
			end, ok := g.class(pattern, p+1, tc)
			if end < 0 {
				return wildAbort
			}
			if !ok || g.path && tc == '/' {
				return wildMiss
			}
			p = end
		default:
			if pc == '\\' {
				p++
				pc = at(pattern, p)
			}
			if tc != pc {
				return wildMiss
			}
		}
	}
	if t < len(text) {
		return wildMiss
	}
	return wildMatch
}

// place is where a match goes on: in the pattern, and counted from the text that was handed in.
type place struct{ p, t int }

// star matches the star or stars at pattern[p:]. When it is not done, matching goes on behind the returned place.
func (g glob) star(pattern string, p int, text string) (next place, result int, done bool) {
	first := p
	for p++; at(pattern, p) == '*'; p++ {
	}
	slashes := !g.path
	if g.path && p-first > 1 && wholeComponent(pattern, first, p) {
		if at(pattern, p) == '/' {
			// What aborts here aborts at every later start as well; git tries them all, in exponential time.
			if result := g.wild(pattern, p+1, text); result == wildMatch || result == wildAbort {
				return place{}, result, true
			}
		}
		slashes = true
	}
	if p >= len(pattern) {
		if !slashes && indexByte(text, '/') >= 0 {
			return place{}, wildAbortStar, true
		}
		return place{}, wildMatch, true
	}
	if !slashes && pattern[p] == '/' {
		i := indexByte(text, '/')
		if i < 0 {
			return place{}, wildAbort, true
		}
		return place{p, i}, 0, false
	}
	return place{}, g.backtrack(pattern, p, text, slashes), true
}

// wholeComponent reports whether the stars pattern[first:p] stand alone between slashes, which makes them a "**".
func wholeComponent(pattern string, first, p int) bool {
	if first > 0 && pattern[first-1] != '/' {
		return false
	}
	return p >= len(pattern) || pattern[p] == '/' || pattern[p] == '\\' && at(pattern, p+1) == '/'
}

// backtrack tries pattern[p:] at every place of text that the star before it can reach.
func (g glob) backtrack(pattern string, p int, text string, slashes bool) int {
	literal := !special(pattern[p])
	want := g.lower(pattern[p])
	for t := 0; t < len(text); t++ {
		if literal {
			for t < len(text) && g.lower(text[t]) != want && (slashes || text[t] != '/') {
				t++
			}
			if t >= len(text) || g.lower(text[t]) != want {
				if slashes {
					return wildAbort
				}
				return wildAbortStar
			}
		}
		if result := g.wild(pattern, p, text[t:]); result != wildMiss {
			if !slashes || result != wildAbortStar {
				return result
			}
		} else if !slashes && text[t] == '/' {
			return wildAbortStar
		}
	}
	return wildAbort
}

// class matches c against the bracket expression whose inside begins at pattern[p]. It returns the place of the closing
// bracket, or -1 when the expression is malformed and matches nothing.
func (g glob) class(pattern string, p int, c byte) (end int, ok bool) {
	negated := at(pattern, p) == '!' || at(pattern, p) == '^'
	if negated {
		p++
	}
	matched := false
	var prev byte
	for first := true; first || at(pattern, p) != ']'; p++ {
		first = false
		pc := at(pattern, p)
		switch {
		case pc == 0:
			return -1, false
		case pc == '\\':
			p++
			if pc = at(pattern, p); pc == 0 {
				return -1, false
			}
			matched = matched || c == pc
			prev = pc
		case pc == '-' && prev != 0 && at(pattern, p+1) != 0 && at(pattern, p+1) != ']':
			p++
			if at(pattern, p) == '\\' {
				p++
			}
			high := at(pattern, p)
			if high == 0 {
				return -1, false
			}
			matched = matched || g.inRange(c, prev, high)
			prev = 0
		case pc == '[' && at(pattern, p+1) == ':':
			close, name := className(pattern, p+2)
			switch {
			case close < 0:
				return -1, false
			case name == "":
				matched = matched || c == '['
				prev = '['
			default:
				in, known := g.inClass(name, c)
				if !known {
					return -1, false
				}
				matched = matched || in
				p, prev = close, 0
			}
		default:
			matched = matched || c == pc
			prev = pc
		}
	}
	return p, matched != negated
}

// className reads "alpha:]" at pattern[p:] and returns the place of the bracket. An empty name is a "[:" that no ":]"
// closes, which is an ordinary bracket.
func className(pattern string, p int) (close int, name string) {
	i := indexByte(pattern[p:], ']')
	if i < 0 {
		return -1, ""
	}
	if i == 0 || pattern[p+i-1] != ':' {
		return p + i, ""
	}
	if i == 1 {
		return p + i, ":"
	}
	return p + i, pattern[p : p+i-1]
}

func (g glob) inRange(c, low, high byte) bool {
	if low <= c && c <= high {
		return true
	}
	if g.fold && 'a' <= c && c <= 'z' {
		upper := c - 'a' + 'A'
		return low <= upper && upper <= high
	}
	return false
}

func (g glob) inClass(name string, c byte) (in, known bool) {
	lower, upper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	graph := '!' <= c && c <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper || g.fold && lower, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}

// special reports whether c has a meaning in a pattern.
func special(c byte) bool { return c == '*' || c == '?' || c == '[' || c == '\\' }

func indexByte(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}
