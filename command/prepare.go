package command

import (
	"io/fs"
	"slices"
	"strings"
)

// Prepare returns how a part that p permits is to be run: its arguments with
// harmless options in place of some, and with those that switch off programs
// named by a repository's or project's configuration; and settings NAME=VALUE
// to put over whatever stands in the environment. Under Full the project's own
// configuration counts where its code may run. For a part that p does not
// permit it returns nil; under Unrestricted, the part's own arguments.
//
// The runner must add the rest: an environment without the caller's variables
// (LD_PRELOAD, GIT_EXTERNAL_DIFF, PYTHONPATH, POSIXLY_CORRECT, …), and a PATH of
// trusted directories.
func Prepare(part Part, p Profile) (argv, env []string) {
	if p == Unrestricted {
		return slices.Clone(part.Argv), nil
	}
	r, err := Rules{Profile: p, Resolve: func(string) error { return nil }}.judge(part)
	if err != nil {
		return nil, nil
	}
	argv = slices.Concat(part.Argv[:1], r.program.Insert, r.shape.Before, r.globals, r.words, r.shape.Insert, r.rest)
	return argv, slices.Concat(r.program.Env, r.shape.Env)
}

// Expand replaces the part's globs by the names in fsys that match, sorted, as
// a shell would; a glob that nothing matches stays as it is. fsys is the
// working directory of the run; with the file system of an [os.Root], links
// that lead outside are left out. Names that begin with "-" are written "./-",
// and words that begin with "-" are options and stay as they are.
//
// Judge the expanded part again before running it: only then are the names
// themselves checked.
func Expand(part Part, fsys fs.FS) Part {
	out := Part{Joined: part.Joined}
	for i, arg := range part.Argv {
		pattern, wild := part.glob(i)
		var names []string
		if wild && !strings.HasPrefix(arg, "-") {
			names = matches(fsys, pattern)
		}
		if len(names) == 0 {
			out.Argv = append(out.Argv, arg)
			continue
		}
		out.Argv = append(out.Argv, names...)
	}
	return out
}

// matches returns the names of existing files that the pattern matches.
func matches(fsys fs.FS, pattern string) []string {
	prefix, suffix := "", ""
	for strings.HasPrefix(pattern, "./") {
		pattern, prefix = pattern[2:], "./"
	}
	if strings.HasSuffix(pattern, "/") {
		pattern, suffix = strings.TrimRight(pattern, "/"), "/"
	}
	if pattern == "" || !fs.ValidPath(pattern) {
		return nil
	}
	found, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range found {
		if !sameDots(pattern, name) {
			continue
		}
		if info, err := fs.Stat(fsys, name); err != nil || suffix != "" && !info.IsDir() {
			continue
		}
		if prefix == "" && strings.HasPrefix(name, "-") {
			name = "./" + name
		}
		names = append(names, prefix+name+suffix)
	}
	slices.Sort(names)
	return names
}

// sameDots reports whether hidden names were asked for by their dot.
func sameDots(pattern, name string) bool {
	for {
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(pattern, `\`), ".") {
			return false
		}
		_, restP, okP := strings.Cut(pattern, "/")
		_, restN, okN := strings.Cut(name, "/")
		if !okP || !okN {
			return true
		}
		pattern, name = restP, restN
	}
}
