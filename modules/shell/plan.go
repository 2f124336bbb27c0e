package shell

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/tool"
)

// plan is what a call is to run.
type plan struct {
	profile   command.Profile
	argv, env []string
	dir       string // absolute
}

// plan judges a call and returns what it is to run. Policy and handler both
// ask it, so that what is judged is what runs.
func (s *shell) plan(in input) (*plan, *tool.Error) {
	if in.Profile == "" {
		in.Profile = command.Passive
	}
	if !s.cfg.Profile.Permits(in.Profile) {
		return nil, tool.Errorf(tool.CodePermission, "profile %s is above %s, the most that this app permits; the operator sets tools.modules.shell.config.profile", in.Profile, s.cfg.Profile)
	}
	if s.root == nil {
		return nil, tool.Errorf(tool.CodePermission, "there is no root folder, so no command may run")
	}
	if in.Cwd == "" {
		in.Cwd = "."
	}
	cwd, err := s.root.Resolve(in.Cwd, root.ToRead)
	if err != nil {
		return nil, guard.PathError("cwd", err)
	}
	if !cwd.Mode.IsDir() || !cwd.Exists {
		return nil, tool.Errorf(tool.CodeValidation, "cwd: %q is not a folder that exists", in.Cwd)
	}
	p := &plan{profile: in.Profile, dir: cwd.Abs}
	if in.Profile == command.Unrestricted {
		if strings.TrimSpace(in.Cmd) == "" || strings.ContainsRune(in.Cmd, 0) {
			return nil, tool.Errorf(tool.CodePermission, "cmd: it is empty or holds a NUL byte; write a command")
		}
		p.argv = []string{shellProgram, "-c", in.Cmd}
		return p, nil
	}
	j := &judging{shell: s, cwd: cwd.Rel, profile: in.Profile}
	if p.argv, p.env, err = j.judge(in.Cmd); err != nil {
		return nil, tool.Errorf(j.code(), "%v", err)
	}
	return p, nil
}

// judging is the decision about one command line under an allowlist.
type judging struct {
	shell   *shell
	cwd     string // from the root
	base    string // the folder to which git's -C leads, as inCwd writes it; "": none does
	profile command.Profile
	ignored bool // the last path that was refused is blocked or protected
}

func (j *judging) code() tool.Code {
	if j.ignored {
		return tool.CodeIgnoredPath
	}
	return tool.CodePermission
}

// judge returns the arguments and settings with which the command is to run.
func (j *judging) judge(text string) (argv, env []string, err error) {
	line, err := command.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	rules := command.Rules{Profile: j.profile, Resolve: func(name string) error { _, err := j.resolve(name, root.ToRead); return err }}
	if err := rules.Judge(line); err != nil {
		return nil, nil, err
	}
	part := line.Parts[0]
	if len(part.Globs) > 0 {
		files := newGlobFiles(j.shell.root, j.cwd)
		part = command.Expand(part, files)
		if files.left < 0 {
			return nil, nil, &command.Refusal{Construct: "glob", Text: text, Reason: "its wildcards meet too many files", Remedy: "name a smaller folder"}
		}
		line.Parts[0] = part
		if err := rules.Judge(line); err != nil {
			return nil, nil, err
		}
	}
	argv, env = command.Prepare(part, j.profile)
	if len(argv) == 0 {
		return nil, nil, &command.Refusal{Construct: "program", Text: text, Reason: "it cannot be prepared"}
	}
	// The shape that Prepare chose may name other files than the one that Judge found.
	files, err := command.Files(line, j.profile)
	if err != nil {
		return nil, nil, err
	}
	argv, err = j.judgeFiles(argv, files)
	return argv, env, err
}

// judgeFiles judges every file for what the command does with it.
func (j *judging) judgeFiles(argv []string, files []command.File) ([]string, error) {
	if argv[0] == "git" {
		for i, chosen := 0, folderOptions(argv); i < len(chosen); i += 2 {
			if j.base == "" || isAbs(chosen[i+1]) || path.IsAbs(chosen[i+1]) {
				j.base = j.inCwd(chosen[i+1])
			} else {
				j.base += "/" + chosen[i+1]
			}
		}
	}
	places := make([]root.Path, len(files))
	for i, f := range files {
		access := root.ToRead
		if f.Write {
			access = root.ToWrite
		}
		place, err := j.resolve(f.Path, access)
		if err != nil {
			return nil, refusedPath(f.Path, err)
		}
		places[i] = place
	}
	if err := j.judgeWords(argv); err != nil {
		return nil, err
	}
	if argv[0] == "cp" || argv[0] == "mv" {
		if err := j.judgeCopy(argv, places); err != nil {
			return nil, err
		}
	}
	argv, err := j.judgeHistory(argv)
	if err != nil {
		return nil, err
	}
	return j.judgeWalk(argv, places)
}

func refusedPath(name string, err error) error {
	return &command.Refusal{Construct: "path", Text: name, Reason: err.Error(), Remedy: "name another file"}
}

// resolve returns the place of a name in the working directory. The name may
// also be a git revision, with the path of a file in it.
func (j *judging) resolve(name string, access root.Access) (root.Path, error) {
	place, err := j.shell.root.Resolve(j.inCwd(name), access)
	if err == nil {
		err = j.resolveInside(name)
	}
	if err == nil {
		return place, nil
	}
	var e *root.Error
	if !errors.As(err, &e) {
		return place, err
	}
	j.ignored = e.Code == root.Blocked || e.Code == root.Protected
	return place, errors.New(e.Reason) // the refusal names the path itself
}

// resolveInside judges the paths behind the colons of a revision (HEAD:a,
// :0:a) or of a pathspec (:(top)a, :!a). Git counts them from the repository's
// top, which may be the root, or from the working directory, to which -C may
// have led.
func (j *judging) resolveInside(name string) error {
	for {
		_, inside, ok := strings.Cut(name, ":")
		if !ok {
			return nil
		}
		name = inside
		if strings.HasPrefix(inside, "(") {
			_, inside, _ = strings.Cut(inside, ")")
		}
		if inside = strings.TrimLeft(inside, ":/!^"); inside == "" {
			continue
		}
		candidates := []string{j.inCwd(inside)}
		if j.base != "" {
			candidates = append(candidates, j.base+"/"+inside)
		}
		if !strings.HasPrefix(inside, "./") && !strings.HasPrefix(inside, "../") { // those count from the working directory
			candidates = append(candidates, inside)
		}
		for _, candidate := range candidates {
			if _, err := j.shell.root.Resolve(candidate, root.ToRead); root.CodeOf(err) != 0 {
				return err
			}
		}
	}
}

// judgeWords refuses words of git that are no operands and yet name an ignored
// file behind a colon, as git log -L1,9:a does.
func (j *judging) judgeWords(argv []string) error {
	if argv[0] != "git" {
		return nil
	}
	for _, word := range argv[1:] {
		if err := j.resolveInside(word); root.CodeOf(err) == root.Blocked {
			j.ignored = true
			return refusedPath(word, err)
		}
	}
	return nil
}

// inCwd makes a name one that counts from the root, without cleaning it: what
// ".." means depends on the links before it.
func (j *judging) inCwd(name string) string {
	if j.cwd == "." || name == "" || path.IsAbs(name) || isAbs(name) {
		return name
	}
	return j.cwd + "/" + name
}

// judgeCopy judges where files arrive when the destination is a folder, and
// that what is moved may be taken away.
func (j *judging) judgeCopy(argv []string, places []root.Path) error {
	into := hasOption(argv, "t", "--target-directory")
	for i, p := range places {
		last := i == len(places)-1 && !into
		if argv[0] == "mv" && p.Exists && !last {
			if _, err := j.shell.root.Resolve(p.Rel, root.ToDelete); err != nil {
				j.ignored = true
				return refusedPath(p.Rel, err)
			}
		}
		for k, dest := range places {
			if k == i || !dest.Mode.IsDir() {
				continue
			}
			arrives := path.Join(dest.Rel, path.Base(p.Rel))
			if _, err := j.shell.root.Resolve(arrives, root.ToWrite); err != nil {
				j.ignored = true
				return refusedPath(arrives, err)
			}
		}
	}
	return nil
}

// hasOption reports whether a cluster of short options has one of the letters,
// or one of the long options is given.
func hasOption(argv []string, letters string, long ...string) bool {
	return slices.ContainsFunc(argv[1:], func(word string) bool {
		if strings.HasPrefix(word, "--") {
			name, _, _ := strings.Cut(word, "=")
			return slices.Contains(long, name)
		}
		return strings.HasPrefix(word, "-") && strings.ContainsAny(word[1:], letters)
	})
}

// judgeWalk refuses programs that show or copy the content of all files of a
// folder in which something is ignored. It takes Helve's and git's own folders
// out of the walk where the program has an option for that.
func (j *judging) judgeWalk(argv []string, places []root.Path) ([]string, error) {
	w, walks := walkOf(argv)
	if !walks {
		return argv, nil
	}
	var folders []string
	for i, p := range places {
		if p.Mode.IsDir() && !(w.keepLast && i == len(places)-1) {
			folders = append(folders, p.Rel)
		}
	}
	if len(places) == 0 || w.cwd {
		folders = append(folders, j.cwd)
	}
	for _, folder := range folders {
		found, err := ignoredBeneath(j.shell.root, folder, w.own)
		if err != nil {
			return nil, refusedPath(folder, err)
		}
		if found {
			j.ignored = true
			return nil, &command.Refusal{Construct: "path", Text: folder, Reason: fmt.Sprintf("something beneath it is ignored, which %s would open", argv[0]), Remedy: "name files or a smaller folder, or use the tools for files, which leave it out"}
		}
	}
	return slices.Insert(slices.Clone(argv), 1, w.insert...), nil
}
