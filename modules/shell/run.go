package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/tool"
)

// inside reports whether a file or folder lies in the root, its links resolved.
func (s *shell) inside(name string) bool {
	for _, p := range []string{filepath.Clean(name), realPath(name)} {
		if rel, err := filepath.Rel(s.root.Dir(), p); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return filepath.Clean(name)
}

// find returns the program of that name in the trusted folders; "" when there
// is none. An absolute name stands for itself.
func (s *shell) find(name string) (string, error) {
	candidates := []string{name}
	if !filepath.IsAbs(name) {
		candidates = nil
		for _, dir := range s.cfg.Path {
			candidates = append(candidates, filepath.Join(dir, name+programSuffix))
		}
	}
	for _, file := range candidates {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || programSuffix == "" && info.Mode()&0o111 == 0 {
			continue
		}
		if s.inside(file) {
			return "", tool.Errorf(tool.CodePermission, "the program %s leads into the root, where tools could have changed it; the operator sets tools.modules.shell.config.path", file)
		}
		return file, nil
	}
	return "", nil
}

// maxFences bounds what is hidden and kept in the root one by one.
const maxFences = 256

// spec is what the sandbox grants a command.
func (s *shell) spec(ctx context.Context, program string, p *plan, g module.Grant, limit time.Duration) (sandbox.Spec, error) {
	fenced, err := s.root.Fences(ctx, maxFences, p.profile != command.Passive)
	if err != nil {
		return sandbox.Spec{}, tool.Errorf(tool.CodeIgnoredPath, "what is ignored cannot be kept from the command: %v", err)
	}
	passive, keep := p.profile == command.Passive, fenced.Kept
	if p.profile == command.Unrestricted && s.cfg.GitWrite {
		keep = slices.DeleteFunc(keep, func(path string) bool { return filepath.Base(path) == ".git" })
	}
	const mega = 1 << 20
	spec := sandbox.Spec{
		Path: program, Args: p.argv, Dir: p.dir, Env: append(s.environment(p.dir, g.Env), p.env...),
		Root: s.root.Dir(), ReadOnly: passive, Hide: fenced.Hidden, Keep: keep, Stay: fenced.Placed, Network: s.cfg.NeedsNetwork || g.Network,
		Readable: cleaned(s.cfg.Path, s.cfg.Readable),
		Limits: sandbox.Limits{
			Time: limit, Output: s.cfg.MaxOutput, Memory: int64(s.cfg.Limits.Memory) * mega, Processes: s.cfg.Limits.Processes,
			FileSize: int64(s.cfg.Limits.FileSize) * mega, Temp: int64(s.cfg.Limits.Temp) * mega,
		},
	}
	if passive {
		spec.Readable = append(spec.Readable, cleaned(s.cfg.Writable)...)
	} else {
		spec.Writable = cleaned(s.cfg.Writable)
	}
	return spec, nil
}

func cleaned(lists ...[]string) []string {
	var paths []string
	for _, list := range lists {
		for _, p := range list {
			paths = append(paths, filepath.Clean(p))
		}
	}
	return paths
}

// execute runs the program and returns what it printed.
func (s *shell) execute(ctx context.Context, program string, p *plan, g module.Grant, limit time.Duration) (*tool.Result, error) {
	spec, err := s.spec(ctx, program, p, g, limit)
	if err != nil {
		return nil, err
	}
	settings, err := s.withoutFilters(ctx, p, spec)
	if err != nil {
		return nil, err
	}
	spec.Env = append(spec.Env, settings...)
	done, err := s.box.Run(ctx, spec)
	switch {
	case errors.Is(err, sandbox.ErrUnconfined):
		return nil, tool.Errorf(tool.CodePermission, "%v", err)
	case err != nil:
		return nil, tool.AsError(err)
	case done.Ended == "time" || done.Ended == "cancelled":
		return nil, ended(done, limit)
	}
	res := tool.Text(render(done.Code, text(done.Stdout, s.cfg.MaxOutput), text(done.Stderr, s.cfg.MaxOutput)))
	res.Notes = slices.Clone(done.Notes)
	switch {
	case done.Ended != "":
		res.Notes = append(res.Notes, fmt.Sprintf("the command was ended because it exceeded its limit of %s", done.Ended))
	case done.Signal != "":
		res.Notes = append(res.Notes, "the command was ended by the signal: "+done.Signal)
	}
	if done.Held {
		res.Notes = append(res.Notes, "a process that the command left behind held its output open; what it printed later is missing")
	}
	return res, nil
}

// ended returns the error for a command that was not let run to its end.
func ended(done *sandbox.Result, limit time.Duration) *tool.Error {
	const shown = 2 << 10
	printed := fmt.Sprintf("stdout so far:\n%sstderr so far:\n%s", line(text(done.Stdout, shown)), text(done.Stderr, shown))
	if done.Ended == "time" {
		return tool.Errorf(tool.CodeTimeout, "the command was ended after %v, with all that it had started; a longer timeout, %d seconds at most, may help\n%s", limit, maxSeconds, printed).Retry()
	}
	return tool.Errorf(tool.CodeCancelled, "the call was cancelled (%v) and the command ended\n%s", done.Cause, printed)
}

// environment is all that a command sees of the world's settings, beside the
// private folders that the sandbox adds.
func (s *shell) environment(dir string, granted []string) []string {
	var env []string
	for _, name := range slices.Concat(s.cfg.PassEnv, granted) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env,
		"PATH="+strings.Join(s.cfg.Path, string(filepath.ListSeparator)),
		"PWD="+dir, "LANG=C.UTF-8", "TERM=dumb",
		// Git would take a repository above the root for the root's own.
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(s.root.Dir()),
	)
}
