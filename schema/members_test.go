package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
)

func TestMembers(t *testing.T) {
	keys := []string{"id", "params", "name"}
	for doc, want := range map[string]string{
		`{"id":7,"params":{"a":[1,"}"]}}`:            `7|{"a":[1,"}"]}|`,
		" {\n\"name\" : \"x\\\"y\" , \"id\":null}\t": `null||"x\"y"`,
		`{}`:                       `||`,
		`{"params":{"a":1,"a":2}}`: `|{"a":1,"a":2}|`,
		`{"id":1,"id":2}`:          "",
		`{"id":1,"ID":2}`:          "",
		`{"\u0069d":1}`:            "",
		`{"id":1}{}`:               "",
		`{"id":1,}`:                "",
		`{"id":01}`:                "",
		`{"id":1 "name":"x"}`:      "",
		`{"id":"` + "\xff" + `"}`:  "",
		`{"id":"a` + "\n" + `"}`:   "",
		`{"id":tru}`:               "",
		`{"id"}`:                   "",
		`{"id":`:                   "",
		`{`:                        "",
		``:                         "",
		`[]`:                       "",
		`"id"`:                     "",
		`{"id":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "",
	} {
		values := make([]json.RawMessage, len(keys))
		var parts []string
		ok := schema.Members([]byte(doc), keys, values)
		for _, v := range values {
			parts = append(parts, string(v))
		}
		if got := strings.Join(parts, "|"); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %t %s, want %q", doc, ok, got, want)
		}
	}
}

// What Members takes for an object, the standard library reads alike.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"id":7,"params":{"a":[1,"}"]},"name":"x"}`))
	f.Add([]byte(`{"id":-0.5e3,"params":[true,null,"\ud83d\ude00"]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		keys := []string{"id", "params", "name"}
		values := make([]json.RawMessage, len(keys))
		if !schema.Members(doc, keys, values) {
			return
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(doc, &all); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		for i, key := range keys {
			if string(all[key]) != string(values[i]) {
				t.Errorf("%q: %s is %q, want %q", doc, key, values[i], all[key])
			}
			delete(all, key)
		}
		if len(all) > 0 {
			t.Errorf("%q: has more: %v", doc, all)
		}
	})
}
