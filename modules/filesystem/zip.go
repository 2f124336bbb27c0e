package filesystem

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// The bounds of an archive.
const (
	maxEntries   = 10_000
	maxDirectory = 8 << 20 // bytes of the archive's directory, so that reading it is bounded
	maxRatio     = 200     // bytes unpacked for one packed,
	ratioFrom    = 1 << 20 // for entries that unpack to more than this
	maxReplaced  = 64 << 20
	maxPath      = 4096
	maxComponent = 255
)

type zipInput struct {
	Path      string `json:"path" role:"path.read" minlen:"1" jsonschema:"the ZIP file"`
	To        string `json:"to" role:"path.write" minlen:"1" jsonschema:"the folder to unpack into; it is made if it is missing"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace files that exist"`
}

// extracted tells what was unpacked.
type extracted struct {
	To      string `json:"to"`
	Files   int    `json:"files"`
	Folders int    `json:"folders" jsonschema:"that were made"`
	Bytes   int64  `json:"bytes"`
}

func (m *filesystem) extractZip() *tool.Tool {
	return tool.Touching(add(tool.Definition{
		Name: "extract_zip", Effect: tool.Writes, Aliases: zipNames, Tags: []string{"archive", "zip", "unpack", "decompress"},
		Description: "Unpack a ZIP archive into a folder.",
		Help:        "All entries are unpacked or none. An archive is refused if an entry would leave the folder, is a link, has a name that another entry has too (case ignored), or unpacks to far more than it should.",
		SideEffects: []string{"files and folders are made", "with overwrite, files are replaced"},
		Examples:    example(`{"path": "downloads/site.zip", "to": "site"}`),
	}, m.unzip), m.unzipTouches)
}

// openZip opens an archive and finds the place of every entry.
func (m *filesystem) openZip(ctx context.Context, in zipInput) (*unzip, *os.File, error) {
	p, err := m.folder.File(ctx, in.Path, root.ToRead)
	if err != nil {
		return nil, nil, err
	}
	to, err := m.folder.Resolve(in.To, root.ToWrite)
	switch {
	case err != nil:
		return nil, nil, err
	case to.Exists && !to.Mode.IsDir():
		return nil, nil, tool.Errorf(tool.CodeRuntime, "%s is a file; name a folder to unpack into", to.Rel)
	}
	file, err := m.folder.Root.Open(p)
	if err != nil {
		return nil, nil, err
	}
	u := &unzip{module: m, to: to, overwrite: in.Overwrite, known: map[string]bool{}}
	if err := u.list(file); err != nil {
		file.Close()
		return nil, nil, tool.Errorf(tool.CodeRuntime, "%s is not unpacked: %v", p.Rel, err)
	}
	if err := u.place(); err != nil {
		file.Close()
		return nil, nil, err
	}
	return u, file, nil
}

func (m *filesystem) unzip(ctx context.Context, in zipInput) (extracted, error) {
	u, file, err := m.openZip(ctx, in)
	if err != nil {
		return extracted{}, err
	}
	defer file.Close()
	if err := u.check(ctx); err != nil {
		return extracted{}, err
	}
	if err := u.write(ctx); err != nil {
		return extracted{}, errors.Join(fmt.Errorf("nothing was unpacked: %w", err), u.undo())
	}
	return extracted{u.to.Rel, len(u.files), len(u.dirs), u.total}, nil
}

// unzipTouches lists the files that would be unpacked, and the folders that
// would be made. Errors are those of the call itself, which would fail so.
func (m *filesystem) unzipTouches(ctx context.Context, in zipInput) ([]string, error) {
	u, file, err := m.openZip(ctx, in)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	var touched []string
	for _, e := range u.files {
		touched = append(touched, e.path.Abs)
	}
	for _, name := range u.folders {
		p, err := m.folder.Root.Resolve(path.Join(u.to.Rel, name), root.ToWrite)
		if err != nil {
			return nil, plain(err)
		}
		if !p.Exists {
			touched = append(touched, p.Abs)
		}
	}
	return touched, nil
}

// unzip is one archive on its way.
type unzip struct {
	module    *filesystem
	to        root.Path
	overwrite bool

	files   []entry
	folders []string // that the archive names, from the folder to unpack into
	total   int64

	known    map[string]bool // folders that exist
	dirs     []string        // that were made, parents first
	written  []string
	replaced []replaced
}

// An entry is a file in the archive and its place in the root.
type entry struct {
	*zip.File
	name string // from the folder to unpack into
	path root.Path
}

// replaced is the former content of a file that was overwritten.
type replaced struct {
	path root.Path
	data []byte
}

// bounded reads at most left bytes: a directory can claim any size.
type bounded struct {
	io.ReaderAt
	left int64
}

var errDirectory = fmt.Errorf("its directory has more than %d bytes", maxDirectory)

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left >= 0 {
		if b.left -= int64(len(p)); b.left < 0 {
			b.left = 0
			return 0, errDirectory
		}
	}
	return b.ReaderAt.ReadAt(p, off)
}

// list reads the archive's directory and judges every entry by itself and
// beside the others.
func (u *unzip) list(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	src := &bounded{file, maxDirectory}
	r, err := zip.NewReader(src, info.Size())
	if errors.Is(err, zip.ErrFormat) {
		return errors.New("it is not a ZIP archive, or a damaged one")
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	src.left = -1 // from here on, what is read is bounded otherwise
	if len(r.File) > maxEntries {
		return fmt.Errorf("it has %d entries; %d is the most", len(r.File), maxEntries)
	}
	names := newNames()
	var packed uint64
	for _, f := range r.File {
		name, err := entryName(f)
		if err == nil {
			err = names.add(name, f.Mode().IsDir())
		}
		if err != nil {
			return err
		}
		if packed += f.CompressedSize64; f.CompressedSize64 > uint64(info.Size()) || packed > uint64(info.Size()) {
			return fmt.Errorf("the entry %q overlaps another one", name)
		}
		if f.Mode().IsDir() {
			u.folders = append(u.folders, name)
		} else {
			u.files = append(u.files, entry{File: f, name: name})
		}
	}
	return nil
}

// entryName returns the place of an entry, or why there can be none.
func entryName(f *zip.File) (string, error) {
	name := f.Name
	shown := name[:min(len(name), 100)]
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("the entry %q %s", shown, fmt.Sprintf(format, args...))
	}
	clean := strings.TrimSuffix(name, "/")
	switch {
	case clean == "":
		return refuse("has no name")
	case !utf8.ValidString(name):
		return refuse("has a name that is not UTF-8")
	case len(name) > maxPath:
		return refuse("has a name of %d bytes; %d is the most", len(name), maxPath)
	case strings.HasPrefix(name, "/"), len(name) > 1 && name[1] == ':':
		return refuse("has an absolute name")
	case strings.Contains(name, `\`):
		return refuse("has a backslash in its name")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return refuse("has a control character in its name")
	case f.Flags&1 != 0:
		return refuse("is encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return refuse("is packed by method %d; only store and deflate can be unpacked", f.Method)
	}
	for component := range strings.SplitSeq(clean, "/") {
		switch {
		case component == "" || component == "." || component == "..":
			return refuse("has the component %q in its name", component)
		case len(component) > maxComponent:
			return refuse("has a component of %d bytes in its name; %d is the most", len(component), maxComponent)
		}
	}
	switch kind := f.Mode().Type(); {
	case kind == fs.ModeSymlink:
		return refuse("is a link; links are not unpacked")
	case kind != 0 && kind != fs.ModeDir:
		return refuse("is neither a file nor a folder")
	case kind == fs.ModeDir != strings.HasSuffix(name, "/"):
		return refuse("says by its name that it is a folder, or not, and by its mode the contrary")
	}
	return clean, nil
}

// names knows the names of the entries so far, as a file system that ignores
// case and composes accents would.
type names struct {
	spelt map[string]string // by folded name
	file  map[string]bool
	named map[string]bool // folders that are entries of their own
	fold  cases.Caser
}

func newNames() *names {
	return &names{map[string]string{}, map[string]bool{}, map[string]bool{}, cases.Fold()}
}

// add notes an entry and the folders above it.
func (n *names) add(name string, isDir bool) error {
	for i := 0; i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		if err := n.note(name[:i], true); err != nil {
			return err
		}
	}
	key := n.key(name)
	if n.named[key] || !isDir && n.spelt[key] != "" {
		return fmt.Errorf("two entries have the name %q", name)
	}
	n.named[key] = true
	return n.note(name, isDir)
}

func (n *names) key(name string) string { return n.fold.String(norm.NFC.String(name)) }

func (n *names) note(name string, isDir bool) error {
	key := n.key(name)
	switch before := n.spelt[key]; {
	case before == "":
		n.spelt[key], n.file[key] = name, !isDir
	case before != name:
		return fmt.Errorf("the entries %q and %q differ only in case or accents", before, name)
	case n.file[key] || !isDir:
		return fmt.Errorf("%q is both a file and a folder", name)
	}
	return nil
}

// place resolves every entry and refuses what may not be written.
func (u *unzip) place() error {
	var exist []string
	for i := range u.files {
		e := &u.files[i]
		p, err := u.module.folder.Resolve(path.Join(u.to.Rel, e.name), root.ToWrite)
		switch {
		case err != nil:
			return err
		case p.Rel != path.Join(u.to.Rel, e.name):
			return tool.Errorf(tool.CodePermission, "the entry %q would be unpacked through a link to %s", e.name, p.Rel)
		case p.Exists && p.Mode.IsDir():
			return tool.Errorf(tool.CodeRuntime, "the entry %q is a file, but %s is a folder", e.name, p.Rel)
		case p.Exists:
			exist = append(exist, p.Rel)
		}
		e.path = p
	}
	for _, name := range u.folders {
		p, err := u.module.folder.Resolve(path.Join(u.to.Rel, name), root.ToWrite)
		switch {
		case err != nil:
			return err
		case p.Exists && !p.Mode.IsDir():
			return tool.Errorf(tool.CodeRuntime, "the entry %q is a folder, but %s is a file", name, p.Rel)
		}
	}
	if len(exist) > 0 && !u.overwrite {
		return tool.Errorf(tool.CodeRuntime, "%s already: %s; unpack into another folder, or set overwrite to true to replace them",
			count(len(exist), "file exists", "files exist"), joinNames(exist, 5))
	}
	return nil
}

// check unpacks everything without keeping it: a bomb or a damaged entry is
// found before anything is written.
func (u *unzip) check(ctx context.Context) error {
	for _, e := range u.files {
		n, err := u.copy(ctx, io.Discard, e)
		if err != nil {
			return tool.Errorf(tool.CodeRuntime, "nothing was unpacked: the entry %q: %v", e.name, err)
		}
		if u.total += n; u.total > u.module.cfg.MaxZipBytes {
			return tool.Errorf(tool.CodeRuntime, "nothing was unpacked: the archive unpacks to more than %d bytes, which is the most", u.module.cfg.MaxZipBytes)
		}
	}
	return nil
}

// copy unpacks an entry and returns its size. What counts are the bytes that
// come, not those that the archive claims.
func (u *unzip) copy(ctx context.Context, to io.Writer, e entry) (int64, error) {
	r, err := e.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	most := u.module.cfg.MaxZipBytes
	buf := make([]byte, 64<<10)
	for n := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf)
		n += int64(k)
		switch {
		case n > most:
			return n, fmt.Errorf("unpacks to more than %d bytes, which is the most", most)
		case n > ratioFrom && uint64(n) > maxRatio*e.CompressedSize64:
			return n, fmt.Errorf("unpacks to more than %d times its size, as no honest archive does", maxRatio)
		}
		if _, err := to.Write(buf[:k]); err != nil {
			return n, err
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// write unpacks everything to its place.
func (u *unzip) write(ctx context.Context) error {
	for _, dir := range append([]string{"."}, u.folders...) {
		if err := u.ensure(path.Join(u.to.Rel, dir)); err != nil {
			return err
		}
	}
	kept := int64(0)
	for _, e := range u.files {
		if err := u.ensure(path.Dir(e.path.Rel)); err != nil {
			return err
		}
		var err error
		if e.path.Exists {
			err = u.replace(ctx, e, &kept)
		} else {
			err = u.create(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ensure makes the folder dir and those above it, and remembers which it made.
func (u *unzip) ensure(dir string) error {
	if dir == "." || u.known[dir] {
		return nil
	}
	p, err := u.module.folder.Root.Resolve(dir, root.ToWrite)
	if err != nil {
		return err
	}
	u.known[dir] = true
	if p.Exists && p.Mode.IsDir() {
		return nil
	}
	if err := u.ensure(path.Dir(dir)); err != nil {
		return err
	}
	if err := u.module.folder.Root.Mkdir(p, 0o755); err != nil {
		return err
	}
	u.dirs = append(u.dirs, dir)
	return nil
}

// create unpacks an entry to a file that must not exist. Of its mode, only
// whether it may be executed is taken over.
func (u *unzip) create(ctx context.Context, e entry) error {
	perm := fs.FileMode(0o644)
	if e.Mode()&0o111 != 0 {
		perm = 0o755
	}
	f, err := u.module.folder.Root.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	u.written = append(u.written, e.path.Rel)
	_, err = u.copy(ctx, f, e)
	if other := f.Close(); err == nil {
		err = other
	}
	return err
}

// replace unpacks an entry in the place of a file, whose content is kept until the end.
func (u *unzip) replace(ctx context.Context, e entry, kept *int64) error {
	old, err := u.module.folder.Root.ReadFile(e.path, maxReplaced)
	if err != nil {
		return err
	}
	var data strings.Builder
	n, err := u.copy(ctx, &data, e)
	if err != nil {
		return err
	}
	if *kept += int64(len(old)) + n; *kept > maxReplaced {
		return fmt.Errorf("more than %d bytes would be replaced; delete the files first", maxReplaced)
	}
	u.replaced = append(u.replaced, replaced{e.path, old})
	return u.module.folder.Root.WriteFileAtomic(e.path, []byte(data.String()), 0)
}

// undo removes what was written and puts back what was replaced.
func (u *unzip) undo() error {
	var errs []error
	r := u.module.folder.Root
	for _, old := range u.replaced {
		errs = append(errs, r.WriteFileAtomic(old.path, old.data, 0))
	}
	for _, rel := range slices.Backward(slices.Concat(u.dirs, u.written)) {
		p, err := r.Resolve(rel, root.ToDelete)
		if err == nil && p.Exists {
			err = r.Remove(p)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
