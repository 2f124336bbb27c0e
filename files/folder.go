// Package files reads, changes and searches the files of a folder in the words in which tools speak of them.
package files

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// The bounds of a Folder that states none.
const (
	DefaultMaxRead    = 10 << 20 // bytes
	DefaultMaxWrite   = 10 << 20
	DefaultMaxResults = 1000
)

// A Folder is the part of a root in which a family of tools works. It may be
// used concurrently, but not copied or changed once it is in use.
type Folder struct {
	Root *root.Root // nil: every call fails
	Base string     // the folder, from the root, from which names count; "": the root
	Noun string     // what the folder is called in messages; "": "the root folder"

	MaxRead, MaxWrite int64 // bytes of one file; zero: the defaults
	MaxResults        int   // of a listing or a search; zero: the default

	// Accept says whether a path may be used at all, beyond the root's own
	// rules. Listings and searches leave out what it does not accept. Nil
	// accepts everything. The path counts from the root.
	Accept func(rel string, access root.Access, isDir bool) error
	// Name, if not nil, refuses names before they are resolved.
	Name func(name string) error
}

// Resolve judges a name for an access. Its errors are fit to be read by a
// model; those of the root are in their chain.
func (f *Folder) Resolve(name string, access root.Access) (root.Path, error) {
	if f.Root == nil {
		return root.Path{}, tool.Errorf(tool.CodePermission, "this app has no root folder, so no file may be used")
	}
	if f.Name != nil {
		if err := f.Name(name); err != nil {
			return root.Path{}, err
		}
	}
	if f.Base != "" {
		name = f.Base + "/" + name
	}
	p, err := f.Root.Resolve(name, access)
	if err != nil {
		return root.Path{}, err
	}
	if f.Base != "" && p.Rel != f.Base && !strings.HasPrefix(p.Rel, f.Base+"/") {
		return root.Path{}, tool.Errorf(tool.CodePermission, "path %q: leads out of the folder %s", f.Show(name), f.Base)
	}
	if f.Accept != nil {
		if err := f.Accept(p.Rel, access, p.Mode.IsDir()); err != nil {
			return root.Path{}, err
		}
	}
	return p, nil
}

// Show returns the name by which callers know a path that counts from the root.
func (f *Folder) Show(rel string) string {
	switch {
	case f.Base == "":
		return rel
	case rel == f.Base:
		return "."
	}
	return strings.TrimPrefix(rel, f.Base+"/")
}

func (f *Folder) maxRead() int64  { return orInt64(f.MaxRead, DefaultMaxRead) }
func (f *Folder) maxWrite() int64 { return orInt64(f.MaxWrite, DefaultMaxWrite) }

func (f *Folder) limit(asked int) int {
	most := f.MaxResults
	if most <= 0 {
		most = DefaultMaxResults
	}
	if asked <= 0 {
		return most
	}
	return min(asked, most)
}

func orInt64(n, other int64) int64 {
	if n > 0 {
		return n
	}
	return other
}

// accepts reports whether an entry may be named in a listing or a search.
func (f *Folder) accepts(e root.Entry) bool {
	return f.Accept == nil || f.Accept(e.Rel, root.ToList, e.Mode.IsDir()) == nil
}

// File resolves a name that must be that of a file which exists.
func (f *Folder) File(ctx context.Context, name string, access root.Access) (root.Path, error) {
	p, err := f.Resolve(name, access)
	switch {
	case err != nil:
		return p, err
	case !p.Exists:
		return p, f.Missing(ctx, p)
	case p.Mode.IsDir():
		return p, tool.Errorf(tool.CodeRuntime, "%s is a folder, not a file; list it instead", f.Show(p.Rel))
	}
	return p, nil
}

// Find resolves a name that must be that of something which exists.
func (f *Folder) Find(ctx context.Context, name string) (root.Path, error) {
	p, err := f.Resolve(name, root.ToList)
	if err == nil && !p.Exists {
		err = f.Missing(ctx, p)
	}
	return p, err
}

// Lexical returns a name as it is written, relative and cleaned, without
// regard to links.
func (f *Folder) Lexical(name string) string {
	name = filepath.ToSlash(name)
	if rest, ok := strings.CutPrefix(name, filepath.ToSlash(f.Root.Dir())+"/"); ok {
		name = rest
	}
	return path.Clean(name)
}

// Missing returns the error about a path that does not exist. It names what
// does exist and is called alike.
func (f *Folder) Missing(ctx context.Context, p root.Path) error {
	dir := path.Dir(p.Rel)
	for dir != "." {
		if d, err := f.Root.Resolve(dir, root.ToList); err == nil && d.Exists {
			break
		}
		dir = path.Dir(dir)
	}
	what := fmt.Sprintf("%s does not exist", f.Show(p.Rel))
	next, _, deeper := strings.Cut(strings.TrimPrefix(p.Rel, prefix(dir)), "/")
	if deeper {
		what += fmt.Sprintf(": there is no folder %s", f.Show(path.Join(dir, next)))
	}
	if near := f.near(ctx, dir, next); len(near) > 0 {
		return tool.Errorf(tool.CodeRuntime, "%s; did you mean %s?", what, strings.Join(near, " or "))
	}
	return tool.Errorf(tool.CodeRuntime, "%s, nor anything called alike beside it", what)
}

// prefix returns what stands before the names of the entries of dir.
func prefix(dir string) string {
	if dir == "." {
		return ""
	}
	return dir + "/"
}

// near returns up to three entries of dir that are called alike.
func (f *Folder) near(ctx context.Context, dir, name string) []string {
	var names []string
	f.Root.Walk(ctx, dir, root.WalkOptions{Depth: 1, Limit: 10_000}, func(e root.Entry) error {
		if f.accepts(e) {
			names = append(names, e.Name)
		}
		return nil
	})
	near := schema.Closest(name, names, 3)
	for i, n := range near {
		near[i] = f.Show(prefix(dir) + n)
	}
	return near
}

// locks serialise the changes to a file: they are chosen by its absolute path,
// since two folders may share files.
var (
	locks [64]sync.Mutex
	seed  = maphash.MakeSeed()
)

// lock keeps other changes to p out until the function that it returns is called.
func lock(p root.Path) (unlock func()) {
	mu := &locks[maphash.String(seed, p.Abs)%uint64(len(locks))]
	mu.Lock()
	return mu.Unlock
}

// Plain returns err without the machine's own paths and system call names, as
// far as it is an error of the file system.
func Plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path.Base(strings.ReplaceAll(pe.Path, `\`, "/")), pe.Err)
	}
	return err
}
