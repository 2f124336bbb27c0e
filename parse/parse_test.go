package parse

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Text is handed on at once, and a call as soon as it is whole.
func TestAtOnce(t *testing.T) {
	p := Hermes.New(nil)
	for _, step := range []struct {
		chunk string
		want  []Event
	}{
		{"Let me ", []Event{{Kind: Text, Text: "Let me "}}},
		{"see <to", []Event{{Kind: Text, Text: "see "}}},
		{"p> or <", []Event{{Kind: Text, Text: "<top> or "}}},
		{"tool_call>{\"name\": \"now\", ", nil},
		{"\"arguments\": {}}</tool_call", nil},
		{">", []Event{{Kind: Called, Call: callOf("now", "", json.RawMessage("{}"))}}},
		{" Done", []Event{{Kind: Text, Text: " Done"}}},
	} {
		got := append([]Event(nil), p.Write(step.chunk)...)
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("%q gives %+v, want %+v", step.chunk, got, step.want)
		}
	}
	if got := p.Close(); len(got) > 0 {
		t.Errorf("the end gives %+v", got)
	}
}

// Reasoning that the prompt began is told from the answer, and not searched.
func TestReasoningOfThePrompt(t *testing.T) {
	text := "I could <tool_call>{\"name\": \"now\"}</tool_call>.</think>\n\nNo."
	m := Read(Hermes.NewThinking(nil), bytewise(text, 3)...)
	if m.Thinking != "I could <tool_call>{\"name\": \"now\"}</tool_call>." || m.Content != "No." || len(m.Calls) > 0 {
		t.Errorf("%+v", m)
	}
	var kinds []Kind
	p := Hermes.New(nil)
	for _, c := range []string{"Hm.", "</think>", "Yes."} {
		for _, e := range p.Write(c) {
			kinds = append(kinds, e.Kind)
		}
	}
	if want := []Kind{Text, Rethink, Text}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	var joined Message
	joined.Add(Event{Kind: Text, Text: "Hm."}, Event{Kind: Rethink}, Event{Kind: Text, Text: "Yes."})
	if joined.Thinking != "Hm." || joined.Content != "Yes." {
		t.Errorf("%+v", joined)
	}
	if m := Read(Harmony.NewThinking(nil), "<|channel|>final<|message|>Yes."); m.Content != "Yes." {
		t.Errorf("a format whose reasoning is always marked: %+v", m)
	}
}

// Plain text costs no allocations.
func TestPlainTextAllocates(t *testing.T) {
	text := strings.Repeat(prose, 20)
	for _, f := range Formats() {
		p := f.New(NewTools(testTools...))
		p.Write(text)
		if n := testing.AllocsPerRun(20, func() { p.Write(text) }); n > 0 {
			t.Errorf("%s allocates %.0f times", f.Name, n)
		}
	}
}

// A set resolves the names that its tools have in other forms; what is not
// visible is not offered.
func TestFromSet(t *testing.T) {
	handle := func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }
	def := func(name string, aliases ...string) *tool.Tool {
		return &tool.Tool{Handle: handle, Definition: tool.Definition{Name: name, Description: "Does it.", Effect: tool.Reads, Aliases: aliases,
			Input: schema.Must(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}
	}
	var reg tool.Registry
	if err := reg.Add(def("files.read", "read_file"), def("files.drop")); err != nil {
		t.Fatal(err)
	}
	tools := FromSet(reg.Set(), func(d *tool.Tool) bool { return d.Name != "files.drop" })
	for name, ok := range map[string]bool{"files.read": true, "files__read": true, "read_file": true, "functions.files.read": true, "files.drop": false, "files__drop": false, "other": false} {
		m := Read(Qwen3CoderXML.New(tools), "<function="+name+"><parameter=n>7</parameter></function>")
		if (len(m.Calls) == 1) != ok {
			t.Errorf("%s: %+v", name, m)
		} else if ok && string(m.Calls[0].Args) != `{"n":7}` {
			t.Errorf("%s: arguments %s", name, m.Calls[0].Args)
		}
	}
}

func TestReadOffers(t *testing.T) {
	for _, in := range []string{
		`[{"type": "function", "function": {"name": "a", "description": "d", "parameters": {"x": 1}}}, {"name": "b"}]`,
		`{"tools": [{"name": "a", "description": "d", "inputSchema": {"x": 1}}, {"name": "b", "parameters": null}]}`,
		"{\"name\": \"a\", \"description\": \"d\", \"parameters\": {\"x\": 1}}\n\n{\"name\": \"b\", \"input_schema\": null}\n",
		"\xef\xbb\xbf{\"name\": \"a\", \"description\": \"d\", \"input_schema\": {\"x\": 1}} {\"name\": \"b\"}",
	} {
		got, err := ReadOffers([]byte(in))
		if err != nil || len(got) != 2 || got[0].Name != "a" || got[0].Description != "d" || string(got[0].Parameters) != `{"x": 1}` || got[1].Name != "b" || got[1].Parameters != nil {
			t.Errorf("%s gives %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{`[{"name": "a"}, {}]`, `[1]`, `{"name": "a"} x`, `[`, `{"type": "function", "function": {}}`} {
		if got, err := ReadOffers([]byte(in)); err == nil {
			t.Errorf("%s gives %+v", in, got)
		}
	}
	if got, err := ReadOffers(nil); err != nil || len(got) != 0 {
		t.Errorf("nothing gives %v, %v", got, err)
	}
}

func TestRepair(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1,}`:                          `{"a":1}`,
		`[1, 2,]`:                            `[1,2]`,
		`{'a': 'it\'s', 'b': True, c: None}`: `{"a":"it's","b":true,"c":null}`,
		"{\"a\": \"one\n\ttwo\"}":            `{"a":"one\n\ttwo"}`,
		`{"a": [1, {"b": 2`:                  `{"a":[1,{"b":2}]}`,
		`{"a": "b`:                           `{"a":"b"}`,
		`{“a”: “b”}`:                         `{"a":"b"}`,
		`{"a": 1 "b": 2}`:                    `{"a":1,"b":2}`,
		"```json\n{\"a\": 1}\n```":           `{"a":1}`,
		`{"a": NaN, "b": [-Infinity, .5]}`:   `{"a":null,"b":[null,0.5]}`,
		`{"a": 1,, "b": [1,, 2]}`:            `{"a":1,"b":[1,2]}`,
		"{\"a\": 1, # one\n \"b\": 2}":       `{"a":1,"b":2}`,
		// What is right stays as it is where something else is mended.
		`{"a": "if x { return \"y\"; }", b: 'c'}`:              `{"a":"if x { return \"y\"; }","b":"c"}`,
		`{"a": "He said \"no\".\n\\d\u00e9\/", "b": {"c": "d"`: `{"a":"He said \"no\".\n\\dé/","b":{"c":"d"}}`,
		"{\"a\": \"run \\\n -v\"}":                             `{"a":"run \\\n -v"}`,
		"{\"a\": \"run \\\n -v\", b: 1}":                       `{"a":"run \\\n -v","b":1}`,
		`{\"a\": \"b\"}`:                                       `{"a":"b"}`,
	} {
		if got, ok := repair(in); !ok || !sameValue(decoded([]byte(want)), decoded([]byte(got))) {
			t.Errorf("%q is repaired to %v %q, want %s", in, ok, got, want)
		}
	}
	for _, in := range []string{"", "   ", strings.Repeat("[", 100000), `{"a": }}}`} {
		if got, ok := repair(in); ok && !json.Valid([]byte(got)) {
			t.Errorf("%.20q is repaired to %q", in, got)
		}
	}
	if _, ok := repair(strings.Repeat("[", 100000)); ok {
		t.Error("a hundred thousand brackets are repaired")
	}
}

func TestTyped(t *testing.T) {
	for _, c := range []struct{ schema, raw, want string }{
		{`{"type":"string"}`, "null", `"null"`},
		{`{"type":"string"}`, "12", `"12"`},
		{`{"type":["string","null"]}`, "null", `null`},
		{`{"type":"integer"}`, " 12 ", `12`},
		{`{"type":"integer"}`, "12345678901234567890", `12345678901234567890`},
		{`{"type":"integer"}`, "5.0", `5`},
		{`{"type":"integer"}`, "abc", `"abc"`},
		{`{"type":"number"}`, "1e3", `1e3`},
		{`{"type":"number"}`, ".5", `0.5`},
		{`{"type":"number"}`, "inf", `"inf"`},
		{`{"type":"boolean"}`, "True", `true`},
		{`{"type":"boolean"}`, "0", `false`},
		{`{"type":"boolean"}`, "maybe", `"maybe"`},
		{`{"type":"array"}`, "['a', None]", `["a",null]`},
		{`{"type":"array"}`, `[{\"a\": \"b\"}]`, `[{"a":"b"}]`},
		{`{"type":"array"}`, "[not json", `"[not json"`},
		{`{"type":"object"}`, `"{\"a\": 1}"`, `{"a":1}`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, "7", `7`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, "x", `"x"`},
		{`{"enum":["1","2"]}`, "1", `"1"`},
		{`{"enum":[1,2]}`, "1", `1`},
		{`{"$ref":"#/$defs/n"}`, "3", `3`},
		{`{"items":{}}`, "[1]", `[1]`},
		{`{"properties":{}}`, "{}", `{}`},
		{`{"type":"Float64"}`, "2", `2`},
		{`{"type":"uint8"}`, "2", `2`},
		{`{}`, "3", `"3"`},
		{`{"type":"unheard of"}`, "3", `"3"`},
	} {
		k := readParams([]byte(`{"properties":{"p":` + c.schema + `},"$defs":{"n":{"type":"integer"}}}`))
		if got := k.argument("p", c.raw, asStrings); !sameValue(decoded([]byte(c.want)), decoded(got)) {
			t.Errorf("%s as %s gives %s, want %s", c.raw, c.schema, got, c.want)
		}
	}
	if k := readParams([]byte(`{"properties": 3}`)); k.of("x") != 0 {
		t.Error("a broken schema has types")
	}
}
