package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
)

// runPlain runs a command. This system keeps no groups of processes: only the
// command itself is ended.
func runPlain(ctx context.Context, s *Spec) (*Result, error) {
	home, err := makeHome(s)
	if err != nil {
		return nil, err
	}
	defer removeHome(home)
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limits.Time, errTime)
	defer cancel()
	res := &Result{Stdout: newOutput(s.Limits.Output), Stderr: newOutput(s.Limits.Output)}
	cmd := exec.CommandContext(ctx, s.Path, s.Args[1:]...)
	cmd.Args[0] = s.Args[0]
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.Dir, s.Stdin, res.Stdout, res.Stderr, drain
	cmd.Env = append(slices.Clone(s.Env), homeEnv(home)...)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return nil, fmt.Errorf("%s could not be started: %w", s.Args[0], err)
	}
	res.Code, res.Held = cmd.ProcessState.ExitCode(), errors.Is(err, exec.ErrWaitDelay)
	switch {
	case ctx.Err() == nil:
	case errors.Is(context.Cause(ctx), errTime):
		res.Ended = "time"
	default:
		res.Ended, res.Cause = "cancelled", context.Cause(ctx)
	}
	return res, nil
}
