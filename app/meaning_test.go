package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/modules/std"
)

// An endpoint counts the texts that it is asked for, by the key that it is asked with.
type endpoint struct {
	*httptest.Server
	mu    sync.Mutex
	texts []string
	keys  map[string]bool
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{keys: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		json.NewDecoder(r.Body).Decode(&req)
		e.mu.Lock()
		e.texts, e.keys[r.Header.Get("Authorization")] = append(e.texts, req.Input...), true
		e.mu.Unlock()
		var data []map[string]any
		for i, text := range req.Input {
			data = append(data, map[string]any{"index": i, "embedding": []int{1, len(text) % 7, len(text) % 11}})
		}
		json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.texts)
}

// A restart gives no tool a vector twice.
func TestVectorsOutliveTheApp(t *testing.T) {
	e := newEndpoint(t)
	dir, state := t.TempDir(), t.TempDir()
	open := func(inspect bool) *app.App {
		t.Helper()
		cfg := parse(t, `tools: {search: {embeddings: {base_url: "`+e.URL+`/v1", model: m, api_key: "{{secret.EMBED}}"}}}`)
		a, err := app.Open(t.Context(), app.Options{Config: cfg, Modules: std.Modules(), Root: dir, State: state, Inspect: inspect,
			Secret: func(name string) (string, error) { return "k-" + name, nil }})
		if err != nil {
			t.Fatal(err)
		}
		a.WaitVectors(t.Context())
		if a.Vectors() != a.Tools().Len() {
			t.Errorf("%d tools, %d vectors", a.Tools().Len(), a.Vectors())
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		return a
	}
	a := open(false)
	first := e.count()
	if first < 10 || first > a.Tools().Len() || len(e.keys) != 1 || !e.keys["Bearer k-EMBED"] {
		t.Errorf("%d texts of %d tools, with %v", first, a.Tools().Len(), e.keys)
	}
	open(false)
	open(true) // to be looked at: it reads what serving left
	if n := e.count(); n != first {
		t.Errorf("%d texts were asked for again", n-first)
	}
}

// A model that cannot be used takes nothing down: tools are found by words.
func TestModelThatIsNotThere(t *testing.T) {
	for model, want := range map[string]string{"./none": "config.json", "owner/name": "helve model pull owner/name fetches it", "nonsense": "names no model"} {
		cfg := parse(t, `tools: {search: {model: "`+model+`"}}`)
		a, err := app.Open(t.Context(), app.Options{Config: cfg, File: filepath.Join(t.TempDir(), "app.yaml"), Modules: std.Modules(), Root: t.TempDir(), State: t.TempDir(), Models: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		a.WaitVectors(t.Context())
		if _, err := a.Model().Try(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", model, err, want)
		}
		if a.Vectors() != 0 {
			t.Errorf("%s: %d vectors", model, a.Vectors())
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
