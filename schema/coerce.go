package schema

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Coerce reads doc as the schema wants it, where that is safe and unambiguous
// (SPEC X3): texts as the numbers, booleans, objects and arrays that they
// spell, a lone value as a list of one, enum values in another case, a
// misspelt key as the required one that is missing, null for what is optional
// as absent. What is valid already is never touched, and nothing but a text
// becomes a command or a path. Each change has a note. doc itself is given
// back when nothing changed; everything that was not changed is kept byte for
// byte. Coercing twice is the same as coercing once.
func (s *Schema) Coerce(doc []byte) (out []byte, notes []string) {
	c := s.compiled()
	if c.accepts(doc) {
		return doc, nil
	}
	lib, err := c.library()
	if err != nil {
		return doc, nil
	}
	v, dups, err := parse(doc, maxDocDepth)
	if err != nil || len(dups) > 0 || c.tree.knotty && c.tree.tooHard(v) || lib.validate(v.any()) == nil {
		return doc, nil
	}
	co := &coercer{c: c, lib: lib, build: c.builder(lib), strict: map[*value]bool{}}
	co.mark([]*value{c.tree.root}, v)
	defer func() { c.builders.Put(co.build) }()
	text, changed := co.value([]*value{c.tree.root}, v, "", "")
	if !changed || co.steps > maxCoerceSteps {
		return doc, nil
	}
	out = append(append(bytes.Clone(doc[:v.start]), text...), doc[v.end:]...)
	return out, co.notes
}

// coercer walks a schema and a document together and rewrites the text.
type coercer struct {
	c     *compiled
	lib   *library
	build *builder // nil where there are no rules
	notes []string
	steps int
	// strict are the values that some branch, not only the one looked at, gives
	// a role of commands or paths.
	strict map[*value]bool
}

// mark notes the strict ones among the values in v.
func (co *coercer) mark(schs []*value, v *value) {
	if !co.c.tree.roles {
		return
	}
	c := collector{t: co.c.tree, seen: map[visit]bool{}, strict: co.strict}
	for _, sch := range schs {
		if c.collect(sch, v, nil) != nil {
			co.steps = maxCoerceSteps + 1 // what cannot be judged is left as it is
		}
	}
}

// maxCoerceSteps bounds the trying of branches; a document that needs more is
// left as it is.
const maxCoerceSteps = 200_000

func (co *coercer) note(at string, role Role, from, to []byte, how string) {
	if at == "" {
		at = "the whole"
	}
	if role == Secret {
		co.notes = append(co.notes, at+": "+how)
		return
	}
	text := at + ": " + how
	if from != nil {
		text = at + ": " + shorten(from) + " " + how
	}
	if to != nil {
		text += " " + shorten(to)
	}
	co.notes = append(co.notes, text)
}

func shorten(text []byte) string {
	const most = 60
	if len(text) <= most {
		return string(text)
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return string(text[:cut]) + "…"
}

// value gives the text of v as schs want it, and whether it differs.
func (co *coercer) value(schs []*value, v *value, at string, role Role) ([]byte, bool) {
	if co.steps++; co.steps > maxCoerceSteps || co.surelyValid(schs, v) {
		return v.text(), false
	}
	w := co.c.tree.view(co.lib.draft, schs, role)
	text, changed := co.shape(w, schs, v, at)
	for _, union := range w.unions {
		now := v
		if changed {
			now = reparse(text)
			co.mark(schs, now)
		}
		if t, ok := co.choose(w, union, schs, now, at); ok {
			text, changed = t, true
		}
	}
	return text, changed
}

// reparse reads text that this package wrote.
func reparse(text []byte) *value {
	v, _, err := parse(text, maxDocDepth)
	if err != nil {
		panic("schema: coercion wrote what cannot be read: " + err.Error())
	}
	return v
}

// shape coerces by all but the unions.
func (co *coercer) shape(w *view, schs []*value, v *value, at string) ([]byte, bool) {
	if v.kind != kString && co.strict[v] {
		return v.text(), false
	}
	if w.lits != nil && v.kind < kArray {
		if lit := w.literal(v); lit != nil {
			co.note(at, w.role, v.text(), lit.text(), "read as")
			return lit.text(), true
		}
	}
	switch {
	case !w.allows(v.kind):
		return co.convert(w, schs, v, at)
	case v.kind == kObject:
		return co.object(w, v, at)
	case v.kind == kArray:
		return co.array(w, v, at)
	}
	return v.text(), false
}

// literal finds the one allowed value that reads like v and is not v.
func (w *view) literal(v *value) *value {
	if v.kind == kNull || v.kind != kString && w.role.strict() {
		return nil
	}
	var found *value
	name := fold(strings.TrimSpace(v.plain()))
	for _, l := range w.lits {
		switch {
		case l.kind == v.kind && l.plain() == v.plain():
			return nil
		case l.kind == kNull || l.kind >= kArray || !w.allows(l.kind) || fold(l.plain()) != name:
		case found != nil:
			return nil
		default:
			found = l
		}
	}
	return found
}

// plain is a scalar as one would say it.
func (v *value) plain() string {
	if s, ok := v.str(); ok {
		return s
	}
	return string(v.text())
}

// choose coerces by the one branch of a union that then accepts the value.
func (co *coercer) choose(w *view, union, schs []*value, v *value, at string) ([]byte, bool) {
	for _, branch := range union {
		if co.valid(branch, v) {
			return nil, false
		}
	}
	var best []candidate
	wrapped := true
	for _, branch := range union {
		trial := *co
		trial.notes = nil
		text, changed := trial.value([]*value{branch}, v, at, w.role)
		co.steps = trial.steps
		if !changed || !co.valid(branch, reparse(text)) {
			continue
		}
		wraps := v.kind != kArray && text[0] == '[' && !looksLike(v, '[')
		switch {
		case wraps && !wrapped:
			continue
		case !wraps && wrapped:
			best, wrapped = nil, false
		}
		if len(best) == 0 || !bytes.Equal(best[0].text, text) {
			best = append(best, candidate{text: text, notes: trial.notes})
		}
	}
	if len(best) != 1 {
		return nil, false
	}
	co.notes = append(co.notes, best[0].notes...)
	return best[0].text, true
}

// looksLike reports whether v is a text that begins with c.
func looksLike(v *value, c byte) bool {
	s, ok := v.str()
	s = strings.TrimSpace(s)
	return ok && s != "" && s[0] == c
}

// surelyValid reports what the rules accept; false says nothing.
func (co *coercer) surelyValid(schs []*value, v *value) bool {
	if co.build == nil {
		return false
	}
	for _, sch := range schs {
		if r := co.build.rule(sch); r == nil || co.build.total(r) > maxRuleCost || !r.accepts(v.text()) {
			return false
		}
	}
	return true
}

// valid reports whether v is valid by sch, by the library where need be.
func (co *coercer) valid(sch, v *value) bool {
	if co.surelyValid([]*value{sch}, v) {
		return true
	}
	if co.c.tree.knotty {
		b := budget{co.c.tree, map[visit]int{}}
		if co.steps += b.of(sch, v); co.steps > maxCoerceSteps {
			return false
		}
	}
	part := co.lib.part(co.c.tree, sch)
	return part != nil && part.Validate(v.any()) == nil
}

func (co *coercer) validAll(schs []*value, v *value) bool {
	for _, sch := range schs {
		if !co.valid(sch, v) {
			return false
		}
	}
	return true
}

// edit is what happens to one member or element.
type edit struct {
	key  []byte // a new key, nil for the old one
	text []byte // a new text, nil for the old one
	drop bool
}

// rewrite writes a container with its kids edited, keeping all between them.
func rewrite(v *value, edits []edit) []byte {
	if len(v.kids) == 0 {
		return v.text()
	}
	doc := v.doc
	out := append([]byte(nil), doc[v.start:v.kids[0].keyStart]...)
	first := true
	for i, kid := range v.kids {
		e := edits[i]
		if e.drop {
			continue
		}
		if !first {
			out = append(out, doc[v.kids[i-1].end:kid.keyStart]...)
		}
		first = false
		from := kid.keyStart
		if e.key != nil {
			out = append(out, e.key...)
			from, _, _ = scanString(doc, kid.keyStart)
		}
		out = append(out, doc[from:kid.start]...)
		if e.text != nil {
			out = append(out, e.text...)
		} else {
			out = append(out, kid.text()...)
		}
	}
	return append(out, doc[v.kids[len(v.kids)-1].end:v.end]...)
}

func (co *coercer) array(w *view, v *value, at string) ([]byte, bool) {
	edits := make([]edit, len(v.kids))
	any := false
	for i, kid := range v.kids {
		text, changed := co.value(w.element(i), kid, fmt.Sprintf("%s/%d", at, i), w.role)
		if changed {
			edits[i].text, any = text, true
		}
	}
	if !any {
		return v.text(), false
	}
	return rewrite(v, edits), true
}

func (co *coercer) object(w *view, v *value, at string) ([]byte, bool) {
	edits := make([]edit, len(v.kids))
	any := false
	renamed := co.renames(w, v)
	for i, kid := range v.kids {
		key := kid.key
		if to, ok := renamed[key]; ok {
			edits[i].key, any = quote(to), true
			co.note(at+pointer([]string{key}), "", nil, quote(to), "read as the missing")
			key = to
		}
		schs, declared := w.member(key)
		below := at + pointer([]string{key})
		if kid.kind == kNull && declared && !w.required(key) && !co.validAll(schs, kid) {
			edits[i].drop, any = true, true
			co.note(below, "", kid.text(), nil, "left out: it is optional")
			continue
		}
		text, changed := co.value(schs, kid, below, "")
		if changed {
			edits[i].text, any = text, true
		}
	}
	if !any {
		return v.text(), false
	}
	return rewrite(v, edits), true
}
