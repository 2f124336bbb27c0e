// Package results is the module that reads and saves the parts of results that could not be shown whole.
package results

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/helve-ai/helve/files"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// Module is the results module. It is open in every app.
var Module = always(module.New("results", "Read any part of a result that was cut, and save what is not text.", Config{}, open))

func always(m *module.Module) *module.Module { m.Always = true; return m }

// Config configures the module. There is nothing to configure.
type Config struct{}

// The bounds of one answer, in characters; both leave room below the
// pipeline's limit, so that an answer is never cut in turn.
const (
	maxLength  = 9000
	maxMatches = 20
	around     = 200 // characters shown on each side of a match
)

type input struct {
	ID     string `json:"id" maxlen:"64" jsonschema:"the id in the marker of the cut result"`
	Offset int    `json:"offset,omitempty" min:"0" jsonschema:"where to begin, in characters"`
	Length int    `json:"length,omitempty" min:"1" max:"9000" jsonschema:"how many characters; all that fit if left out"`
	Search string `json:"search,omitempty" jsonschema:"show the places that contain this text instead, case ignored"`
}

func open(_ context.Context, h *module.Host, _ Config) (*module.Toolset, error) {
	read := tool.NewFor(tool.Definition{
		Name:        "results.read",
		Description: "Read any part of a result that was too long to be shown whole, by offset or by search.",
		Help:        "A cut result carries a marker with its id. Of binary data it says what it is; results.save writes that to a file. Only the session that got the result can read it.",
		Effect:      tool.Reads, Category: tool.AgentWork, Group: tool.GroupRead, ParallelSafe: true,
		Aliases: []string{"read_tool_result", "get_tool_result", "lire le résultat", "leer resultado", "Ergebnis lesen"},
	}, func(ctx context.Context, c *tool.Call, in input) (string, error) {
		spill, err := load(ctx, h.Store, c.From, in.ID)
		if err != nil {
			return "", err
		}
		text := spill.Text
		if spill.Outside && c.Trail != nil {
			c.Trail.Outside = true
		}
		if spill.Binary() {
			return describe(in.ID, &spill), nil
		}
		if in.Search != "" {
			return find(text, in), nil
		}
		return slice(text, in)
	})
	return &module.Toolset{Tools: []*tool.Tool{read, save(h)}}, nil
}

// describe says what binary data is.
func describe(id string, s *guard.Spill) string {
	return fmt.Sprintf(`[%s is binary data: %s, %d bytes, sha256 %s, from %s; call results.save with {"id": %q, "path": "…"} to write it to a file]`,
		id, s.MIME, len(s.Data), files.Digest(s.Data), s.Tool, id)
}

type saveInput struct {
	ID   string `json:"id" maxlen:"64" jsonschema:"the id in the result"`
	Path string `json:"path" role:"path.write" minlen:"1" jsonschema:"the file to write"`
}

// maxSaved bounds the bytes of a file that is saved; what is kept is smaller.
const maxSaved = 256 << 20

func save(h *module.Host) *tool.Tool {
	folder := &files.Folder{Root: h.Root, MaxWrite: maxSaved}
	write := func(ctx context.Context, from tool.Origin, in saveInput) (files.Write, error) {
		spill, err := load(ctx, h.Store, from, in.ID)
		return files.Write{Path: in.Path, Content: string(spill.Bytes()), CreateDirs: true}, err
	}
	t := tool.NewFor(tool.Definition{
		Name:        "results.save",
		Description: "Write a kept result to a file: binary data that a result only names, or the whole of a cut text.",
		Help:        "Results name what is not text by type, size and id, as in [application/pdf, 12,345 bytes, kept as r_…]. A file that exists is replaced in one step; missing folders are made.",
		Effect:      tool.Writes, Category: tool.Filesystem, Group: tool.GroupEdit, Needs: tool.NeedsFilesystem,
		Tags:        []string{"binary", "download", "file", "attachment", "save", "result"},
		SideEffects: []string{"the file's former content is replaced", "missing folders are made"},
	}, func(ctx context.Context, c *tool.Call, in saveInput) (files.Written, error) {
		w, err := write(ctx, c.From, in)
		if err != nil {
			return files.Written{}, err
		}
		done, err := folder.Write(ctx, w)
		return done, plain(err)
	})
	t.Preview = func(ctx context.Context, c *tool.Call) (string, error) {
		var in saveInput
		if err := c.Decode(&in); err != nil {
			return "", err
		}
		w, err := write(ctx, c.From, in)
		if err != nil {
			return "", err
		}
		return folder.PreviewWrite(ctx, w)
	}
	return t
}

// plain returns an error as a model may read it.
func plain(err error) error {
	var refused *root.Error
	if errors.As(err, &refused) {
		return guard.PathError("", refused)
	}
	return files.Plain(err)
}

func load(ctx context.Context, s store.Store, from tool.Origin, id string) (guard.Spill, error) {
	var spill guard.Spill
	err := s.View(ctx, func(r store.Reader) (err error) {
		spill, err = guard.Spilled.Get(r, id)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !spill.Readable(from):
		return spill, tool.Errorf(tool.CodeRuntime, "this session has no result with the id %q; use the id from the marker of the cut result", id)
	case err != nil:
		return spill, err
	}
	return spill, nil
}

func slice(text string, in input) (string, error) {
	total := utf8.RuneCountInString(text)
	if in.Offset >= total {
		return "", tool.Errorf(tool.CodeValidation, "/offset: is %d, but the result has only %d characters", in.Offset, total)
	}
	if in.Length == 0 {
		in.Length = maxLength
	}
	chars := []rune(text)
	end := min(in.Offset+in.Length, total)
	part := string(chars[in.Offset:end])
	if end == total {
		return fmt.Sprintf("%s\n[characters %d to %d of %d: the end]", part, in.Offset, end, total), nil
	}
	return fmt.Sprintf("%s\n[characters %d to %d of %d; continue with offset %d]", part, in.Offset, end, total, end), nil
}

// find lists the places of text that contain what is searched, with what stands around them.
func find(text string, in input) string {
	chars, low, want := []rune(text), foldRunes(text), foldRunes(in.Search)
	var b strings.Builder
	count, used := 0, 0
	for i := in.Offset; i+len(want) <= len(low); {
		if !hasPrefix(low[i:], want) {
			i++
			continue
		}
		if count++; count <= maxMatches && used < maxLength-2*around-200 {
			from, to := max(0, i-around), min(len(chars), i+len(want)+around)
			part := fmt.Sprintf("[at character %d]\n%s\n\n", i, string(chars[from:to]))
			used += utf8.RuneCountInString(part)
			b.WriteString(part)
		}
		i += len(want)
	}
	if count == 0 {
		return fmt.Sprintf("[%q does not occur in the %d characters from %d on]", in.Search, max(0, len(chars)-in.Offset), in.Offset)
	}
	fmt.Fprintf(&b, "[%d places contain %q; at most %d are shown]", count, in.Search, maxMatches)
	return b.String()
}

// foldRunes lowers each character on its own, so that places stay what they were.
func foldRunes(s string) []rune {
	out := []rune(s)
	for i, r := range out {
		if low := []rune(strings.ToLower(string(r))); len(low) == 1 {
			out[i] = low[0]
		}
	}
	return out
}

func hasPrefix(s, prefix []rune) bool {
	for i := range prefix {
		if s[i] != prefix[i] {
			return false
		}
	}
	return true
}
