package parse

import (
	"path"
	"strings"
)

// Formats returns the formats known here, in the order of the documentation.
func Formats() []*Format {
	return []*Format{
		Auto,
		Anthropic, Apertus, CohereCommand, DeepSeekV3, DeepSeekV31, DeepSeekV32, DeepSeekV4, DSML, Ernie45, FencedJSON,
		FunctionGemma, Gemma4, GigaChat3, Glimmer, GLM45, GLM47, Granite, Granite20BFC, Harmony, Hermes, HunyuanV3,
		Inkling, InternLM2, Jamba, JSONArray, KimiK2, KimiK3, Labelled, Laguna, LFM2, Llama3JSON, Llama4Pythonic,
		LlamaFunction, LongCat, MiniCPM5XML, MiniMaxM1, MiniMaxM2, MiniMaxM3, Mistral, OllamaGeneric, Olmo3, OpenAIJSON,
		Phi4Mini, PoolsideV1, Pythonic, Qwen3CoderXML, SeedOSS, Step3, XLAMJSON, XMLNested, YAgentMulti,
	}
}

// ByName returns the format of this name, nil if there is none.
func ByName(name string) *Format {
	for _, f := range Formats() {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// A ModelRule says which format the models have whose name matches.
type ModelRule struct {
	Pattern string // as path.Match has it, in lower case; against the name without its owner
	Format  *Format
}

// ModelRules returns which format models speak when they write calls as text.
// The first rule that matches counts.
func ModelRules() []ModelRule {
	return []ModelRule{
		{"*gpt-oss*", Harmony},
		{"*claude*", Anthropic},
		{"*qwen3-coder*", Qwen3CoderXML}, {"*qwen3coder*", Qwen3CoderXML}, {"*qwen-coder-next*", Qwen3CoderXML},
		{"*qwen3.[5-9]*", Qwen3CoderXML}, {"*qwen-3.[5-9]*", Qwen3CoderXML}, {"*nemotron*3*nano*", Qwen3CoderXML}, {"*nemotron-nano-3*", Qwen3CoderXML},
		{"*qwen*", Hermes}, {"*qwq*", Hermes}, {"*hermes*", Hermes}, {"*nemotron*", Hermes},
		{"*deepseek*v4*", DeepSeekV4}, {"*deepseek*v3.2*", DeepSeekV32}, {"*deepseek*v3.1*", DeepSeekV31}, {"*cogito*", DeepSeekV31},
		{"*deepseek*r1*distill*", Hermes}, {"*deepseek*", DeepSeekV3},
		{"*glm-4.7*", GLM47}, {"*glm4.7*", GLM47}, {"*glm-5*", GLM47}, {"*glm5*", GLM47}, {"*glm*", GLM45},
		{"*minimax*m1*", MiniMaxM1}, {"*minimax*m3*", MiniMaxM3}, {"*minimax*", MiniMaxM2},
		{"*kimi*k3*", KimiK3}, {"*kimi*", KimiK2}, {"*moonlight*", KimiK2},
		{"*llama-4*", Llama4Pythonic}, {"*llama4*", Llama4Pythonic}, {"*xlam*", XLAMJSON}, {"*toolace*", Pythonic},
		{"*llama-3.2-[13]b*", Pythonic}, {"*llama3.2:[13]b*", Pythonic}, {"*llama*", Llama3JSON},
		{"*mistral*", Mistral}, {"*ministral*", Mistral}, {"*magistral*", Mistral}, {"*devstral*", Mistral}, {"*codestral*", Mistral}, {"*mixtral*", Mistral}, {"*pixtral*", Mistral},
		{"*functiongemma*", FunctionGemma}, {"*gemma-4*", Gemma4}, {"*gemma4*", Gemma4}, {"*gemma*", FencedJSON},
		{"*granite-20b*", Granite20BFC}, {"*granite-4*", Hermes}, {"*granite4*", Hermes}, {"*granite*", Granite},
		{"*internlm*", InternLM2}, {"*intern-s*", InternLM2}, {"*jamba*", Jamba}, {"*phi-4*", Phi4Mini}, {"*phi4*", Phi4Mini},
		{"*seed-oss*", SeedOSS}, {"*seed_oss*", SeedOSS}, {"*step-3*", Step3}, {"*step3*", Step3},
		{"*hunyuan*a13b*", Jamba}, {"*hunyuan*", HunyuanV3}, {"*apertus*", Apertus}, {"*command*", CohereCommand}, {"*c4ai*", CohereCommand}, {"*aya*", CohereCommand},
		{"*ernie*", Ernie45}, {"*gigachat*", GigaChat3}, {"*glimmer*", Glimmer}, {"*inkling*", Inkling}, {"*laguna*", Laguna},
		{"*longcat*", LongCat}, {"*minicpm*", MiniCPM5XML}, {"*malibu*", PoolsideV1}, {"*poolside*", PoolsideV1},
		{"*lfm2*", LFM2}, {"*olmo-3*", Olmo3}, {"*olmo3*", Olmo3}, {"*smollm*", Hermes},
	}
}

// ForModel returns the format in which a model writes calls as text. The name
// may have an owner before it. overrides are tried first. A model that no rule
// knows is asked for Hermes, and read by [Auto]: reads is what to read its
// text with, and asks what to ask it for.
func ForModel(name string, overrides ...ModelRule) (asks, reads *Format) {
	name = strings.ToLower(name)
	short := name[strings.LastIndexByte(name, '/')+1:]
	for _, r := range append(overrides, ModelRules()...) {
		for _, n := range []string{short, name} {
			if ok, err := path.Match(r.Pattern, n); ok && err == nil {
				return r.Format, r.Format
			}
		}
	}
	return Hermes, Auto
}
