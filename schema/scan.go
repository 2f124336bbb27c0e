package schema

import (
	"bytes"
	"unicode/utf16"
)

// scanner walks over JSON text without building anything. What it does not
// understand, or finds doubtful (a repeated key, a lone surrogate, a number
// of absurd size, deep nesting), it refuses.
type scanner struct {
	doc   []byte
	depth int  // levels left
	loose bool // let doubtful things pass: only the syntax counts
}

// maxScanDepth is how deep a document may be for the fast path.
const maxScanDepth = 100

// skip gives the end of the value at i.
func (s *scanner) skip(i int) (int, bool) {
	if i >= len(s.doc) {
		return i, false
	}
	switch s.doc[i] {
	case '{':
		return s.skipObject(i)
	case '[':
		return s.skipArray(i)
	case '"':
		end, _, ok := s.string(i)
		return end, ok
	case 't':
		return s.word(i, "true")
	case 'f':
		return s.word(i, "false")
	case 'n':
		return s.word(i, "null")
	}
	return s.number(i)
}

func (s *scanner) word(i int, w string) (int, bool) {
	if len(s.doc)-i < len(w) || string(s.doc[i:i+len(w)]) != w {
		return i, false
	}
	return i + len(w), true
}

// string gives the end of the string at i, and whether it has no escapes.
func (s *scanner) string(i int) (end int, plain, ok bool) {
	end, plain, ok = scanString(s.doc, i)
	if ok && !plain && !s.loose {
		ok = paired(s.doc[i:end])
	}
	return end, plain, ok
}

// paired reports whether every surrogate in a well-formed string has its
// other half.
func paired(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return true
		}
		if b[i+1] != 'u' {
			b = b[i+2:]
			continue
		}
		r := hex4(b[i+2:])
		b = b[i+6:]
		if !utf16.IsSurrogate(r) {
			continue
		}
		if r >= 0xdc00 || len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return false
		}
		if low := hex4(b[2:]); low < 0xdc00 || low > 0xdfff {
			return false
		}
		b = b[6:]
	}
}

// number gives the end of a number that is surely sane.
func (s *scanner) number(i int) (int, bool) {
	end, ok := scanNumber(s.doc, i)
	if !ok || s.loose {
		return end, ok
	}
	return end, end-i <= maxFastDigits || sane(s.doc[i:end])
}

// maxFastDigits is short enough for no exponent to do harm.
const maxFastDigits = 4

func (s *scanner) skipArray(i int) (int, bool) {
	if s.depth--; s.depth < 0 {
		return i, false
	}
	i, more := s.open(i, ']')
	for ok := true; more; {
		if i, ok = s.skip(i); !ok {
			return i, false
		}
		if i, more, ok = s.next(i, ']'); !ok {
			return i, false
		}
	}
	s.depth++
	return i, true
}

// open passes the opening bracket at i and white space. more is false if the
// closing one follows at once; then i is behind it.
func (s *scanner) open(i int, closing byte) (at int, more bool) {
	i = skipSpace(s.doc, i+1)
	if i < len(s.doc) && s.doc[i] == closing {
		return i + 1, false
	}
	return i, true
}

// next passes what follows a value: a comma (more) or the closing bracket.
func (s *scanner) next(i int, closing byte) (at int, more, ok bool) {
	i = skipSpace(s.doc, i)
	if i >= len(s.doc) {
		return i, false, false
	}
	switch s.doc[i] {
	case closing:
		return i + 1, false, true
	case ',':
		return skipSpace(s.doc, i+1), true, true
	}
	return i, false, false
}

func (s *scanner) skipObject(i int) (int, bool) {
	if s.depth--; s.depth < 0 {
		return i, false
	}
	var keys keySet
	i, more := s.open(i, '}')
	for ok := true; more; {
		start := i
		var end int
		var plain bool
		if i, end, plain, ok = s.key(i); !ok {
			return i, false
		}
		if !s.loose && !(plain && keys.add(s.doc, start, end)) {
			return i, false
		}
		if i, ok = s.skip(i); !ok {
			return i, false
		}
		if i, more, ok = s.next(i, '}'); !ok {
			return i, false
		}
	}
	s.depth++
	return i, true
}

// key passes the key at i and its colon. It gives the start of the value and
// the end of the key.
func (s *scanner) key(i int) (at, end int, plain, ok bool) {
	if i >= len(s.doc) || s.doc[i] != '"' {
		return i, i, false, false
	}
	end, plain, ok = s.string(i)
	if !ok {
		return i, end, plain, false
	}
	i = skipSpace(s.doc, end)
	if i >= len(s.doc) || s.doc[i] != ':' {
		return i, end, plain, false
	}
	return skipSpace(s.doc, i+1), end, plain, true
}

// keySet remembers the keys of one object, without allocating.
type keySet struct {
	n     int
	spans [24][2]int32
}

// add reports false if the key was there, or there are too many to tell.
func (k *keySet) add(doc []byte, start, end int) bool {
	if k.n == len(k.spans) || end > 1<<30 {
		return false
	}
	key := doc[start:end]
	for _, s := range k.spans[:k.n] {
		if int(s[1]-s[0]) == len(key) && bytes.Equal(doc[s[0]:s[1]], key) {
			return false
		}
	}
	k.spans[k.n] = [2]int32{int32(start), int32(end)}
	k.n++
	return true
}
