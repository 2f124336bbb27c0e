package schema

import (
	"regexp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// rule is a schema that is checked on the bytes of a document directly. It
// only ever accepts: what it does not accept, the library decides.
type rule struct {
	kinds   uint8 // bits of the kinds allowed
	integer bool  // of numbers, only whole ones
	any     bool  // nothing else is asked
	unsure  bool  // nothing is known of what it accepts

	lits *literals // enum and const, nil for none

	min, max               bound
	minLen, maxLen         int // of strings, in code points; maxLen < 0 for none
	minItems, maxItems     int
	minMembers, maxMembers int
	step                   int64 // multipleOf, 0 for none
	pattern                *regexp.Regexp

	items *rule // nil for anything

	props    []property
	index    map[string]int // for many props
	required [propWords]uint64
	extra    *rule // of undeclared members

	all   []*rule
	anyOf [][]*rule
}

type property struct {
	name string
	rule *rule
}

type bound struct {
	set, exclusive bool
	f              float64
}

const (
	propWords = 4
	maxProps  = 64 * propWords
	manyProps = 12
	allKinds  = 1<<(kObject+1) - 1
)

var (
	anyRule   = &rule{kinds: allKinds, any: true, maxLen: -1, maxItems: -1, maxMembers: -1}
	neverRule = &rule{}
	// unsureRule says nothing about any value.
	unsureRule = &rule{kinds: allKinds, unsure: true, maxLen: -1, maxItems: -1, maxMembers: -1}
)

// literals are the scalars that enum or const allow.
type literals struct {
	texts   []string
	numbers []float64
	kinds   uint8 // null as is; booleans by yes and no
	yes, no bool
}

// accepts reports whether doc is surely valid. False says nothing.
func (c *compiled) accepts(doc []byte) bool {
	c.fastOnce.Do(c.makeFast)
	return c.fast != nil && c.fast.accepts(doc)
}

func (r *rule) accepts(doc []byte) bool {
	s := scanner{doc: doc, depth: maxScanDepth}
	end, ok := r.check(&s, skipSpace(doc, 0))
	return ok && skipSpace(doc, end) == len(doc)
}

// check gives the end of the value at i, and whether it is surely valid.
func (r *rule) check(s *scanner, i int) (end int, ok bool) {
	if i >= len(s.doc) {
		return i, false
	}
	if r.any {
		return s.skip(i)
	}
	if r.unsure {
		return i, false
	}
	switch c := s.doc[i]; c {
	case '{':
		end, ok = r.object(s, i)
	case '[':
		end, ok = r.array(s, i)
	case '"':
		end, ok = r.string(s, i)
	case 't', 'f', 'n':
		end, ok = r.word(s, i, c)
	default:
		end, ok = r.number(s, i)
	}
	if !ok || len(r.all) == 0 && len(r.anyOf) == 0 {
		return end, ok
	}
	return end, r.branches(s, i)
}

func (r *rule) branches(s *scanner, i int) bool {
	depth := s.depth
	for _, sub := range r.all {
		if _, ok := sub.check(s, i); !ok {
			return false
		}
	}
	for _, group := range r.anyOf {
		if !slices.ContainsFunc(group, func(sub *rule) bool {
			s.depth = depth
			_, ok := sub.check(s, i)
			return ok
		}) {
			return false
		}
	}
	s.depth = depth
	return true
}

func (r *rule) word(s *scanner, i int, c byte) (int, bool) {
	w, k := "null", kNull
	switch c {
	case 't':
		w, k = "true", kBool
	case 'f':
		w, k = "false", kBool
	}
	if r.kinds&(1<<k) == 0 {
		return i, false
	}
	end, ok := s.word(i, w)
	if l := r.lits; ok && l != nil {
		ok = c == 't' && l.yes || c == 'f' && l.no || c == 'n' && l.kinds&(1<<kNull) != 0
	}
	return end, ok
}

func (r *rule) number(s *scanner, i int) (int, bool) {
	if r.kinds&(1<<kNumber) == 0 {
		return i, false
	}
	end, ok := s.number(i)
	if !ok {
		return end, false
	}
	tok := s.doc[i:end]
	if !r.min.set && !r.max.set && r.step == 0 && r.lits == nil {
		return end, !r.integer || isWhole(tok)
	}
	n, ok := exact(tok)
	if !ok || r.integer && !n.whole {
		return end, false
	}
	if r.lits != nil && !slices.Contains(r.lits.numbers, n.f) {
		return end, false
	}
	if r.step != 0 && (!n.whole || int64(n.f)%r.step != 0) {
		return end, false
	}
	return end, r.min.below(n.f) && r.max.above(n.f)
}

func (b bound) below(f float64) bool { return !b.set || b.f < f || b.f == f && !b.exclusive }
func (b bound) above(f float64) bool { return !b.set || b.f > f || b.f == f && !b.exclusive }

func (r *rule) string(s *scanner, i int) (int, bool) {
	if r.kinds&(1<<kString) == 0 {
		return i, false
	}
	end, plain, ok := s.string(i)
	if !ok || r.lits == nil && r.minLen == 0 && r.maxLen < 0 && r.pattern == nil {
		return end, ok
	}
	if r.minLen > 0 || r.maxLen >= 0 {
		if n := length(s.doc[i+1:end-1], plain); n < r.minLen || r.maxLen >= 0 && n > r.maxLen {
			return end, false
		}
	}
	if r.lits == nil && r.pattern == nil {
		return end, true
	}
	text := s.doc[i+1 : end-1]
	if !plain {
		text = []byte(unquote(s.doc[i:end]))
	}
	if r.lits != nil && !slices.ContainsFunc(r.lits.texts, func(t string) bool { return t == string(text) }) {
		return end, false
	}
	return end, r.pattern == nil || r.pattern.Match(text)
}

// length counts the code points of a well-formed string's inside, whose
// surrogates are paired.
func length(in []byte, plain bool) int {
	n := utf8.RuneCount(in)
	if plain {
		return n
	}
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			continue
		}
		i++
		n--
		if in[i] != 'u' {
			continue
		}
		if n -= 4; utf16.IsSurrogate(hex4(in[i+1:])) {
			n -= 6
			i += 6
		}
		i += 4
	}
	return n
}

func (r *rule) array(s *scanner, i int) (int, bool) {
	if r.kinds&(1<<kArray) == 0 || r.lits != nil {
		return i, false
	}
	if s.depth--; s.depth < 0 {
		return i, false
	}
	n := 0
	i, more := s.open(i, ']')
	for ok := true; more; n++ {
		if r.items == nil {
			i, ok = s.skip(i)
		} else {
			i, ok = r.items.check(s, i)
		}
		if ok {
			i, more, ok = s.next(i, ']')
		}
		if !ok {
			return i, false
		}
	}
	s.depth++
	return i, n >= r.minItems && (r.maxItems < 0 || n <= r.maxItems)
}

func (r *rule) object(s *scanner, i int) (int, bool) {
	if r.kinds&(1<<kObject) == 0 || r.lits != nil {
		return i, false
	}
	if s.depth--; s.depth < 0 {
		return i, false
	}
	var seen [propWords]uint64
	var strangers keySet
	n, next := 0, 0
	i, more := s.open(i, '}')
	for ; more; n++ {
		start := i
		at, end, plain, ok := s.key(i)
		if !ok {
			return at, false
		}
		rule := r.extra
		if p := r.find(s.doc[start:end], plain, next); p >= 0 {
			if seen[p>>6]&(1<<(p&63)) != 0 {
				return at, false
			}
			seen[p>>6] |= 1 << (p & 63)
			rule, next = r.props[p].rule, p+1
		} else if !plain || !strangers.add(s.doc, start, end) {
			return at, false
		}
		if i, ok = rule.check(s, at); ok {
			i, more, ok = s.next(i, '}')
		}
		if !ok {
			return i, false
		}
	}
	s.depth++
	for w, need := range r.required {
		if seen[w]&need != need {
			return i, false
		}
	}
	return i, n >= r.minMembers && (r.maxMembers < 0 || n <= r.maxMembers)
}

// find gives the number of the declared property that a quoted key names, or
// -1. Members tend to come in the declared order, so hint is tried first.
func (r *rule) find(quoted []byte, plain bool, hint int) int {
	key := quoted[1 : len(quoted)-1]
	if !plain {
		key = []byte(unquote(quoted))
	}
	if hint < len(r.props) && r.props[hint].name == string(key) {
		return hint
	}
	if r.index != nil {
		if p, ok := r.index[string(key)]; ok {
			return p
		}
		return -1
	}
	for p := range r.props {
		if r.props[p].name == string(key) {
			return p
		}
	}
	return -1
}
