package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
)

// said writes values as "role pointer text".
func said(vs []schema.Value) []string {
	var out []string
	for _, v := range vs {
		text := v.Text
		if !v.IsString {
			text = "<" + string(v.Raw) + ">"
		}
		out = append(out, fmt.Sprintf("%s %s %s", v.Role, v.Pointer, text))
	}
	return out
}

func TestValues(t *testing.T) {
	const p = `{"type":"string","x-helve-role":"path.write"}`
	for _, c := range []struct {
		name, schema, doc string
		want              []string
	}{
		{"property", `{"properties":{"a":` + p + `}}`, `{"a":"x\ty","b":"z"}`, []string{"path.write /a x\ty"}},
		{"absent", `{"properties":{"a":` + p + `}}`, `{"b":"z"}`, nil},
		{"not a text", `{"properties":{"a":` + p + `}}`, `{"a":{"b":1}}`, []string{`path.write /a <{"b":1}>`}},
		{"elements", `{"properties":{"a":{"type":"array","items":` + p + `}}}`, `{"a":["x","y"]}`, []string{"path.write /a/0 x", "path.write /a/1 y"}},
		{"role on the list", `{"properties":{"a":{"type":"array","x-helve-role":"url"}}}`, `{"a":["x",["y"]]}`, []string{"url /a/0 x", "url /a/1/0 y"}},
		{"tuple", `{"prefixItems":[{},` + p + `]}`, `["x","y"]`, []string{"path.write /1 y"}},
		{"nested", `{"properties":{"a":{"properties":{"b":` + p + `}}}}`, `{"a":{"b":"x"}}`, []string{"path.write /a/b x"}},
		{"reference", `{"$defs":{"p":` + p + `},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"a":"x"}`, []string{"path.write /a x"}},
		{"anchor", `{"$defs":{"p":{"$anchor":"here","x-helve-role":"path.write"}},"properties":{"a":{"$ref":"#here"}}}`, `{"a":"x"}`, []string{"path.write /a x"}},
		{"embedded resource", `{"$id":"http://x.test/root","$defs":{"p":{"$id":"part","x-helve-role":"path.write"}},"properties":{"a":{"$ref":"part"},"b":{"$ref":"http://x.test/part"}}}`, `{"a":"x","b":"y"}`, []string{"path.write /a x", "path.write /b y"}},
		{"recursion", `{"properties":{"a":` + p + `,"next":{"$ref":"#"}}}`, `{"next":{"next":{"a":"x"}}}`, []string{"path.write /next/next/a x"}},
		{"endless reference", `{"$ref":"#","x-helve-role":"url"}`, `"x"`, []string{"url  x"}},
		{"allOf, and once only", `{"allOf":[{"properties":{"a":` + p + `}},{"properties":{"a":` + p + `}}]}`, `{"a":"x"}`, []string{"path.write /a x"}},
		{"two roles", `{"properties":{"a":` + p + `},"allOf":[{"properties":{"a":{"x-helve-role":"secret"}}}]}`, `{"a":"x"}`, []string{"path.write /a x", "secret /a x"}},
		{"the branch that does not match", `{"anyOf":[{"type":"integer"},{"properties":{"a":` + p + `},"required":["zz"]}]}`, `{"a":"x"}`, []string{"path.write /a x"}},
		{"then", `{"if":true,"then":{"properties":{"a":` + p + `}}}`, `{"a":"x"}`, []string{"path.write /a x"}},
		{"pattern", `{"patternProperties":{"^a":` + p + `}}`, `{"ab":"x","b":"y"}`, []string{"path.write /ab x"}},
		{"additional", `{"properties":{"b":{}},"additionalProperties":` + p + `}`, `{"a/b":"x","b":"y"}`, []string{"path.write /a~1b x"}},
		{"another case", `{"properties":{"path":` + p + `}}`, `{"path":"x","PATH":"y"}`, []string{"path.write /path x", "path.write /PATH y"}},
		{"an escaped key", `{"properties":{"path":` + p + `}}`, `{"\u0070ath":"x"}`, []string{"path.write /path x"}},
		{"an escaped keyword", `{"properties":{"a":{"x-helve-rol\u0065":"url"}}}`, `{"a":"x"}`, []string{"url /a x"}},
		{"a property of that name", `{"properties":{"x-helve-role":{"type":"string"}}}`, `{"x-helve-role":"x"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs, err := schema.Must(c.schema).Values([]byte(c.doc))
			if err != nil {
				t.Fatal(err)
			}
			if got := said(vs); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestValuesRefusesWhatCannotBeJudged(t *testing.T) {
	s := schema.Must(`{"properties":{"a":{"x-helve-role":"url"}}}`)
	for doc, want := range map[string]string{
		`{"a":"x","a":"y"}`: "/a: the key stands there twice",
		`{"a":`:             "not readable JSON",
	} {
		if vs, err := s.Values([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: gave %v, %v", doc, vs, err)
		}
	}
	remote, err := schema.ParseWith([]byte(`{"properties":{"a":{"$ref":"http://x.test/s"}}}`), schema.Options{
		Load: func(string) ([]byte, error) { return []byte(`{"x-helve-role":"url"}`), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if vs, err := remote.Values([]byte(`{"a":"x"}`)); err == nil || !strings.Contains(err.Error(), `the reference "http://x.test/s" cannot be followed`) {
		t.Errorf("a role behind a remote reference: %v, %v", vs, err)
	}
}

func TestWithoutRolesNothingIsAllocated(t *testing.T) {
	s := schema.Must(`{"properties":{"a":{"type":"string"}}}`)
	doc := []byte(`{"a":"x"}`)
	if n := testing.AllocsPerRun(100, func() { s.Values(doc) }); n != 0 || s.HasRoles() {
		t.Errorf("%v allocations, HasRoles %v", n, s.HasRoles())
	}
}

func TestAnUnknownRoleDoesNotCompile(t *testing.T) {
	for raw, want := range map[string]string{
		`{"properties":{"a/b":{"x-helve-role":"path.raed"}}}`: `schema: /properties/a~1b/x-helve-role: there is no role "path.raed": did you mean "path.read"?`,
		`{"items":{"x-helve-role":["url"]}}`:                  `schema: /items/x-helve-role: is not a string but ["url"]`,
	} {
		s, err := schema.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Compile(); err == nil || err.Error() != want {
			t.Errorf("%s: %v", raw, err)
		}
		if _, err := s.Values([]byte(`{}`)); err == nil {
			t.Errorf("%s: Values gave no error", raw)
		}
		if ps := s.Validate([]byte(`{}`)); len(ps) != 1 {
			t.Errorf("%s: Validate gave %v", raw, ps)
		}
	}
}

func TestWithRole(t *testing.T) {
	const raw = `{"type":"object", "properties":{"file":{"type":"string"},"any":true,"opt":{},"list":{"type":"array","items":{"$ref":"#/$defs/f"}},"had":{"x-helve-role":"url"}},
		"$defs":{"f":{"properties":{"path":{"type":"string"}}}}}`
	for _, c := range []struct{ at, doc, want string }{
		{"file", `{"file":"x"}`, "path.read /file x"},
		{"/file", `{"file":"x"}`, "path.read /file x"},
		{"any", `{"any":"x"}`, "path.read /any x"},
		{"opt", `{"opt":"x"}`, "path.read /opt x"},
		{"had", `{"had":"x"}`, "path.read /had x"},
		{"/list/0/path", `{"list":[{"path":"x"},{"path":"y"}]}`, "path.read /list/0/path x, path.read /list/1/path y"},
	} {
		s := schema.Must(raw)
		with, err := s.WithRole(c.at, schema.PathRead)
		if err != nil {
			t.Errorf("%s: %v", c.at, err)
			continue
		}
		if err := with.Compile(); err != nil {
			t.Errorf("%s: %v", c.at, err)
		}
		vs, err := with.Values([]byte(c.doc))
		if got := strings.Join(said(vs), ", "); got != c.want || err != nil {
			t.Errorf("%s: %s, %v", c.at, got, err)
		}
		if s.String() != raw {
			t.Errorf("%s: the schema itself was changed", c.at)
		}
	}
	for at, want := range map[string]string{
		"fiel":        `schema: no property /fiel: did you mean "file"?`,
		"/list/0/pat": `schema: no property /list/0/pat: did you mean "path"?`,
	} {
		if _, err := schema.Must(raw).WithRole(at, schema.URL); err == nil || err.Error() != want {
			t.Errorf("%s: %v", at, err)
		}
	}
	if _, err := schema.Must(raw).WithRole("file", "urls"); err == nil {
		t.Error("an unknown role was accepted")
	}
}

func TestRoles(t *testing.T) {
	for r, path := range map[schema.Role]bool{schema.PathRead: true, schema.PathWrite: true, schema.PathDelete: true, schema.URL: false, schema.Command: false, schema.Secret: false, schema.Artifact: false} {
		if !r.Known() || r.IsPath() != path {
			t.Errorf("%s: known %v, path %v", r, r.Known(), r.IsPath())
		}
	}
	if schema.Role("").Known() || schema.Role("path").IsPath() {
		t.Error("a role that does not exist is known")
	}
}
