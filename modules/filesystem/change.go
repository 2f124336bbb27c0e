package filesystem

import (
	"context"
	"path"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

type appendInput struct {
	Path    string `json:"path" role:"path.write" minlen:"1" jsonschema:"the file; it is made if it is missing"`
	Content string `json:"content" minlen:"1" jsonschema:"what to add at the end, with its own line ends"`
}

func (m *filesystem) append() *tool.Tool {
	return tool.Previewing(add(tool.Definition{
		Name: "append", Effect: tool.Writes, Aliases: appendNames, Tags: []string{"file", "text", "add", "log"},
		Description: "Add text at the end of a file.",
		Help:        "The text is added as it is: begin it with a line break if the file does not end in one.",
		SideEffects: []string{"the file grows, or is made"},
		Examples:    example(`{"path": "notes/log.md", "content": "- done\n"}`),
	}, func(ctx context.Context, in appendInput) (*tool.Result, error) {
		w, notes, err := m.folder.Append(ctx, in.Path, in.Content)
		if err != nil {
			return nil, err
		}
		data, err := tool.Encode(w)
		return &tool.Result{Content: []tool.Content{{Text: string(data)}}, Structured: data, Notes: notes}, err
	}), func(ctx context.Context, in appendInput) (string, error) {
		return m.folder.PreviewAppend(ctx, in.Path, in.Content)
	})
}

type moveInput struct {
	From      string `json:"from" role:"path.delete" minlen:"1" jsonschema:"the file or folder"`
	To        string `json:"to" role:"path.write" minlen:"1" jsonschema:"its new path, the name included"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace a file that stands there"`
}

func (m *filesystem) move() *tool.Tool {
	return tool.Previewing(add(tool.Definition{
		Name: "move", Effect: tool.Writes, Aliases: moveNames, Tags: []string{"file", "folder", "rename", "path"},
		Description: "Move or rename a file or folder.",
		Help:        "Folders that the new path needs are made. A link is moved itself, not what it leads to.",
		SideEffects: []string{"the old path is gone", "with overwrite, the file at the new path is replaced"},
		Examples:    example(`{"from": "draft.md", "to": "docs/guide.md"}`),
	}, func(ctx context.Context, in moveInput) (files.Moved, error) {
		return m.folder.Move(ctx, in.From, in.To, in.Overwrite)
	}), func(ctx context.Context, in moveInput) (string, error) {
		return m.folder.PreviewMove(ctx, in.From, in.To)
	})
}

type deleteInput struct {
	Path      string `json:"path" role:"path.delete" minlen:"1" jsonschema:"the file or folder"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"delete a folder with all that it holds"`
}

func (m *filesystem) delete() *tool.Tool {
	return tool.Previewing(add(tool.Definition{
		Name: "delete", Effect: tool.Destroys, Aliases: deleteNames, Tags: []string{"file", "folder", "remove", "erase"},
		Description: "Delete a file or folder.",
		Help:        "A folder that is not empty is deleted only if recursive is true, and only if nothing in it is hidden or protected by the ignore rules. The root folder itself is never deleted.",
		SideEffects: []string{"the file or folder is gone"},
		Examples:    example(`{"path": "build/old.log"}`),
	}, func(ctx context.Context, in deleteInput) (files.Deleted, error) {
		return m.folder.Delete(ctx, in.Path, in.Recursive)
	}), func(ctx context.Context, in deleteInput) (string, error) { return m.folder.PreviewDelete(ctx, in.Path) })
}

type mkdirInput struct {
	Path    string `json:"path" role:"path.write" minlen:"1" jsonschema:"the folder"`
	Parents *bool  `json:"parents,omitempty" default:"true" jsonschema:"make the folders above it, too"`
}

// made tells of a folder.
type made struct {
	Path    string `json:"path"`
	Created bool   `json:"created" jsonschema:"false: it existed already"`
}

func (m *filesystem) mkdir() *tool.Tool {
	return add(tool.Definition{
		Name: "mkdir", Effect: tool.Writes, Aliases: mkdirNames, Tags: []string{"folder", "directory", "create"},
		Description: "Make a folder.",
		Help:        "A folder that exists already is no error. write makes the folders that it needs by itself.",
		SideEffects: []string{"the folder is made"},
		Examples:    example(`{"path": "docs/images"}`),
	}, func(_ context.Context, in mkdirInput) (made, error) {
		return m.makeDir(in.Path, in.Parents == nil || *in.Parents)
	})
}

func (m *filesystem) makeDir(name string, parents bool) (made, error) {
	p, err := m.folder.Resolve(name, root.ToWrite)
	switch {
	case err != nil:
		return made{}, err
	case p.Exists && p.Mode.IsDir():
		return made{Path: p.Rel}, nil
	case p.Exists:
		return made{}, tool.Errorf(tool.CodeRuntime, "%s exists already, and is a file; choose another name", p.Rel)
	}
	if dir := path.Dir(p.Rel); !parents && dir != "." {
		above, err := m.folder.Root.Resolve(dir, root.ToList)
		if err != nil {
			return made{}, err
		}
		if !above.Exists {
			return made{}, tool.Errorf(tool.CodeRuntime, "the folder %s does not exist; make it first, or set parents to true", dir)
		}
	}
	if err := m.folder.Root.Mkdir(p, 0o755); err != nil {
		return made{}, err
	}
	return made{Path: p.Rel, Created: true}, nil
}
