// Package hub fetches sentence models from Hugging Face, or from a mirror that
// answers as it does, when somebody asks for one.
package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Default is the model that is fetched where none is named: 50 languages, 384
// dimensions.
const Default = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"

// DefaultURL is where models are fetched from.
const DefaultURL = "https://huggingface.co"

// manifestName is the file that is written when a model is whole.
const manifestName = "helve-model.json"

// A Manifest says what was fetched, and from where.
type Manifest struct {
	Name     string          `json:"name"`
	Revision string          `json:"revision"` // the commit
	From     string          `json:"from"`     // the base URL
	Files    map[string]File `json:"files"`    // by name, with slashes
}

// A File is one that was fetched.
type File struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// nameForm is what a model may be called: its owner, a slash, its name.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
})

// CheckName reports whether a model may have the name.
func CheckName(name string) error {
	if !nameForm().MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%q names no model; names are like %s", name, Default)
	}
	return nil
}

// folderOf returns where a model of that name lies.
func folderOf(models, name string) string {
	return filepath.Join(models, strings.ReplaceAll(name, "/", "--"))
}

// Find returns the folder of a model that was fetched into the folder models.
func Find(models, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	dir := folderOf(models, name)
	if _, err := ReadManifest(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the model %s is not in %s; helve model pull %s fetches it", name, models, name)
		}
		return "", err
	}
	return dir, nil
}

// ReadManifest reads what is said of the model in a folder.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &m, nil
}

// A Fetched is a model that lies in the folder of models.
type Fetched struct {
	Manifest
	Dir string
}

// List returns the models in a folder, in the order of their names. Without
// the folder there are none.
func List(models string) ([]Fetched, error) {
	entries, err := os.ReadDir(models)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []Fetched
	for _, e := range entries {
		dir := filepath.Join(models, e.Name())
		m, err := ReadManifest(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Fetched{*m, dir})
	}
	slices.SortFunc(out, func(a, b Fetched) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Verify reads the files of a folder again, and reports the first that is not
// as it was fetched.
func (m *Manifest) Verify(dir string) error {
	for name, want := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%s: %q lies outside the folder", filepath.Join(dir, manifestName), name)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		got, err := digest(path)
		if err != nil {
			return err
		}
		if got.SHA256 != want.SHA256 {
			return fmt.Errorf("%s: its sha256 is %s, and was %s when it was fetched", path, got.SHA256, want.SHA256)
		}
	}
	return nil
}
