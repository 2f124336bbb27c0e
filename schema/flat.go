package schema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// flat is the plan for schemas whose roles all stand on properties at the top:
// most of them. Their values are read in one pass, without building a tree.
type flat struct {
	names []string
	roles []Role
}

// flatten gives the plan, nil if the roles may stand deeper.
func (t *tree) flatten() *flat {
	doc := t.root.doc
	if t.root.kind != kObject || bytes.Contains(doc, []byte("Ref")) || bytes.Contains(doc, []byte(`$ref`)) || bytes.Contains(doc, []byte(`\u`)) {
		return nil
	}
	var f flat
	if props := t.root.member("properties"); props != nil {
		for _, p := range props.kids {
			if role, ok := p.member(roleKeyword).str(); ok {
				f.names, f.roles = append(f.names, p.key), append(f.roles, Role(role))
			}
		}
	}
	if len(f.names) == 0 || bytes.Count(doc, []byte(roleKeyword)) != len(f.names) {
		return nil
	}
	return &f
}

// values reads the values of an object. ok is false where it does not
// understand, or doubts: then the thorough way decides.
func (f *flat) values(doc []byte) (out []Value, ok bool) {
	s := scanner{doc: doc, depth: maxScanDepth}
	i := skipSpace(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return nil, false
	}
	var keys keySet
	i, more := s.open(i, '}')
	for more {
		start := i
		at, end, plain, ok := s.key(i)
		if !ok || !plain || !keys.add(doc, start, end) {
			return nil, false
		}
		if i, ok = s.skip(at); !ok {
			return nil, false
		}
		if out, ok = f.add(out, doc[start+1:end-1], doc[at:i]); !ok {
			return nil, false
		}
		if i, more, ok = s.next(i, '}'); !ok {
			return nil, false
		}
	}
	return out, skipSpace(doc, i) == len(doc)
}

// add notes the value under key if it has a role, in any case of the key.
func (f *flat) add(out []Value, key, raw []byte) ([]Value, bool) {
	for n, name := range f.names {
		if len(key) != len(name) && isASCII(key) && isASCII([]byte(name)) || !strings.EqualFold(name, string(key)) {
			continue
		}
		if raw[0] == '[' || raw[0] == '{' || bytes.IndexByte(raw, '\\') >= 0 || !isASCII(key) {
			return nil, false
		}
		v := Value{Role: f.roles[n], Pointer: pointer([]string{string(key)}), Raw: json.RawMessage(raw)}
		if raw[0] == '"' {
			v.IsString, v.Text = true, string(raw[1:len(raw)-1])
		}
		out = append(out, v)
	}
	return out, true
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
