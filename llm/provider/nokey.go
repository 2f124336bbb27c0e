package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/helve-ai/helve/llm/wire"
)

// A NoKey is the error of a brain without a key: it says what to do.
type NoKey struct {
	Provider string
	Env      string   // the variable, or secret, that would be right
	Models   []string // of an Ollama on this machine
	Ollama   string   // where that answers; "": it does not
}

func (e *NoKey) Error() string {
	text := fmt.Sprintf("%s has no key: set the environment variable %s, or keep it with: helve secrets set %s.", e.Provider, e.Env, e.Env)
	if e.Ollama != "" {
		text += fmt.Sprintf(" Ollama answers at %s", e.Ollama)
		if len(e.Models) > 0 {
			text += " with " + strings.Join(e.Models[:min(len(e.Models), 5)], ", ")
		}
		text += ": provider: ollama needs no key."
	}
	return text + ` Without any model, helve run --demo "Show me" runs a scripted demonstration.`
}

func (s *Spec) noKey(p Provider) error {
	e := &NoKey{Provider: p.Name, Env: p.KeyEnv}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	at := OllamaAddress(s.Env)
	if models, err := OllamaModels(ctx, s.HTTP, at); err == nil {
		e.Ollama, e.Models = at, models
	}
	return e
}

// probeTime is how long an Ollama on this machine may take to say that it is there.
const probeTime = 500 * time.Millisecond

// OllamaAddress returns where Ollama is to be found: what OLLAMA_HOST says, or
// its usual port on this machine.
func OllamaAddress(env func(string) string) string {
	host := ""
	if env != nil {
		host = env("OLLAMA_HOST")
	}
	host = strings.TrimSuffix(host, "/")
	switch {
	case host == "", strings.HasPrefix(host, "0.0.0.0"):
		return "http://127.0.0.1:11434"
	case !strings.Contains(host, "://"):
		host = "http://" + host
	}
	if strings.Count(host, ":") < 2 {
		host += ":11434"
	}
	return host
}

// OllamaModels returns the models that an Ollama has.
func OllamaModels(ctx context.Context, h *http.Client, address string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/tags", nil)
	if err != nil {
		return nil, err
	}
	resp, err := wire.Direct(h).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&all); err != nil {
		return nil, fmt.Errorf("%s does not answer as Ollama does: %w", address, err)
	}
	var names []string
	for _, m := range all.Models {
		names = append(names, m.Name)
	}
	return names, nil
}
