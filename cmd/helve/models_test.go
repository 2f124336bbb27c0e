package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/helve-ai/helve/embed/embedtest"
)

// A found tool is one that helve tools search prints.
type found struct {
	Name  string
	Score float64
	Why   string
}

func searched(t *testing.T, out string) []found {
	t.Helper()
	var rows []found
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return rows
}

var word = regexp.MustCompile(`[A-Za-z0-9]+`)

// meant returns a tool's name and description, and the same in words that no
// tool contains; and the model that takes each word and its other for the same.
func meant(t *testing.T, name string) (foreign string, model embedtest.Model) {
	t.Helper()
	var tool struct{ Name, Description string }
	if err := json.Unmarshal([]byte(must(t, t.TempDir(), "tools", "get", name, "--json", "--store", "memory")), &tool); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{}
	foreign = word.ReplaceAllStringFunc(strings.ReplaceAll(tool.Name, ".", " ")+". "+tool.Description, func(w string) string {
		w = strings.ToLower(w)
		if other[w] == "" {
			other[w] = "zq" + strings.Repeat("x", len(other)%9) + string(rune('a'+len(other)/9)) + "vk"
			model.Words = append(model.Words, []string{w, other[w]})
		}
		return other[w]
	})
	model.Vocabulary, model.Positions, model.Format = 1000, 256, "onnx"
	return foreign, model
}

// A tool is found by a model in a folder, by words that no tool contains.
func TestSearchByModel(t *testing.T) {
	foreign, m := meant(t, "filesystem.glob")
	dir := folder(t, "app.yaml", "app: {app_id: demo, name: Demo}\ntools: {search: {model: ./model, query_timeout: 30}}\n", "plain.yaml", "app: {app_id: plain, name: Plain}\n")
	if err := embedtest.Write(filepath.Join(dir, "model"), m); err != nil {
		t.Fatal(err)
	}
	rows := searched(t, must(t, dir, "tools", "search", foreign, "--app", "app.yaml", "--json", "--limit", "3"))
	if len(rows) == 0 || rows[0].Name != "filesystem.glob" || !strings.Contains(rows[0].Why, "meaning: ") {
		t.Errorf("%+v", rows)
	}
	for _, r := range searched(t, must(t, dir, "tools", "search", foreign, "--app", "plain.yaml", "--json")) {
		if r.Name == "filesystem.glob" && rows[0].Score <= r.Score {
			t.Errorf("without the model it is found as well: %+v", r)
		}
	}
	if out := must(t, dir, "tools", "search", foreign, "--app", "app.yaml", "--explain"); !strings.Contains(out, "alike, +") {
		t.Error(out)
	}
	if out := must(t, dir, "doctor", "--app", "app.yaml"); !regexp.MustCompile(`search +tools are found by their words, and by the model .*model, 24 dimensions`).MatchString(out) {
		t.Error(out)
	}
	if out := must(t, dir, "doctor", "--app", "plain.yaml"); !strings.Contains(out, "no model is named") || !strings.Contains(out, "helve model pull") {
		t.Error(out)
	}
	if out := must(t, dir, "model", "check", "model"); !strings.Contains(out, "model can be used: 24 dimensions, 256 tokens") {
		t.Error(out)
	}
	write(t, filepath.Join(dir, "set", "tools.jsonl"), `{"name":"files.glob","tool":"glob","server":"files","description":"Find files and folders whose paths match a pattern.","parameters":{"type":"object"}}
{"name":"mail.send","tool":"send","server":"mail","description":"Send an electronic letter.","parameters":{"type":"object"}}
`)
	write(t, filepath.Join(dir, "set", "queries.jsonl"), `{"id":"1","query":"`+foreign+`","relevant":["files.glob"],"lang":"xx"}`+"\n")
	for want, args := range map[string][]string{`"recall@1": 0`: nil, `"recall@1": 1`: {"--model", "model"}} {
		if out := must(t, dir, append([]string{"bench", "search", "--set", "set", "--json"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%v: %s, want %s", args, out, want)
		}
	}
	write(t, filepath.Join(dir, "model", "config.json"), `{"model_type": "gpt2"}`)
	out, _, code := run(t, dir, "", "doctor", "--app", "app.yaml")
	if code != 1 || !strings.Contains(out, `model_type "gpt2" is not known`) {
		t.Error(code, out)
	}
	out, errs, code := run(t, dir, "", "tools", "search", "glob", "--app", "app.yaml")
	if code != 0 || !strings.Contains(out, "filesystem.glob") || strings.Count(errs, "level=WARN") != 1 {
		t.Error(code, out, errs)
	}
	if _, errs, code := run(t, dir, "", "model", "check", "model"); code != 1 || !strings.Contains(errs, "gpt2") {
		t.Error(code, errs)
	}
}

// about is a vector of what a text is about: of globs, which it calls zqxvk as
// well, or of something else.
func about(text string) []float64 {
	v := make([]float64, 64)
	h := fnv.New32a()
	io.WriteString(h, text)
	v[1+h.Sum32()%63] = 1
	if strings.Contains(text, "zqxvk") || strings.HasPrefix(text, "filesystem glob") {
		v[0] = 10
	}
	return v
}

// A tool is found by an endpoint; while that is silent, by words, which is said
// once. A key that it quotes is not shown.
func TestSearchByEndpoint(t *testing.T) {
	var mu sync.Mutex
	mode := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		json.NewDecoder(r.Body).Decode(&req)
		mu.Lock()
		mode := mode
		mu.Unlock()
		switch {
		case mode == "refuses":
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		case mode == "silent" && strings.HasPrefix(req.Input[0], "query: "):
			<-r.Context().Done()
			return
		}
		var vectors [][]float64
		for _, text := range req.Input {
			vectors = append(vectors, about(text))
		}
		json.NewEncoder(w).Encode(map[string]any{"embeddings": vectors})
	}))
	defer s.Close()
	dir := folder(t, "app.yaml", fmt.Sprintf(`app: {app_id: demo, name: Demo}
tools:
  search:
    embeddings: {base_url: %q, model: m, api: ollama, api_key: "{{secret.EMBED_KEY}}"}
    query_prefix: "query: "
    query_timeout: 20
`, s.URL))
	look := func(query string) ([]found, string) {
		t.Helper()
		cmd := command(t.Context(), dir, "tools", "search", query, "--app", "app.yaml", "--json")
		cmd.Env = append(cmd.Env, "HELVE_SECRET_EMBED_KEY=k-98765")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err, errs.String())
		}
		if strings.Contains(errs.String(), "k-98765") {
			t.Errorf("the key is shown: %s", errs.String())
		}
		return searched(t, string(out)), errs.String()
	}
	set := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		mode = to
	}
	rows, errs := look("zqxvk")
	if len(rows) == 0 || rows[0].Name != "filesystem.glob" || !strings.Contains(rows[0].Why, "meaning: ") || errs != "" {
		t.Errorf("%+v %s", rows, errs)
	}
	write(t, filepath.Join(dir, "app.yaml"), strings.ReplaceAll(read(t, filepath.Join(dir, "app.yaml")), "query_timeout: 20", "query_timeout: 0.05"))
	for _, to := range []string{"silent", "refuses"} {
		set(to)
		rows, errs = look("filesystem.glob")
		if len(rows) == 0 || rows[0].Name != "filesystem.glob" || strings.Contains(rows[0].Why, "meaning") {
			t.Errorf("%s: %+v", to, rows)
		}
		if strings.Count(errs, "level=WARN") != 1 || !strings.Contains(errs, "tools are found by their words alone") {
			t.Errorf("%s: %s", to, errs)
		}
	}
}

// helve model pull fetches from a mirror what helve model list, check and
// search then use, and nothing else fetches anything.
func TestModelPull(t *testing.T) {
	from := t.TempDir()
	if err := embedtest.Write(from, embedtest.Model{}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		const commit = "0123456789abcdef0123456789abcdef01234567"
		if file, ok := strings.CutPrefix(r.URL.Path, "/some/model/resolve/"+commit+"/"); ok {
			http.ServeFile(w, r, filepath.Join(from, filepath.FromSlash(file)))
			return
		}
		var files []map[string]any
		filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
			if info, _ := d.Info(); err == nil && info.Mode().IsRegular() {
				name, _ := filepath.Rel(from, path)
				files = append(files, map[string]any{"rfilename": filepath.ToSlash(name), "size": info.Size()})
			}
			return nil
		})
		json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": files})
	}))
	defer s.Close()
	models := t.TempDir()
	dir := folder(t, "app.yaml", "app: {app_id: demo, name: Demo}\ntools: {search: {model: some/model}}\n")
	helve := func(args ...string) (string, error) {
		cmd := command(t.Context(), dir, args...)
		cmd.Env = append(cmd.Env, "HELVE_MODELS_DIR="+models)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := helve("doctor", "--app", "app.yaml"); err == nil || !strings.Contains(out, "helve model pull some/model fetches it") {
		t.Error(out)
	}
	if out, err := helve("model", "list"); err != nil || !strings.Contains(out, "There are no models in "+models) {
		t.Error(out, err)
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests before anybody asked for a model", asked.Load())
	}
	out, err := helve("model", "pull", "some/model", "--base-url", s.URL)
	if err != nil || !regexp.MustCompile(`sha256 +[0-9a-f]{64}  model\.safetensors`).MatchString(out) || !strings.Contains(out, "tools: {search: {model: some/model}}") {
		t.Error(out, err)
	}
	asked.Store(0)
	for want, args := range map[string][]string{
		"some/model\n":                       {"model", "list"},
		"its files are as they were fetched": {"model", "check", "some/model"},
		"by the model some/model, 24":        {"doctor", "--app", "app.yaml"},
		`"verified": true`:                   {"model", "check", "some/model", "--json"},
	} {
		if out, err := helve(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s %v", args, out, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests although nobody pulled", asked.Load())
	}
	write(t, filepath.Join(models, "some--model", "tokenizer.json"), "{}")
	if out, err := helve("model", "check", "some/model"); err == nil || !strings.Contains(out, "when it was fetched") {
		t.Error(out, err)
	}
	if out, err := helve("model", "pull", "some/model", "--base-url", "http://models.example"); err == nil || !strings.Contains(out, "by https, or by http from this machine") {
		t.Error(out, err)
	}
}
