package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
)

func TestProblems(t *testing.T) {
	const tool = `{"type":"object","properties":{
		"path":{"type":"string","minLength":2},"limit":{"type":"integer","minimum":1,"maximum":10},
		"mode":{"type":"string","enum":["fast","slow"]},"tags":{"type":"array","items":{"type":"string"},"maxItems":2,"uniqueItems":true},
		"when":{"anyOf":[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false},{"type":"integer"}]},
		"key":{"type":"string","pattern":"^k","x-helve-role":"secret"}
	},"required":["path"],"additionalProperties":false}`
	for _, c := range []struct {
		name, schema, doc string
		want              []string // pointer: message (expected)
	}{
		{"missing and unknown", tool, `{"pth":"ab"}`, []string{
			`: lacks the required property "path" (property "path")`,
			`/pth: unknown property "pth": did you mean "path"? (property "path")`}},
		{"too much", tool, `{"path":"ab","limit":12}`, []string{`/limit: is 12, which is more than the maximum of 10 (at most 10)`}},
		{"too short", tool, `{"path":"a"}`, []string{`/path: is 1 character long, the minimum is 2 (at least 2 characters)`}},
		{"wrong type", tool, `{"path":"ab","limit":"x"}`, []string{`/limit: is the string "x", where an integer is wanted (integer)`}},
		{"fraction", tool, `{"path":"ab","limit":1.5}`, []string{`/limit: is 1.5, where an integer is wanted (integer)`}},
		{"enum", tool, `{"path":"ab","mode":"fats"}`, []string{`/mode: is "fats", which is none of the allowed values: did you mean "fast"? (one of "fast", "slow")`}},
		{"elements", tool, `{"path":"ab","tags":["a",2,"a"]}`, []string{
			`/tags: has 3 elements, the maximum is 2 (at most 2 elements)`,
			`/tags: repeats itself: the elements 0 and 2 are equal (no element twice)`,
			`/tags/1: is 2, where a string is wanted (string)`}},
		{"closest branch", tool, `{"path":"ab","when":{"att":"x"}}`, []string{
			`/when: lacks the required property "at" (property "at")`,
			`/when/att: unknown property "att": did you mean "at"? (property "at")`}},
		{"no branch of the kind", tool, `{"path":"ab","when":true}`, []string{`/when: is true, where object or integer is wanted (object or integer)`}},
		{"secret", tool, `{"path":"ab","key":"hunter2"}`, []string{`/key: is a string, which does not match the pattern ^k (text that matches ^k)`}},
		{"twice", tool, `{"path":"ab","path":"cd"}`, []string{`/path: stands there twice (each key once)`}},
		{"twice, hidden by an escape", `{}`, `{"a":{"b":1,"\u0062":2}}`, []string{`/a/b: stands there twice (each key once)`}},
		{"pointer", `{"additionalProperties":{"type":"null"}}`, `{"a/b~c":1}`, []string{`/a~1b~0c: is 1, where null is wanted (null)`}},
		{"two alternatives", `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, []string{`: matches both alternative 1 and alternative 2, where exactly one must match (exactly one alternative)`}},
		{"branch by its tag", `{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"const":"b"},"n":{"type":"boolean"}}}]}`,
			`{"k":"b","n":3}`, []string{`/n: is 3, where a boolean is wanted (boolean)`}},
		{"endless reference", `{"$ref":"#"}`, `1`, []string{`: cannot be checked: the schema refers to itself without end ()`}},
		{"not JSON", `{}`, `{"a" 1}`, []string{`: is not readable JSON: offset 5: a colon should stand after the key "a" (JSON)`}},
		{"not UTF-8", `{}`, "\"\xff\"", []string{`: is not readable JSON: offset 1: invalid UTF-8 (JSON)`}},
		{"empty", `{}`, ``, []string{`: is not readable JSON: offset 0: the text ends where a value should begin (JSON)`}},
		{"two values", `{}`, `1 2`, []string{`: is not readable JSON: offset 2: something follows the value (JSON)`}},
		{"exponent bomb", `{"type":"integer"}`, `1e999999999`, []string{`: is not readable JSON: offset 0: a number of more than 1000 digits (JSON)`}},
		{"big numbers", `{"maximum":9007199254740992}`, `9007199254740993`, []string{`: is 9007199254740993, which is more than the maximum of 9007199254740992 (at most 9007199254740992)`}},
		{"constant", `{"const":{"a":1}}`, `2`, []string{`: is 2, where only {"a":1} is allowed ({"a":1})`}},
		{"excluded", `{"not":{"type":"integer"}}`, `2`, []string{`: is what the schema excludes (not) ()`}},
		{"unevaluated", `{"properties":{"name":{}},"unevaluatedProperties":false}`, `{"nmae":2}`, []string{`/nmae: unknown property "nmae": did you mean "name"? (property "name")`}},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":2}`, []string{`: lacks "b", which must be there where "a" is (property "b")`}},
		{"name", `{"propertyNames":{"maxLength":1}}`, `{"ab":2}`, []string{`: has a property named "ab", which is not an allowed name ()`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range schema.Must(c.schema).Validate([]byte(c.doc)) {
				got = append(got, fmt.Sprintf("%s: %s (%s)", p.Pointer, p.Message, p.Expected))
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestAtMostTwentyProblemsInAStableOrder(t *testing.T) {
	s := schema.Must(`{"additionalProperties":{"type":"string"}}`)
	doc := []byte(`{"x0":0`)
	for i := range 99 {
		doc = fmt.Appendf(doc, `,"y%d":%d`, i, i)
	}
	doc = append(doc, '}')
	first := fmt.Sprint(s.Validate(doc))
	for range 5 {
		ps := s.Validate(doc)
		if len(ps) != 20 {
			t.Fatalf("%d problems", len(ps))
		}
		if got := fmt.Sprint(ps); got != first {
			t.Fatalf("another order:\n%s\n%s", got, first)
		}
	}
}

func TestHostileDocumentsAreRefused(t *testing.T) {
	s := schema.Must(`{"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}},"properties":{"n":{"$ref":"#/$defs/n"},"list":{"items":{"$ref":"#/properties/list"}}}}`)
	for name, doc := range map[string]string{
		"arrays":        strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		"objects":       strings.Repeat(`{"n":`, 10_000) + "1" + strings.Repeat("}", 10_000),
		"unended":       strings.Repeat("[", 1_000_000),
		"text in text":  `{"list":"` + strings.Repeat("[", 10_000) + `"}`,
		"long number":   strings.Repeat("9", 100_000),
		"many problems": `{"n":` + strings.Repeat(`{"n":`, 900) + "1" + strings.Repeat("}", 900) + "}",
	} {
		ps := s.Validate([]byte(doc))
		out, _ := s.Coerce([]byte(doc))
		if name != "text in text" && len(ps) == 0 {
			t.Errorf("%s: accepted", name)
		}
		if string(out) != doc {
			t.Errorf("%s: changed", name)
		}
		if _, err := s.Values([]byte(doc)); err != nil {
			t.Errorf("%s: no roles, but %v", name, err)
		}
	}
}
