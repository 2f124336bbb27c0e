package provider

import (
	"path"
	"strings"

	"github.com/helve-ai/helve/llm/openai"
)

// A Provider is who offers models.
type Provider struct {
	Name    string
	Backend string
	BaseURL string // "": must be given
	KeyEnv  string // the environment variable of its key; "": it needs none
	Native  bool   // tools are called by its API
	quirks  openai.Quirks
}

// Providers lists those that are known by name. Native is SPEC L1's: programs
// that run models on one's own machine are told of tools in the text, since
// what they make of tools depends on the model's template.
func Providers() []Provider {
	return []Provider{
		compat("openai", "https://api.openai.com/v1", openai.Quirks{OpenAI: true}),
		{Name: "anthropic", Backend: "anthropic", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", Native: true},
		compat("deepseek", "https://api.deepseek.com/v1", openai.Quirks{JSONOnly: true}),
		compat("groq", "https://api.groq.com/openai/v1", openai.Quirks{}),
		compat("mistral", "https://api.mistral.ai/v1", openai.Quirks{NoUsageOption: true, ShortIDs: true}),
		compat("together", "https://api.together.xyz/v1", openai.Quirks{}),
		{Name: "gemini", Backend: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: "GEMINI_API_KEY", Native: true},
		compat("xai", "https://api.x.ai/v1", openai.Quirks{}),
		compat("cerebras", "https://api.cerebras.ai/v1", openai.Quirks{}),
		compat("perplexity", "https://api.perplexity.ai", openai.Quirks{NoUsageOption: true}),
		compat("fireworks", "https://api.fireworks.ai/inference/v1", openai.Quirks{}),
		compat("openrouter", "https://openrouter.ai/api/v1", openai.Quirks{CacheMarks: true}),
		{Name: "github_copilot", Backend: "github_copilot", BaseURL: "https://api.githubcopilot.com", Native: true},
		{Name: "ollama", Backend: "ollama"}, // at OllamaAddress
		local("lmstudio", "http://127.0.0.1:1234/v1"),
		local("vllm", "http://127.0.0.1:8000/v1"),
		local("llamacpp", "http://127.0.0.1:8080/v1"),
		{Name: "script", Backend: "script", Native: true},
	}
}

func compat(name, base string, q openai.Quirks) Provider {
	return Provider{Name: name, Backend: "openai_compat", BaseURL: base, KeyEnv: strings.ToUpper(name) + "_API_KEY", Native: true, quirks: q}
}

// local is a program that people run on their own machine: it needs no key.
func local(name, base string) Provider {
	return Provider{Name: name, Backend: "openai_compat", BaseURL: base}
}

// Named returns the provider of a name, however people write it: LM Studio,
// lm_studio, llama.cpp.
func Named(name string) (Provider, bool) {
	name = plainName(name)
	if other, ok := otherNames[name]; ok {
		name = other
	}
	for _, p := range Providers() {
		if plainName(p.Name) == name {
			return p, true
		}
	}
	return Provider{}, false
}

var otherNames = map[string]string{"google": "gemini", "grok": "xai", "copilot": "githubcopilot", "togetherai": "together", "fireworksai": "fireworks", "claude": "anthropic"}

func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "", ".", "").Replace(s))
}

// windows are the context windows of models, by their names without owner. The
// first that matches counts.
var windows = []struct {
	pattern string
	tokens  int
}{
	{"gpt-4.1*", 1_047_576}, {"gpt-4o*", 128_000}, {"gpt-4-turbo*", 128_000}, {"gpt-4", 8_192}, {"gpt-3.5-turbo*", 16_385},
	{"gpt-5*-chat*", 128_000}, {"gpt-5*", 400_000}, {"o1-mini*", 128_000}, {"o[134]*", 200_000}, {"gpt-oss*", 131_072},
	{"claude*", 200_000}, {"gemini-1.5-pro*", 2_097_152}, {"gemini*", 1_048_576},
	{"deepseek*", 128_000}, {"grok-4-fast*", 2_000_000}, {"grok-4*", 256_000}, {"grok-code*", 256_000}, {"grok*", 131_072},
	{"mistral-small*", 128_000}, {"mistral-medium*", 128_000}, {"mistral-large*", 128_000}, {"magistral*", 40_000}, {"devstral*", 128_000}, {"codestral*", 256_000},
	{"llama-3[._][123]*", 131_072}, {"llama-4*", 131_072}, {"llama3.[123]*", 131_072},
	{"qwen3-coder*", 262_144}, {"qwen3*", 40_960}, {"qwen2.5*", 32_768},
	{"kimi-k2*", 131_072}, {"glm-4.[67]*", 200_000}, {"glm-4.5*", 131_072}, {"sonar*", 128_000},
}

// window returns how many tokens a model takes; zero: not known. What runs on
// one's own machine takes what it was started with.
func (p Provider) window(model string, c *config) int {
	if c.NumCtx > 0 {
		return c.NumCtx
	}
	if p.Backend == "ollama" {
		return ollamaWindow
	}
	if strings.HasPrefix(p.BaseURL, "http://127.") {
		return 0
	}
	short := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, w := range windows {
		if ok, err := path.Match(w.pattern, short); ok && err == nil {
			return w.tokens
		}
	}
	return 0
}

// ollamaWindow is the window that Ollama is asked for where nothing is said: its
// own is 4096 tokens, beyond which it forgets the beginning without a word.
const ollamaWindow = 16_384
