package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/llm/provider"
)

// howToBegin says what to write so that somebody answers, by what there is on
// this machine: a key, or an Ollama.
func (c *cli) howToBegin(ctx context.Context, command string) string {
	brain, before := c.brainAtHand(ctx)
	return fmt.Sprintf(`%sWrite helve.yaml:

  app: {app_id: mine, name: Mine}
  agents:
    - id: helper
      brain: %s

Then: helve %s. Without any model, helve %s --demo runs a scripted demonstration.`, before, brain, command, strings.Fields(command)[0])
}

// howToAddAgent says what to add to an app file that declares no agent.
func (c *cli) howToAddAgent(ctx context.Context) string {
	brain, before := c.brainAtHand(ctx)
	return fmt.Sprintf(`%sAdd to %s:

  agents:
    - id: helper
      brain: %s

Without an agent the app's tools are for MCP clients: helve mcp --app %[2]s, or helve serve %[2]s.`, before, c.appFile, brain)
}

// brainAtHand returns a brain that would answer here, or an example of one, and
// what is to be done before.
func (c *cli) brainAtHand(ctx context.Context) (brain, before string) {
	secret := secrets(c.credentialStore(app.Default()))
	for _, p := range provider.Providers() {
		if key, err := secret(p.KeyEnv); p.KeyEnv != "" && err == nil && key != "" {
			return fmt.Sprintf("{provider: %s, model: %s}   # there is a key: %s", p.Name, exampleModel(p.Name), p.KeyEnv), ""
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	at := provider.OllamaAddress(os.Getenv)
	models, err := provider.OllamaModels(ctx, nil, at)
	switch {
	case err == nil && len(models) > 0:
		return fmt.Sprintf("{provider: ollama, model: %q}   # Ollama answers at %s", models[0], at), ""
	case err == nil:
		return "{provider: ollama, model: qwen3}", fmt.Sprintf("Ollama answers at %s and has no model yet: ollama pull qwen3. ", at)
	}
	return "{provider: anthropic, model: " + exampleModel("anthropic") + "}",
		"No provider is configured: no key is set, and no Ollama answers at " + at + ". Set a key, such as ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY (helve doctor lists them), or start Ollama, which needs none (provider: ollama). "
}

// exampleModel names a model of a provider, or says that one is to be named.
func exampleModel(name string) string {
	if name == "anthropic" {
		return "claude-sonnet-4-5"
	}
	return "MODEL"
}
