package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// Parameter is one top-level property, as a listing or a form shows it.
type Parameter struct {
	Name string
	// Type is short: "string", "integer", "string[]", `"a"|"b"`, "any".
	Type        string
	Description string
	Required    bool
	Default     json.RawMessage // nil where none is stated
	Role        Role
	Enum        []string // the texts that are allowed, where only texts are
}

// Parameters gives the top-level properties in their written order, those of
// references and allOf included. A schema that cannot be read has none.
func (s *Schema) Parameters() []Parameter {
	t, err := s.peek()
	if err != nil {
		return nil
	}
	var out []Parameter
	m := t.members(t.root)
	for _, p := range m.props {
		out = append(out, t.parameter(p.key, p, slices.Contains(m.required, p.key)))
	}
	return out
}

// peek reads the schema without keeping what it read, unless that was kept
// already: listing thousands of tools is not to hold them all in memory.
func (s *Schema) peek() (*tree, error) {
	if c := s.done.Load(); c != nil {
		return c.getTree()
	}
	return newTree(s.Raw(), s.options())
}

// members is what a schema says about an object's members.
type members struct {
	props    []*value // the schemas, under their keys; the first of each name
	required []string
}

// members reads sch, and what it refers to and is made of (allOf).
func (t *tree) members(sch *value) members {
	var m members
	t.gather(sch, &m, map[*value]bool{})
	return m
}

func (t *tree) gather(sch *value, m *members, seen map[*value]bool) {
	if sch == nil || seen[sch] || len(seen) > maxParts {
		return
	}
	seen[sch] = true
	m.required = append(m.required, sch.member("required").strings()...)
	if props := sch.member("properties"); props != nil {
		known := map[string]bool{}
		for _, p := range m.props {
			known[p.key] = true
		}
		for _, p := range props.kids {
			if !known[p.key] {
				m.props = append(m.props, p)
			}
		}
	}
	t.gather(t.ref(sch), m, seen)
	if all := sch.member("allOf"); all != nil && all.kind == kArray {
		for _, sub := range all.kids {
			t.gather(sub, m, seen)
		}
	}
}

func (t *tree) parameter(name string, sch *value, required bool) Parameter {
	p := Parameter{Name: name, Required: required, Type: t.typeName(sch, 0)}
	p.Description, _ = t.keyword(sch, "description").str()
	if d := t.keyword(sch, "default"); d != nil {
		p.Default = json.RawMessage(d.text())
	}
	role, _ := t.keyword(sch, roleKeyword).str()
	p.Role = Role(role)
	if enum := t.keyword(sch, "enum"); enum != nil {
		if texts := enum.strings(); len(texts) == len(enum.kids) {
			p.Enum = texts
		}
	}
	return p
}

// keyword finds a keyword in sch or in what it refers to.
func (t *tree) keyword(sch *value, k string) *value {
	for range maxRefs {
		if sch == nil {
			return nil
		}
		if v := sch.member(k); v != nil {
			return v
		}
		sch = t.ref(sch)
	}
	return nil
}

const (
	maxTypeDepth = 4
	maxTypeEnum  = 8
)

// typeName says shortly what sch wants.
func (t *tree) typeName(sch *value, depth int) string {
	if sch == nil || sch.kind != kObject || depth > maxTypeDepth {
		return "any"
	}
	if c := sch.member("const"); c != nil {
		return string(c.text())
	}
	if enum := sch.member("enum"); enum != nil && enum.kind == kArray && len(enum.kids) > 0 && len(enum.kids) <= maxTypeEnum {
		names := make([]string, len(enum.kids))
		for i, e := range enum.kids {
			names[i] = string(e.text())
		}
		return strings.Join(names, "|")
	}
	if names := sch.member("type"); names != nil {
		return t.declaredType(sch, names, depth)
	}
	if sub := t.ref(sch); sub != nil {
		return t.typeName(sub, depth+1)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list := sch.member(k); list != nil && list.kind == kArray {
			return t.unionName(list.kids, depth)
		}
	}
	if all := sch.member("allOf"); all != nil && all.kind == kArray && len(all.kids) == 1 {
		return t.typeName(all.kids[0], depth+1)
	}
	if sch.member("properties") != nil {
		return "object"
	}
	return "any"
}

func (t *tree) declaredType(sch, names *value, depth int) string {
	list := names.strings()
	if one, ok := names.str(); ok {
		list = []string{one}
	}
	for i, n := range list {
		if n != "array" {
			continue
		}
		list[i] = "array"
		if items := sch.member("items"); items != nil && items.kind == kObject {
			list[i] = bracket(t.typeName(items, depth+1)) + "[]"
		}
	}
	if len(list) == 0 {
		return "any"
	}
	return strings.Join(list, "|")
}

func bracket(name string) string {
	if strings.Contains(name, "|") {
		return "(" + name + ")"
	}
	return name
}

func (t *tree) unionName(branches []*value, depth int) string {
	var names []string
	for _, b := range branches {
		if n := t.typeName(b, depth+1); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}
