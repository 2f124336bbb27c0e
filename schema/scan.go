package schema

// scanner walks over JSON text without building anything. What it does not
// understand, or finds doubtful, it refuses.
type scanner struct {
	doc   []byte
	depth int
}

// skip gives the end of the value at i.
func (s *scanner) skip(i int) (int, bool) {
	if i >= len(s.doc) {
		return i, false
	}
	switch c := s.doc[i]; {
	case c == '{':
		return s.skipAll(i, '}')
	case c == '[':
		return s.skipAll(i, ']')
	case c == '"':
		end, _, ok := scanString(s.doc, i)
		return end, ok
	case c == 't':
		return s.word(i, "true")
	case c == 'f':
		return s.word(i, "false")
	case c == 'n':
		return s.word(i, "null")
	}
	end, ok := scanNumber(s.doc, i)
	return end, ok && end-i <= maxExact+8
}

func (s *scanner) word(i int, w string) (int, bool) {
	if len(s.doc)-i < len(w) || string(s.doc[i:i+len(w)]) != w {
		return i, false
	}
	return i + len(w), true
}

// skipAll passes an object or array.
func (s *scanner) skipAll(i int, closing byte) (int, bool) {
	if s.depth--; s.depth < 0 {
		return i, false
	}
	defer func() { s.depth++ }()
	for first := true; ; first = false {
		i = skipSpace(s.doc, i+1)
		if first && i < len(s.doc) && s.doc[i] == closing {
			return i + 1, true
		}
		ok := true
		if closing == '}' {
			i, ok = s.key(i)
		}
		if ok {
			i, ok = s.skip(i)
		}
		i = skipSpace(s.doc, i)
		if !ok || i >= len(s.doc) {
			return i, false
		}
		if s.doc[i] == closing {
			return i + 1, true
		}
		if s.doc[i] != ',' {
			return i, false
		}
	}
}

// key passes a key and its colon and gives the start of the value.
func (s *scanner) key(i int) (int, bool) {
	if i >= len(s.doc) || s.doc[i] != '"' {
		return i, false
	}
	i, _, ok := scanString(s.doc, i)
	i = skipSpace(s.doc, i)
	if !ok || i >= len(s.doc) || s.doc[i] != ':' {
		return i, false
	}
	return skipSpace(s.doc, i+1), true
}

// maxExact is how many significant digits a float64 holds of any decimal.
const maxExact = 15
