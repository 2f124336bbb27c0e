package parse

import "strings"

// scan returns the first place from i on where one of the tags stands, which
// begin with the same byte; -1: nowhere. It looks at each place once.
func scan(s string, i int, tags ...string) (int, string) {
	for {
		at := first(s, i, tags[0][:1])
		if at < 0 {
			return -1, ""
		}
		for _, t := range tags {
			if strings.HasPrefix(s[at:], t) {
				return at, t
			}
		}
		i = at + 1
	}
}

// scan is the function from where was looked last. If no tag is found it
// remembers where one may yet come.
func (e *env) scan(tags ...string) (int, string) {
	i, tag := scan(e.s, e.look, tags...)
	if i < 0 {
		for _, t := range tags {
			i = max(i, len(t))
		}
		e.look = max(e.look, len(e.s)-i+1)
		return -1, ""
	}
	return i, tag
}

// matching returns the place of the tag close that ends what an opener began:
// what is opened from from on is closed before it, and belongs to a value.
// Where that does not come out even, it is the first one. -1: it may yet come,
// or there is none.
func (e *env) matching(from int, open, close string) int {
	e.look = max(e.look, from)
	for e.m.flattened <= maxFlattened {
		i, tag := e.scan(close, open)
		switch {
		case i < 0 && !e.eof:
			return -1
		case i < 0:
			e.m.flattened += len(e.s) - from
			return first(e.s, from, close)
		case tag == close && e.nested == 0:
			e.look = i
			return i
		case tag == close:
			e.nested--
		default:
			e.nested++
		}
		e.look = i + len(tag)
	}
	return first(e.s, from, close)
}

// first returns the first place from from on where a tag stands, or -1.
func first(s string, from int, tag string) int {
	if i := strings.Index(s[from:], tag); i >= 0 {
		return from + i
	}
	return -1
}

// enclosed is matching for an element within what was read whole: s is what
// follows its opening tag.
func (e *env) enclosed(s, open, close string) int {
	for i, depth := 0, 0; e.m.flattened <= maxFlattened; {
		at, tag := scan(s, i, close, open)
		switch {
		case at < 0:
			e.m.flattened += len(s)
			return strings.Index(s, close)
		case tag == open:
			depth++
		case depth == 0:
			return at
		default:
			depth--
		}
		i = at + len(tag)
	}
	return strings.Index(s, close)
}
