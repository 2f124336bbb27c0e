package shell

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/tool"
)

const (
	maxRepositories = 64       // that are asked before git runs: submodules
	maxListing      = 64 << 20 // bytes of what they answer
)

// drivers collects the filters that repositories name for converting files.
type drivers struct {
	ctx   context.Context
	box   *sandbox.Runner
	spec  sandbox.Spec // of the command that is to run
	seen  []string     // top folders that were asked
	names []string     // such as filter.lfs
}

// withoutFilters returns the settings by which git, where it only reads, leaves
// out the programs that the repository's configuration names for converting
// files: git status would run them to compare. Their names are the
// repository's choice, and its submodules', so they are asked for them; reading
// a configuration runs nothing.
func (s *shell) withoutFilters(ctx context.Context, p *plan, spec sandbox.Spec) ([]string, error) {
	if p.profile != command.Passive || p.argv[0] != "git" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	d := &drivers{ctx: ctx, box: s.box, spec: spec}
	if err := d.ask(folderOptions(p.argv)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, tool.AsError(err)
	}
	settings := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", 4*len(d.names))}
	for i, name := range d.names {
		for k, pair := range [...][2]string{{"clean", ""}, {"smudge", ""}, {"process", ""}, {"required", "false"}} {
			n := 4*i + k
			settings = append(settings, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s.%s", n, name, pair[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, pair[1]))
		}
	}
	return settings, nil
}

// ask collects the filters of the repository in which git is with the options,
// and of its submodules, in which git runs itself.
func (d *drivers) ask(where []string) error {
	said, err := d.git(where, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	top := strings.TrimSuffix(said, "\n")
	if top != "" && slices.Contains(d.seen, top) {
		return nil // a submodule that is not checked out
	}
	d.seen = append(d.seen, top)
	if len(d.seen) > maxRepositories {
		return tool.Errorf(tool.CodePermission, "the repository has more than %d submodules, whose configurations cannot all be checked; use profile full", maxRepositories)
	}
	if said, err = d.git(where, "config", "--null", "--name-only", "--get-regexp", `^filter\.`); err != nil {
		return err
	}
	for key := range strings.SplitSeq(said, "\x00") {
		if i := strings.LastIndexByte(key, '.'); i > 0 && !slices.Contains(d.names, key[:i]) {
			d.names = append(d.names, key[:i])
		}
	}
	if top == "" {
		return nil
	}
	if said, err = d.git([]string{"-C", top}, "ls-files", "--stage", "-z"); err != nil {
		return err
	}
	for entry := range strings.SplitSeq(said, "\x00") {
		if _, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(entry, "160000 ") {
			if err := d.ask([]string{"-C", filepath.Join(top, filepath.FromSlash(name))}); err != nil {
				return err
			}
		}
	}
	return nil
}

// git returns what git prints, confined as the command will be; nothing where
// it fails, as outside a repository.
func (d *drivers) git(where []string, args ...string) (string, error) {
	spec := d.spec
	spec.Args = slices.Concat([]string{"git"}, where, []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args)
	spec.Limits.Output = maxListing
	done, err := d.box.Run(d.ctx, spec)
	if err != nil {
		return "", err
	}
	if done.Ended != "" {
		return "", tool.Errorf(tool.CodeTimeout, "git did not tell the repository's configuration in time").Retry()
	}
	if done.Code != 0 {
		return "", nil
	}
	out, _, cut := done.Stdout.Kept(maxListing)
	if cut > 0 {
		return "", tool.Errorf(tool.CodePermission, "the repository lists more than can be checked; use profile full")
	}
	return string(out), nil
}

// folderOptions are the options of a git command that choose its folder.
func folderOptions(argv []string) []string {
	var chosen []string
	for i := 1; i+1 < len(argv) && strings.HasPrefix(argv[i], "-"); i++ {
		switch argv[i] {
		case "-C":
			chosen = append(chosen, argv[i], argv[i+1])
			i++
		case "-c":
			i++
		}
	}
	return chosen
}
