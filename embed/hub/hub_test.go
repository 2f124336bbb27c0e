package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helve-ai/helve/embed/embedtest"
	"github.com/helve-ai/helve/embed/encoder"
)

// A server answers as Hugging Face does, for one model.
type server struct {
	*httptest.Server
	files  map[string][]byte
	commit string

	mu     sync.Mutex
	asked  []string // path and range
	breaks map[string]int
	lie    map[string]string // what is said to be the digest of a file
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func serve(t *testing.T, files map[string][]byte) *server {
	s := &server{files: files, commit: commit, breaks: map[string]int{}, lie: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	s.mu.Unlock()
	if r.URL.Path == "/api/models/owner/model/revision/main" && r.URL.Query().Get("blobs") == "true" {
		s.describe(w)
		return
	}
	if to, ok := strings.CutPrefix(r.URL.Path, "/owner/model/resolve/"+commit+"/"); ok {
		http.Redirect(w, r, "/cdn/"+to, http.StatusFound)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/cdn/")
	data, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	stop := s.breaks[name]
	delete(s.breaks, name)
	s.mu.Unlock()
	if stop > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:stop])
		return // the connection ends early
	}
	http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(string(data)))
}

func (s *server) describe(w io.Writer) {
	var siblings []map[string]any
	for name, data := range s.files {
		f := map[string]any{"rfilename": name, "size": len(data), "blobId": fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))}
		if strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".onnx") {
			sum := fmt.Sprintf("%x", sha256.Sum256(data))
			if s.lie[name] != "" {
				sum = s.lie[name]
			}
			f["lfs"] = map[string]any{"sha256": sum, "size": len(data)}
		} else if s.lie[name] != "" {
			f["blobId"] = s.lie[name]
		}
		siblings = append(siblings, f)
	}
	json.NewEncoder(w).Encode(map[string]any{"sha": s.commit, "siblings": siblings})
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// modelFiles are those of a small model, and others that are not wanted.
func modelFiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	if err := embedtest.Write(dir, embedtest.Model{}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"README.md": []byte("read me"), "pytorch_model.bin": []byte("pickled")}
	for _, name := range []string{"config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

func TestPull(t *testing.T) {
	s, models := serve(t, modelFiles(t)), t.TempDir()
	last := map[string]int64{}
	p := Pull{Name: "owner/model", BaseURL: s.URL, Models: models, Progress: func(file string, done, size int64) { last[file] = size - done }}
	got, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Files) != 5 || got.Revision != commit || len(last) != 5 || last["model.safetensors"] != 0 {
		t.Errorf("%+v, progress %v", got, last)
	}
	for _, asked := range s.requests() {
		if strings.Contains(asked, "README") || strings.Contains(asked, "pytorch") {
			t.Errorf("%s was asked for", asked)
		}
	}
	dir, err := Find(models, "owner/model")
	if err != nil {
		t.Fatal(err)
	}
	e, err := encoder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if list, err := List(models); err != nil || len(list) != 1 || list[0].Name != "owner/model" || list[0].Dir != dir {
		t.Errorf("%v %v", list, err)
	}
	if err := got.Verify(dir); err != nil {
		t.Error(err)
	}
	// Once more: nothing but the description is asked for.
	if _, err := p.Run(t.Context()); err != nil || !slices.Equal(s.requests(), []string{"/api/models/owner/model/revision/main"}) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "modules.json"), []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := got.Verify(dir); err == nil || !strings.Contains(err.Error(), "modules.json") {
		t.Error(err)
	}
}

// What broke off goes on where it ended.
func TestPullResumes(t *testing.T) {
	s, models := serve(t, modelFiles(t)), t.TempDir()
	s.breaks["model.safetensors"] = 1000
	p := Pull{Name: "owner/model", BaseURL: s.URL, Models: models}
	if _, err := p.Run(t.Context()); err == nil {
		t.Fatal("a broken download was taken for whole")
	}
	if _, err := Find(models, "owner/model"); err == nil || !strings.Contains(err.Error(), "helve model pull owner/model fetches it") {
		t.Error(err)
	}
	s.requests()
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"/api/models/owner/model/revision/main", "/owner/model/resolve/" + commit + "/model.safetensors bytes=1000-", "/cdn/model.safetensors bytes=1000-"}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// A file that is not what the server says it is, is not kept.
func TestPullChecksDigests(t *testing.T) {
	for _, name := range []string{"model.safetensors", "tokenizer.json"} {
		s, models := serve(t, modelFiles(t)), t.TempDir()
		s.lie[name] = strings.Repeat("0", 40)
		_, err := Pull{Name: "owner/model", BaseURL: s.URL, Models: models}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "should be 0000") || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(models, "owner--model", name)); err == nil {
			t.Errorf("%s was kept", name)
		}
		if _, err := os.Stat(filepath.Join(models, "owner--model", name+".part")); err == nil {
			t.Errorf("part of %s was kept", name)
		}
	}
}

func TestPullRefusals(t *testing.T) {
	files := modelFiles(t)
	delete(files, "model.safetensors")
	s := serve(t, files)
	plain := serve(t, map[string][]byte{"config.json": nil})
	for want, p := range map[string]Pull{
		"names no model":           {Name: "../evil", BaseURL: s.URL},
		`"model" names no`:         {Name: "model", BaseURL: s.URL},
		"by https, or by http":     {Name: "owner/model", BaseURL: "http://models.example"},
		"in a form that is not":    {Name: "owner/model", BaseURL: s.URL},
		"no model that can be":     {Name: "owner/model", BaseURL: plain.URL},
		"404":                      {Name: "owner/other", BaseURL: s.URL},
		"the base URL":             {Name: "owner/model", BaseURL: "https://[::"},
		"ftp://models.example: mo": {Name: "owner/model", BaseURL: "ftp://models.example"},
	} {
		p.Models = t.TempDir()
		if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Pull{Name: "owner/model", BaseURL: s.URL, Models: t.TempDir()}).Run(ctx); err == nil {
		t.Error("it ran although its context had ended")
	}
}

func TestNoModels(t *testing.T) {
	if list, err := List(filepath.Join(t.TempDir(), "none")); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if err := CheckName(Default); err != nil {
		t.Error(err)
	}
}
