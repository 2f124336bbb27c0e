package parse

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

// testTools are what the models of these tests are offered.
var testTools = []Offer{
	{Name: "get_weather", Description: "Tells the weather.", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"exact":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}}},"required":["city"]}`)},
	{Name: "write_file", Description: "Writes a file.", Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"options":{"type":"object"}},"required":["path","content"]}`)},
	{Name: "now", Description: "Tells the time.", Parameters: []byte(`{"type":"object","properties":{}}`)},
	{Name: "search", Description: "Searches.", Parameters: []byte(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":["integer","null"]},"ratio":{"type":"number"}},"required":["query"]}`)},
}

// check holds a text to the laws of every parser: cutting it changes nothing,
// and nothing is called that was not offered.
func check(t *testing.T, f *Format, tools *Tools, text string, cuts func(s string) []string) {
	t.Helper()
	whole := Read(f.New(tools), text)
	if got := Read(f.New(tools), cuts(text)...); !reflect.DeepEqual(got, whole) {
		t.Fatalf("%s: %q cut into %q:\n%+v\nwhole:\n%+v", f.Name, text, cuts(text), got, whole)
	}
	if got := Read(f.New(tools), bytewise(text, 1)...); !reflect.DeepEqual(got, whole) {
		t.Fatalf("%s: %q by bytes:\n%+v\nwhole:\n%+v", f.Name, text, got, whole)
	}
	for _, c := range whole.Calls {
		if tools != nil && !slices.Contains(tools.names, c.Name) {
			t.Fatalf("%s: %q calls %q, which was not offered", f.Name, text, c.Name)
		}
		if ms := members(string(c.Args)); len(c.Args) == 0 || c.Args[0] != '{' || !sameValue(decoded(c.Args), decoded(c.Args)) || strings.HasPrefix(string(c.Args), "invalid") {
			t.Fatalf("%s: %q: the arguments %s are no object (%v)", f.Name, text, c.Args, ms)
		}
	}
	if !strings.ContainsAny(text, "<[{]`|:：f;") && whole.Content+whole.Thinking != text {
		t.Fatalf("%s: plain text %q was changed: %+v", f.Name, text, whole)
	}
}

// fragments returns what random texts are made of: the strings that the
// formats look for, and what stands between them.
func fragments() []string {
	out := []string{
		"Some text. ", "get_weather", "now", "unknown", "\n", "\n\n", " ", "`", "```", "```json\n", "~~~\n", "{", "}", "[", "]", "(", ")", "\"", "'", ":", ",", "=", ">", "<", "/", "\\", "\\n", "é", "参数", "\xff",
		`{"name": "get_weather", "arguments": {"city": "Paris"}}`, `{"name": "now", "parameters": {}}`, `{"city": "Rome", "days": 3}`,
		`[{"name": "search", "arguments": {"query": "a <b> </tool_call> c"}}]`, `[get_weather(city='Oslo'), now()]`, `now()`,
		`{"name": "unknown", "arguments": {}}`, `"function"`, "function", `name="now"`, `<parameter name="city">`, "</parameter>", "<parameter=city>", "</function>", "<function=now>",
		"</tool_call>", "<tool_sep>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</invoke>", `<invoke name="now">`, "to=user", " to=functions.now", "<|message|>", "<|constrain|>json",
		"functions.now:0", "functions.get_weather:12", kimiArgs, kimiCallEnd, dsSep, dsCallEnd, "[ARGS]", "<|\"|>", "<escape>", "call:now{}", "call:get_weather{city:", "</think>", "<|call|>", "<|end|>", "<|eom|>",
		"Action: now\n", "Action Input: {}\n", "Arguments: ", "analysis", "commentary", "<param name=\"city\">", "</param>", `string="true"`, "</｜DSML｜invoke>", "<｜DSML｜invoke name=\"now\">",
		"<|end_message|>", "<|sep|>", "<|close|>", `<|open|>call tool="now"`, atemOpen, atemClose, `<atem:invoke name="now">`, "</atem:invoke>", "<steptml:invoke name=\"now\">", "</steptml:invoke>",
	}
	for _, f := range Formats() {
		for _, o := range f.grammar.openers {
			out = append(out, o.tag)
		}
		out = append(out, f.grammar.implied...)
	}
	return out
}

// cutter returns a way of cutting at random places.
func cutter(r *rand.Rand) func(string) []string {
	seed := r.Uint64()
	return func(s string) (out []string) {
		r := rand.New(rand.NewPCG(seed, 1))
		for s != "" {
			n := min(len(s), 1+r.IntN(12))
			out, s = append(out, s[:n]), s[n:]
		}
		return out
	}
}

func TestLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := fragments()
	tools := NewTools(testTools...)
	formats := Formats()
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		var b strings.Builder
		f := formats[r.IntN(len(formats))]
		for range 1 + r.IntN(14) {
			switch r.IntN(3) {
			case 0:
				if len(f.grammar.openers) < 80 {
					b.WriteString(f.grammar.openers[r.IntN(len(f.grammar.openers))].tag)
				}
			default:
				b.WriteString(all[r.IntN(len(all))])
			}
		}
		for _, g := range []*Format{f, Auto} {
			check(t, g, tools, b.String(), cutter(r))
			check(t, g, nil, b.String(), cutter(r))
		}
	}
}

// Texts that hold real calls, damaged at one place.
func TestLawsDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tools := NewTools(testTools...)
	calls := []tool.Call{
		{ID: "0", Name: "get_weather", Args: []byte(`{"city": "Paris", "days": 3, "exact": true, "tags": ["a", "b"]}`)},
		{ID: "1", Name: "now", Args: []byte(`{}`)},
	}
	for _, f := range Formats() {
		text := "Before.\n" + f.Calls(calls) + "\nAfter."
		for range 60 {
			at, n := r.IntN(len(text)), r.IntN(6)
			cut := text[:at] + text[min(len(text), at+n):]
			check(t, f, tools, cut, cutter(r))
			check(t, Auto, tools, cut, cutter(r))
			check(t, f, tools, text[:at], cutter(r))
		}
	}
}

func FuzzChunks(f *testing.F) {
	f.Add("before <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call> after <tool_", uint8(3), uint8(0))
	for _, g := range Formats() {
		f.Add("x\n"+g.Calls([]tool.Call{{Name: "get_weather", Args: []byte(`{"city": "Paris"}`)}}), uint8(2), uint8(1))
	}
	tools := NewTools(testTools...)
	formats := Formats()
	f.Fuzz(func(t *testing.T, text string, size, which uint8) {
		g := formats[int(which)%len(formats)]
		check(t, g, tools, text, func(s string) []string { return bytewise(s, int(size)+1) })
	})
}
