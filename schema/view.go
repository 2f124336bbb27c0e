package schema

import (
	"math/bits"
	"slices"
)

// view is what several schemas ask of one value together, as far as coercion
// looks: references and allOf are followed, anyOf and oneOf kept apart.
type view struct {
	t       *tree
	parts   []*value
	unions  [][]*value
	kinds   uint8
	integer bool
	lits    []*value // of the first enum or const; nil for none
	role    Role
}

// maxParts bounds how many schemas one value is looked at with.
const maxParts = 64

func (t *tree) view(draft int, schs []*value, inherited Role) *view {
	w := &view{t: t, kinds: allKinds, role: inherited}
	for _, sch := range schs {
		w.add(t, draft, sch)
	}
	for _, p := range w.parts {
		w.read(p)
	}
	if w.kinds == allKinds && w.lits != nil {
		w.kinds = 0
		for _, l := range w.lits {
			w.kinds |= 1 << l.kind
		}
	}
	return w
}

func (w *view) add(t *tree, draft int, sch *value) {
	if sch == nil || sch.kind != kObject || len(w.parts) == maxParts || slices.Contains(w.parts, sch) {
		return
	}
	if ref, ok := sch.member("$ref").str(); ok {
		if draft < 2019 {
			w.parts = append(w.parts, &value{kind: kObject}) // takes a place, so that cycles end
			w.add(t, draft, t.lookup(sch, ref))
			return
		}
		defer w.add(t, draft, t.lookup(sch, ref))
	}
	w.parts = append(w.parts, sch)
	for _, kid := range sch.kids {
		if kid.kind != kArray || len(kid.kids) == 0 {
			continue
		}
		switch kid.key {
		case "allOf":
			for _, sub := range kid.kids {
				w.add(t, draft, sub)
			}
		case "anyOf", "oneOf":
			w.unions = append(w.unions, kid.kids)
		}
	}
}

func (w *view) read(p *value) {
	if v := p.member("type"); v != nil {
		r := *anyRule
		if r.types(v) {
			w.kinds &= r.kinds
			w.integer = w.integer || r.integer
		}
	}
	if role, ok := p.member(roleKeyword).str(); ok && (w.role == "" || Role(role).strict()) {
		w.role = Role(role)
	}
	if w.lits != nil {
		return
	}
	if enum := p.member("enum"); enum != nil && enum.kind == kArray {
		w.lits = enum.kids
	} else if c := p.member("const"); c != nil {
		w.lits = []*value{c}
	}
}

func (w *view) allows(k kind) bool { return w.kinds&(1<<k) != 0 }

// only reports whether k is the one kind allowed.
func (w *view) only(k kind) bool { return w.allows(k) && bits.OnesCount8(w.kinds) == 1 }

// member gives the schemas of the member called name, and whether it is
// declared by name.
func (w *view) member(name string) (schs []*value, declared bool) {
	for _, p := range w.parts {
		sub := p.member("properties").member(name)
		if sub != nil {
			schs, declared = append(schs, sub), true
		}
		matched := w.patterned(p, name, &schs)
		if extra := p.member("additionalProperties"); extra != nil && sub == nil && !matched {
			schs = append(schs, extra)
		}
	}
	return schs, declared
}

// patterned adds to schs those that p gives to members like name.
func (w *view) patterned(p *value, name string, schs *[]*value) bool {
	patterns := p.member("patternProperties")
	if patterns == nil {
		return false
	}
	matched := false
	for _, kid := range patterns.kids {
		if w.t.matches(kid.key, name) {
			matched = true
			*schs = append(*schs, kid)
		}
	}
	return matched
}

func (w *view) required(name string) bool { return slices.Contains(w.allRequired(), name) }

func (w *view) allRequired() []string {
	var out []string
	for _, p := range w.parts {
		out = append(out, p.member("required").strings()...)
	}
	return out
}

// element gives the schemas of the element at i.
func (w *view) element(i int) []*value {
	var schs []*value
	for _, p := range w.parts {
		tuple, rest := p.member("prefixItems"), p.member("items")
		if rest != nil && rest.kind == kArray {
			tuple, rest = rest, p.member("additionalItems")
		}
		switch {
		case tuple != nil && i < len(tuple.kids):
			schs = append(schs, tuple.kids[i])
		case rest != nil:
			schs = append(schs, rest)
		}
	}
	return schs
}
