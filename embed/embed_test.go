package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/helve-ai/helve/embed/embedtest"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/store/mem"
)

// A fake is an endpoint that gives a text of n bytes the vector (3n, 4n).
type fake struct {
	asked [][]string
	heard []http.Header
	body  []map[string]any
	dims  int
	fail  func(request int) (status int, body string, header http.Header)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var req struct{ Input []string }
	var body map[string]any
	if json.Unmarshal(data, &req) != nil || json.Unmarshal(data, &body) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	f.asked, f.heard, f.body = append(f.asked, req.Input), append(f.heard, r.Header), append(f.body, body)
	if f.fail != nil {
		if status, text, header := f.fail(len(f.asked)); status != 0 {
			for k := range header {
				w.Header().Set(k, header.Get(k))
			}
			w.WriteHeader(status)
			io.WriteString(w, text)
			return
		}
	}
	var openAI []map[string]any
	var ollama [][]float64
	for i, text := range req.Input {
		v := []float64{3 * float64(len(text)), 4 * float64(len(text))}
		for len(v) < f.dims {
			v = append(v, 0)
		}
		ollama = append(ollama, v)
		openAI = append([]map[string]any{{"index": i, "embedding": v}}, openAI...) // in another order
	}
	switch r.URL.Path {
	case "/v1/embeddings":
		json.NewEncoder(w).Encode(map[string]any{"data": openAI})
	case "/api/embed":
		json.NewEncoder(w).Encode(map[string]any{"embeddings": ollama})
	default:
		http.NotFound(w, r)
	}
}

// carried is a client whose requests go to h without a network.
func carried(h http.Handler) *http.Client {
	return &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	})}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func source(t *testing.T, d Endpoint) Source {
	t.Helper()
	s, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEndpoints(t *testing.T) {
	for api, base := range map[string]string{OpenAI: "https://models.test/v1", Ollama: "http://models.test:11434/"} {
		t.Run(api, func(t *testing.T) {
			f := &fake{}
			s := source(t, Endpoint{BaseURL: base, Model: "m", API: api, APIKey: "k-123", Batch: 2, Client: carried(f)})
			got, err := s.Embed(t.Context(), []string{"a", "bb", "ccc"})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 3 || got[0][0] != float32(.6) || got[2][1] != float32(.8) {
				t.Errorf("%v", got)
			}
			if want := [][]string{{"a", "bb"}, {"ccc"}}; fmt.Sprint(f.asked) != fmt.Sprint(want) {
				t.Errorf("asked %v, want %v", f.asked, want)
			}
			if f.heard[0].Get("Authorization") != "Bearer k-123" || f.body[0]["model"] != "m" {
				t.Errorf("%v %v", f.heard[0], f.body[0])
			}
		})
	}
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fail: func(n int) (int, string, http.Header) {
			if n <= 2 {
				return http.StatusTooManyRequests, "slowly", http.Header{"Retry-After": {"3"}}
			}
			return 0, "", nil
		}}
		s := source(t, Endpoint{BaseURL: "https://models.test/v1", Model: "m", Client: carried(f)})
		began := time.Now()
		if _, err := s.Embed(t.Context(), []string{"a"}); err != nil || time.Since(began) != 6*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		f.asked, f.fail = nil, func(int) (int, string, http.Header) { return 503, "down", nil }
		began = time.Now()
		if _, err := s.Embed(t.Context(), []string{"a"}); err == nil || len(f.asked) != 3 || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%d requests, after %v: %v", len(f.asked), time.Since(began), err)
		}
		f.asked = nil
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began = time.Now()
		if _, err := s.Embed(ctx, []string{"a"}); err == nil || len(f.asked) != 1 || time.Since(began) != 100*time.Millisecond {
			t.Errorf("%d requests, after %v: %v", len(f.asked), time.Since(began), err)
		}
	})
}

// A request that is not answered in time is given up.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		s := source(t, Endpoint{BaseURL: "https://models.test/v1", Model: "m", Timeout: time.Second, Retries: -1, Client: silent})
		began := time.Now()
		if _, err := s.Embed(t.Context(), []string{"a"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestBadAnswers(t *testing.T) {
	for want, c := range map[string]struct {
		d      Endpoint
		status int
		body   string
	}{
		"401":                              {Endpoint{APIKey: "k-123"}, 401, "the key k-123 is wrong"},
		"is not one of embeddings":         {Endpoint{}, 200, "<html>"},
		"0 components":                     {Endpoint{}, 200, `{"data":[{"index":0,"embedding":[]}]}`},
		"an embedding of text 7 of 1":      {Endpoint{}, 200, `{"data":[{"index":7,"embedding":[1]}]}`},
		"has 2 components, want 3":         {Endpoint{Dims: 3}, 200, `{"data":[{"index":0,"embedding":[1,2]}]}`},
		"has 2 embeddings of 1 texts":      {Endpoint{API: Ollama}, 200, `{"embeddings":[[1],[2]]}`},
		"embeddings of https://models.tes": {Endpoint{}, 404, "no such model"},
	} {
		f := &fake{fail: func(int) (int, string, http.Header) { return c.status, c.body, nil }}
		c.d.BaseURL, c.d.Model, c.d.Client = "https://models.test/v1", "m", carried(f)
		_, err := source(t, c.d).Embed(t.Context(), []string{"a"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "k-123") {
			t.Errorf("%v, want %q", err, want)
		}
		if len(f.asked) != 1 {
			t.Errorf("%s: asked %d times", want, len(f.asked))
		}
	}
	// Vectors of another length than the first ones are refused.
	f := &fake{}
	s := source(t, Endpoint{BaseURL: "https://models.test/v1", Model: "m", Client: carried(f)})
	if _, err := s.Embed(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	f.dims = 5
	if _, err := s.Embed(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "has 5 components, want 2") {
		t.Error(err)
	}
}

func TestBadEndpoints(t *testing.T) {
	for want, d := range map[string]Endpoint{
		"want an address": {BaseURL: "models.test/v1", Model: "m"},
		"ftp://":          {BaseURL: "ftp://models.test", Model: "m"},
		"a password":      {BaseURL: "https://me:pw@models.test", Model: "m"},
		"is not named":    {BaseURL: "https://models.test"},
		"want openai or":  {BaseURL: "https://models.test", Model: "m", API: "cohere"},
	} {
		if _, err := New(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// counted counts the texts that reach a source.
type counted struct {
	Source
	texts []string
	id    string
}

func (c *counted) ID(context.Context) (string, error) { return c.id, nil }

func (c *counted) Embed(_ context.Context, texts []string) ([][]float32, error) {
	c.texts = append(c.texts, texts...)
	var out [][]float32
	for _, t := range texts {
		out = append(out, []float32{float32(len(t)), -.1, math.SmallestNonzeroFloat32})
	}
	return out, nil
}

func (c *counted) Close() error { return nil }

func TestNothingTwice(t *testing.T) {
	s := new(mem.Store)
	src := &counted{id: "one"}
	texts := []string{"a", "bb", "ccc"}
	first, err := Cached(src, s).Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Cached(src, s).Embed(t.Context(), append([]string{"new"}, texts...)) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "bb", "ccc", "new"}; !slices.Equal(src.texts, want) {
		t.Errorf("computed %q, want %q", src.texts, want)
	}
	for i := range first {
		if !slices.Equal(first[i], again[i+1]) {
			t.Errorf("%v, then %v", first[i], again[i+1])
		}
	}
	src.id, src.texts = "another", nil
	if _, err := Cached(src, s).Embed(t.Context(), texts); err != nil || len(src.texts) != 3 {
		t.Errorf("of another model %q were computed (%v)", src.texts, err)
	}
}

// broken is a store that keeps nothing and reads nothing.
type broken struct{ store.Store }

var errBroken = errors.New("broken")

func (broken) View(context.Context, func(store.Reader) error) error   { return errBroken }
func (broken) Update(context.Context, func(store.Writer) error) error { return errBroken }

func TestWithoutStore(t *testing.T) {
	src := &counted{id: "one"}
	c := Cached(src, broken{})
	for range 2 {
		if out, err := c.Embed(t.Context(), []string{"a"}); err != nil || len(out) != 1 || out[0][0] != 1 {
			t.Error(out, err)
		}
	}
	if len(src.texts) != 2 {
		t.Error(src.texts)
	}
}

func TestPrune(t *testing.T) {
	s := new(mem.Store)
	src := &counted{id: "one"}
	c := Cached(src, s)
	var old []string
	for i := range 1100 {
		old = append(old, fmt.Sprint("old ", i))
	}
	if _, err := c.Embed(t.Context(), append(slices.Clone(old), "new")); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		s.View(t.Context(), func(r store.Reader) error {
			n = 0
			for range r.Scan(cacheBucket, "") {
				n++
			}
			return nil
		})
		return n
	}
	if err := c.Prune(t.Context(), old); err != nil || count() != 1101 {
		t.Errorf("%d are left (%v), though few were old", count(), err)
	}
	if err := c.Prune(t.Context(), []string{"new"}); err != nil || count() != 1 {
		t.Errorf("%d are left (%v), want the new one", count(), err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	s := Folder(dir)
	if _, err := s.Embed(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := embedtest.Write(dir, embedtest.Model{Words: [][]string{{"delete", "erase"}, {"send"}}}); err != nil {
		t.Fatal(err)
	}
	s = Folder(dir)
	defer s.Close()
	v, err := s.Embed(t.Context(), []string{"delete", "erase", "send"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v[0], v[1]) || slices.Equal(v[0], v[2]) {
		t.Error("words of one group have other vectors, or all have the same")
	}
	if id, err := s.ID(t.Context()); err != nil || !strings.HasPrefix(id, "folder ") {
		t.Error(id, err)
	}
}
