package guard

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Whatever the arguments are, what was learnt is not in them afterwards, they
// are JSON, to redact them again changes nothing, and the look that spares most
// arguments the work says no only where there is nothing to take out.
func FuzzRedact(f *testing.F) {
	f.Add(`{"cmd":"mysql --password=hunter2 x","url":"https://a.example/?token=x"}`)
	f.Add(`{"env":[{"name":"API_KEY","value":"sk-abcdefghijklmnopqrstuvwxyz"}],"Пароль":"x"}`)
	f.Add("{\"a\":\"learnt \\u0076alue\\n\",\"b\":{\"pass\\u0077ord\":[1,null]}}")
	f.Add(`{"--token":"a:b@://x:y@z","x":"Authorization: Basic abcdefgh=="}`)
	r := NewRedactor()
	r.Learn("learnt value")
	values := []schema.Value{{Pointer: "/cmd", Role: schema.Command}, {Pointer: "/secret", Role: schema.Secret}}
	f.Fuzz(func(t *testing.T, args string) {
		once := r.Args(json.RawMessage(args), values)
		if !json.Valid([]byte(args)) {
			r.Command(args)
			return
		}
		var got, again any
		if err := json.Unmarshal(once, &got); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		eachString(got, func(s string) {
			if strings.Contains(s, "learnt value") {
				t.Errorf("what was learnt is in %s", once)
			}
		})
		if err := json.Unmarshal(r.Args(once, values), &again); err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s\nbecame %s\nand then %s", args, once, r.Args(once, values))
		}
		if suspicious([]byte(args)) || r.knows([]byte(args)) {
			return
		}
		if v, ok := decodeArgs(json.RawMessage(args)); ok {
			before, _ := json.Marshal(v)
			if after, _ := json.Marshal(r.clean("", v, nil, nil)); string(before) != string(after) {
				t.Errorf("passed over: %s, which becomes %s", before, after)
			}
		}
	})
}

func eachString(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, x := range v {
			eachString(x, visit)
		}
	case map[string]any:
		for _, x := range v {
			eachString(x, visit)
		}
	}
}

// What a rule covers when it permits, it covers when it restricts.
func FuzzRule(f *testing.F) {
	f.Add(`a.b(url: "https://a.example/**")`, "https://a.example/x/../y?z=1#f")
	f.Add(`a.b(command: "git log*")`, "git log --output=x; ls")
	f.Add(`a.*(path: "docs/**")`, "docs/./x/../../y")
	f.Add(`*(note: "a*b**")`, "a\x00b")
	dir, err := root.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { dir.Close() })
	def := &tool.Tool{Definition: tool.Definition{Name: "a.b"}}
	f.Fuzz(func(t *testing.T, text, value string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); !strings.ContainsAny(text, "\"'\\") && (err != nil || again.String() != r.String()) {
			t.Errorf("%q reads as %q, and that not as itself: %v", text, r, err)
		}
		r.Root = dir
		quoted, _ := json.Marshal(value)
		for name, role := range map[string]schema.Role{"url": schema.URL, "command": schema.Command, "path": schema.PathRead, "note": ""} {
			c := &tool.Call{Name: "a.b", Tool: def, Args: json.RawMessage(`{"` + name + `":` + string(quoted) + `}`), Trail: &tool.Trail{}}
			if role != "" {
				c.Trail.Values = []schema.Value{{Pointer: "/" + name, Role: role, Text: value, Raw: quoted, IsString: true}}
			}
			if r.holds(c, everyValue) && !r.holds(c, anyValue) {
				t.Errorf("%s permits %s %q, and would not restrict it", r, name, value)
			}
		}
	})
}
