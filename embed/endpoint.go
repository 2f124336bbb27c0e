package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/helve-ai/helve/vector"
)

// The protocols of endpoints.
const (
	OpenAI = "openai" // POST BASE/embeddings
	Ollama = "ollama" // POST BASE/api/embed
)

// Defaults of an Endpoint.
const (
	DefaultBatch   = 64
	DefaultTimeout = 30 * time.Second
	DefaultRetries = 2
)

// An Endpoint describes a model that is reached over HTTP. Its zero values,
// but for BaseURL and Model, are good.
type Endpoint struct {
	BaseURL string // what stands before /embeddings or /api/embed
	Model   string
	API     string        // OpenAI or Ollama; "": OpenAI
	APIKey  string        // sent as a bearer token; "": none. No error shows it.
	Dims    int           // the length that vectors must have, which OpenAI's protocol asks for; zero: the first answer's
	Batch   int           // texts of a request; zero: DefaultBatch
	Timeout time.Duration // of a request; zero: DefaultTimeout
	Retries int           // how often a request is made again that was not answered, or with 429 or 5xx; zero: DefaultRetries; below zero: never
	Client  *http.Client  // nil: http.DefaultClient
}

type endpoint struct {
	Endpoint
	url  string
	dims atomic.Int64 // zero: not known yet
}

// New returns the model that d describes, or an error if d describes none.
// Nothing is sent until texts are.
func New(d Endpoint) (Source, error) {
	u, err := url.Parse(d.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base_url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("base_url %q: want an address such as https://api.example.com/v1", u.Redacted())
	case u.User != nil:
		return nil, errors.New("base_url holds a password; give it as api_key")
	case d.Model == "":
		return nil, errors.New("model: the endpoint's model is not named")
	}
	path := map[string]string{"": "embeddings", OpenAI: "embeddings", Ollama: "api/embed"}[d.API]
	if path == "" {
		return nil, fmt.Errorf("api %q: want openai or ollama", d.API)
	}
	d.Batch, d.Timeout = or(d.Batch, DefaultBatch), or(d.Timeout, DefaultTimeout)
	d.Retries = max(or(d.Retries, DefaultRetries), 0)
	d.Client = or(d.Client, http.DefaultClient)
	e := &endpoint{Endpoint: d, url: u.JoinPath(path).String()}
	e.dims.Store(int64(d.Dims))
	return e, nil
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (e *endpoint) ID(context.Context) (string, error) {
	return fmt.Sprintf("%s %s %d", e.url, e.Model, e.Dims), nil
}

func (e *endpoint) Close() error {
	e.Client.CloseIdleConnections()
	return nil
}

func (e *endpoint) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(e.Batch, len(texts))
		vectors, err := e.patiently(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("embeddings of %s: %w", e.url, err)
		}
		out, texts = append(out, vectors...), texts[n:]
	}
	return out, nil
}

// A passing error may not come again.
type passing struct {
	error
	after time.Duration // how long to wait; zero: nobody said
}

func (p passing) Unwrap() error { return p.error }

// Waits between requests.
const (
	firstWait = 500 * time.Millisecond
	maxWait   = 10 * time.Second
)

// patiently asks again where that may help.
func (e *endpoint) patiently(ctx context.Context, texts []string) ([][]float32, error) {
	wait := firstWait
	for again := 0; ; again++ {
		vectors, err := e.ask(ctx, texts)
		var p passing
		if err == nil || ctx.Err() != nil || again >= e.Retries || !errors.As(err, &p) {
			return vectors, err
		}
		timer := time.NewTimer(min(max(wait, p.after), maxWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
		wait *= 2
	}
}

// request is the body of both protocols.
type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format,omitempty"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// answer is that of both protocols.
type answer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
	Embeddings [][]float32 `json:"embeddings"`
}

// perText bounds an answer: bytes for each text that was sent.
const perText = 1 << 20

func (e *endpoint) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body := request{Model: e.Model, Input: texts}
	if e.API != Ollama {
		body.Format, body.Dimensions = "float", e.Dims
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+e.APIKey)
	}
	resp, err := e.Client.Do(req)
	if err != nil {
		return nil, passing{error: e.conceal(err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(len(texts)*perText)))
	if err != nil {
		return nil, passing{error: e.conceal(err)}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, e.refused(resp, text)
	}
	return e.read(text, len(texts))
}

// refused returns the error of an answer that is none.
func (e *endpoint) refused(resp *http.Response, text []byte) error {
	said := strings.ToValidUTF8(string(text[:min(len(text), 300)]), "")
	err := e.conceal(fmt.Errorf("%s: %s", resp.Status, strings.Join(strings.Fields(said), " ")))
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return passing{err, time.Duration(max(seconds, 0)) * time.Second}
}

// conceal takes the key out of an error: services quote what they were sent.
func (e *endpoint) conceal(err error) error {
	if e.APIKey == "" || !strings.Contains(err.Error(), e.APIKey) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), e.APIKey, "…"))
}

func (e *endpoint) read(text []byte, n int) ([][]float32, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("the answer is not one of embeddings: %w", err)
	}
	out := a.Embeddings
	if e.API != Ollama {
		out = make([][]float32, n)
		for _, d := range a.Data {
			if d.Index < 0 || d.Index >= n {
				return nil, fmt.Errorf("the answer has an embedding of text %d of %d", d.Index, n)
			}
			out[d.Index] = d.Embedding
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("the answer has %d embeddings of %d texts", len(out), n)
	}
	for i, v := range out {
		if err := e.check(v); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		vector.Normalize(v)
	}
	return out, nil
}

// check holds vectors to one length: that of the first, unless another was asked for.
func (e *endpoint) check(v []float32) error {
	if len(v) == 0 || len(v) > vector.MaxDims {
		return fmt.Errorf("the embedding has %d components", len(v))
	}
	e.dims.CompareAndSwap(0, int64(len(v)))
	if want := e.dims.Load(); int64(len(v)) != want {
		return fmt.Errorf("the embedding has %d components, want %d", len(v), want)
	}
	return nil
}
