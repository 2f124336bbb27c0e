package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A config is what an app file says in brain.config.
type config struct {
	Key      string                     `json:"api_key"`
	BaseURL  string                     `json:"base_url"`
	Format   string                     `json:"format"`
	Price    *Price                     `json:"price"`
	Effort   string                     `json:"effort"`
	Headers  map[string]string          `json:"headers"`
	Extra    map[string]json.RawMessage `json:"extra"`
	Stream   *bool                      `json:"stream"`
	API      string                     `json:"api"`
	Summary  string                     `json:"summary"`
	NumCtx   int                        `json:"num_ctx"`
	ClientID string                     `json:"client_id"`
	GitHub   string                     `json:"github_url"`

	Turns json.RawMessage `json:"turns"` // of scripts, which read them themselves
	Pause json.RawMessage `json:"pause"`
}

// common are the keys of every backend.
var common = []string{"api_key", "base_url", "format", "price", "effort", "headers", "extra"}

// Keys returns the keys that a brain's config may have with this backend.
func (b Backend) Keys() []string {
	if b.Name == "script" {
		return []string{"turns", "pause", "format", "price"}
	}
	return slices.Concat(common, b.keys)
}

// Keys returns the keys that the config of a brain may have which names this
// provider and backend, as in a Spec. A provider that is not known by name is
// taken for one of OpenAI's protocol.
func Keys(provider, backend string) []string {
	if backend == "" {
		backend = "openai_compat"
		if p, known := Named(provider); known {
			backend = p.Backend
		}
	}
	for _, b := range Backends() {
		if b.Name == backend {
			return b.Keys()
		}
	}
	return common
}

// configure reads the config, and says what in it is wrong.
func (b *brain) configure() error {
	if len(b.Config) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(b.Config, &given); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	for key := range given {
		if !slices.Contains(b.Keys(), key) {
			return fmt.Errorf("config.%s: the backend %s has no such setting; it has %s", key, b.Backend.Name, strings.Join(b.Keys(), ", "))
		}
	}
	d := json.NewDecoder(bytes.NewReader(b.Config))
	if err := d.Decode(&b.config); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if e := b.config.Effort; e != "" && !slices.Contains([]string{"minimal", "low", "medium", "high"}, e) {
		return fmt.Errorf("config.effort: %q is none of minimal, low, medium, high", e)
	}
	return nil
}

// scriptOf returns the part of a config that is the script.
func scriptOf(raw json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return raw
	}
	delete(all, "format")
	delete(all, "price")
	out, _ := json.Marshal(all) // it was read just now
	return out
}
