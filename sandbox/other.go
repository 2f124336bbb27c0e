//go:build !linux

package sandbox

import (
	"context"
	"io"
	"runtime"
)

type groups struct{}

func probe(Options) Status {
	return Status{Active: None, Missing: []string{"on " + runtime.GOOS + " there is neither bubblewrap nor Landlock"},
		Weak: []string{"commands see and change what the user can who runs Helve"}}
}

func (r *Runner) run(ctx context.Context, s Spec, _ Status) (*Result, error) {
	return runPlain(ctx, &s)
}

// Help is for Linux alone.
func Help(io.Writer) int { return 2 }
