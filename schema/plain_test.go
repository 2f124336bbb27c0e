package schema

import (
	"strings"
	"testing"
)

func TestCheckIsCompile(t *testing.T) {
	for _, row := range []struct {
		text  string
		plain bool
	}{
		{`true`, true},
		{`{}`, true},
		{nineSchema, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":["integer","null"]}]}}}`, true},
		{`{"type":"object","x-anything":{"type":7},"properties":{"type":{"enum":["a","b"]},"$ref":{"type":"string"}}}`, true},
		{`{"type":"text"}`, false},
		{`{"type":[]}`, false},
		{`{"type":["string","string"]}`, false},
		{`{"minLength":-1}`, false},
		{`{"minLength":1.5}`, false},
		{`{"minimum":"1"}`, false},
		{`{"minimum":1e400}`, false},
		{`{"required":"a"}`, false},
		{`{"required":["a","a"]}`, false},
		{`{"properties":{"a":{"items":[]}}}`, false},
		{`{"properties":{"a":7}}`, false},
		{`{"properties":[]}`, false},
		{`{"anyOf":[]}`, false},
		{`{"examples":1}`, false},
		{`{"description":1}`, false},
		{`{"$ref":"#/$defs/gone"}`, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, true},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#/$defs/a.b","$defs":{"a.b":{"items":{"$ref":"#/$defs/a.b"}}}}`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, false},
		{`{"$ref":"#/$defs/a b","$defs":{"a b":{"type":"string"}}}`, false},
		{`{"$ref":"#/$defs/","$defs":{"":{"type":"string"}}}`, true},
		{`{"$ref":"#/$defs/a/items","$defs":{"a":{"items":{"type":"string"}}}}`, false},
		{`{"$ref":7,"$defs":{"a":{"type":"string"}}}`, false},
		{`{"$defs":{"a":{"type":"text"}}}`, false},
		{`{"$defs":[]}`, false},
		{`{"properties":{"a":{"$defs":{}}}}`, false},
		{`{"pattern":"(?<=a)b"}`, true},
		{`{"$schema":"https://example.com/mine","type":"object"}`, false},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`, false},
		{`{"properties":{"a":{"$schema":"x"}}}`, false},
	} {
		s, err := Parse([]byte(row.text))
		if err != nil {
			t.Fatal(row.text, err)
		}
		read, err := s.peek()
		if err != nil {
			t.Fatal(row.text, err)
		}
		if got := read.plain(); got != row.plain {
			t.Errorf("%s: plain is %t", row.text, got)
		}
		checkIsCompile(t, row.text)
	}
}

// checkIsCompile holds that Check and Compile say the same of a schema.
func checkIsCompile(t *testing.T, text string) {
	s, err := Parse([]byte(text))
	if err != nil {
		return
	}
	checked := s.Check()
	if s.done.Load() != nil {
		t.Errorf("%s: Check kept what it read", text)
	}
	compiled := s.Compile()
	if (checked == nil) != (compiled == nil) || checked != nil && checked.Error() != compiled.Error() {
		t.Errorf("%s\nCheck says %v,\nCompile %v", text, checked, compiled)
	}
}

func FuzzCheckIsCompile(f *testing.F) {
	f.Add(uint64(1), nineSchema)
	f.Add(uint64(2), `{"type":["string","null"],"enum":["a",1,null],"required":["a"],"minLength":1.0,"minimum":1e5,"examples":[1]}`)
	f.Add(uint64(3), `{"anyOf":[{"not":{}},true],"items":{"additionalProperties":false},"const":{"a":1}}`)
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		checkIsCompile(t, text)
		checkIsCompile(t, newGenerator(seed).root())
		// The same with the keywords in each other's place.
		if keys := strings.Split(text, `"`); len(keys) > 3 {
			i, j := 1+int(seed%uint64(len(keys)-2)), 1+int(seed/7%uint64(len(keys)-2))
			keys[i], keys[j] = keys[j], keys[i]
			checkIsCompile(t, strings.Join(keys, `"`))
		}
	})
}

// BenchmarkCheck measures a schema of a usual size: what is asked of each tool
// of a server that was not known.
func BenchmarkCheck(b *testing.B) {
	s := Must(nineSchema)
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := s.Check(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compiled", func(b *testing.B) {
		for b.Loop() {
			read, err := newTree(s.raw, Options{})
			if err == nil {
				_, _, err = newLibrary(read)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Plain reports whether Check need not compile the schema.
func (s *Schema) Plain() bool {
	t, err := s.peek()
	return err == nil && t.plain()
}
