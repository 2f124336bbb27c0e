package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/helve-ai/helve/root"
)

// A Folder is a skill on disk that is served. What is served of it is what a
// root lets be read: nothing hidden, ignored or blocked, and nothing to which
// a link leads. It is safe for concurrent use.
type Folder struct {
	Command string // by which the app knows it
	Name    string // in its front matter

	root *root.Root
	rel  string // in root

	mu   sync.Mutex
	sums map[string]sum // of files, by their paths
}

// A sum is the digest of a file as long as its stamp stays the same.
type sum struct {
	stamp  root.Stamp
	size   int64
	digest string
}

// NewFolder returns the skill that lies at rel in a root. Its name must be one
// that skills may have (see Named).
func NewFolder(command, name string, r *root.Root, rel string) *Folder {
	return &Folder{Command: command, Name: name, root: r, rel: rel, sums: map[string]sum{}}
}

// Root returns the address of the folder. Commands differ, so addresses do.
func (f *Folder) Root() string {
	if f.Command == f.Name {
		return "skill://" + f.Name
	}
	return "skill://" + f.Command + "/" + f.Name
}

// URI returns the address of the skill's SKILL.md.
func (f *Folder) URI() string { return f.Root() + "/" + File }

// uri returns the address of a file.
func (f *Folder) uri(file string) string {
	parts := strings.Split(file, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return f.Root() + "/" + strings.Join(parts, "/")
}

// Path returns the path of the file that an address names, from the folder;
// not ok: it names none here.
func (f *Folder) Path(uri string) (file string, ok bool) {
	rest, ok := strings.CutPrefix(uri, f.Root()+"/")
	if !ok {
		return "", false
	}
	file, err := url.PathUnescape(rest)
	return file, err == nil && f.uri(file) == uri
}

// maxVisited bounds how much is looked at in the folder of a skill.
const maxVisited = 5_000

// Entry returns the skill as it is listed, all of its files looked at. The
// error says why it cannot be served.
func (f *Folder) Entry(ctx context.Context) (*Entry, error) {
	text, err := f.Read(File)
	if err != nil {
		return nil, err
	}
	front, _, err := Split(text)
	if err != nil {
		return nil, fmt.Errorf("its %s %w", File, err)
	}
	e := &Entry{URI: f.URI(), Frontmatter: front, Files: []Resource{}}
	var size int64
	if err := f.walk(ctx, func(file string, at root.Entry) error {
		if size += at.Size; len(e.Files) == MaxFiles || size > MaxSize {
			return fmt.Errorf("it has more than %d files, or more than %d MiB", MaxFiles, MaxSize>>20)
		}
		s, err := f.sum(file, at)
		if err == nil {
			e.Files = append(e.Files, Resource{f.uri(file), s.digest, s.size})
		}
		return err
	}); err != nil {
		return nil, err
	}
	raw, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return Parse(raw) // by the same rules as those of others
}

// walk visits the files that are served, in the order of their paths.
func (f *Folder) walk(ctx context.Context, visit func(file string, at root.Entry) error) error {
	return f.root.Walk(ctx, f.rel, root.WalkOptions{Limit: maxVisited, Stat: true}, func(at root.Entry) error {
		switch {
		case at.Err != nil:
			return at.Err
		case strings.HasPrefix(at.Name, ".") && at.Mode.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(at.Name, "."), !at.Mode.IsRegular():
			return nil
		}
		file := at.Rel
		if f.rel != "." {
			file = strings.TrimPrefix(at.Rel, f.rel+"/")
		}
		return visit(file, at)
	})
}

// sum returns the digest of a file, which is read only if it may have changed.
func (f *Folder) sum(file string, at root.Entry) (sum, error) {
	f.mu.Lock()
	known, ok := f.sums[file]
	f.mu.Unlock()
	if ok && known.stamp == at.Stamp && known.size == at.Size {
		return known, nil
	}
	data, err := f.Read(file)
	if err != nil {
		return sum{}, err
	}
	s := sum{at.Stamp, int64(len(data)), Digest(data)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sums) > 2*MaxFiles { // of files that are gone
		clear(f.sums)
	}
	f.sums[file] = s
	return s, nil
}

// ErrNoFile is why a file cannot be read that is none of the skill's.
var ErrNoFile = errors.New("is no file of the skill")

// Read returns a file of the folder, by its path. It follows no link.
func (f *Folder) Read(file string) ([]byte, error) {
	if !fs.ValidPath(file) || file == "." || strings.HasPrefix(file, ".") || strings.Contains(file, "/.") || !utf8.ValidString(file) {
		return nil, fmt.Errorf("%.200q %w", file, ErrNoFile)
	}
	p, err := f.root.At(path.Join(f.rel, file), root.ToRead)
	switch {
	case err == nil && (!p.Exists || !p.Mode.IsRegular()):
		return nil, fmt.Errorf("%.200q %w", file, ErrNoFile)
	case err != nil && root.CodeOf(err) != 0:
		return nil, fmt.Errorf("%.200q %w: %w", file, ErrNoFile, err)
	case err != nil:
		return nil, err
	}
	return f.root.ReadFile(p, MaxSize)
}

// A Child is what lies in a folder of a skill.
type Child struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
	MIME string `json:"mimeType"`
}

// dirMIME is the type of folders.
const dirMIME = "inode/directory"

// Children returns what lies in the folder at dir, by the files that the entry
// lists; not ok: there is no such folder.
func (e *Entry) Children(dir string) (all []Child, ok bool) {
	seen := map[string]bool{}
	for _, f := range e.Files {
		rest, in := strings.CutPrefix(f.URI, dir+"/")
		if !in || !e.Within(dir) {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		c := Child{URI: dir + "/" + first, Name: first, MIME: MIME(first)}
		if name, err := url.PathUnescape(first); err == nil {
			c.Name = name
		}
		if deeper {
			c.MIME = dirMIME
		}
		all = append(all, c)
	}
	return all, len(all) > 0
}

var types = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html", ".css": "text/css", ".xml": "text/xml",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".js": "text/javascript", ".py": "text/x-python",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".svg": "image/svg+xml", ".webp": "image/webp", ".pdf": "application/pdf",
}

// MIME returns the type of a file by its name, the same on every system.
func MIME(file string) string {
	if t := types[strings.ToLower(path.Ext(file))]; t != "" {
		return t
	}
	return "application/octet-stream"
}
