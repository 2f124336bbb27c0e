package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/anthropic"
	"github.com/helve-ai/helve/llm/copilot"
	"github.com/helve-ai/helve/llm/gemini"
	"github.com/helve-ai/helve/llm/ollama"
	"github.com/helve-ai/helve/llm/openai"
	"github.com/helve-ai/helve/llm/script"
	"github.com/helve-ai/helve/llm/wire"
)

// A Backend is a protocol by which models are spoken to.
type Backend struct {
	Name, Doc string
	keys      []string // of its config, beside those that are common
	open      func(*brain) (llm.Model, error)
}

// Backends lists the protocols.
func Backends() []Backend {
	return []Backend{
		{"openai_compat", "The protocols of OpenAI, which most providers offer: chat completions, or responses by config.api.",
			[]string{"api", "stream", "summary"}, openOpenAI},
		{"anthropic", "The messages protocol of Anthropic.", nil, openAnthropic},
		{"github_copilot", "GitHub Copilot, by the protocol of OpenAI; somebody must sign in with helve login copilot.",
			[]string{"client_id", "github_url"}, openCopilot},
		{"gemini", "Google's generateContent protocol.", nil, openGemini},
		{"ollama", "Ollama's own protocol.", []string{"num_ctx"}, openOllama},
		{"script", "A transcript that is declared in the app file, for tests and demonstrations.", nil,
			func(b *brain) (llm.Model, error) { return script.Parse(scriptOf(b.Config)) }},
	}
}

// client returns what every protocol over HTTP begins with.
func (b *brain) client() *wire.Client {
	return &wire.Client{Provider: b.provider.Name, Model: b.Model, BaseURL: b.BaseURL, Header: b.config.Headers, Key: b.Key, KeyHint: keyHint(b.provider), HTTP: b.HTTP}
}

func keyHint(p Provider) string {
	switch {
	case p.Backend == "github_copilot":
		return "sign in again with helve login copilot"
	case p.KeyEnv == "":
		return "check the brain's credential or its config.api_key"
	}
	return "check the key in " + p.KeyEnv + ", the brain's credential or its config.api_key"
}

// bearer adds a key as most providers want it.
func bearer(key string) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		if key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return nil
	}
}

func openOpenAI(b *brain) (llm.Model, error) {
	m := &openai.Model{Client: b.client(), Quirks: b.provider.quirks, Extra: b.config.Extra, Summary: b.config.Summary}
	m.Authorize = bearer(b.Key)
	m.Whole = b.config.Stream != nil && !*b.config.Stream
	switch b.config.API {
	case "chat":
	case "responses":
		m.Responses = true
	case "": // OpenAI's models lose their reasoning between calls by the other API
		m.Responses = b.provider.quirks.OpenAI && b.BaseURL == b.provider.BaseURL && openai.Reasons(b.Model)
	default:
		return nil, fmt.Errorf("config.api: %q is neither chat nor responses", b.config.API)
	}
	return m, nil
}

func openAnthropic(b *brain) (llm.Model, error) {
	m := &anthropic.Model{Client: b.client(), Extra: b.config.Extra}
	m.BaseURL = anthropic.BaseURL(m.BaseURL)
	m.Authorize = anthropic.Authorize(b.Key)
	return m, nil
}

func openGemini(b *brain) (llm.Model, error) {
	m := &gemini.Model{Client: b.client(), Extra: b.config.Extra}
	m.Authorize = gemini.Authorize(b.Key)
	return m, nil
}

func openOllama(b *brain) (llm.Model, error) {
	m := &ollama.Model{Client: b.client(), Window: b.window, Extra: b.config.Extra}
	m.Authorize = bearer(b.Key)
	return m, nil
}

func openCopilot(b *brain) (llm.Model, error) {
	if b.Logins == nil {
		return nil, errors.New(copilot.SignedOut)
	}
	if login, err := b.Logins.Get(copilot.Kept); err != nil || login == "" {
		return nil, errors.New(copilot.SignedOut)
	}
	tokens := &copilot.Tokens{GitHub: copilot.GitHub{ClientID: b.config.ClientID, URL: b.config.GitHub, HTTP: b.HTTP},
		Login: func() (string, error) { return b.Logins.Get(copilot.Kept) }}
	m := &openai.Model{Client: b.client(), Extra: b.config.Extra}
	m.Authorize = tokens.Authorize
	return m, nil
}
