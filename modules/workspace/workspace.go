// Package workspace is the module of tools that keep an agent's artifacts in a folder of their own.
package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/textedit"
	"github.com/helve-ai/helve/tool"
)

// Module is the workspace module.
var Module = module.New("workspace", "Write, read, edit and search artifacts in a folder of their own, and nothing else.", Config{
	Dir: "artifacts", MaxBytes: 1 << 20, Reserved: []string{"tool_calls", "results", "audit"},
}, open)

// Config configures the module.
type Config struct {
	Dir      string   `json:"dir" minlen:"1" jsonschema:"the folder of the artifacts, from the root"`
	MaxBytes int64    `json:"max_bytes" min:"1" max:"104857600" jsonschema:"bytes of an artifact (SPEC S6: 1 MiB)"`
	Reserved []string `json:"reserved" jsonschema:"folders beneath dir that the tools never touch"`
}

// Validate reports the first setting that cannot be meant.
func (c Config) Validate() error {
	if err := checkName(c.Dir); err != nil || c.Dir == "." {
		return fmt.Errorf("dir: %q is not a folder beneath the root, such as artifacts", c.Dir)
	}
	if c.MaxBytes <= 0 {
		return fmt.Errorf("max_bytes: %d is not above zero", c.MaxBytes)
	}
	for i, name := range c.Reserved {
		if err := checkName(name); err != nil || name == "." {
			return fmt.Errorf("reserved[%d]: %q is not a folder beneath dir, such as audit", i, name)
		}
	}
	return nil
}

// workspace is the open module.
//
// Its tools take paths that count from the artifacts' folder, as the models
// that know such tools expect. The pipeline's stages resolve paths from the
// root, so that they would judge another file than the one that is meant: the
// paths therefore have the role artifact, which those stages leave alone, and
// the module judges the real place itself, by the root's own rules, in its
// policy (so that explanations tell) and again when it acts.
type workspace struct {
	cfg    Config
	folder *files.Folder
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	w := &workspace{cfg: c}
	w.folder = &files.Folder{
		Root: h.Root, Base: path.Clean(c.Dir), MaxRead: c.MaxBytes, MaxWrite: c.MaxBytes,
		Name: checkName, Accept: w.accept,
	}
	return &module.Toolset{Judge: w.judge, Tools: []*tool.Tool{w.write(), w.read(), w.edit(), w.glob(), w.grep(), w.delete()}}, nil
}

// checkName refuses the names that are not plain relative paths.
func checkName(name string) error {
	refuse := func(why string) error {
		return tool.Errorf(tool.CodePermission, "path %q: %s; name an artifact by a relative path, such as report/summary.md", name, why)
	}
	switch {
	case name == ".":
		return nil // the folder itself, to be searched
	case name == "":
		return refuse("is empty")
	case !utf8.ValidString(name):
		return refuse("is not UTF-8")
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "~"), len(name) > 1 && name[1] == ':':
		return refuse("is absolute")
	case strings.Contains(name, `\`):
		return refuse("holds a backslash")
	}
	for component := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		switch {
		case component == "":
			return refuse("has an empty component")
		case component[0] == '.':
			return refuse("has a component that begins with a dot")
		case component != strings.TrimSpace(component):
			return refuse("has a component that begins or ends in white space")
		}
	}
	return nil
}

// accept refuses the reserved folders and what begins with a dot, wherever a
// path really leads. The path counts from the root.
func (w *workspace) accept(rel string, access root.Access, _ bool) error {
	base := w.folder.Base
	if rel == base {
		if access == root.ToWrite {
			return tool.Errorf(tool.CodePermission, "path \".\": is the artifacts' folder itself; name an artifact, such as report/summary.md")
		}
		return nil
	}
	inner, ok := strings.CutPrefix(rel, base+"/")
	if !ok {
		return tool.Errorf(tool.CodePermission, "path %q: leads out of the folder %s", rel, base)
	}
	for component := range strings.SplitSeq(inner, "/") {
		if component[0] == '.' {
			return tool.Errorf(tool.CodePermission, "path %q: has a component that begins with a dot", inner)
		}
	}
	if slices.ContainsFunc(w.cfg.Reserved, func(name string) bool { return within(inner, strings.TrimSuffix(name, "/")) }) {
		return tool.Errorf(tool.CodePermission, "path %q: lies in a folder that Helve keeps for itself (%s)", inner, strings.Join(w.cfg.Reserved, ", "))
	}
	return nil
}

// within reports whether name is dir or lies beneath it, in any spelling that
// some file system takes for it.
func within(name, dir string) bool {
	if len(name) < len(dir) || !strings.EqualFold(name[:len(dir)], dir) {
		return false
	}
	rest := strings.TrimLeft(name[len(dir):], ". ") // "audit." is "audit" on some
	return rest == "" || rest[0] == '/' || rest[0] == ':'
}

// judge is the module's default policy: it refuses what the tools would refuse.
func (w *workspace) judge(_ context.Context, c *tool.Call) (tool.Verdict, string) {
	var in struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Deny, fmt.Sprintf("the path in the arguments cannot be told: %v", err)
	}
	if in.Path == "" {
		in.Path = "."
	}
	if _, err := w.folder.Resolve(in.Path, access(c.Tool)); err != nil {
		return tool.Deny, strings.TrimPrefix(err.Error(), string(tool.CodePermission)+": ")
	}
	return tool.Silent, ""
}

// access returns what a tool does with its path.
func access(t *tool.Tool) root.Access {
	switch t.Effect {
	case tool.Reads:
		return root.ToRead
	case tool.Writes:
		return root.ToWrite
	}
	return root.ToDelete
}

// add returns a tool of the module whose errors are fit to be read by a model.
func add[In, Out any](def tool.Definition, fn func(context.Context, In) (Out, error)) *tool.Tool {
	def.Name = "workspace." + def.Name
	def.Category = tool.Filesystem
	def.ParallelSafe = def.Effect == tool.Reads
	def.Tags = append(def.Tags, "artifact", "workspace")
	return tool.New(def, func(ctx context.Context, in In) (Out, error) {
		out, err := fn(ctx, in)
		return out, plain(err)
	})
}

// plain returns an error as a model may read it.
func plain(err error) error {
	var refused *root.Error
	var known *tool.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &refused):
		return guard.PathError("", refused)
	}
	return files.Plain(err)
}

// changing returns a tool that changes the artifact which its path names: the
// artifact is saved before, and what would become of it can be shown.
func changing[In any](w *workspace, t *tool.Tool, preview func(context.Context, In) (string, error)) *tool.Tool {
	t.Touches = func(_ context.Context, c *tool.Call) ([]string, error) {
		var in struct {
			Path string `json:"path"`
		}
		if err := json.Unmarshal(c.Args, &in); err != nil {
			return nil, err
		}
		p, err := w.folder.Resolve(in.Path, access(t))
		if err != nil {
			return nil, plain(err)
		}
		return []string{p.Abs}, nil
	}
	return tool.Previewing(t, preview)
}

func example(args string) []json.RawMessage { return []json.RawMessage{json.RawMessage(args)} }

type writeInput struct {
	Path    string `json:"path" role:"artifact" minlen:"1" jsonschema:"relative path under the artifacts folder"`
	Content string `json:"content" jsonschema:"the whole text, UTF-8, 1 MiB at most"`
}

func (w *workspace) write() *tool.Tool {
	return changing(w, add(tool.Definition{
		Name: "write_artifact", Effect: tool.Writes, Aliases: writeNames, Tags: []string{"file", "text", "save", "create"},
		Description: "Write a text artifact to the workspace's artifacts folder.",
		Help:        "The path counts from the artifacts folder, and has no component that begins with a dot. An artifact that exists is replaced in one step; folders are made as needed.",
		SideEffects: []string{"the artifact's former content is replaced"},
		Examples:    example(`{"path": "report/summary.md", "content": "# Summary\n"}`),
	}, func(ctx context.Context, in writeInput) (files.Written, error) {
		if !utf8.ValidString(in.Content) || strings.ContainsRune(in.Content, 0) {
			return files.Written{}, tool.Errorf(tool.CodeValidation, "/content: is not UTF-8 text")
		}
		return w.folder.Write(ctx, files.Write{Path: in.Path, Content: in.Content, CreateDirs: true})
	}), func(ctx context.Context, in writeInput) (string, error) {
		return w.folder.PreviewWrite(ctx, files.Write{Path: in.Path, Content: in.Content})
	})
}

type readInput struct {
	Path     string `json:"path" role:"artifact" minlen:"1" jsonschema:"relative path under the artifacts folder"`
	Offset   int    `json:"offset,omitempty" min:"1" jsonschema:"first line to read, from 1"`
	Limit    int    `json:"limit,omitempty" min:"1" jsonschema:"how many lines to read; all if left out"`
	Numbered bool   `json:"numbered,omitempty" jsonschema:"write each line's number and a tab before it"`
}

func (w *workspace) read() *tool.Tool {
	return add(tool.Definition{
		Name: "read", Effect: tool.Reads, Aliases: readNames, Tags: []string{"file", "text", "content"},
		Description: "Read a text artifact, whole or some of its lines.",
		Help:        "The path counts from the artifacts folder. What is not text is named by type, size and SHA-256.",
		Examples:    example(`{"path": "report/summary.md"}`),
	}, func(ctx context.Context, in readInput) (*tool.Result, error) {
		return w.folder.Read(ctx, files.Read{Path: in.Path, Offset: in.Offset, Limit: in.Limit, Numbered: in.Numbered})
	})
}

type editInput struct {
	Path string `json:"path" role:"artifact" minlen:"1" jsonschema:"relative path under the artifacts folder"`
	Old  string `json:"old" jsonschema:"the passage to replace, exactly as it stands; it must occur only once"`
	New  string `json:"new" jsonschema:"what to put in its place"`
	All  bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

func (in *editInput) job() files.Edit {
	return files.Edit{Path: in.Path, Edits: []textedit.Edit{{Old: in.Old, New: in.New, All: in.All}}}
}

func (w *workspace) edit() *tool.Tool {
	return changing(w, add(tool.Definition{
		Name: "edit", Effect: tool.Writes, Aliases: editNames, Tags: []string{"file", "text", "replace", "change"},
		Description: "Replace a passage of a text artifact, which must occur exactly once.",
		Help:        "A passage that does not occur, or occurs more than once, is refused with the line numbers. The answer is a unified diff.",
		SideEffects: []string{"the artifact is changed"},
		Examples:    example(`{"path": "report/summary.md", "old": "draft", "new": "final"}`),
	}, func(ctx context.Context, in editInput) (string, error) {
		done, err := w.folder.Edit(ctx, in.job())
		if err != nil {
			return "", err
		}
		return done.String(), nil
	}), func(ctx context.Context, in editInput) (string, error) { return w.folder.PreviewEdit(ctx, in.job()) })
}

type globInput struct {
	Pattern string `json:"pattern" minlen:"1" jsonschema:"such as **/*.md; ** stands for any folders"`
	Path    string `json:"path,omitempty" role:"artifact" jsonschema:"the folder from which the pattern counts; the artifacts folder if left out"`
	Limit   int    `json:"limit,omitempty" min:"1" jsonschema:"how many paths to show at most"`
}

func (w *workspace) glob() *tool.Tool {
	return tool.Summarizing(add(tool.Definition{
		Name: "glob", Effect: tool.Reads, Aliases: globNames, Tags: []string{"file", "name", "find", "list"}, SearchLike: true,
		Description: "List the artifacts whose paths match a pattern.",
		Help:        "** lists all of them.",
		Examples:    example(`{"pattern": "**/*.md"}`),
	}, func(ctx context.Context, in globInput) (string, error) {
		if w.none() {
			return "[there is no artifact yet]", nil
		}
		g, err := w.folder.Glob(ctx, files.Glob{Pattern: in.Pattern, Path: in.Path, Limit: in.Limit})
		if err != nil {
			return "", err
		}
		return g.String(), nil
	}), files.SummarizePaths)
}

type grepInput struct {
	Pattern    string `json:"pattern" minlen:"1" jsonschema:"regular expression (RE2), or a text if literal"`
	Path       string `json:"path,omitempty" role:"artifact" jsonschema:"the folder or artifact to search; all if left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only artifacts whose names match, such as *.md"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"take the pattern as plain text"`
	Context    int    `json:"context,omitempty" min:"0" max:"10" jsonschema:"lines to show around each match"`
	Limit      int    `json:"limit,omitempty" min:"1" jsonschema:"how many matches to show at most"`
}

func (w *workspace) grep() *tool.Tool {
	return tool.Summarizing(add(tool.Definition{
		Name: "grep", Effect: tool.Reads, Aliases: grepNames, Tags: []string{"search", "text", "content", "find"}, SearchLike: true,
		Description: "Search the contents of the artifacts for a regular expression or a text.",
		Help:        "Each match is shown as path:line: text.",
		Examples:    example(`{"pattern": "TODO", "literal": true}`),
	}, func(ctx context.Context, in grepInput) (string, error) {
		if w.none() {
			return "[there is no artifact yet]", nil
		}
		return w.folder.Grep(ctx, files.Grep{Pattern: in.Pattern, Path: in.Path, Glob: in.Glob, IgnoreCase: in.IgnoreCase,
			Literal: in.Literal, Context: in.Context, Limit: in.Limit})
	}), files.SummarizeMatches)
}

// none reports whether the artifacts' folder does not exist yet.
func (w *workspace) none() bool {
	p, err := w.folder.Resolve(".", root.ToList)
	return err == nil && !p.Exists
}

type deleteInput struct {
	Path      string `json:"path" role:"artifact" minlen:"1" jsonschema:"relative path under the artifacts folder"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"delete a folder with all that it holds"`
}

func (w *workspace) delete() *tool.Tool {
	return changing(w, add(tool.Definition{
		Name: "delete", Effect: tool.Destroys, Aliases: deleteNames, Tags: []string{"file", "remove", "erase"},
		Description: "Delete an artifact, or a folder of artifacts.",
		Help:        "A folder that is not empty is deleted only if recursive is true.",
		SideEffects: []string{"the artifact is gone"},
		Examples:    example(`{"path": "report/old.md"}`),
	}, func(ctx context.Context, in deleteInput) (files.Deleted, error) {
		return w.folder.Delete(ctx, in.Path, in.Recursive)
	}), func(ctx context.Context, in deleteInput) (string, error) { return w.folder.PreviewDelete(ctx, in.Path) })
}
