package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// Example gives a minimal document that the schema accepts, for messages that
// show how it is done: required properties only, with the values that the
// schema itself offers (examples, default, const, enum) where it does. Where
// none that is valid was found it gives the best attempt.
func (s *Schema) Example() json.RawMessage {
	t, err := s.peek()
	if err != nil {
		return json.RawMessage("{}")
	}
	return t.example(t.root, 0)
}

const maxExampleDepth = 12

func (t *tree) example(sch *value, depth int) []byte {
	if sch == nil || sch.kind != kObject || depth > maxExampleDepth {
		return []byte("{}")
	}
	if given := t.offered(sch); given != nil {
		return given.text()
	}
	switch typeOf(sch) {
	case "string":
		return t.exampleString(sch)
	case "integer", "number":
		return exampleNumber(sch)
	case "boolean":
		return []byte("true")
	case "null":
		return []byte("null")
	case "array":
		return t.exampleArray(sch, depth)
	}
	if sub := t.ref(sch); sub != nil && sch.member("properties") == nil {
		return t.example(sub, depth+1)
	}
	if sch.member("type") == nil && sch.member("properties") == nil {
		for _, k := range []string{"anyOf", "oneOf", "allOf"} {
			if list := sch.member(k); list != nil && len(list.kids) > 0 && (k != "allOf" || len(list.kids) == 1) {
				return t.example(list.kids[0], depth+1)
			}
		}
	}
	return t.exampleObject(sch, depth)
}

// offered gives a value that the schema names itself.
func (t *tree) offered(sch *value) *value {
	if list := sch.member("examples"); list != nil && list.kind == kArray && len(list.kids) > 0 {
		return list.kids[0]
	}
	for _, k := range []string{"const", "default"} {
		if v := sch.member(k); v != nil && v.kind != kNull {
			return v
		}
	}
	if list := sch.member("enum"); list != nil && list.kind == kArray && len(list.kids) > 0 {
		return list.kids[0]
	}
	return nil
}

// typeOf gives the first type that is not null.
func typeOf(sch *value) string {
	names := sch.member("type").strings()
	if one, ok := sch.member("type").str(); ok {
		names = []string{one}
	}
	for _, n := range names {
		if n != "null" || len(names) == 1 {
			return n
		}
	}
	return ""
}

// formatExamples are texts that common formats accept.
var formatExamples = map[string]string{
	"date": "2025-01-31", "date-time": "2025-01-31T12:00:00Z", "time": "12:00:00Z", "duration": "PT1H",
	"email": "name@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "url": "https://example.com/", "uuid": "123e4567-e89b-12d3-a456-426614174000",
}

func (t *tree) exampleString(sch *value) []byte {
	format, _ := sch.member("format").str()
	if text := formatExamples[format]; text != "" {
		return quote(text)
	}
	role, _ := sch.member(roleKeyword).str()
	text := "..."
	switch r := Role(role); {
	case r.IsPath():
		text = "path/to/file"
	case r == URL:
		text = formatExamples["uri"]
	}
	if n := count(sch, "minLength"); n > len(text) && n <= 1000 {
		text += strings.Repeat("x", n-len(text))
	}
	if v := sch.member("maxLength"); v != nil && count(sch, "maxLength") < len(text) {
		text = strings.Repeat("x", count(sch, "maxLength"))
	}
	return quote(text)
}

// count reads a keyword that holds a small number.
func count(sch *value, k string) int {
	var n float64
	if v := sch.member(k); v != nil && v.kind == kNumber {
		json.Unmarshal(v.text(), &n)
	}
	return int(max(0, min(n, 1<<30)))
}

func exampleNumber(sch *value) []byte {
	if v := sch.member("minimum"); v != nil && v.kind == kNumber {
		return v.text()
	}
	if v := sch.member("multipleOf"); v != nil && v.kind == kNumber {
		return v.text()
	}
	if v := sch.member("exclusiveMinimum"); v != nil && v.kind == kNumber {
		var n float64
		json.Unmarshal(v.text(), &n)
		text, _ := json.Marshal(n + 1)
		return text
	}
	if v := sch.member("maximum"); v != nil && v.kind == kNumber {
		var n float64
		if json.Unmarshal(v.text(), &n); n < 1 {
			return v.text()
		}
	}
	return []byte("1")
}

func (t *tree) exampleArray(sch *value, depth int) []byte {
	items := sch.member("items")
	n := count(sch, "minItems")
	if n > 4 || items == nil || items.kind != kObject {
		n = 0
	}
	parts := make([]string, n)
	for i := range parts {
		parts[i] = string(t.example(items, depth+1))
	}
	return []byte("[" + strings.Join(parts, ",") + "]")
}

func (t *tree) exampleObject(sch *value, depth int) []byte {
	m := t.members(sch)
	var parts, done []string
	add := func(name string, text []byte) {
		done = append(done, name)
		parts = append(parts, string(quote(name))+":"+string(text))
	}
	for _, p := range m.props {
		if slices.Contains(m.required, p.key) {
			add(p.key, t.example(p, depth+1))
		}
	}
	for _, name := range m.required {
		if slices.Contains(done, name) {
			continue
		}
		if extra := sch.member("additionalProperties"); extra != nil && extra.kind == kObject {
			add(name, t.example(extra, depth+1))
		} else {
			add(name, []byte(`"..."`))
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}
