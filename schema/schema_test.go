package schema_test

import (
	"testing"

	"github.com/helve-ai/helve/schema"
)

func TestInferredSchemaIsWrittenInFieldOrder(t *testing.T) {
	type args struct {
		Path  string   `json:"path" jsonschema:"the file to read" role:"path.read"`
		Limit int      `json:"limit,omitempty" min:"1" max:"50" default:"10"`
		Mode  string   `json:"mode,omitempty" enum:"fast,slow"`
		Tags  []string `json:"tags,omitzero" max:"3"`
		Depth *int     `json:"depth"`
	}
	want := `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"the file to read","x-helve-role":"path.read"},` +
		`"limit":{"type":"integer","default":10,"minimum":1,"maximum":50},` +
		`"mode":{"type":"string","enum":["fast","slow"]},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":3},` +
		`"depth":{"type":"integer"}},"required":["path"],"additionalProperties":false}`
	s := schema.For[args]()
	if got := s.String(); got != want {
		t.Errorf("inferred\n%s\nwant\n%s", got, want)
	}
	if ps := s.Validate([]byte(`{"path":"a"}`)); ps != nil {
		t.Error(ps)
	}
	if ps := s.Validate([]byte(`{"pth":"a"}`)); len(ps) == 0 {
		t.Error("a wrong key was accepted")
	}
	vs, err := s.Values([]byte(`{"path":"a"}`))
	if err != nil || len(vs) != 1 || vs[0].Text != "a" || vs[0].Pointer != "/path" {
		t.Error(vs, err)
	}
}
