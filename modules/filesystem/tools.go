package filesystem

import (
	"context"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/textedit"
	"github.com/helve-ai/helve/tool"
)

func (m *filesystem) tools() []*tool.Tool {
	return []*tool.Tool{
		m.read(), m.write(), m.edit(), m.append(), m.list(), m.glob(), m.grep(),
		m.move(), m.delete(), m.mkdir(), m.stat(), m.extractZip(),
	}
}

type readInput struct {
	Path     string `json:"path" role:"path.read" minlen:"1" jsonschema:"the file"`
	Offset   int    `json:"offset,omitempty" min:"1" jsonschema:"first line to read, from 1"`
	Limit    int    `json:"limit,omitempty" min:"1" jsonschema:"how many lines to read; all if left out"`
	Numbered bool   `json:"numbered,omitempty" jsonschema:"write each line's number and a tab before it"`
	Encoding string `json:"encoding,omitempty" maxlen:"40" jsonschema:"character set, such as shift_jis; found out if left out"`
}

func (m *filesystem) read() *tool.Tool {
	return add(tool.Definition{
		Name: "read", Effect: tool.Reads, Aliases: readNames, Tags: []string{"file", "text", "content", "image"},
		Description: "Read a text file, whole or some of its lines.",
		Help:        "Images are shown as images; other binary files are named by type, size and SHA-256. UTF-16 and Latin-1 are turned into UTF-8. Of a very large file, read a part with offset and limit. The notes give the first digits of the sha256, which edit and write take as expected_sha256.",
		Examples:    example(`{"path": "docs/guide.md", "offset": 1, "limit": 200}`),
	}, func(ctx context.Context, in readInput) (*tool.Result, error) {
		return m.folder.Read(ctx, files.Read{Path: in.Path, Offset: in.Offset, Limit: in.Limit, Numbered: in.Numbered, Encoding: in.Encoding, Images: true})
	})
}

type writeInput struct {
	Path       string `json:"path" role:"path.write" minlen:"1" jsonschema:"the file"`
	Content    string `json:"content" jsonschema:"the whole new content"`
	CreateDirs *bool  `json:"create_dirs,omitempty" default:"true" jsonschema:"make the folders that are missing"`
	IfExists   string `json:"if_exists,omitempty" enum:"overwrite,error" default:"\"overwrite\""`
	Expected   string `json:"expected_sha256,omitempty" pattern:"^[0-9a-fA-F]{12,64}$" jsonschema:"write only if the file still has this SHA-256 (or begins with these digits)"`
}

func (in *writeInput) job() files.Write {
	return files.Write{Path: in.Path, Content: in.Content, CreateDirs: in.CreateDirs == nil || *in.CreateDirs, Create: in.IfExists == "error", Expected: in.Expected}
}

func (m *filesystem) write() *tool.Tool {
	return tool.Previewing(add(tool.Definition{
		Name: "write", Effect: tool.Writes, Aliases: writeNames, Tags: []string{"file", "text", "save", "create"},
		Description: "Create a text file or replace its whole content.",
		Help:        "The content is replaced in one step: readers see the old or the new. To change a part of a file, edit is cheaper and safer. A file keeps its permissions.",
		SideEffects: []string{"the file's former content is replaced", "missing folders are made"},
		Examples:    example(`{"path": "notes/today.md", "content": "# Today\n"}`),
	}, func(ctx context.Context, in writeInput) (files.Written, error) {
		return m.folder.Write(ctx, in.job())
	}), func(ctx context.Context, in writeInput) (string, error) { return m.folder.PreviewWrite(ctx, in.job()) })
}

type editInput struct {
	Path     string    `json:"path" role:"path.write" minlen:"1" jsonschema:"the file"`
	Old      *string   `json:"old,omitempty" jsonschema:"the passage to replace, exactly as it stands in the file; it must occur only once"`
	New      *string   `json:"new,omitempty" jsonschema:"what to put in its place"`
	All      bool      `json:"all,omitempty" jsonschema:"replace every occurrence"`
	Edits    []oneEdit `json:"edits,omitempty" max:"100" jsonschema:"several edits, made in order, all or none; instead of old and new"`
	Expected string    `json:"expected_sha256,omitempty" pattern:"^[0-9a-fA-F]{12,64}$" jsonschema:"edit only if the file still has this SHA-256 (or begins with these digits)"`
}

type oneEdit struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all,omitempty"`
}

// list returns the edits that are wanted.
func (in *editInput) list() ([]textedit.Edit, error) {
	switch {
	case len(in.Edits) > 0 && (in.Old != nil || in.New != nil):
		return nil, tool.Errorf(tool.CodeValidation, "give either old and new, or edits, not both")
	case len(in.Edits) == 0 && (in.Old == nil || in.New == nil):
		return nil, tool.Errorf(tool.CodeValidation, "give old (the passage to replace) and new (what to put in its place; \"\" removes it), or a list of such pairs as edits")
	case len(in.Edits) == 0:
		return []textedit.Edit{{Old: *in.Old, New: *in.New, All: in.All}}, nil
	}
	out := make([]textedit.Edit, len(in.Edits))
	for i, e := range in.Edits {
		out[i] = textedit.Edit{Old: e.Old, New: e.New, All: e.All || in.All}
	}
	return out, nil
}

func (m *filesystem) edit() *tool.Tool {
	return tool.Previewing(add(tool.Definition{
		Name: "edit", Effect: tool.Writes, Aliases: editNames, Tags: []string{"file", "text", "replace", "change", "patch"},
		Description: "Replace a passage of a text file, which must occur exactly once.",
		Help:        "A passage that does not occur, or occurs more than once, is refused with the line numbers. Line ends, byte order mark and encoding stay as they are. The answer is a unified diff and the new sha256.",
		SideEffects: []string{"the file is changed"},
		Examples:    example(`{"path": "main.go", "old": "return nil", "new": "return err"}`),
	}, func(ctx context.Context, in editInput) (string, error) {
		edits, err := in.list()
		if err != nil {
			return "", err
		}
		done, err := m.folder.Edit(ctx, files.Edit{Path: in.Path, Edits: edits, Expected: in.Expected})
		if err != nil {
			return "", err
		}
		return done.String(), nil
	}), func(ctx context.Context, in editInput) (string, error) {
		edits, err := in.list()
		if err != nil {
			return "", err
		}
		return m.folder.PreviewEdit(ctx, files.Edit{Path: in.Path, Edits: edits, Expected: in.Expected})
	})
}

type listInput struct {
	Path   string `json:"path,omitempty" role:"path.read" default:"\".\"" jsonschema:"the folder; the root if left out"`
	Depth  int    `json:"depth,omitempty" min:"1" max:"5" default:"1" jsonschema:"how many levels of folders to show"`
	Hidden bool   `json:"hidden,omitempty" jsonschema:"show names that begin with a dot, too"`
	Limit  int    `json:"limit,omitempty" min:"1" jsonschema:"how many entries to show at most"`
}

func (m *filesystem) list() *tool.Tool {
	return tool.Summarizing(add(tool.Definition{
		Name: "list", Effect: tool.Reads, Aliases: listNames, Tags: []string{"folder", "directory", "files", "tree"},
		Description: "List the files and folders in a folder, with their sizes.",
		Help:        "Folders end in a slash; links show where they lead. Names that begin with a dot are left out unless hidden is true; what the ignore rules hide is never shown.",
		Examples:    example(`{"path": "src", "depth": 2}`),
	}, func(ctx context.Context, in listInput) (string, error) {
		l, err := m.folder.List(ctx, files.List{Path: in.Path, Depth: in.Depth, Hidden: in.Hidden, Limit: in.Limit})
		if err != nil {
			return "", err
		}
		return renderList(l), nil
	}), files.SummarizePaths)
}

// renderList writes a listing, one entry to a line.
func renderList(l files.Listing) string {
	var b strings.Builder
	for _, e := range l.Entries {
		switch {
		case e.Link != "":
			fmt.Fprintf(&b, "%s -> %s\n", e.Path, e.Link)
		case e.IsDir:
			b.WriteString(e.Path + "/\n")
		default:
			fmt.Fprintf(&b, "%s (%d bytes)\n", e.Path, e.Size)
		}
	}
	b.WriteString("[" + count(l.Total, "entry", "entries"))
	if left := l.Total - len(l.Entries); left > 0 {
		fmt.Fprintf(&b, "; %d of them are not shown: raise limit, or list a smaller folder", left)
	}
	if l.Hidden > 0 {
		fmt.Fprintf(&b, "; %d more with names that begin with a dot are not shown", l.Hidden)
	}
	if len(l.Unread) > 0 {
		fmt.Fprintf(&b, "; could not be read: %s", strings.Join(l.Unread, ", "))
	}
	return b.String() + "]"
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
