package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Roles lists the roles that the schema declares anywhere, each once, in the
// order of their first appearance. A schema that cannot be read has none.
func (s *Schema) Roles() []Role {
	if !s.HasRoles() {
		return nil
	}
	t, err := s.peek()
	if err != nil {
		return nil
	}
	var out []Role
	var walk func(v *value)
	walk = func(v *value) {
		if text, ok := v.member(roleKeyword).str(); ok && !slices.Contains(out, Role(text)) {
			out = append(out, Role(text))
		}
		eachSub(v, func(_, _ string, sub *value) { walk(sub) })
	}
	walk(t.root)
	return out
}

// Closed reports whether the schema refuses properties that it does not name:
// whether additionalProperties is false at its top.
func (s *Schema) Closed() bool {
	t, err := s.peek()
	return err == nil && t.root.member("additionalProperties").boolean(false)
}

// Optional returns the schema without its top-level required properties: that
// of an object for which every property has a default.
func (s *Schema) Optional() *Schema {
	t, err := s.peek()
	if err != nil || t.root.member("required") == nil {
		return s
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for _, kid := range t.root.kids {
		if kid.key == "required" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(quote(kid.key))
		b.WriteByte(':')
		b.Write(kid.text())
	}
	b.WriteByte('}')
	open, err := ParseWith(b.Bytes(), s.options())
	if err != nil {
		return s
	}
	return open
}

// Property returns the value of a top-level property of doc, or of each item
// if it is an array. A document without the property has none; one that
// repeats a key is refused. Text is the raw JSON where the value is no string.
func Property(doc []byte, name string) ([]Value, error) {
	root, dups, err := parse(doc, maxDocDepth)
	if err != nil {
		return nil, fmt.Errorf("the document is not readable JSON: %w", err)
	}
	if len(dups) > 0 {
		return nil, fmt.Errorf("%s: the key stands there twice", dups[0])
	}
	v := root.member(name)
	if v == nil {
		return nil, nil
	}
	at := pointer([]string{name})
	if v.kind != kArray {
		return []Value{valueOf(v, at)}, nil
	}
	out := make([]Value, len(v.kids))
	for i, kid := range v.kids {
		out[i] = valueOf(kid, fmt.Sprintf("%s/%d", at, i))
	}
	return out, nil
}

func valueOf(v *value, at string) Value {
	raw := json.RawMessage(v.text())
	text, isString := v.str()
	if !isString {
		text = string(raw)
	}
	return Value{Pointer: at, Text: text, Raw: raw, IsString: isString}
}

// ClosestIndexes is Closest, and returns the places in among instead of the names.
func ClosestIndexes(name string, among []string, n int) []int {
	return closest(name, among, n)
}
