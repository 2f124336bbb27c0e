package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/textedit"
	"github.com/helve-ai/helve/tool"
)

// A Write is new content for a file.
type Write struct {
	Path       string
	Content    string
	CreateDirs bool   // make the folders that are missing
	Create     bool   // the file must not exist yet
	Expected   string // the SHA-256 that the file must have, or its first 12 digits or more; "": any
}

// Written tells what became of a file.
type Written struct {
	Path   string `json:"path"`
	Action string `json:"action" enum:"created,overwritten,appended,unchanged"`
	Bytes  int    `json:"bytes" jsonschema:"of the file as it is now"`
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// Write puts content in the place of a file's, in one step: readers see the old
// or the new. The file keeps its mode.
func (f *Folder) Write(ctx context.Context, in Write) (Written, error) {
	if int64(len(in.Content)) > f.maxWrite() {
		return Written{}, tool.Errorf(tool.CodeValidation, "/content: has %d bytes, and at most %d are written at once; write the beginning, and append the rest", len(in.Content), f.maxWrite())
	}
	p, err := f.target(in.Path)
	if err != nil {
		return Written{}, err
	}
	defer lock(p)()
	if p, err = f.target(in.Path); err != nil { // as it is now that no other call changes it
		return Written{}, err
	}
	if in.Create && p.Exists {
		return Written{}, tool.Errorf(tool.CodeRuntime, "%s exists already; choose another name, or set if_exists to overwrite", f.Show(p.Rel))
	}
	if err := f.expect(ctx, p, in.Expected); err != nil {
		return Written{}, err
	}
	if err := f.parent(p, in.CreateDirs); err != nil {
		return Written{}, err
	}
	data := []byte(in.Content)
	if err := f.Root.WriteFileAtomic(p, data, 0); err != nil {
		return Written{}, err
	}
	action := "created"
	if p.Exists {
		action = "overwritten"
	}
	return Written{f.Show(p.Rel), action, len(data), textedit.Lines(in.Content), Digest(data)}, nil
}

// target resolves the name of a file that is to be written.
func (f *Folder) target(name string) (root.Path, error) {
	p, err := f.Resolve(name, root.ToWrite)
	if err == nil && p.Mode.IsDir() {
		err = tool.Errorf(tool.CodeRuntime, "%s is a folder; name a file", f.Show(p.Rel))
	}
	return p, err
}

// expect refuses a change to a file whose content is not the expected one.
func (f *Folder) expect(ctx context.Context, p root.Path, digest string) error {
	if digest == "" {
		return nil
	}
	if !p.Exists {
		return tool.Errorf(tool.CodeStaleFile, "%s does not exist any more, so that it cannot have the sha256 %s; leave expected_sha256 out to create it", f.Show(p.Rel), digest)
	}
	now, err := f.Sum(ctx, p)
	if err != nil {
		return err
	}
	return f.fresh(p, now.SHA256, digest)
}

// fresh compares the digest that a file has with the expected one.
func (f *Folder) fresh(p root.Path, now, expected string) error {
	if expected == "" || strings.HasPrefix(now, strings.ToLower(expected)) {
		return nil
	}
	return tool.Errorf(tool.CodeStaleFile, "%s has changed: its sha256 is %s now, not %s; read it again before you change it", f.Show(p.Rel), now, expected).
		With(map[string]string{"path": f.Show(p.Rel), "sha256": now})
}

// Parent makes sure that the folder exists in which p is to be made.
func (f *Folder) Parent(p root.Path) error { return f.parent(p, true) }

func (f *Folder) parent(p root.Path, create bool) error {
	dir := path.Dir(p.Rel)
	if dir == "." {
		return nil
	}
	d, err := f.Root.Resolve(dir, root.ToList)
	switch {
	case err != nil:
		return err
	case d.Exists && d.Mode.IsDir():
		return nil
	case d.Exists:
		return tool.Errorf(tool.CodeRuntime, "%s is a file, not a folder, so that nothing can be written in it", f.Show(dir))
	case !create:
		return tool.Errorf(tool.CodeRuntime, "the folder %s does not exist; make it first, or set create_dirs to true", f.Show(dir))
	}
	if d, err = f.Root.Resolve(dir, root.ToWrite); err != nil {
		return err
	}
	return f.Root.Mkdir(d, 0o755)
}

// Append adds content at the end of a file, which is made if it is missing.
//
// A file of up to MaxWrite bytes is replaced in one step, so that neither
// readers nor a crash find it half changed. A larger one is written to in
// place, and brought back to its former length if that fails; a crash of the
// machine in that moment may leave a part of content at its end.
func (f *Folder) Append(ctx context.Context, name, content string) (Written, []string, error) {
	if int64(len(content)) > f.maxWrite() {
		return Written{}, nil, tool.Errorf(tool.CodeValidation, "/content: has %d bytes, and at most %d are appended at once; append it in parts", len(content), f.maxWrite())
	}
	p, err := f.target(name)
	if err != nil {
		return Written{}, nil, err
	}
	defer lock(p)()
	if p, err = f.target(name); err != nil {
		return Written{}, nil, err
	}
	if !p.Exists {
		w, err := f.appendTo(p, nil, content)
		w.Action = "created"
		return w, nil, err
	}
	info, err := f.Root.Stat(p)
	if err != nil {
		return Written{}, nil, err
	}
	if info.Size > f.maxWrite() {
		w, err := f.appendInPlace(ctx, p, info.Size, content)
		return w, nil, err
	}
	old, err := f.Root.ReadFile(p, f.maxWrite())
	if err != nil {
		return Written{}, nil, err
	}
	var notes []string
	if len(old) > 0 && old[len(old)-1] != '\n' && !bytes.HasSuffix(old, []byte{'\n', 0}) {
		notes = []string{"the file did not end in a line end, so that the text was joined to its last line"}
	}
	w, err := f.appendTo(p, old, content)
	return w, notes, err
}

// appendTo replaces the file by its old content and the new behind it.
func (f *Folder) appendTo(p root.Path, old []byte, content string) (Written, error) {
	if err := f.parent(p, true); err != nil {
		return Written{}, err
	}
	data, err := f.appended(p, old, content)
	if err != nil {
		return Written{}, err
	}
	if err := f.Root.WriteFileAtomic(p, data, 0); err != nil {
		return Written{}, err
	}
	text, _, _ := Decode(data)
	return Written{f.Show(p.Rel), "appended", len(data), textedit.Lines(text), Digest(data)}, nil
}

// appended returns the old content with the new behind it, in the encoding and
// with the line ends of the old.
func (f *Folder) appended(p root.Path, old []byte, content string) ([]byte, error) {
	added := []byte(content)
	if text, enc, ok := Decode(old); ok {
		var err error
		if added, err = enc.Encode(textedit.Conform(content, text)); err != nil {
			return nil, tool.Errorf(tool.CodeRuntime, "%s: %v", f.Show(p.Rel), err)
		}
		if len(old) > 0 {
			added = bytes.TrimPrefix(added, byteOrderMark(enc))
		}
	}
	return slices.Concat(old, added), nil
}

// byteOrderMark returns what a file in the encoding begins with.
func byteOrderMark(e Encoding) []byte {
	switch e {
	case UTF8BOM, UTF16LE, UTF16BE:
		mark, _ := e.Encode("")
		return mark
	}
	return nil
}

func (f *Folder) appendInPlace(ctx context.Context, p root.Path, size int64, content string) (Written, error) {
	file, err := f.Root.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return Written{}, err
	}
	_, err = file.WriteString(content)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		err = errors.Join(err, file.Truncate(size))
	}
	if other := file.Close(); err == nil {
		err = other
	}
	if err != nil {
		return Written{}, err
	}
	sum, err := f.Sum(ctx, p)
	return Written{f.Show(p.Rel), "appended", int(size) + len(content), sum.Lines, sum.SHA256}, err
}

// An Edit changes passages of a file.
type Edit struct {
	Path     string
	Edits    []textedit.Edit
	Expected string // as in Write
}

// Edited tells what an edit changed.
type Edited struct {
	Path     string
	Replaced int // passages
	Diff     string
	SHA256   string
}

// maxDiff bounds the bytes of a diff in a result.
const maxDiff = 6000

// Edit makes the edits, all or none. The file keeps its encoding, its line ends
// and its mode.
func (f *Folder) Edit(ctx context.Context, in Edit) (Edited, error) {
	p, err := f.File(ctx, in.Path, root.ToWrite)
	if err != nil {
		return Edited{}, err
	}
	defer lock(p)()
	e, err := f.edited(p, in)
	if err != nil {
		return Edited{}, err
	}
	if err := f.unchanged(p, e.old); err != nil {
		return Edited{}, err
	}
	if err := f.Root.WriteFileAtomic(p, e.data, 0); err != nil {
		return Edited{}, err
	}
	diff := textedit.Bound(e.diff(f.Show(p.Rel)), maxDiff)
	return Edited{f.Show(p.Rel), e.replaced, strings.ReplaceAll(diff, "\r\n", "\n"), Digest(e.data)}, nil
}

// An edition is what an edit makes of a file.
type edition struct {
	old, data     []byte
	text, changed string // the same, decoded
	replaced      int    // passages
}

func (e *edition) diff(name string) string {
	return textedit.Diff("a/"+name, "b/"+name, e.text, e.changed)
}

// edited works out an edit without making it.
func (f *Folder) edited(p root.Path, in Edit) (*edition, error) {
	old, err := f.readToEdit(p)
	if err != nil {
		return nil, err
	}
	if err := f.fresh(p, Digest(old), in.Expected); err != nil {
		return nil, err
	}
	text, enc, ok := Decode(old)
	if back, err := enc.Encode(text); !ok || err != nil || !bytes.Equal(back, old) {
		return nil, tool.Errorf(tool.CodeRuntime, "%s is not text that can be edited (%s); write it whole instead", f.Show(p.Rel), MIME(old))
	}
	changed, n, err := textedit.Apply(text, in.Edits...)
	if err != nil {
		return nil, f.refusal(p, in, err)
	}
	data, err := enc.Encode(changed)
	switch {
	case err != nil:
		return nil, tool.Errorf(tool.CodeRuntime, "%s: %v", f.Show(p.Rel), err)
	case int64(len(data)) > f.maxWrite():
		return nil, tool.Errorf(tool.CodeRuntime, "%s would have %d bytes after the edit, and at most %d are written", f.Show(p.Rel), len(data), f.maxWrite())
	}
	return &edition{old, data, text, changed, n}, nil
}

func (f *Folder) readToEdit(p root.Path) ([]byte, error) {
	info, err := f.Root.Stat(p)
	if err != nil {
		return nil, err
	}
	if most := max(f.maxWrite(), 1); info.Size > most {
		return nil, tool.Errorf(tool.CodeRuntime, "%s has %d bytes, and files of more than %d are not edited", f.Show(p.Rel), info.Size, most)
	}
	return f.Root.ReadFile(p, f.maxWrite())
}

// unchanged refuses to write over what another program wrote since old was read.
func (f *Folder) unchanged(p root.Path, old []byte) error {
	now, err := f.Root.ReadFile(p, int64(len(old))+1)
	if err == nil && bytes.Equal(now, old) {
		return nil
	}
	return tool.Errorf(tool.CodeStaleFile, "%s was changed by another program while it was edited; read it again", f.Show(p.Rel)).Retry()
}

// refusal returns the error about an edit that could not be made.
func (f *Folder) refusal(p root.Path, in Edit, err error) error {
	var e *textedit.Error
	if !errors.As(err, &e) {
		return err
	}
	where := f.Show(p.Rel)
	if len(in.Edits) > 1 {
		where = fmt.Sprintf("%s, edits/%d", where, e.Index)
		if e.Index > 0 {
			where += " (looked for after the edits before it; none was made)"
		}
	}
	code := tool.CodeRuntime
	if e.Kind == textedit.Empty || e.Kind == textedit.Same {
		code = tool.CodeValidation
	}
	out := tool.Errorf(code, "%s: %s", where, e.Message)
	if len(e.Lines) > 0 {
		out = out.With(map[string]any{"path": f.Show(p.Rel), "edit": e.Index, "lines": e.Lines})
	}
	return out
}
