package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
)

func TestCoerce(t *testing.T) {
	const pair = `{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"integer"},"unit":{"enum":["Celsius","Kelvin"]}},"required":["file_path"],"additionalProperties":false}`
	for _, c := range []struct{ name, schema, in, out string }{
		{"number", `{"type":"number"}`, `"1.5"`, `1.5`},
		{"number with space around", `{"type":"number"}`, `" 42 "`, `42`},
		{"number in words", `{"type":"number"}`, `"1,5"`, `"1,5"`},
		{"hexadecimal", `{"type":"integer"}`, `"0x10"`, `"0x10"`},
		{"leading zeros are an identifier's", `{"type":"integer"}`, `"007"`, `"007"`},
		{"not a number", `{"type":"number"}`, `"NaN"`, `"NaN"`},
		{"whole number", `{"type":"integer"}`, `"3.0"`, `3`},
		{"whole number with exponent", `{"type":"integer"}`, `"1e3"`, `1000`},
		{"part of a number", `{"type":"integer"}`, `"3.5"`, `"3.5"`},
		{"big number", `{"type":"integer"}`, `"9007199254740993"`, `9007199254740993`},
		{"exponent bomb", `{"type":"integer"}`, `"1e999999999"`, `"1e999999999"`},
		{"true", `{"type":"boolean"}`, `"True"`, `true`},
		{"no", `{"type":"boolean"}`, `"no"`, `false`},
		{"one", `{"type":"boolean"}`, `1`, `true`},
		{"two", `{"type":"boolean"}`, `2`, `2`},
		{"maybe", `{"type":"boolean"}`, `"maybe"`, `"maybe"`},
		{"one could be either", `{"type":["boolean","integer"]}`, `"1"`, `"1"`},
		{"true can be one only", `{"type":["boolean","integer"]}`, `"true"`, `true`},
		{"null", `{"type":"null"}`, `"null"`, `null`},
		{"null among others", `{"type":["null","integer"]}`, `"null"`, `"null"`},
		{"text", `{"type":"string"}`, `42`, `"42"`},
		{"text of an object", `{"type":"string"}`, `{"a":1}`, `{"a":1}`},
		{"object in a text", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `"{\"a\": \"1\"}"`, `{"a": 1}`},
		{"array in a text", `{"type":"array","items":{"type":"integer"}}`, `"[1, \"2\"]"`, `[1, 2]`},
		{"broken array in a text", `{"type":"array","items":{"type":"string"}}`, `"[1,"`, `"[1,"`},
		{"list of one", `{"type":"array","items":{"type":"string"}}`, `"a"`, `["a"]`},
		{"list of one number", `{"type":"array","items":{"type":"integer"}}`, `"5"`, `[5]`},
		{"list of one object", `{"type":"array","items":{"type":"object"}}`, `{"a":1}`, `[{"a":1}]`},
		{"list that the lone value does not fit", `{"type":"array","items":{"type":"integer"}}`, `"a"`, `"a"`},
		{"list of nothing", `{"type":"array"}`, `""`, `""`},
		{"a text is valid in a union", `{"type":["string","integer"]}`, `"5"`, `"5"`},
		{"the scalar branch comes before the list", `{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"integer"}]}`, `"5"`, `5`},
		{"one branch only", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"5"`, `5`},
		{"two branches", `{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`, `"1"`, `"1"`},
		{"branch of objects", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"n":{"type":"integer"}},"required":["kind","n"]},{"type":"object","properties":{"kind":{"const":"b"},"n":{"type":"boolean"}},"required":["kind","n"]}]}`,
			`{"kind":"b","n":"1"}`, `{"kind":"b","n":true}`},
		{"enum in another case", pair, `{"file_path":"a","unit":"celsius"}`, `{"file_path":"a","unit":"Celsius"}`},
		{"enum by two in another case", `{"enum":["A","a"]}`, `"á"`, `"á"`},
		{"enum with two of a case", `{"enum":["AB","Ab"]}`, `"ab"`, `"ab"`},
		{"enum of numbers", `{"enum":[1,2]}`, `"2"`, `2`},
		{"enum of texts", `{"enum":["1","2"]}`, `2`, `"2"`},
		{"key in camel case", pair, `{ "filePath" : "a", "limit":1 }`, `{ "file_path" : "a", "limit":1 }`},
		{"key with a slip", pair, `{"flie_path":"a"}`, `{"file_path":"a"}`},
		{"key of another word", pair, `{"dir_path":"a"}`, `{"dir_path":"a"}`},
		{"two keys for one", pair, `{"filePath":"a","FILE_PATH":"b"}`, `{"filePath":"a","FILE_PATH":"b"}`},
		{"key that is not missing", pair, `{"file_path":"a","filePath":"b"}`, `{"file_path":"a","filePath":"b"}`},
		{"numbered keys", `{"required":["path1"],"properties":{"path1":{}},"additionalProperties":false}`, `{"path2":"a"}`, `{"path2":"a"}`},
		{"key and its value", `{"required":["line_count"],"properties":{"line_count":{"type":"integer"}},"additionalProperties":false}`, `{"lineCount":"5"}`, `{"line_count":5}`},
		{"null for what is optional", pair, `{"limit":null, "file_path":"a"}`, `{"file_path":"a"}`},
		{"null at the end", pair, `{"file_path":"a", "limit":null}`, `{"file_path":"a"}`},
		{"null for what is required", pair, `{"file_path":null}`, `{"file_path":null}`},
		{"all null", `{"properties":{"a":{"type":"string"}}}`, `{ "a": null }`, `{  }`},
		{"null where it is allowed", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"integer"}}}`, `{"a":null,"b":"1"}`, `{"a":null,"b":1}`},
		{"reference", `{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"1"}`, `{"a":1}`},
		{"recursive reference", `{"properties":{"n":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"n":"1","next":{"next":{"n":"2"}}}`, `{"n":1,"next":{"next":{"n":2}}}`},
		{"allOf", `{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"boolean"}}}]}`, `{"a":"1","b":"yes"}`, `{"a":1,"b":true}`},
		{"additional members", `{"additionalProperties":{"type":"integer"}}`, `{"x":"1"}`, `{"x":1}`},
		{"tuple", `{"prefixItems":[{"type":"integer"},{"type":"boolean"}]}`, `["1","1"]`, `[1,true]`},
		{"command from a number", `{"type":"object","properties":{"c":{"type":"string","x-helve-role":"command"}}}`, `{"c":5}`, `{"c":5}`},
		{"path from a list element", `{"properties":{"p":{"type":"array","items":{"type":"string","x-helve-role":"path.read"}}}}`, `{"p":[5]}`, `{"p":[5]}`},
		{"paths from a lone number", `{"properties":{"p":{"type":"array","items":{"type":"string","x-helve-role":"path.read"}}}}`, `{"p":5}`, `{"p":5}`},
		{"paths from a lone text", `{"properties":{"p":{"type":"array","items":{"type":"string","x-helve-role":"path.read"}}}}`, `{"p":"a"}`, `{"p":["a"]}`},
		{"path under a misspelt key from a number", `{"properties":{"path":{"type":"string","x-helve-role":"path.read"}},"required":["path"]}`, `{"Path":5}`, `{"Path":5}`},
		{"path behind a reference, under a misspelt key, from a number", `{"$defs":{"p":{"type":"string","x-helve-role":"path.read"}},"properties":{"path":{"$ref":"#/$defs/p"}},"required":["path"]}`, `{"Path":5}`, `{"Path":5}`},
		{"command in one branch only", `{"type":"object","properties":{"c":{"type":"string"},"n":{"type":"integer"}},"anyOf":[{"properties":{"c":{"x-helve-role":"command"}},"required":["n"]},{"required":["x"]}]}`, `{"c":5,"n":"1"}`, `{"c":5,"n":1}`},
		{"command inside a text", `{"properties":{"o":{"type":"object","properties":{"c":{"type":"string","x-helve-role":"command"},"n":{"type":"integer"}}}}}`, `{"o":"{\"c\":5,\"n\":\"1\"}"}`, `{"o":{"c":5,"n":1}}`},
		{"untouched bytes", `{"properties":{"a":{"type":"integer"},"b":{}}}`, "{ \"b\" :  1.50 ,\n\t\"a\":\"1\" }\n", "{ \"b\" :  1.50 ,\n\t\"a\":1 }\n"},
		{"duplicate keys", `{"properties":{"a":{"type":"integer"}}}`, `{"a":"1","a":"2"}`, `{"a":"1","a":"2"}`},
		{"not JSON", `{"type":"integer"}`, `{"a":`, `{"a":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := schema.Must(c.schema)
			out, notes := s.Coerce([]byte(c.in))
			if string(out) != c.out {
				t.Errorf("%s became\n%s, want\n%s", c.in, out, c.out)
			}
			if changed := c.in != c.out; changed != (len(notes) > 0) {
				t.Errorf("notes %q", notes)
			}
			if again, _ := s.Coerce(out); string(again) != string(out) {
				t.Errorf("coerced again: %s", again)
			}
		})
	}
}

func TestCoercionIsNoted(t *testing.T) {
	s := schema.Must(`{"type":"object","properties":{
		"limit":{"type":"integer"},"deep":{"type":"boolean"},"unit":{"enum":["Kelvin"]},"tags":{"type":"array","items":{"type":"integer"}},
		"opts":{"type":"object"},"token":{"type":"string","x-helve-role":"secret"},"file_path":{"type":"string"},"gone":{"type":"string"}
	},"required":["file_path"]}`)
	_, notes := s.Coerce([]byte(`{"limit":"10","deep":"yes","unit":"KELVIN","tags":"7","opts":"{}","token":123456,"filePath":"a","gone":null}`))
	want := []string{
		`/limit: "10" read as the number 10`,
		`/deep: "yes" read as true`,
		`/unit: "KELVIN" read as "Kelvin"`,
		`/tags: "7" read as a list of one`,
		`/tags/0: "7" read as the number 7`,
		`/opts: "{}" read as the object it spells`,
		`/token: read as the text`,
		`/filePath: read as the missing "file_path"`,
		`/gone: null left out: it is optional`,
	}
	if !slices.Equal(notes, want) {
		t.Errorf("notes\n%s\nwant\n%s", strings.Join(notes, "\n"), strings.Join(want, "\n"))
	}
}

func TestValidIsGivenBackItself(t *testing.T) {
	for _, c := range []struct{ schema, doc string }{
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"1"}`},
		{`{"if":{"type":"string"},"then":{"minLength":1}}`, `"x"`}, // the library's case
		{`{"type":"string"}`, `"\ud800"`},
	} {
		doc := []byte(c.doc)
		out, notes := schema.Must(c.schema).Coerce(doc)
		if &out[0] != &doc[0] || len(out) != len(doc) || notes != nil {
			t.Errorf("%s by %s: gave %s, %q", c.doc, c.schema, out, notes)
		}
	}
}
