package parse

// An element is what stands between two tags, if it is written as it should be.
type element struct{ open, close string }

// within is what is open of the elements that a value itself holds: a file that
// is written may tell of calls, in the very words that call. What is balanced
// there belongs to the value.
type within struct {
	open [2]int // by element: whole calls first, then their parameters
	seen bool   // any was opened
	flat bool   // they are not balanced, and not looked at
}

// maxFlattened bounds how much of a message is read again in vain because of
// elements that are not balanced.
const maxFlattened = 1 << 20

// tags returns what to look for in a value: the tags that may end it, and those
// that open elements within it.
func (e *env) tags(ends []string, within ...element) []string {
	if e.within.flat || e.m.flattened > maxFlattened {
		return ends
	}
	for _, w := range within {
		ends = append(ends, w.open, w.close)
	}
	return ends
}

// inner reports whether the tag at i belongs to an element within the value,
// and passes over it.
func (e *env) inner(i int, tag string, within ...element) bool {
	w := &e.within
	if w.flat {
		return false
	}
	for k, el := range within {
		switch {
		case tag == el.open:
			w.open[k]++
			w.seen = true
		case tag != el.close:
			continue
		case w.open[k] > 0:
			w.open[k]--
		case k == 0 || w.open[0] == 0:
			return false
		}
		e.look = i + len(tag)
		return true
	}
	return w.open[0] > 0 && e.pass(i, tag)
}

func (e *env) pass(i int, tag string) bool {
	e.look = i + len(tag)
	return true
}

// flatten begins a value anew in which elements were opened that do not end in
// it: they are but text. It reports whether there were any.
func (e *env) flatten() bool {
	if e.within.flat || !e.within.seen {
		return false
	}
	e.m.flattened += len(e.s) - e.pos
	e.within = within{flat: true}
	e.look = e.pos
	return true
}
