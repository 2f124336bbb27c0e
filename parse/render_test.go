package parse

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/helve-ai/helve/tool"
)

func sameCalls(a, b []tool.Call) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !sameValue(decoded(a[i].Args), decoded(b[i].Args)) {
			return false
		}
	}
	return true
}

var rendered = [][]tool.Call{
	{{Name: "now", Args: []byte(`{}`)}},
	{{Name: "now"}, {Name: "now", Args: []byte(`{}`)}},
	{{Name: "get_weather", Args: []byte(`{"city": "Paris", "days": 3, "exact": true, "tags": ["a, b", "c: d"]}`)}, {Name: "search", Args: []byte(`{"query": "weather in \"Lyon\" — 天气 🌦", "limit": null, "ratio": -0.25}`)}},
	{{Name: "write_file", Args: []byte(`{"path": "a/b.go", "content": "package a\n\nfunc f(s []string) { if s[0] < \"x\" && len(s) > 1 { print('y', ` + "`raw`" + `) } }\n// it's {\"name\": \"now\", \"arguments\": {}}", "options": {"mode": 420, "deep": {"list": [1, 2.5, false, null, "x"], "empty": {}}}}`)}},
}

// What a format writes is what it reads: alone, and within text.
func TestRendered(t *testing.T) {
	tools := NewTools(testTools...)
	for _, f := range Formats() {
		for _, calls := range rendered {
			want := append([]tool.Call(nil), calls...)
			for i := range want {
				if want[i].Args == nil {
					want[i].Args = []byte("{}")
				}
			}
			text := f.Calls(calls)
			if f == MiniMaxM3 && calls[0].Name == "write_file" { // its elements state no types, and the schema none within options
				args := strings.NewReplacer("420", `"420"`, `1, 2.5, false, null`, `"1", "2.5", "false", "null"`, `"empty": {}`, `"empty": ""`).Replace(string(want[0].Args))
				want[0].Args = []byte(args)
			}
			for _, reader := range []*Format{f, Auto} {
				if f == FencedJSON && reader == Auto && len(calls) > 1 {
					continue // two blocks: neither is the whole reply
				}
				m := Read(reader.New(tools), text)
				if !sameCalls(m.Calls, want) || strings.TrimSpace(m.Content) != "" || len(m.Notes) > 0 {
					t.Errorf("%s read by %s: %s\ngave %+v\nwant %v", f.Name, reader.Name, text, m, want)
				}
			}
			m := Read(f.New(tools), "Let me see.\n"+text+"\nThat was it.")
			if !sameCalls(m.Calls, want) || !strings.HasPrefix(m.Content, "Let me see.\n") || !strings.HasSuffix(m.Content, "\nThat was it.") {
				t.Errorf("%s within text: %+v", f.Name, m)
			}
			if m = Read(f.New(nil), text); len(m.Calls) != len(want) {
				t.Errorf("%s with everything offered: %+v", f.Name, m)
			}
		}
		if f.Calls(nil) != "" {
			t.Errorf("%s: no calls are written as %q", f.Name, f.Calls(nil))
		}
	}
}

// A value may itself show calls, in the words of the format: those are not made,
// and no byte of the value is lost. So it is with a tag alone.
func TestRenderedWithin(t *testing.T) {
	tools := NewTools(testTools...)
	for _, f := range Formats() {
		shown := f.Calls([]tool.Call{{Name: "get_weather", Args: []byte(`{"city": "Paris", "days": 3}`)}, {Name: "now"}})
		for _, said := range []string{shown, strings.TrimSpace(strings.SplitAfter(shown, ">")[0])} {
			args, err := json.Marshal(map[string]string{"content": "It is so:\n\n" + said + "\n\nYou see.\n", "path": "a.md"})
			if err != nil {
				t.Fatal(err)
			}
			calls := []tool.Call{{Name: "write_file", Args: args}, {Name: "search", Args: []byte(`{"query": "q"}`)}}
			text := f.Calls(calls)
			if m := Read(f.New(tools), text); !sameCalls(m.Calls, calls) {
				t.Errorf("%s: %s\ngave %+v", f.Name, text, m)
			}
			check(t, f, tools, text, func(s string) []string { return bytewise(s, 5) })
		}
	}
}

// The calls that a prompt shows are read as it says.
func TestPrompt(t *testing.T) {
	offers := append([]Offer{{Name: "get_time", Parameters: []byte(`{"type":"object","properties":{"zone":{"type":"string"}}}`)}}, testTools...)
	for _, f := range Formats() {
		p := f.Prompt(offers)
		for _, o := range offers {
			if !strings.Contains(p, `{"name": "`+o.Name+`"`) {
				t.Errorf("%s: the prompt does not list %s", f.Name, o.Name)
			}
		}
		_, rest, ok := strings.Cut(p, "To call two tools at once:\n\n")
		example, _, ok2 := strings.Cut(rest, "\n\nCall only tools of the list")
		if !ok || !ok2 {
			t.Fatalf("%s: no example in %s", f.Name, p)
		}
		m := Read(f.New(NewTools(offers...)), example)
		if len(m.Calls) != 2 || m.Calls[0].Name != "get_weather" || m.Calls[1].Name != "get_time" || strings.TrimSpace(m.Content) != "" {
			t.Errorf("%s: the example %q is read as %+v", f.Name, example, m)
		}
		if r := f.Result(tool.Call{Name: "now", ID: "functions.now:0"}, "12:00"); !strings.Contains(r, "12:00") {
			t.Errorf("%s: the result is written as %q", f.Name, r)
		}
		if p != f.Prompt(offers) {
			t.Errorf("%s: the prompt is not the same twice", f.Name)
		}
	}
}

func TestForModel(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen2.5-7B-Instruct": "hermes", "qwen3:8b": "hermes", "Qwen/Qwen3-Coder-30B-A3B": "qwen3_coder_xml", "openai/gpt-oss-120b": "harmony",
		"deepseek-ai/DeepSeek-V3": "deepseek_v3", "deepseek-ai/DeepSeek-V3.1": "deepseek_v31", "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v32_dsml", "deepseek-v4-pro": "deepseek_v4_dsml",
		"zai-org/GLM-4.5-Air": "glm45", "GLM-4.6": "glm45", "zai-org/GLM-4.7": "glm47", "MiniMaxAI/MiniMax-M2": "minimax_m2", "MiniMax-M1-80k": "minimax_m1",
		"moonshotai/Kimi-K2-Instruct": "kimi_k2", "kimi-k3": "kimi_k3", "meta-llama/Llama-3.1-8B-Instruct": "llama3_json", "llama3.2:3b": "pythonic", "meta-llama/Llama-4-Scout": "llama4_pythonic",
		"mistralai/Mistral-Small-3.2": "mistral", "google/gemma-4-9b-it": "gemma4", "functiongemma": "functiongemma", "ibm-granite/granite-3.3-8b": "granite", "LiquidAI/LFM2-1.2B": "lfm2",
		"allenai/OLMo-3-32B-Think": "olmo3", "microsoft/Phi-4-mini-instruct": "phi4mini", "Salesforce/xLAM-2-8b-fc-r": "xlam_json", "nvidia/Nemotron-3-Nano-30B": "qwen3_coder_xml",
	} {
		asks, reads := ForModel(name)
		if asks.Name != want || reads.Name != want {
			t.Errorf("%s speaks %s and is read by %s, want %s", name, asks.Name, reads.Name, want)
		}
	}
	if asks, reads := ForModel("nobody/knows-this"); asks != Hermes || reads != Auto {
		t.Errorf("an unknown model is asked for %s and read by %s", asks.Name, reads.Name)
	}
	if asks, _ := ForModel("qwen3:8b", ModelRule{"qwen3*", KimiK2}); asks != KimiK2 {
		t.Errorf("an override gives %s", asks.Name)
	}
}
