//go:build unix

package sandbox

import (
	"context"
	"os/exec"
	"slices"
	"syscall"
)

// runPlain runs a command in a process group of its own, with limits alone.
func runPlain(ctx context.Context, s *Spec) (*Result, error) {
	home, err := makeHome(s)
	if err != nil {
		return nil, err
	}
	defer removeHome(home)
	p := &process{cmd: exec.Command(s.Path, s.Args[1:]...), spec: s}
	p.cmd.Args[0] = s.Args[0]
	p.cmd.Dir = s.Dir
	p.cmd.Env = append(slices.Clone(s.Env), homeEnv(home)...)
	p.signal = func(sig syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, sig) }
	p.started = func() error { return limitStarted(p.cmd.Process.Pid, s.Limits) }
	p.ended = func() { p.signal(syscall.SIGKILL) }
	res, err := p.run(ctx)
	if res != nil {
		res.explain(false)
	}
	return res, err
}
