package parse

import (
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

const prose = `The harbour lies in the north of the town, and most of what it handles is grain.
In 1998 a second quay was added; since then ships of up to 40,000 tonnes can call.
Prices fell by 3.5 % (see the table), but traders don't expect that to last.

`

// pieces cuts text as a model's server sends it.
func pieces(text string, n int) []string { return bytewise(text, n) }

func benchmarkText(b *testing.B, f *Format, text string, n int) {
	p := f.New(NewTools(testTools...))
	chunks := pieces(text, n)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range chunks {
			if events := p.Write(c); len(events) > 0 && events[0].Kind != Text {
				b.Fatalf("%+v", events)
			}
		}
	}
}

func BenchmarkPlainText(b *testing.B) {
	text := strings.Repeat(prose, 4000)
	for _, f := range []*Format{Auto, Hermes, Harmony, Llama3JSON, Labelled} {
		b.Run(f.Name, func(b *testing.B) { benchmarkText(b, f, text, 4096) })
	}
	b.Run("auto/token", func(b *testing.B) { benchmarkText(b, Auto, text, 5) })
}

func BenchmarkMarkdown(b *testing.B) {
	text := strings.Repeat(prose+"- a [link](https://example.org/a) with `code` in it\n\n```go\nfunc main() { fmt.Println(\"<hello>\") }\n```\n\n| a | b |\n|---|---|\n| 1 < 2 | {x} |\n\n", 1000)
	benchmarkText(b, Auto, text, 4096)
}

func BenchmarkJSONText(b *testing.B) {
	text := strings.Repeat("{\n  \"name\": \"a-package\",\n  \"version\": \"1.0.0\",\n  \"dependencies\": {\"x\": \"^1.2.3\", \"y\": [1, 2, 3]}\n}\n", 1000)
	benchmarkText(b, Auto, text, 4096)
}

func BenchmarkCalls(b *testing.B) {
	tools := NewTools(testTools...)
	calls := []tool.Call{
		{Name: "get_weather", Args: []byte(`{"city": "Paris", "days": 3, "exact": true, "tags": ["a", "b"]}`)},
		{Name: "write_file", Args: []byte(`{"path": "a/b.go", "content": "package a\n\nfunc f(s []string) {\n\tfor i := range s {\n\t\tprint(i, \"x\")\n\t}\n}\n"}`)},
	}
	for _, f := range Formats() {
		b.Run(f.Name, func(b *testing.B) {
			one := "I will look.\n" + f.Calls(calls) + "\n"
			text := strings.Repeat(one, 100)
			chunks := pieces(text, 64)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p := f.New(tools)
				n := 0
				for _, c := range chunks {
					for _, e := range p.Write(c) {
						if e.Kind == Called {
							n++
						}
					}
				}
				for _, e := range p.Close() {
					if e.Kind == Called {
						n++
					}
				}
				if n != 200 {
					b.Fatalf("%d calls", n)
				}
			}
		})
	}
}

// One call with a megabyte of arguments, byte by byte.
func BenchmarkHugeArgument(b *testing.B) {
	call := tool.Call{Name: "write_file", Args: []byte(`{"path": "a", "content": ` + string(quote(strings.Repeat("if a < b { <x> }\n", 60000))) + `}`)}
	for _, f := range []*Format{Hermes, Qwen3CoderXML, KimiK2, Gemma4, Olmo3, MiniMaxM2, Mistral, MiniMaxM3} {
		b.Run(f.Name, func(b *testing.B) {
			text := f.Calls([]tool.Call{call})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p := f.New(nil)
				n := 0
				for i := range len(text) {
					for _, e := range p.Write(text[i : i+1]) {
						n += count(e.Kind == Called)
					}
				}
				for _, e := range p.Close() {
					n += count(e.Kind == Called)
				}
				if n != 1 {
					b.Fatal(n)
				}
			}
		})
	}
}

// Openers that nothing follows, which must not make reading quadratic.
func BenchmarkHostile(b *testing.B) {
	for name, text := range map[string]string{
		"open tags":   strings.Repeat("<tool_call>{\"a\":\"", 20000),
		"brackets":    strings.Repeat("[a(", 50000),
		"backticks":   strings.Repeat("` <tool_call>", 20000),
		"braces":      strings.Repeat("{\"name\":", 30000),
		"think":       strings.Repeat("a <think>", 30000),
		"invokes":     strings.Repeat("<function_calls><invoke name=\"a\">", 10000),
		"dsml":        strings.Repeat("<｜DSML｜tool_calls>", 10000),
		"line braces": strings.Repeat("{\"name\":\n", 30000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Read(Auto.New(nil), bytewise(text, 16)...)
			}
		})
	}
}
