package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/egress"
	"github.com/helve-ai/helve/embed"
	"github.com/helve-ai/helve/embed/hub"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/store"
)

// Embeddings are a model behind an endpoint.
type Embeddings struct {
	BaseURL    string `json:"base_url" minlen:"1" jsonschema:"what stands before /embeddings, or before /api/embed"`
	Model      string `json:"model" minlen:"1" jsonschema:"the model's name there"`
	API        string `json:"api,omitempty" enum:"openai,ollama" default:"\"openai\"" jsonschema:"the protocol: OpenAI's, which most speak, or Ollama's own"`
	APIKey     string `json:"api_key,omitempty" jsonschema:"the key, better {{secret.NAME}}"`
	Dimensions int    `json:"dimensions,omitempty" min:"1" max:"65536" jsonschema:"the length that vectors must have; the model's own if left out"`
	Batch      int    `json:"batch,omitempty" default:"64" min:"1" max:"2048" jsonschema:"texts of one request"`
	Timeout    int    `json:"timeout,omitempty" default:"30" min:"1" max:"600" jsonschema:"seconds that a request may take when tools are loaded"`
}

// checkModel checks what is said of the model of search.
func (l *loader) checkModel(root *node) {
	s := root.get("tools", "search")
	if s.get("model") != nil && s.get("embeddings") != nil {
		f := s.field("embeddings")
		l.fail(f.at, "tools.search.embeddings", "stands beside model", "keep one of the two")
	}
	e := s.get("embeddings")
	base, model := e.get("base_url"), e.get("model")
	if base.str() == "" || model.str() == "" || lateRef.MatchString(base.str()) {
		return // told by the schema
	}
	if _, err := embed.New(embed.Endpoint{BaseURL: base.text, Model: model.text}); err != nil {
		what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "base_url "), ": want")
		l.fail(base.at, "tools.search.embeddings.base_url", what+" is not the address of an endpoint", "write an address such as https://api.openai.com/v1 or http://127.0.0.1:11434")
	}
}

// A Model is what finds the app's tools by their meaning.
type Model struct {
	Name string // the folder or endpoint; "": there is none, and tools are found by their words alone
	Err  error  // why it cannot be used; tools are found by their words alone

	source embed.Source
}

// openSearch makes the index, and begins nothing that takes time: a model is
// loaded when the first tool is given a vector.
func (a *App) openSearch(context.Context) error {
	o := search.Options{Lexicon: a.Config.Lexicon()}
	a.model = a.Config.searchModel(a.opts.Models, a.opts.File, a.opts.Secret)
	switch {
	case a.model.Err != nil:
		a.log.Warn("the model of search cannot be used; tools are found by their words alone", "model", a.model.Name, "error", a.model.Err)
	case a.model.source == nil:
		a.log.Debug("search has no model; tools are found by their words alone")
	default:
		s := a.Config.Tools.Search
		cache := embed.Cached(a.model.source, store.Sub(a.manifestStore(), "search"))
		a.closers = append(a.closers, cache.Close)
		o.Meaning = search.Meaning{Embedder: cache, Queries: a.model.source, Log: a.log,
			Patience: time.Duration(s.QueryTimeout * float64(time.Second)), Query: s.QueryPrefix, Document: s.DocumentPrefix,
			Settled: a.pruning(cache)}
	}
	a.index = search.New(o)
	a.closers = append(a.closers, a.index.Close)
	return nil
}

// pruning returns what forgets the vectors of former tools, once: that reads
// all that are kept.
func (a *App) pruning(cache *embed.Cache) func(context.Context, []string) {
	var once sync.Once
	return func(ctx context.Context, texts []string) {
		once.Do(func() {
			if err := cache.Prune(ctx, texts); err != nil && ctx.Err() == nil {
				a.log.Debug("vectors of former tools stay in the store", "error", err)
			}
		})
	}
}

// Model tells by which model tools are found.
func (a *App) Model() Model { return a.model }

// Try asks the model for a vector, and returns its length.
func (m Model) Try(ctx context.Context) (int, error) {
	if m.Err != nil || m.source == nil {
		return 0, m.Err
	}
	out, err := m.source.Embed(ctx, []string{"a tool that reads a file"})
	if err != nil {
		return 0, err
	}
	return len(out[0]), nil
}

// Vectors returns how many tools the model has given vectors.
func (a *App) Vectors() int { return a.index.Vectors() }

// WaitVectors waits until all tools that are known have vectors, but not for
// ever, and not for a model that fails: the log tells of that.
func (a *App) WaitVectors(ctx context.Context) {
	patient, cancel := context.WithTimeout(ctx, vectorPatience)
	defer cancel()
	if err := a.index.WaitVectors(patient); errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		a.log.Warn("not all tools have vectors yet; they are found by their words alone", "vectors", a.index.Vectors(), "tools", a.Tools().Len())
	}
}

// vectorPatience is how long somebody waits who searches once.
const vectorPatience = time.Minute

// searchModel returns the model that the app file names. Paths are relative to
// file, names are those of folders in models.
func (c *Config) searchModel(models, file string, secret func(string) (string, error)) (m Model) {
	s := c.Tools.Search
	switch {
	case s.Embeddings != nil:
		m.Name = s.Embeddings.BaseURL
		m.source, m.Err = s.Embeddings.open(secret)
	case strings.HasPrefix(s.Model, ".") || filepath.IsAbs(s.Model):
		m.Name = s.Model
		if !filepath.IsAbs(m.Name) {
			m.Name = filepath.Join(filepath.Dir(file), filepath.FromSlash(m.Name))
		}
		m.source = embed.Folder(m.Name)
	case s.Model != "":
		m.Name = s.Model
		var dir string
		if models == "" {
			m.Err = errors.New("there is no folder for models")
		} else if dir, m.Err = hub.Find(models, s.Model); m.Err == nil {
			m.source = embed.Folder(dir)
		}
	}
	return m
}

func (e *Embeddings) open(secret func(string) (string, error)) (embed.Source, error) {
	key, err := expandSecrets(e.APIKey, secret)
	if err != nil {
		return nil, fmt.Errorf("tools.search.embeddings.api_key: %w", err)
	}
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("tools.search.embeddings.base_url: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	timeout := timeoutOr(e.Timeout, embed.DefaultTimeout)
	return embed.New(embed.Endpoint{BaseURL: e.BaseURL, Model: e.Model, API: e.API, APIKey: key, Dims: e.Dimensions, Batch: e.Batch, Timeout: timeout,
		Client: egress.Client(egress.Policy{AllowHosts: []string{net.JoinHostPort(u.Hostname(), port)}, Timeout: timeout, MaxBody: maxEmbeddings})})
}

// maxEmbeddings bounds an answer of embeddings, in bytes.
const maxEmbeddings = 256 << 20
