package filesystem

import (
	"context"
	"fmt"
	"strings"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/tool"
)

type globInput struct {
	Pattern string `json:"pattern" minlen:"1" jsonschema:"such as **/*.go or docs/*.{md,txt}; ** stands for any folders"`
	Path    string `json:"path,omitempty" role:"path.read" default:"\".\"" jsonschema:"the folder from which the pattern counts"`
	Limit   int    `json:"limit,omitempty" min:"1" jsonschema:"how many paths to show at most"`
}

func (m *filesystem) glob() *tool.Tool {
	return tool.Summarizing(add(tool.Definition{
		Name: "glob", Effect: tool.Reads, Aliases: globNames, Tags: []string{"file", "name", "pattern", "find", "path"}, SearchLike: true,
		Description: "Find files and folders whose paths match a pattern.",
		Help:        "A pattern without ** matches only as many levels as it has. Folders end in a slash. Links are not followed.",
		Examples:    example(`{"pattern": "**/*_test.go"}`),
	}, func(ctx context.Context, in globInput) (string, error) {
		g, err := m.folder.Glob(ctx, files.Glob{Pattern: in.Pattern, Path: in.Path, Limit: in.Limit})
		if err != nil {
			return "", err
		}
		return g.String(), nil
	}), files.SummarizePaths)
}

type grepInput struct {
	Pattern    string `json:"pattern" minlen:"1" jsonschema:"regular expression (RE2), or a text if literal"`
	Path       string `json:"path,omitempty" role:"path.read" default:"\".\"" jsonschema:"the folder or file to search"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only files whose names match, such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"take the pattern as plain text"`
	Context    int    `json:"context,omitempty" min:"0" max:"10" jsonschema:"lines to show around each match"`
	Limit      int    `json:"limit,omitempty" min:"1" default:"200" jsonschema:"how many matches to show at most"`
	FilesOnly  bool   `json:"files_only,omitempty" jsonschema:"show only the files and how many matches each has"`
	Multiline  bool   `json:"multiline,omitempty" jsonschema:"let matches span lines; ^ and $ match at every line"`
}

func (m *filesystem) grep() *tool.Tool {
	return tool.Summarizing(add(tool.Definition{
		Name: "grep", Effect: tool.Reads, Aliases: grepNames, Tags: []string{"search", "text", "content", "regex", "code", "find"}, SearchLike: true,
		Description: "Search the contents of files for a regular expression or a text.",
		Help:        "Each match is shown as path:line: text; lines around it as path-line- text. Binary files and what the ignore rules hide are not searched; links are not followed.",
		Examples:    example(`{"pattern": "func \\w+Handler", "path": "src", "glob": "*.go"}`),
	}, func(ctx context.Context, in grepInput) (string, error) {
		return m.folder.Grep(ctx, files.Grep{Pattern: in.Pattern, Path: in.Path, Glob: in.Glob, IgnoreCase: in.IgnoreCase, Literal: in.Literal,
			Context: in.Context, Limit: in.Limit, FilesOnly: in.FilesOnly, Multiline: in.Multiline})
	}), files.SummarizeMatches)
}

type statInput struct {
	Path string `json:"path" role:"path.read" minlen:"1" jsonschema:"the file or folder"`
}

// stated tells about a file or folder.
type stated struct {
	Path     string `json:"path"`
	Type     string `json:"type" enum:"file,folder"`
	Size     int64  `json:"size,omitempty" jsonschema:"bytes"`
	Mode     string `json:"mode" jsonschema:"permissions, such as 0644"`
	Modified string `json:"modified" jsonschema:"RFC 3339"`
	SHA256   string `json:"sha256,omitempty" jsonschema:"of files up to 64 MiB"`
	Lines    *int   `json:"lines,omitempty" jsonschema:"of text files up to 64 MiB"`
	MIME     string `json:"mime,omitempty"`
	LeadsTo  string `json:"leads_to,omitempty" jsonschema:"where the path leads, if there is a link on its way"`
}

func (m *filesystem) stat() *tool.Tool {
	return add(tool.Definition{
		Name: "stat", Effect: tool.Reads, Aliases: statNames, Tags: []string{"file", "size", "modified", "checksum", "exists"},
		Description: "Tell type, size, time, permissions and SHA-256 of a file or folder.",
		Help:        "A path that does not exist is an error that names what is called alike.",
		Examples:    example(`{"path": "go.mod"}`),
	}, func(ctx context.Context, in statInput) (stated, error) { return m.tell(ctx, in.Path) })
}

// maxSummed bounds the files whose digest stat computes.
const maxSummed = 64 << 20

func (m *filesystem) tell(ctx context.Context, name string) (stated, error) {
	p, err := m.folder.Find(ctx, name)
	if err != nil {
		return stated{}, err
	}
	info, err := m.folder.Root.Stat(p)
	if err != nil {
		return stated{}, err
	}
	s := stated{Path: p.Rel, Type: "file", Mode: fmt.Sprintf("%#o", info.Mode.Perm()), Modified: info.ModTime.UTC().Format("2006-01-02T15:04:05Z07:00")}
	if asked := m.folder.Lexical(name); asked != p.Rel {
		s.Path, s.LeadsTo = asked, p.Rel
	}
	if info.Mode.IsDir() {
		s.Type = "folder"
		return s, nil
	}
	s.Size = info.Size
	if info.Size > maxSummed {
		return s, nil
	}
	sum, err := m.folder.Sum(ctx, p)
	if err != nil {
		return stated{}, err
	}
	s.SHA256, s.MIME = sum.SHA256, sum.MIME
	if sum.Text {
		s.Lines = &sum.Lines
	}
	return s, nil
}

// joinNames lists at most n names.
func joinNames(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
