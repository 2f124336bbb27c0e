package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Value is an argument that has a role.
type Value struct {
	Role    Role
	Pointer string // RFC 6901 into the document
	Text    string // decoded, where IsString
	Raw     json.RawMessage
	// IsString is false where something else stands in the argument's place;
	// a guard that wants a text cannot judge it and must refuse.
	IsString bool
}

// HasRoles reports whether any argument has a role. It is cheap.
func (s *Schema) HasRoles() bool {
	if s.opts != nil && s.opts.Load != nil {
		return true // a remote part may have one
	}
	if !s.roles {
		return false
	}
	t, err := s.compiled().getTree()
	return err != nil || t.roles
}

// Values gives every value in doc for which the schema declares a role, in the
// order of the document: in properties, items, references and all branches,
// whether or not the branch matches. A role on an array is the role of each of
// its elements. A key that differs from a declared one in case only has that
// one's role, too, since decoders into Go structs take it for the same.
func (s *Schema) Values(doc []byte) ([]Value, error) {
	if !s.HasRoles() {
		return nil, nil
	}
	t, err := s.compiled().getTree()
	if err != nil {
		return nil, err
	}
	if f := s.compiled().flatRoles(); f != nil {
		if out, ok := f.values(doc); ok {
			return out, nil
		}
	}
	return t.values(doc)
}

// values is the thorough way of Values.
func (t *tree) values(doc []byte) ([]Value, error) {
	v, dups, err := parse(doc, maxDocDepth)
	if err != nil {
		return nil, fmt.Errorf("the document is not readable JSON: %w", err)
	}
	if len(dups) > 0 {
		return nil, fmt.Errorf("%s: the key stands there twice", dups[0])
	}
	c := collector{t: t, seen: map[visit]bool{}}
	if err := c.collect(t.root, v, nil); err != nil {
		return nil, err
	}
	return c.out, nil
}

type visit struct{ schema, value *value }

// collector walks a schema and a document together. seen keeps it from doing a
// pair twice, which bounds the work whatever the references do.
type collector struct {
	t    *tree
	seen map[visit]bool
	out  []Value
	// strict, where it is not nil, notes the values that only a text may become.
	strict map[*value]bool
}

// maxPairs bounds the pairs of a schema and a value that are looked at.
const maxPairs = 2_000_000

func (c *collector) collect(sch, v *value, path []string) error {
	if sch == nil || sch.kind != kObject || c.seen[visit{sch, v}] {
		return nil
	}
	if len(c.seen) > maxPairs {
		return errors.New("the schema and the document are too large together to look for roles")
	}
	c.seen[visit{sch, v}] = true
	if role, ok := sch.member(roleKeyword).str(); ok {
		c.add(Role(role), v, path)
	}
	var err error
	c.t.pairs(sch, v, func(sub, at *value, tok string) {
		switch {
		case err != nil:
		case sub == nil:
			err = fmt.Errorf("schema: the reference %q cannot be followed to look for roles", tok)
		case at == v:
			err = c.collect(sub, at, path)
		default:
			err = c.collect(sub, at, append(path, tok))
		}
	})
	return err
}

func (c *collector) add(role Role, v *value, path []string) {
	if c.strict != nil && role.strict() {
		c.strict[v] = true
	}
	if v.kind == kArray {
		for i, kid := range v.kids {
			c.add(role, kid, append(path, fmt.Sprint(i)))
		}
		return
	}
	text, isString := v.str()
	found := Value{Role: role, Pointer: pointer(path), Text: text, Raw: v.text(), IsString: isString}
	for _, had := range c.out {
		if had.Role == found.Role && had.Pointer == found.Pointer {
			return
		}
	}
	c.out = append(c.out, found)
}

// WithRole gives a copy of the schema in which one property has a role: an
// operator's word about a tool that declares none. at is a pointer into a
// document (/files/0/path) or the name of a top-level property.
func (s *Schema) WithRole(at string, r Role) (*Schema, error) {
	if !r.Known() {
		return nil, fmt.Errorf("schema: there is no role %q%s", r, didYouMean(string(r), roleNames()))
	}
	t, err := s.compiled().getTree()
	if err != nil {
		return nil, err
	}
	tokens := []string{at}
	if strings.HasPrefix(at, "/") {
		tokens = pointerTokens(at)
	}
	target := t.root
	for i, tok := range tokens {
		next := t.below(target, tok, 0)
		if next == nil {
			names := t.propertyNames(target, 0)
			return nil, fmt.Errorf("schema: no property %s%s", pointer(tokens[:i+1]), didYouMean(tok, names))
		}
		target = next
	}
	raw, err := addRole(t.root.doc, target, r)
	if err != nil {
		return nil, err
	}
	return ParseWith(raw, s.options())
}

// below finds the schema of the member or element tok of what sch describes.
func (t *tree) below(sch *value, tok string, depth int) *value {
	if sch == nil || depth > maxRefs {
		return nil
	}
	if sub := sch.member("properties").member(tok); sub != nil {
		return sub
	}
	if items := sch.member("items"); items != nil && items.kind == kObject && isIndex(tok) {
		return items
	}
	if sub := t.below(t.ref(sch), tok, depth+1); sub != nil {
		return sub
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		if list := sch.member(k); list != nil {
			for _, branch := range list.kids {
				if sub := t.below(branch, tok, depth+1); sub != nil {
					return sub
				}
			}
		}
	}
	return nil
}

func isIndex(tok string) bool {
	return tok == "*" || tok == "-" || strings.Trim(tok, "0123456789") == ""
}

func (t *tree) propertyNames(sch *value, depth int) []string {
	if sch == nil || depth > maxRefs {
		return nil
	}
	var names []string
	if props := sch.member("properties"); props != nil {
		for _, kid := range props.kids {
			names = append(names, kid.key)
		}
	}
	return append(names, t.propertyNames(t.ref(sch), depth+1)...)
}

// addRole writes the keyword into the text of the schema sub, in place of one
// that is there.
func addRole(doc []byte, sub *value, r Role) ([]byte, error) {
	var out []byte
	word := quote(string(r))
	if had := sub.member(roleKeyword); had != nil {
		out = append(append(append(out, doc[:had.start]...), word...), doc[had.end:]...)
		return out, nil
	}
	member := append([]byte(`"`+roleKeyword+`":`), word...)
	switch {
	case sub.kind == kBool && sub.boolean(true):
		return append(append(append(append(out, doc[:sub.start]...), '{'), append(member, '}')...), doc[sub.end:]...), nil
	case sub.kind != kObject:
		return nil, fmt.Errorf("schema: %s cannot carry a role", sub.text())
	case len(sub.kids) > 0:
		member = append(member, ',')
	}
	return append(append(append(out, doc[:sub.start+1]...), member...), doc[sub.start+1:]...), nil
}
