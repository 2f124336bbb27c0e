package root

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Root is an open folder and its rules. All methods may be called concurrently; after Close they fail.
type Root struct {
	dir    string // absolute, without links
	given  string // the same folder as it was named to Open, when that differs
	handle *os.Root
	base   *dir // the folder itself, held open
	proc   bool // the path of a descriptor can be asked for, and that of base is dir

	rules atomic.Pointer[rules]
	twins atomic.Pointer[twins]

	mu       sync.Mutex // guards blocks and protects, and is held while rules are read
	blocks   []string
	protects []string

	walking sync.Mutex // held while twins are looked for
}

// Access is what a caller is about to do with a path. There is no zero Access: an unstated one is refused.
type Access int

// The kinds of access.
const (
	ToList   Access = iota + 1 // name it, tell its size, list its entries
	ToRead                     // read its content
	ToWrite                    // create it or change its content
	ToDelete                   // remove or move it, with all that lies beneath
)

// String is the verb in lower case.
func (a Access) String() string {
	switch a {
	case ToList:
		return "list"
	case ToRead:
		return "read"
	case ToWrite:
		return "write"
	case ToDelete:
		return "delete"
	}
	return "unknown"
}

// Path is a place in a root that was judged.
type Path struct {
	Rel    string // from the root, separated by slashes, without links; "." is the root itself
	Abs    string // the same, absolute, in the form of the operating system
	Exists bool
	// Mode is that of what exists. For a missing path it is fs.ModeDir when the name ends in a slash, else zero.
	Mode fs.FileMode
}

// Open opens the folder dir, whose own links are resolved once. The rule files are read at the first use.
func Open(dir string) (*Root, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	if real, err = filepath.EvalSymlinks(real); err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	if info, err := os.Stat(real); err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("root %s: is not a folder; name the folder that calls may touch", dir)
	}
	if again, err := filepath.EvalSymlinks(given); err != nil || again != real {
		given = real
	}
	handle, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	r := &Root{dir: real, given: given, handle: handle}
	if err := r.openBase(); err != nil {
		handle.Close()
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	return r, nil
}

// Dir is the root's absolute path, without links.
func (r *Root) Dir() string { return r.dir }

// FS is the open folder. It confines to the root but knows no rules: it is for Helve's own files.
func (r *Root) FS() *os.Root { return r.handle }

// Close releases the folder.
func (r *Root) Close() error {
	err := r.base.close()
	if other := r.handle.Close(); err == nil {
		err = other
	}
	return err
}

// Protect makes further paths readable but never writable, with all that lies beneath them, such as the app file.
// Paths that are relative count from the root; those outside the root are out of reach anyway and are left out.
// A link is protected at its own place and at its target's.
func (r *Root) Protect(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		r.protects = append(r.protects, r.places(p)...)
	}
	r.rules.Store(nil)
}

// Block hides further paths, with all that lies beneath them, such as a state folder that is not at its usual place.
// It takes paths as Protect does.
func (r *Root) Block(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		r.blocks = append(r.blocks, r.places(p)...)
	}
	r.rules.Store(nil)
}

// places lists the places in the root that a path stands for: where it is written, and where it leads.
func (r *Root) places(path string) []string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	var places []string
	add := func(p string) {
		for _, base := range [...]string{r.dir, r.given} {
			rel, err := filepath.Rel(base, p)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			places = append(places, filepath.ToSlash(rel))
			return
		}
	}
	add(filepath.Clean(path))
	add(realPath(path))
	return places
}

// realPath resolves the links of the part of path that exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(realPath(parent), filepath.Base(path))
}

// Visible reports whether rel, a path such as Resolve and Walk return, may be listed or returned by a search.
func (r *Root) Visible(rel string, isDir bool) bool {
	rel = clean(rel)
	if rel != "" && !fs.ValidPath(rel) {
		return false
	}
	for component := range strings.SplitSeq(rel, "/") {
		if !addressable(component) {
			return false
		}
	}
	rules := r.current()
	return rules.err == nil && rules.blocked(rel, isDir) == ""
}

// clean is the inner form of a rel, in which the root itself is "".
func clean(rel string) string {
	if rel == "." {
		return ""
	}
	return rel
}

// abs is the absolute form of an inner rel.
func (r *Root) abs(rel string) string {
	if rel == "" {
		return r.dir
	}
	if os.PathSeparator == '/' {
		if r.dir == "/" {
			return "/" + rel
		}
		return r.dir + "/" + rel
	}
	return filepath.Join(r.dir, filepath.FromSlash(rel))
}
