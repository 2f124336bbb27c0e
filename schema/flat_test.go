package schema

import (
	"fmt"
	"reflect"
	"testing"
)

// What the quick way of Values reads, the thorough way reads too.
func FuzzFlatAgreesWithThorough(f *testing.F) {
	for _, doc := range []string{
		`{"path":"a","other":1,"url":"u"}`, ` { "PATH" : "a\/b" } `, `{"path":"a","path":"b"}`, `{"path":["a","b"]}`, `{"path":{"path":"x"}}`,
		`{"path":null,"Url":7}`, `{"pat\u0068":"a"}`, `{"pàth":"a"}`, `{}`, `[]`, `{"path":"a"`, `{"path":"a"} x`, `{"x":{"path":"deep"}}`, `{"ſecret":"long s","secret":"s"}`, `{"Kelvin":"k","kelvin":"K"}`,
	} {
		f.Add(doc)
	}
	s := Must(`{"type":"object","properties":{"path":{"type":"string","x-helve-role":"path.read"},"other":{"type":"integer"},"url":{"x-helve-role":"url"},"secret":{"x-helve-role":"secret"},"kelvin":{"x-helve-role":"secret"}}}`)
	t0, err := s.compiled().getTree()
	if err != nil {
		f.Fatal(err)
	}
	plan := s.compiled().flatRoles()
	if plan == nil {
		f.Fatal("no plan for a schema with roles at its top")
	}
	f.Fuzz(func(t *testing.T, doc string) {
		quick, ok := plan.values([]byte(doc))
		if !ok {
			return
		}
		thorough, err := t0.values([]byte(doc))
		if err != nil || !reflect.DeepEqual(quick, thorough) && len(quick)+len(thorough) > 0 {
			t.Errorf("%s: quick %v, thorough %v, %v", doc, quick, thorough, err)
		}
	})
}

func TestNoPlanWhereRolesStandDeeper(t *testing.T) {
	for i, raw := range []string{
		`{"properties":{"a":{"properties":{"path":{"x-helve-role":"path.read"}}}}}`,
		`{"properties":{"p":{"x-helve-role":"path.read"},"child":{"$ref":"#"}}}`,
		`{"properties":{"p":{"x-helve-role":"path.read"}},"allOf":[{"properties":{"q":{"x-helve-role":"url"}}}]}`,
		`{"properties":{"p":{"x-helve-role":"path.read","items":{"x-helve-role":"url"}}}}`,
		`{"additionalProperties":{"x-helve-role":"path.read"}}`,
	} {
		if Must(raw).compiled().flatRoles() != nil {
			t.Errorf("%d: there is a plan for %s", i, raw)
		}
	}
	v, err := Must(`{"properties":{"p":{"x-helve-role":"path.read"},"child":{"$ref":"#"}}}`).Values([]byte(`{"child":{"p":"x"}}`))
	if err != nil || fmt.Sprint(v[0].Pointer, v[0].Text) != "/child/px" {
		t.Errorf("%v, %v", v, err)
	}
}
