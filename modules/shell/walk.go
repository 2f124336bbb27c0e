package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/helve-ai/helve/root"
)

// maxEntries bounds the files that are looked at to judge one command.
const maxEntries = 200_000

// walk is how a program goes through the folders that it is given.
type walk struct {
	cwd      bool     // through the working directory whatever is named
	keepLast bool     // not through the last operand, which is the destination
	own      []string // folders of git and Helve that it leaves out
	insert   []string // the options that make it leave them out
}

var ownFolders = []string{".git", root.StateDir}

// walkOf tells how a permitted command walks, if it shows or copies what is in
// the files that it meets. Options are read generously: a walk that is none
// costs a refusal only where something is ignored.
func walkOf(argv []string) (w walk, walks bool) {
	switch argv[0] {
	case "grep", "egrep", "fgrep":
		w := walk{own: ownFolders, insert: []string{"--exclude-dir=.git", "--exclude-dir=" + root.StateDir}}
		w.cwd = hasOption(argv, "f", "--file", "--exclude-from")
		return w, hasOption(argv, "rRd", "--recursive", "--dereference-recursive", "--directories")
	case "rg":
		w := walk{cwd: hasOption(argv, "f", "--file", "--ignore-file")}
		if !hasOption(argv, ".ug", "--hidden", "--unrestricted", "--glob", "--iglob") {
			w.own = ownFolders // it leaves hidden files out by itself
		}
		return w, true
	case "diff":
		return walk{own: ownFolders, insert: []string{"--exclude=.git", "--exclude=" + root.StateDir}}, true
	case "git":
		w := walk{cwd: true, own: ownFolders}
		if hasOption(argv, "", "--untracked") {
			w.own = ownFolders[:1]
		}
		return w, slices.Contains(argv, "grep")
	case "ruff", "mypy", "pyflakes", "gofmt":
		return walk{own: ownFolders}, true
	case "cp", "mv":
		return walk{keepLast: !hasOption(argv, "t", "--target-directory")}, true
	}
	return walk{}, false
}

// ignoredBeneath reports whether a folder holds what may not be read, besides
// the folders named own, or one of the files with Helve's rules, of which a
// copy elsewhere would become one.
func ignoredBeneath(r *root.Root, folder string, own []string) (found bool, err error) {
	left := maxEntries
	err = fs.WalkDir(r.FS().FS(), folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == folder {
			return nil // what cannot be read here, the command cannot read either
		}
		if left--; left < 0 {
			return errors.New("there are too many files beneath it to check them; name a smaller folder")
		}
		base := path.Base(name)
		switch {
		case slices.Contains(own, base) && d.IsDir():
			return fs.SkipDir
		case slices.Contains(own, base):
			return nil
		case !r.Visible(name, d.IsDir()), own == nil && ruleFile(base):
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

func ruleFile(base string) bool {
	return strings.EqualFold(base, root.IgnoreFile) || strings.EqualFold(base, root.ProtectFile)
}

// globFiles is the file system in which wildcards are expanded: a folder of
// the root, without what is ignored.
type globFiles struct {
	root *root.Root
	dir  string
	left int // below zero: too much was read
}

func newGlobFiles(r *root.Root, dir string) *globFiles {
	return &globFiles{root: r, dir: dir, left: maxEntries}
}

// resolve judges a name, so that neither links nor pipes are opened unseen.
func (g *globFiles) resolve(op, name string) (root.Path, error) {
	p, err := g.root.Resolve(path.Join(g.dir, name), root.ToList)
	if err == nil && !p.Exists {
		err = fs.ErrNotExist
	}
	if err != nil {
		return p, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return p, nil
}

// Open implements [fs.FS]; wildcards need only Stat and ReadDir.
func (g *globFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Stat implements [fs.StatFS].
func (g *globFiles) Stat(name string) (fs.FileInfo, error) {
	p, err := g.resolve("stat", name)
	if err != nil {
		return nil, err
	}
	return fs.Stat(g.root.FS().FS(), p.Rel)
}

// ReadDir implements [fs.ReadDirFS].
func (g *globFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	p, err := g.resolve("open", name)
	if err != nil {
		return nil, err
	}
	if !p.Mode.IsDir() || g.left < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	entries, err := fs.ReadDir(g.root.FS().FS(), p.Rel)
	g.left -= len(entries) + 1
	return slices.DeleteFunc(entries, func(d fs.DirEntry) bool {
		return !g.root.Visible(path.Join(p.Rel, d.Name()), d.IsDir())
	}), err
}
