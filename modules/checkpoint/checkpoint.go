// Package checkpoint is the module of tools that show what files were before calls changed them, and put it back.
package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// Module is the checkpoint module.
var Module = module.New("checkpoint", "Show what files were before calls changed them, and put it back.", Config{}, open)

// Config configures the module. There is nothing to configure: the limits of
// checkpoints are those of the app, under runtime.checkpoints.
type Config struct{}

// The bounds of one answer.
const (
	maxDiff    = 64 << 10 // bytes
	maxContent = 256 << 10
	maxNamed   = 20 // paths in a message
)

// checkpoints is the open module.
type checkpoints struct {
	keeper *checkpoint.Keeper // nil: there is only a description
	root   *root.Root
	now    func() time.Time
}

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	m := &checkpoints{keeper: h.Checkpoints, root: h.Root, now: h.Now}
	return &module.Toolset{Tools: []*tool.Tool{m.list(), m.read(), m.diff(), m.restore()}}, nil
}

// add returns a tool of the module whose errors are fit to be read by a model.
func add[In, Out any](m *checkpoints, def tool.Definition, fn func(context.Context, *tool.Call, In) (Out, error)) *tool.Tool {
	def.Name = "checkpoint." + def.Name
	def.Category, def.Needs = tool.Filesystem, tool.NeedsFilesystem
	def.ParallelSafe = def.Effect == tool.Reads
	def.Tags = append(def.Tags, "checkpoint", "history", "version", "undo")
	return tool.NewFor(def, func(ctx context.Context, c *tool.Call, in In) (out Out, err error) {
		if m.keeper == nil {
			return out, tool.Errorf(tool.CodePermission, "this app keeps no checkpoints")
		}
		out, err = fn(ctx, c, in)
		return out, plain(err)
	})
}

// plain returns an error as a model may read it.
func plain(err error) error {
	var refused *root.Error
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return tool.Errorf(tool.CodeRuntime, "%v; checkpoint.list shows those that there are", err)
	case errors.As(err, &refused):
		return guard.PathError("", refused)
	}
	return err
}

func example(args string) []json.RawMessage { return []json.RawMessage{json.RawMessage(args)} }

type listInput struct {
	Path    string `json:"path,omitempty" role:"path.read" minlen:"1" jsonschema:"only calls that changed this file, or what lies in this folder"`
	Tool    string `json:"tool,omitempty" jsonschema:"only calls of this tool"`
	Session string `json:"session,omitempty" jsonschema:"only calls of this session"`
	Since   string `json:"since,omitempty" jsonschema:"only later than this: a duration such as 2h, or an RFC 3339 time"`
	Limit   int    `json:"limit,omitempty" min:"1" max:"500" default:"50" jsonschema:"the newest so many"`
}

func (m *checkpoints) list() *tool.Tool {
	return add(m, tool.Definition{
		Name: "list", Effect: tool.Reads, Aliases: []string{"list_checkpoints", "checkpoints", "file_history", "list the changes that can be undone",
			"Sicherungspunkte auflisten", "lister les points de restauration", "listar puntos de restauración", "列出检查点"},
		Description: "List the calls that changed files, the newest first, with the checkpoints made before them.",
		Help:        "Each line gives the checkpoint's id, its time, the tool, how many files it changed and their names. Before every call that writes or deletes, the files are saved; calls that changed nothing are not listed. What the ignore rules hide is not named.",
		Examples:    example(`{"path": "src", "since": "2h"}`),
	}, func(ctx context.Context, _ *tool.Call, in listInput) (string, error) {
		f := checkpoint.Filter{Session: in.Session, Tool: in.Tool, Limit: in.Limit}
		if f.Limit == 0 {
			f.Limit = 50
		}
		var err error
		if f.Since, err = m.since(in.Since); err != nil {
			return "", err
		}
		if in.Path != "" {
			p, err := m.root.Resolve(in.Path, root.ToRead)
			if err != nil {
				return "", err
			}
			f.Path = p.Rel
		}
		all, err := m.keeper.List(ctx, f)
		if err != nil {
			return "", err
		}
		if len(all) == 0 {
			return "[no checkpoint fits]", nil
		}
		var b strings.Builder
		for _, c := range all {
			fmt.Fprintln(&b, Line(c))
		}
		return strings.TrimSuffix(b.String(), "\n"), nil
	})
}

// Line describes a checkpoint in a line.
func Line(c checkpoint.Checkpoint) string {
	text := fmt.Sprintf("%d  %s  %s  %s", c.ID, c.Time.UTC().Format(time.RFC3339), c.Tool, About(c))
	switch {
	case c.Undone:
		text += "  [taken back]"
	case c.Open:
		text += "  [under way, or cut short]"
	}
	return text
}

// About says which files a checkpoint is about.
func About(c checkpoint.Checkpoint) string {
	names := strings.Join(c.Paths, ", ")
	if more := c.Files - len(c.Paths); more > 0 && len(c.Paths) > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if c.Undoes != nil {
		names = fmt.Sprintf("(takes back %d", c.Undoes.First) + until(c.Undoes) + ") " + names
	}
	if c.Detail != "" {
		names = strings.TrimSpace(c.Detail + "  " + names)
	}
	return names
}

func until(s *checkpoint.Span) string {
	if s.Last == s.First {
		return ""
	}
	return fmt.Sprintf(" to %d", s.Last)
}

func (m *checkpoints) since(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return m.now().Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, tool.Errorf(tool.CodeValidation, "/since: %q is neither a duration such as 2h nor a time such as 2026-01-31T12:00:00Z", text)
	}
	return at, nil
}

type readInput struct {
	ID   int64  `json:"id" min:"1" jsonschema:"of the checkpoint"`
	Path string `json:"path" role:"path.read" minlen:"1" jsonschema:"the file, as it is now or was then"`
}

func (m *checkpoints) read() *tool.Tool {
	return add(m, tool.Definition{
		Name: "read", Effect: tool.Reads, Aliases: []string{"read_checkpoint", "read_old_version", "read the former content of a file", "frühere Fassung lesen", "lire l'ancienne version", "leer la versión anterior", "读取旧版本"},
		Description: "Read what a file was before a call changed it.",
		Help:        "A binary file is named by size and SHA-256. A path that did not exist before the call is told as such.",
		Examples:    example(`{"id": 12, "path": "docs/guide.md"}`),
	}, func(ctx context.Context, _ *tool.Call, in readInput) (string, error) {
		f, err := m.file(ctx, in.ID, in.Path)
		if err != nil {
			return "", err
		}
		if f.Before.Kind != checkpoint.Regular {
			return fmt.Sprintf("[before the call there was %s]", f.Before), nil
		}
		data, err := m.keeper.Content(ctx, f.Before, maxContent+1)
		if err != nil {
			return "", err
		}
		cut := len(data) > maxContent
		if cut {
			data = []byte(strings.ToValidUTF8(string(data[:maxContent]), ""))
		}
		switch {
		case !checkpoint.Text(data):
			return fmt.Sprintf("[a binary file of %d bytes, sha256 %s]", f.Before.Size, f.Before.Digest), nil
		case cut:
			return fmt.Sprintf("%s\n[the first %d of %d bytes; checkpoint.restore brings back all]", data, len(data), f.Before.Size), nil
		}
		return string(data), nil
	})
}

// file finds a file of a checkpoint.
func (m *checkpoints) file(ctx context.Context, id int64, name string) (checkpoint.File, error) {
	_, files, err := m.keeper.Get(ctx, id)
	if err != nil {
		return checkpoint.File{}, err
	}
	rel := m.rel(name)
	var names []string
	for _, f := range files {
		if f.Path == rel {
			return f, nil
		}
		if len(names) < maxNamed {
			names = append(names, f.Path)
		}
	}
	return checkpoint.File{}, tool.Errorf(tool.CodeRuntime, "checkpoint %d has no file %s; it has %s", id, rel, strings.Join(names, ", "))
}

// rel returns a name as one that counts from the root. What the name stood for
// may be gone, so that links on its way are not followed.
func (m *checkpoints) rel(name string) string {
	if name == "" {
		return ""
	}
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(m.root.Dir(), name); err == nil {
			name = rel
		}
	}
	return filepath.ToSlash(filepath.Clean(name))
}

type diffInput struct {
	ID    int64  `json:"id" min:"1" jsonschema:"of the checkpoint"`
	Path  string `json:"path,omitempty" role:"path.read" minlen:"1" jsonschema:"only this file, or what lies in this folder"`
	Since bool   `json:"since,omitempty" jsonschema:"what this call and all later ones changed, not this one alone"`
}

func (m *checkpoints) diff() *tool.Tool {
	return add(m, tool.Definition{
		Name: "diff", Effect: tool.Reads, Aliases: []string{"diff_checkpoint", "compare_checkpoint", "compare with the former content", "mit früherer Fassung vergleichen", "comparer avec l'ancienne version", "comparar con la versión anterior", "比较旧版本"},
		Description: "Show the difference between what files were before a call and what they are now, as a unified diff.",
		Help:        "Binary and very large files are only named.",
		Examples:    example(`{"id": 12}`),
	}, func(ctx context.Context, _ *tool.Call, in diffInput) (string, error) {
		plan, err := m.keeper.Plan(ctx, checkpoint.Selection{ID: in.ID, Since: in.Since, Path: m.rel(in.Path), Force: true})
		if err != nil {
			return "", err
		}
		text, err := m.keeper.DiffSince(ctx, plan, maxDiff)
		if err == nil && text == "" {
			text = "[everything is as it was before]"
		}
		return text, err
	})
}

type restoreInput struct {
	ID    int64  `json:"id" min:"1" jsonschema:"of the checkpoint"`
	Path  string `json:"path,omitempty" role:"path.write" minlen:"1" jsonschema:"only this file, or what lies in this folder"`
	Since bool   `json:"since,omitempty" jsonschema:"take back this call and all later ones, not this one alone"`
	Force bool   `json:"force,omitempty" jsonschema:"also restore what others have changed since, which is then lost from the file but kept in a checkpoint"`
}

func (m *checkpoints) restore() *tool.Tool {
	t := add(m, tool.Definition{
		Name: "restore", Effect: tool.Writes, Aliases: []string{"restore_checkpoint", "rollback", "undo_changes", "undo a change to a file", "Änderung rückgängig machen", "annuler une modification", "deshacer un cambio", "撤销更改"},
		Description: "Put files back to what they were before a call changed them.",
		Help:        "One file (path), all files of one call, or everything since a checkpoint (since). Files that the calls made are removed. If anything was changed by others since, nothing is restored unless force is true. Restoring makes a checkpoint of its own, so that it can be taken back.",
		SideEffects: []string{"the files are replaced, made or removed"},
		Examples:    example(`{"id": 12, "path": "docs/guide.md"}`),
	}, func(ctx context.Context, c *tool.Call, in restoreInput) (string, error) {
		plan, err := m.plan(ctx, c.ID, in)
		if err != nil {
			return "", err
		}
		out, err := m.keeper.Restore(ctx, c.ID, plan)
		if err != nil {
			return "", err
		}
		return report(plan, out)
	})
	t.Touches = func(ctx context.Context, c *tool.Call) ([]string, error) {
		plan, err := m.planOf(ctx, c)
		if err != nil {
			return nil, err
		}
		var touched []string
		for _, target := range plan.Touches() {
			touched = append(touched, filepath.Join(m.root.Dir(), filepath.FromSlash(target.Path)))
		}
		return touched, nil
	}
	t.Preview = func(ctx context.Context, c *tool.Call) (string, error) {
		plan, err := m.planOf(ctx, c)
		if err != nil {
			return "", err
		}
		return m.keeper.Diff(ctx, plan, maxDiff/4)
	}
	return t
}

func (m *checkpoints) planOf(ctx context.Context, c *tool.Call) (*checkpoint.Plan, error) {
	var in restoreInput
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if m.keeper == nil {
		return nil, tool.Errorf(tool.CodePermission, "this app keeps no checkpoints")
	}
	plan, err := m.plan(ctx, c.ID, in)
	return plan, plain(err)
}

// plan works out a restore, and refuses it if others have changed anything since.
func (m *checkpoints) plan(ctx context.Context, call string, in restoreInput) (*checkpoint.Plan, error) {
	plan, err := m.keeper.Plan(ctx, checkpoint.Selection{ID: in.ID, Since: in.Since, Path: m.rel(in.Path), Force: in.Force, Call: call})
	if err != nil {
		return nil, err
	}
	if conflicts := plan.Conflicts(); len(conflicts) > 0 {
		return nil, tool.Errorf(tool.CodeStaleFile, "nothing was restored: %s; look at checkpoint.diff, then set force to true to restore it all the same", few(conflicts))
	}
	return plan, nil
}

func few(lines []string) string {
	if len(lines) > maxNamed {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:maxNamed], "; "), len(lines)-maxNamed)
	}
	return strings.Join(lines, "; ")
}

func report(plan *checkpoint.Plan, out *checkpoint.Restored) (string, error) {
	var b strings.Builder
	if len(out.Restored) == 0 && len(out.Failed) == 0 {
		b.WriteString("nothing had to be restored\n")
	}
	byPath := map[string]checkpoint.Change{}
	for _, c := range plan.Changes {
		byPath[c.Path] = c
	}
	for i, path := range out.Restored {
		if i == 10*maxNamed {
			fmt.Fprintf(&b, "and %d more\n", len(out.Restored)-i)
			break
		}
		c := byPath[path]
		if c.Then.Kind == checkpoint.Absent {
			fmt.Fprintf(&b, "removed %s", path)
		} else {
			fmt.Fprintf(&b, "restored %s: %s", path, c.Then)
		}
		if c.Unsure {
			b.WriteString(" (the call was cut short: whether others had changed it since is not known)")
		}
		b.WriteByte('\n')
	}
	for _, dir := range out.Kept {
		fmt.Fprintf(&b, "kept %s: it holds other things\n", dir)
	}
	for _, line := range plan.Skipped() {
		fmt.Fprintf(&b, "not restored: %s\n", line)
	}
	if plan.Ignored > 0 {
		fmt.Fprintf(&b, "not restored: %d paths that are ignored now\n", plan.Ignored)
	}
	if len(out.Failed) > 0 {
		return "", tool.Errorf(tool.CodeRuntime, "not everything could be restored: %s\n%s", few(out.Failed), b.String())
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
