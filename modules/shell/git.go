package shell

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/tool"
)

// maxRepositories bounds the submodules that are asked before git runs.
const maxRepositories = 64

// drivers collects the filters that repositories name for converting files.
type drivers struct {
	ctx     context.Context
	program string
	plan    *plan
	env     []string
	seen    []string // top folders that were asked
	names   []string // such as filter.lfs
}

// withoutFilters returns the settings by which git, where it only reads, leaves
// out the programs that the repository's configuration names for converting
// files: git status would run them to compare. Their names are the
// repository's choice, and its submodules', so they are asked for them; reading
// a configuration runs nothing.
func withoutFilters(ctx context.Context, program string, p *plan, env []string) ([]string, error) {
	if p.profile != command.Passive || p.argv[0] != "git" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	d := &drivers{ctx: ctx, program: program, plan: p, env: env}
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
	top := strings.TrimSuffix(d.git(where, "rev-parse", "--show-toplevel"), "\n")
	if top != "" && slices.Contains(d.seen, top) {
		return nil // a submodule that is not checked out
	}
	d.seen = append(d.seen, top)
	if len(d.seen) > maxRepositories {
		return tool.Errorf(tool.CodePermission, "the repository has more than %d submodules, whose configurations cannot all be checked; use profile full", maxRepositories)
	}
	for key := range strings.SplitSeq(d.git(where, "config", "--null", "--name-only", "--get-regexp", `^filter\.`), "\x00") {
		if i := strings.LastIndexByte(key, '.'); i > 0 && !slices.Contains(d.names, key[:i]) {
			d.names = append(d.names, key[:i])
		}
	}
	if top == "" {
		return nil
	}
	for entry := range strings.SplitSeq(d.git([]string{"-C", top}, "ls-files", "--stage", "-z"), "\x00") {
		if _, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(entry, "160000 ") {
			if err := d.ask([]string{"-C", filepath.Join(top, filepath.FromSlash(name))}); err != nil {
				return err
			}
		}
	}
	return nil
}

// git returns what git prints; nothing where it fails, as outside a repository.
func (d *drivers) git(where []string, args ...string) string {
	cmd := exec.CommandContext(d.ctx, d.program, slices.Concat(where, []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.plan.dir, d.env, time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
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
