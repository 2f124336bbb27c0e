// Package provider opens models by the names of those who offer them.
package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/helve-ai/helve/llm"
	"github.com/helve-ai/helve/llm/wire"
	"github.com/helve-ai/helve/parse"
)

// A Spec says which model is wanted, as a brain in an app file does.
type Spec struct {
	Provider string // a name of Providers, or any other with a BaseURL; "": by Backend
	Backend  string // the protocol: a name of Backends; "": the provider's
	Model    string
	BaseURL  string // "": the provider's
	Key      string // "": that of the environment, where Env finds one
	Native   *bool  // whether tools are called by the API; nil: by the provider
	Format   string // how a model writes calls in its text; "": by its name
	Window   int    // tokens; zero: by its name

	Config json.RawMessage // further settings of the backend; nil: none
	HTTP   *http.Client    // nil: http.DefaultClient
	Env    func(name string) string
	Logins Logins // nil: nobody is signed in
}

// Logins keeps what signing in to providers gives.
type Logins interface {
	Get(name string) (string, error) // an error if there is none
}

// An Opened model is a model, and how it is to be spoken to.
type Opened struct {
	Model llm.Model
	Name  string // for people: provider/model

	Provider, BaseURL string // who offers it, and where; no BaseURL: here

	Format *parse.Format // how calls are asked for in the text; nil: it calls by the API
	Reads  *parse.Format // how they are read from it: Format, or one that knows more
	Window int           // tokens; zero: not known
	Price  *Price        // nil: not known
	Effort string        // how long it may think; "": as it likes
}

// A Price is what a million tokens cost, in US dollars. In JSON, what comes
// from the cache costs as much as other input if nothing else is said.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
	Output float64 `json:"output"`
}

// UnmarshalJSON reads {input, output, cached}.
func (p *Price) UnmarshalJSON(data []byte) error {
	var all struct {
		Input, Output float64
		Cached        *float64
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("price: %w", err)
	}
	*p = Price{all.Input, all.Input, all.Output}
	if all.Cached != nil {
		p.Cached = *all.Cached
	}
	return nil
}

// Of returns what an answer cost. A nil Price costs nothing.
func (p *Price) Of(u llm.Usage) float64 {
	if p == nil {
		return 0
	}
	return (p.Input*float64(u.Input-u.Cached) + p.Cached*float64(u.Cached) + p.Output*float64(u.Output)) / 1e6
}

// Open opens a model.
func Open(s Spec) (*Opened, error) {
	o, b, err := s.resolve()
	if err != nil {
		return nil, err
	}
	if s.Key == "" && b.provider.KeyEnv != "" {
		return nil, s.noKey(b.provider)
	}
	if o.Model, err = b.open(b); err != nil {
		return nil, err
	}
	return o, nil
}

// Describe returns what is known of a model without asking it: all of an
// Opened but the Model. It needs no key.
func Describe(s Spec) (*Opened, error) {
	o, _, err := s.resolve()
	return o, err
}

// A brain is a Spec with all that follows from it.
type brain struct {
	*Spec
	Backend
	provider Provider
	config   config
	window   int
}

// resolve fills in what follows from names.
func (s *Spec) resolve() (*Opened, *brain, error) {
	b := &brain{Spec: s}
	var err error
	if b.provider, err = s.provider(); err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(Backends(), func(b Backend) bool { return b.Name == s.Backend })
	if at < 0 {
		return nil, nil, fmt.Errorf("backend %q: there is no such; use one of %s", s.Backend, names(Backends(), func(b Backend) string { return b.Name }))
	}
	b.Backend = Backends()[at]
	if err := b.configure(); err != nil {
		return nil, nil, err
	}
	if s.Model == "" && s.Backend != "script" {
		return nil, nil, fmt.Errorf("a brain of %s needs a model", b.provider.Name)
	}
	o := &Opened{Name: strings.Trim(b.provider.Name+"/"+s.Model, "/"), Provider: b.provider.Name, BaseURL: s.BaseURL, Window: s.Window, Price: b.config.Price, Effort: b.config.Effort}
	if o.Window == 0 {
		o.Window = b.provider.window(s.Model, &b.config)
	}
	b.window = o.Window
	native := b.provider.Native
	if s.Native != nil {
		native = *s.Native
	}
	if !native {
		o.Format, o.Reads, err = s.format()
	}
	return o, b, err
}

// provider fills in what follows from the provider's name.
func (s *Spec) provider() (Provider, error) {
	name := s.Provider
	if name == "" {
		name = s.Backend
	}
	if name == "" {
		return Provider{}, errors.New("a brain needs a provider or a backend")
	}
	p, known := Named(name)
	if p.Backend == "ollama" {
		p.BaseURL = OllamaAddress(s.Env)
	}
	switch {
	case known:
	case s.BaseURL == "":
		return p, fmt.Errorf("provider %q is not known: give its config.base_url, or name one of %s", name,
			names(Providers(), func(p Provider) string { return p.Name }))
	default:
		p = Provider{Name: name, Backend: "openai_compat", Native: s.Backend == "anthropic" || s.Backend == "gemini"}
	}
	if s.Backend == "" {
		s.Backend = p.Backend
	}
	if s.BaseURL == "" {
		s.BaseURL = p.BaseURL
	}
	if s.Key == "" && p.KeyEnv != "" {
		s.Key = s.env(p.KeyEnv)
	}
	if moved := s.BaseURL != p.BaseURL; moved && wire.Local(s.BaseURL) {
		p.KeyEnv = "" // a proxy on this machine may need none
	}
	return p, nil
}

func (s *Spec) env(name string) string {
	if s.Env == nil {
		return ""
	}
	return s.Env(name)
}

// format returns how the model writes calls in its text.
func (s *Spec) format() (asks, reads *parse.Format, err error) {
	if s.Format == "" {
		asks, reads = parse.ForModel(s.Model)
		return asks, reads, nil
	}
	f := parse.ByName(s.Format)
	if f == nil {
		return nil, nil, fmt.Errorf("config.format: there is no format %q; helve parse --help lists them", s.Format)
	}
	return f, f, nil
}

func names[T any](all []T, name func(T) string) string {
	var out []string
	for _, v := range all {
		out = append(out, name(v))
	}
	return strings.Join(out, ", ")
}
