package schema

import (
	"cmp"
	"math"
	"slices"
)

// builder makes rules of schemas. A schema that it cannot make one of has
// none: nil.
type builder struct {
	t     *tree
	draft int
	made  map[*value]*rule // unsureRule while in the making: what recurs is left to the library
	cost  map[*rule]int
}

// maxRuleCost bounds how often one value may be looked at.
const maxRuleCost = 20_000

func (c *compiled) makeFast() {
	t, err := c.getTree()
	if err != nil {
		return
	}
	draft := t.draft
	if t.plain() {
		draft = cmp.Or(draft, 2020) // as the library would: it need not be asked
	} else if lib, err := c.library(); err == nil {
		draft = lib.draft
	} else {
		return
	}
	if b := newBuilder(t, draft); b != nil {
		if r := b.rule(c.tree.root); r != nil && b.total(r) <= maxRuleCost {
			c.fast = r
		}
	}
}

// builder gives one that no one else uses.
func (c *compiled) builder(lib *library) *builder {
	if b, ok := c.builders.Get().(*builder); ok {
		return b
	}
	return newBuilder(c.tree, lib.draft)
}

// newBuilder gives nil for schemas whose references or dialect need the
// library.
func newBuilder(t *tree, draft int) *builder {
	ownDialect := t.opts.Load != nil && t.root.member("$schema") != nil && draftOf(t.root) == 0
	if !t.local || draft == 4 || ownDialect {
		return nil
	}
	return &builder{t: t, draft: draft, made: map[*value]*rule{}, cost: map[*rule]int{}}
}

// total counts the paths through r: how often a value may be looked at.
func (b *builder) total(r *rule) int {
	if n, ok := b.cost[r]; ok {
		return n
	}
	n := 1
	add := func(sub *rule) {
		if sub != nil {
			n = min(n+b.total(sub), maxRuleCost+1)
		}
	}
	add(r.items)
	add(r.extra)
	for _, p := range r.props {
		add(p.rule)
	}
	for _, group := range append(r.anyOf, r.all) {
		for _, sub := range group {
			add(sub)
		}
	}
	b.cost[r] = n
	return n
}

func (b *builder) rule(v *value) *rule {
	if r, ok := b.made[v]; ok {
		return r
	}
	b.made[v] = unsureRule
	r := b.make(v)
	b.made[v] = r
	return r
}

func (b *builder) make(v *value) *rule {
	if v == nil || v.kind == kBool {
		if v != nil && v.boolean(false) {
			return neverRule
		}
		return anyRule
	}
	if v != b.t.root && v.member("$id") != nil {
		return nil // references inside mean something else
	}
	r := *anyRule
	r.any = false
	r.extra = anyRule
	if b.draft < 2019 && v.member("$ref") != nil {
		return b.optional(b.localRef(v))
	}
	for _, kid := range v.kids {
		if !b.keyword(&r, v, kid) {
			return nil
		}
	}
	if !b.members(&r, v) {
		return nil
	}
	if plainRule(&r) {
		return anyRule
	}
	return &r
}

// optional is rule for a schema that may be missing.
func (b *builder) optional(v *value) *rule {
	if v == nil {
		return nil
	}
	return b.rule(v)
}

func (b *builder) localRef(v *value) *value {
	ref, ok := v.member("$ref").str()
	if !ok || ref == "" || ref[0] != '#' || ref != "#" && ref[1] != '/' {
		return nil
	}
	return b.t.lookup(v, ref)
}

func plainRule(r *rule) bool {
	return r.kinds == allKinds && !r.integer && r.lits == nil && !r.min.set && !r.max.set && r.minLen == 0 && r.maxLen < 0 &&
		r.minItems == 0 && r.maxItems < 0 && r.minMembers == 0 && r.maxMembers < 0 && r.step == 0 && r.pattern == nil &&
		r.items == nil && len(r.props) == 0 && r.extra == anyRule && len(r.all) == 0 && len(r.anyOf) == 0
}

// unready are the keywords that assert something and that no rule knows.
var unready = []string{
	"contains", "dependencies", "dependentRequired", "dependentSchemas", "if", "maxContains", "minContains", "not",
	"patternProperties", "prefixItems", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
	"$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
}

// keyword reads one keyword into r. It reports false for what no rule can be
// made of.
func (b *builder) keyword(r *rule, v, kid *value) bool {
	switch kid.key {
	case "$ref":
		sub := b.optional(b.localRef(v))
		r.all = append(r.all, sub)
		return sub != nil
	case "type":
		return r.types(kid)
	case "enum":
		return kid.kind == kArray && r.literals(kid.kids)
	case "const":
		return r.literals([]*value{kid})
	case "minimum":
		return r.min.tighten(kid, false, 1)
	case "exclusiveMinimum":
		return r.min.tighten(kid, true, 1)
	case "maximum":
		return r.max.tighten(kid, false, -1)
	case "exclusiveMaximum":
		return r.max.tighten(kid, true, -1)
	case "multipleOf":
		n, ok := natural(kid)
		r.step = int64(n)
		return ok && n > 0
	case "pattern":
		p, ok := kid.str()
		r.pattern, _ = readPattern(p)
		return ok
	case "items":
		if kid.kind == kArray {
			return false
		}
		r.items = b.rule(kid)
		return r.items != nil
	case "allOf", "anyOf", "oneOf":
		return b.branches(r, kid)
	case "uniqueItems":
		return kid.boolean(false)
	case "format":
		return !b.t.opts.Formats
	}
	if to := r.count(kid.key); to != nil {
		n, ok := natural(kid)
		*to = n
		return ok
	}
	return !slices.Contains(unready, kid.key)
}

// count gives where a keyword that holds a number of things is kept.
func (r *rule) count(keyword string) *int {
	switch keyword {
	case "minLength":
		return &r.minLen
	case "maxLength":
		return &r.maxLen
	case "minItems":
		return &r.minItems
	case "maxItems":
		return &r.maxItems
	case "minProperties":
		return &r.minMembers
	case "maxProperties":
		return &r.maxMembers
	}
	return nil
}

func natural(v *value) (int, bool) {
	if v.kind != kNumber {
		return 0, false
	}
	n, ok := exact(v.text())
	return int(n.f), ok && n.whole && n.f >= 0 && n.f <= math.MaxInt32
}

func (r *rule) types(v *value) bool {
	names := v.strings()
	if one, ok := v.str(); ok {
		names = []string{one}
	}
	var kinds uint8
	whole, number := false, false
	for _, n := range names {
		switch i := slices.Index(kindNames[:], n); {
		case n == "integer":
			whole = true
			kinds |= 1 << kNumber
		case i < 0:
			return false
		default:
			number = number || n == "number"
			kinds |= 1 << i
		}
	}
	r.integer = whole && !number
	r.kinds &= kinds
	return len(names) > 0
}

func (r *rule) literals(vs []*value) bool {
	if r.lits != nil {
		return false // both enum and const: rare enough for the library
	}
	l := &literals{}
	for _, v := range vs {
		l.kinds |= 1 << v.kind
		switch v.kind {
		case kBool:
			l.yes = l.yes || v.boolean(true)
			l.no = l.no || v.boolean(false)
		case kNumber:
			n, ok := exact(v.text())
			if !ok {
				return false
			}
			l.numbers = append(l.numbers, n.f)
		case kString:
			text, _ := v.str()
			l.texts = append(l.texts, text)
		case kArray, kObject:
			l.kinds &^= 1 << v.kind // never accepted here, the library may
		}
	}
	r.lits = l
	return true
}

// tighten narrows a bound; sign is 1 for a lower one.
func (b *bound) tighten(v *value, exclusive bool, sign float64) bool {
	if v.kind != kNumber {
		return false
	}
	n, ok := exact(v.text())
	switch {
	case !ok:
		return false
	case !b.set || sign*n.f > sign*b.f:
		*b = bound{true, exclusive, n.f}
	case n.f == b.f:
		b.exclusive = b.exclusive || exclusive
	}
	return true
}

func (b *builder) branches(r *rule, list *value) bool {
	if list.kind != kArray {
		return false
	}
	group := make([]*rule, len(list.kids))
	for i, kid := range list.kids {
		if group[i] = b.rule(kid); group[i] == nil {
			return false
		}
	}
	if list.key == "allOf" {
		r.all = append(r.all, group...)
		return true
	}
	r.anyOf = append(r.anyOf, group)
	return list.key == "anyOf" || exclusive(group)
}

// exclusive reports whether no value can match two of the rules, by kind.
func exclusive(group []*rule) bool {
	var seen uint8
	for _, r := range group {
		k := r.possible()
		if seen&k != 0 {
			return false
		}
		seen |= k
	}
	return true
}

// possible gives the kinds that r may accept at most.
func (r *rule) possible() uint8 {
	k := r.kinds
	for _, sub := range r.all {
		k &= sub.possible()
	}
	for _, group := range r.anyOf {
		var any uint8
		for _, sub := range group {
			any |= sub.possible()
		}
		k &= any
	}
	return k
}

// members reads the keywords about an object's members, which hang together.
func (b *builder) members(r *rule, v *value) bool {
	if extra := v.member("additionalProperties"); extra != nil {
		if r.extra = b.rule(extra); r.extra == nil {
			return false
		}
	}
	if props := v.member("properties"); props != nil {
		for _, kid := range props.kids {
			sub := b.rule(kid)
			if sub == nil {
				return false
			}
			r.props = append(r.props, property{kid.key, sub})
		}
	}
	for _, name := range v.member("required").strings() {
		p := slices.IndexFunc(r.props, func(p property) bool { return p.name == name })
		if p < 0 {
			p = len(r.props)
			r.props = append(r.props, property{name, r.extra})
		}
		if p >= maxProps {
			return false
		}
		r.required[p>>6] |= 1 << (p & 63)
	}
	if len(r.props) > manyProps {
		r.index = make(map[string]int, len(r.props))
		for i, p := range r.props {
			r.index[p.name] = i
		}
	}
	return len(r.props) <= maxProps
}
