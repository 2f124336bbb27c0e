package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/helve-ai/helve/schema"
)

func TestParseReadsSyntaxOnly(t *testing.T) {
	for raw, want := range map[string]string{
		``:                 "is empty",
		`[]`:               "neither an object nor true or false",
		`"x"`:              "neither an object nor true or false",
		`nope`:             "cannot begin a value",
		`{"a":1,}`:         "a key in double quotes should stand here",
		`{} {}`:            "something follows the value",
		"{\"a\":\"\xff\"}": "invalid UTF-8",
		`{"a":"` + strings.Repeat("x", 1<<20) + `"}`:                     "the limit is 1048576",
		strings.Repeat(`{"not":`, 200) + "{}" + strings.Repeat("}", 200): "nested deeper than 128 levels",
	} {
		if _, err := schema.Parse([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", raw, err, want)
		}
	}
	for _, raw := range []string{`true`, `false`, ` { "type" : "nonsense", "x-unknown": [1] } `} {
		s, err := schema.Parse([]byte(raw))
		if err != nil || s.String() != raw {
			t.Errorf("%s: %v, %v", raw, s, err)
		}
	}
	if _, err := schema.ParseWith([]byte(`{}`), schema.Options{Draft: 5}); err == nil {
		t.Error("draft 5 was accepted")
	}
}

func TestRawIsTheParsersOwn(t *testing.T) {
	raw := []byte(`{"type":"string"}`)
	s, err := schema.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, `{"type":"number"}`)
	if s.Validate([]byte(`"x"`)) != nil {
		t.Error("changing the input changed the schema")
	}
}

func TestCompileSaysWhatAndWhere(t *testing.T) {
	for raw, want := range map[string]string{
		`{"properties":{"a":{"type":"strng"}}}`: `schema: /properties/a/type: is "strng", which is none of the allowed values: did you mean "string"?`,
		`{"properties":{"a":{"minLength":-1}}}`: `schema: /properties/a/minLength: is -1, which is less than the minimum of 0`,
		`{"required":"a"}`:                      `schema: /required: is the string "a", where an array is wanted`,
		`{"type":"string","type":"number"}`:     `schema: /type: the key stands there twice`,
		`{"$ref":"http://x.test/s"}`:            `schema: the reference to http://x.test/s cannot be followed: references to other documents are not followed`,
		`{"$ref":"file:///etc/passwd"}`:         `schema: the reference to file:///etc/passwd cannot be followed: references to other documents are not followed`,
		`{"$ref":"#/$defs/x"}`:                  `#/$defs/x`,
	} {
		s, err := schema.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Compile(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gave %v\n want %s", raw, err, want)
		}
		if ps := s.Validate([]byte(`1`)); len(ps) == 0 {
			t.Errorf("%s: a schema that cannot be read accepts", raw)
		}
		if out, notes := s.Coerce([]byte(`"1"`)); string(out) != `"1"` || notes != nil {
			t.Errorf("%s: coerced by a schema that cannot be read", raw)
		}
	}
}

func TestDrafts(t *testing.T) {
	for _, c := range []struct {
		name, schema, good, bad string
		opts                    schema.Options
	}{
		{"2020 by default", `{"prefixItems":[{"type":"integer"}]}`, `[1]`, `["a"]`, schema.Options{}},
		{"7 where it is no 2020", `{"items":[{"type":"integer"}]}`, `[1]`, `["a"]`, schema.Options{}},
		{"4 where it is neither", `{"minimum":1,"exclusiveMinimum":true}`, `2`, `1`, schema.Options{}},
		{"by $schema", `{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"integer"}],"type":"array"}`, `["a"]`, `1`, schema.Options{}},
		{"by option", `{"prefixItems":[{"type":"integer"}],"type":"array"}`, `["a"]`, `1`, schema.Options{Draft: 7}},
		{"format is a remark", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"date","type":"string"}`, `"x"`, `1`, schema.Options{}},
		{"format asserted", `{"format":"date"}`, `"2025-01-31"`, `"x"`, schema.Options{Formats: true}},
		{"regex asserted", `{"format":"regex"}`, `"a"`, `"("`, schema.Options{Formats: true}},
		{"references beside other keywords", `{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","minLength":2}`, `"ab"`, `"a"`, schema.Options{}},
		{"and alone in draft 7", `{"definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","minLength":2}`, `"a"`, `1`, schema.Options{Draft: 7}},
		{"remote", `{"$ref":"http://x.test/s"}`, `"a"`, `1`, schema.Options{Load: func(string) ([]byte, error) { return []byte(`{"type":"string"}`), nil }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.ParseWith([]byte(c.schema), c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if ps := s.Validate([]byte(c.good)); ps != nil {
				t.Errorf("%s: %v", c.good, ps)
			}
			if ps := s.Validate([]byte(c.bad)); ps == nil {
				t.Errorf("%s was accepted", c.bad)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ schema, warning, good string }{
		{`{"pattern":"^(?=a).*$"}`, "the pattern \"^(?=a).*$\" is not enforced", `"b"`},
		{`{"pattern":"^(a{1,1000}){1,1000}$"}`, "is not enforced", `"b"`},
		{`{"patternProperties":{"(?!x)":{"type":"integer"}},"additionalProperties":false}`, "is not enforced", `{"y":"a"}`},
		{`{"$schema":"http://x.test/mine","type":"string"}`, "/$schema: is not a draft that is known", `"a"`},
		{`{"pattern":"` + strings.Repeat("a", 40_000) + `"}`, "is not enforced", `"b"`},
	} {
		s, err := schema.Parse([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Compile(); err != nil {
			t.Errorf("%.60s: %v", c.schema, err)
		}
		if got := strings.Join(s.Warnings(), "\n"); !strings.Contains(got, c.warning) {
			t.Errorf("%.60s: warnings %q", c.schema, got)
		}
		if ps := s.Validate([]byte(c.good)); ps != nil {
			t.Errorf("%.60s: %v", c.schema, ps)
		}
	}
	s := schema.Must(`{"pattern":"^[\\u0061-\\u{63}\\uD83D\\uDE00]+$"}`)
	if s.Validate([]byte(`"abc😀"`)) != nil || s.Validate([]byte(`"d"`)) == nil || s.Warnings() != nil {
		t.Error("escapes of ECMA patterns are not read", s.Warnings())
	}
}

// Each of these would take hours or gigabytes if it were taken at its word.
func TestSchemaBombs(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	doubling.WriteString(`"d60":{"type":"integer"}}}`)
	twice := `{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],"maxProperties":1}`
	many := `{"allOf":[` + strings.Repeat(`{},`, 20_000) + `{}]}`
	patterns := `{"allOf":[` + strings.Repeat(`{"pattern":"(a{1,900}b{1,900}){1,9}"},`, 300) + `{"minLength":1}]}`
	for _, c := range []struct{ name, schema, doc string }{
		{"doubling allOf", doubling.String(), `1`},
		{"doubling recursion", twice, strings.Repeat(`{"a":`, 60) + `{"b":1,"c":2}` + strings.Repeat(`}`, 60)},
		{"doubling recursion inside a text", `{"properties":{"t":{"anyOf":[` + strings.ReplaceAll(twice, `"#"`, `"#/properties/t/anyOf/0"`) + `,{"type":"integer"}]},"x":{"type":"boolean"}}}`,
			`{"x":"no","t":` + string(must(json.Marshal(strings.Repeat(`{"a":`, 60)+`{"b":1,"c":2}`+strings.Repeat(`}`, 60)))) + `}`},
		{"too many schemas", many, `1`},
		{"patterns", patterns, `"` + strings.Repeat("a", 1000) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.Parse([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			ps := s.Validate([]byte(c.doc))
			out, _ := s.Coerce([]byte(c.doc))
			t.Logf("%v; coerced %v", ps, string(out) != c.doc)
			if c.name != "patterns" && len(ps) == 0 {
				t.Error("accepted")
			}
			s.Parameters()
			s.Example()
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestSchemasAreSafeForConcurrentUse(t *testing.T) {
	const raw = `{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"object","properties":{"b":{"type":"integer","pattern":"x"}},"dependentRequired":{"b":["c"]}}],"x-helve-role":"secret"},"f":{"format":"regex"}}}`
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s := schema.Must(raw)
			for range 20 {
				s.Validate([]byte(`{"a":{"b":1},"f":"("}`))
				s.Coerce([]byte(`{"a":{"b":"1","c":1}}`))
				s.Values([]byte(`{"a":"x"}`))
				s.Parameters()
				s.Example()
				s.Warnings()
			}
		})
	}
	group.Wait()
}

func TestTheZeroSchemaAcceptsEverything(t *testing.T) {
	var s schema.Schema
	if s.Validate([]byte(`{"a":1}`)) != nil || s.String() != "true" || s.HasRoles() || s.Parameters() != nil {
		t.Error("the zero schema asks for something")
	}
}

func TestSchemasAreJSON(t *testing.T) {
	var tool struct {
		Input *schema.Schema `json:"input"`
	}
	const text = `{"input":{"type":"object","x-mine":{"b":1,"a":2}}}`
	if err := json.Unmarshal([]byte(text), &tool); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(tool)
	if err != nil || string(out) != text {
		t.Errorf("%s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"input":3}`), &tool); err == nil {
		t.Error("3 was read as a schema")
	}
}

func TestMustPanicsOnWhatDoesNotCompile(t *testing.T) {
	for _, raw := range []string{`{`, `{"type":"strng"}`, `{"pattern":"(?=a)"}`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", raw)
				}
			}()
			schema.Must(raw)
		}()
	}
}
