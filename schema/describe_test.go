package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/schema"
)

func TestParameters(t *testing.T) {
	s := schema.Must(`{"type":"object","$defs":{"unit":{"enum":["C","F"],"description":"the unit"},"n":{"type":"number"}},"properties":{
		"zeta":{"type":"string","description":"last letter first","x-helve-role":"path.read"},
		"alpha":{"type":["integer","null"],"default":5},
		"unit":{"$ref":"#/$defs/unit"},
		"list":{"type":"array","items":{"type":["string","integer"]}},
		"either":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"array","items":{"$ref":"#/$defs/n"}}]},
		"fixed":{"const":"x"},"open":true,"obj":{"properties":{}}
	},"required":["zeta","unit"],"allOf":[{"properties":{"more":{"type":"boolean"}},"required":["more","alpha"]}]}`)
	want := []string{
		`zeta string true "last letter first" "" path.read []`,
		`alpha integer|null true "" "5"  []`,
		`unit "C"|"F" true "the unit" ""  [C F]`,
		`list (string|integer)[] false "" ""  []`,
		`either number|number[] false "" ""  []`,
		`fixed "x" false "" ""  []`,
		`open any false "" ""  []`,
		`obj object false "" ""  []`,
		`more boolean true "" ""  []`,
	}
	var got []string
	for _, p := range s.Parameters() {
		got = append(got, fmt.Sprintf("%s %s %v %q %q %s %v", p.Name, p.Type, p.Required, p.Description, string(p.Default), p.Role, p.Enum))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestExample(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"path":{"type":"string","x-helve-role":"path.read"},"n":{"type":"integer","minimum":3},"opt":{"type":"string"}},"required":["path","n"]}`, `{"path":"path/to/file","n":3}`},
		{`{"properties":{"a":{"enum":["x","y"]},"b":{"const":2},"c":{"examples":[[1]]},"d":{"default":false}},"required":["a","b","c","d"]}`, `{"a":"x","b":2,"c":[1],"d":false}`},
		{`{"type":"array","items":{"type":"string","minLength":5},"minItems":2}`, `["...xx","...xx"]`},
		{`{"type":"string","minLength":5,"maxLength":5}`, `"...xx"`},
		{`{"type":"string","maxLength":2}`, `"xx"`},
		{`{"type":"string","format":"date"}`, `"2025-01-31"`},
		{`{"type":"number","exclusiveMinimum":2}`, `3`},
		{`{"type":["null","boolean"]}`, `true`},
		{`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"type":"integer"}}}`, `1`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}}}`, `{"b":true}`},
		{`{"type":"object","properties":{"b":{"type":"string"}},"required":["b","undeclared"]}`, `{"b":"...","undeclared":"..."}`},
		{`true`, `{}`},
	} {
		s := schema.Must(c.schema)
		got := string(s.Example())
		if ps := s.Validate([]byte(got)); ps != nil {
			t.Errorf("%s\n example %s: %v", c.schema, got, ps)
		}
		if got != c.want {
			t.Errorf("%s\n example %s, want %s", c.schema, got, c.want)
		}
	}
	endless := schema.Must(`{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}`)
	if n := len(endless.Example()); n > 1000 {
		t.Errorf("an example of %d bytes for what has none", n)
	}
}

type inner struct {
	At time.Time `json:"at"`
}

type embedded struct {
	Shared string `json:"shared" jsonschema:"in both"`
}

func TestForReadsTypesAndTags(t *testing.T) {
	type args struct {
		embedded
		Sizes   map[string]int `json:"sizes,omitempty"`
		Inner   *inner         `json:"inner"`
		Raw     []byte         `json:"raw,omitzero"`
		Any     any            `json:"any"`
		Levels  []int8         `json:"levels" enum:"1,2" min:"1"`
		Name    string         `json:",omitempty" minlen:"1" maxlen:"9" pattern:"^[a-z<]+$"`
		Ratio   float64        `json:"ratio" min:"0" max:"0.5"`
		Flag    bool           `json:"flag" default:"true"`
		Skipped string         `json:"-"`
		hidden  int
	}
	want := `{"type":"object","properties":{` +
		`"shared":{"type":"string","description":"in both"},` +
		`"sizes":{"type":"object","additionalProperties":{"type":"integer"}},` +
		`"inner":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false},` +
		`"raw":{"type":"string","contentEncoding":"base64"},` +
		`"any":{},` +
		`"levels":{"type":"array","items":{"type":"integer","minimum":-128,"maximum":127,"enum":[1,2]},"minItems":1},` +
		`"Name":{"type":"string","minLength":1,"maxLength":9,"pattern":"^[a-z<]+$"},` +
		`"ratio":{"type":"number","minimum":0,"maximum":0.5},` +
		`"flag":{"type":"boolean","default":true}` +
		`},"required":["shared","any","levels","ratio","flag"],"additionalProperties":false}`
	if got := schema.For[args]().String(); got != want {
		t.Errorf("inferred\n%s\nwant\n%s", got, want)
	}
	if got := schema.For[struct{}]().String(); got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Errorf("of nothing: %s", got)
	}
	if got := schema.For[[]string]().String(); got != `{"type":"array","items":{"type":"string"}}` {
		t.Errorf("of a list: %s", got)
	}
	_ = args{}.hidden
}

type loop struct {
	Next *loop `json:"next"`
}

func TestForPanicsOnWhatHasNoSchema(t *testing.T) {
	for want, infer := range map[string]func(){
		"func() is unsupported":    func() { schema.For[struct{ F func() }]() },
		"contains itself":          func() { schema.For[loop]() },
		"a map whose keys are int": func() { schema.For[map[int]string]() },
		`there is no role "path.raed"`: func() {
			schema.For[struct {
				P string `role:"path.raed"`
			}]()
		},
		`default:"yes" is not JSON`: func() {
			schema.For[struct {
				P bool `default:"yes"`
			}]()
		},
		`min:"one" is not a number`: func() {
			schema.For[struct {
				P int `min:"one"`
			}]()
		},
		`"a" is not a number`: func() {
			schema.For[struct {
				P int `enum:"1,a"`
			}]()
		},
		"invalid or unsupported Perl syntax": func() {
			schema.For[struct {
				P string `pattern:"(?=a)"`
			}]()
		},
		"this tag is the description alone": func() {
			schema.For[struct {
				P string `jsonschema:"required,description=a path"`
			}]()
		},
		`jsonschema:"description=a path"`: func() {
			schema.For[struct {
				P string `jsonschema:"description=a path"`
			}]()
		},
		"minLength: -1 is not a count": func() {
			schema.For[struct {
				P string `minlen:"-1"`
			}]()
		},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), want) {
					t.Errorf("panic %v, want %s", r, want)
				}
			}()
			infer()
		}()
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"path", "", 4}, {"path", "Path", 0}, {"path", "paht", 1}, {"path", "pth", 1}, {"read", "write", 4}, {"été", "ÉTÉ", 0}, {"kitten", "sitting", 3},
	} {
		if got := schema.EditDistance(c.a, c.b); got != c.want || schema.EditDistance(c.b, c.a) != got {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestClosest(t *testing.T) {
	names := []string{"file_write", "file_read", "FileRead", "web.fetch", "shell.run", ""}
	for _, c := range []struct {
		name string
		n    int
		want []string
	}{
		{"fileread", 5, []string{"file_read", "FileRead"}},
		{"filereed", 1, []string{"file_read"}},
		{"fetch", 3, []string{"web.fetch"}},
		{"database", 3, nil},
		{"", 3, nil},
		{"file_read", 0, nil},
		{strings.Repeat("x", 10_000), 3, nil},
	} {
		if got := schema.Closest(c.name, names, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%.20s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestOptionalClosedRolesProperty(t *testing.T) {
	s := schema.Must(`{"required":["a"],"properties":{"a":{"x-helve-role":"url"},"b":{"items":{"x-helve-role":"secret"}},"c":{"x-helve-role":"url"}},"additionalProperties":false}`)
	if s.Validate([]byte(`{}`)) == nil || s.Optional().Validate([]byte(`{}`)) != nil {
		t.Error("Optional does not lift what is required")
	}
	if !s.Closed() || schema.Must(`{}`).Closed() {
		t.Error("Closed is wrong")
	}
	if got := s.Roles(); !slices.Equal(got, []schema.Role{schema.URL, schema.Secret}) {
		t.Error(got)
	}
	vs, err := schema.Property([]byte(`{"a":["x",2]}`), "a")
	if err != nil || len(vs) != 2 || vs[0].Text != "x" || vs[1].Text != "2" || vs[1].IsString || vs[1].Pointer != "/a/1" {
		t.Error(vs, err)
	}
	if _, err := schema.Property([]byte(`{"a":1,"a":2}`), "a"); err == nil {
		t.Error("a repeated key was accepted")
	}
}
