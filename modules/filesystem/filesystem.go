// Package filesystem is the module of tools that read, change and search the files under the root.
package filesystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/tool"
)

// Module is the filesystem module.
var Module = module.New("filesystem", "Read, write, edit, search and move the files under the root folder.", Config{
	MaxReadBytes:  files.DefaultMaxRead,
	MaxWriteBytes: files.DefaultMaxWrite,
	MaxResults:    files.DefaultMaxResults,
	MaxZipBytes:   512 << 20,
}, open)

// Config configures the module.
type Config struct {
	MaxReadBytes  int64       `json:"max_read_bytes" min:"1" max:"268435456" jsonschema:"bytes of a file that is read whole; of a larger one, only parts are"`
	MaxWriteBytes int64       `json:"max_write_bytes" min:"1" max:"268435456" jsonschema:"bytes that one call may write"`
	MaxResults    int         `json:"max_results" min:"1" max:"100000" jsonschema:"entries that a listing or a search returns at most"`
	MaxZipBytes   int64       `json:"max_zip_bytes" min:"1" max:"10737418240" jsonschema:"bytes that extract_zip unpacks at most"`
	Constraints   Constraints `json:"constraints,omitzero"`
}

// Constraints narrow what the module's tools may do. They bind every caller.
type Constraints struct {
	ReadOnly bool     `json:"read_only,omitempty" jsonschema:"refuse every tool that changes files"`
	Paths    []string `json:"paths,omitempty" jsonschema:"globs of the paths that may be used, from the root, such as docs/**; none: all"`
}

// Validate reports the first setting that cannot be meant.
func (c Config) Validate() error {
	for _, limit := range []struct {
		name  string
		value int64
	}{{"max_read_bytes", c.MaxReadBytes}, {"max_write_bytes", c.MaxWriteBytes}, {"max_results", int64(c.MaxResults)}, {"max_zip_bytes", c.MaxZipBytes}} {
		if limit.value <= 0 {
			return fmt.Errorf("%s: %d is not above zero", limit.name, limit.value)
		}
	}
	for i, glob := range c.Constraints.Paths {
		switch {
		case !doublestar.ValidatePattern(glob):
			return fmt.Errorf("constraints.paths[%d]: %q is not a valid glob", i, glob)
		case strings.HasPrefix(glob, "/"), strings.HasPrefix(glob, "./"), strings.Contains("/"+glob+"/", "/../"):
			return fmt.Errorf("constraints.paths[%d]: %q does not count from the root; write it as docs/**", i, glob)
		}
	}
	return nil
}

// filesystem is the open module.
type filesystem struct {
	cfg    Config
	folder *files.Folder
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	m := &filesystem{cfg: c}
	m.folder = &files.Folder{
		Root: h.Root, MaxRead: c.MaxReadBytes, MaxWrite: c.MaxWriteBytes, MaxResults: c.MaxResults, Accept: c.Constraints.accept,
	}
	return &module.Toolset{Judge: m.judge, Tools: m.tools()}, nil
}

// accept refuses the paths that the constraints leave out. A folder that
// encloses allowed paths may be listed.
func (c Constraints) accept(rel string, access root.Access, isDir bool) error {
	if c.ReadOnly && (access == root.ToWrite || access == root.ToDelete) {
		return tool.Errorf(tool.CodePermission, "files may be read only: this app's filesystem constraints say read_only")
	}
	if len(c.Paths) == 0 {
		return nil
	}
	for _, glob := range c.Paths {
		if doublestar.MatchUnvalidated(glob, rel) {
			return nil
		}
		if isDir && (access == root.ToList || access == root.ToRead) && encloses(rel, glob) {
			return nil
		}
	}
	return tool.Errorf(tool.CodePermission, "path %q: this app may use only %s", rel, strings.Join(c.Paths, ", "))
}

// encloses reports whether paths that match glob may lie beneath the folder rel.
func encloses(rel, glob string) bool {
	if rel == "." {
		return true
	}
	parts := strings.Split(glob, "/")
	for i, component := range strings.Split(rel, "/") {
		switch {
		case i >= len(parts):
			return false
		case parts[i] == "**":
			return true
		case strings.ContainsAny(parts[i], "{}") || !doublestar.MatchUnvalidated(parts[i], component):
			// braces may hold slashes; what is beneath is judged by itself anyway
			return strings.ContainsAny(parts[i], "{}")
		}
	}
	return true
}

// judge is the module's default policy: its constraints, and nothing else.
func (m *filesystem) judge(_ context.Context, c *tool.Call) (tool.Verdict, string) {
	if m.cfg.Constraints.ReadOnly && !c.Tool.IsRead() {
		return tool.Deny, "the filesystem constraints of this app say read_only"
	}
	if len(m.cfg.Constraints.Paths) == 0 {
		return tool.Silent, ""
	}
	values, err := c.Tool.Input.Values(c.Args)
	if err != nil {
		return tool.Deny, fmt.Sprintf("the paths in the arguments cannot be told: %v", err)
	}
	for _, v := range values {
		if !v.Role.IsPath() {
			continue
		}
		if _, err := m.folder.Resolve(v.Text, accessOf(v.Role)); err != nil {
			return tool.Deny, strings.TrimPrefix(err.Error(), string(tool.CodePermission)+": ")
		}
	}
	return tool.Silent, ""
}

func accessOf(role schema.Role) root.Access {
	switch role {
	case schema.PathWrite:
		return root.ToWrite
	case schema.PathDelete:
		return root.ToDelete
	}
	return root.ToRead
}

// add returns a tool of the module whose errors are fit to be read by a model.
func add[In, Out any](def tool.Definition, fn func(context.Context, In) (Out, error)) *tool.Tool {
	def.Name = "filesystem." + def.Name
	def.Category, def.Needs = tool.Filesystem, tool.NeedsFilesystem
	def.ParallelSafe = def.Effect == tool.Reads
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

// example is an example of a tool's arguments.
func example(args string) []json.RawMessage { return []json.RawMessage{json.RawMessage(args)} }
