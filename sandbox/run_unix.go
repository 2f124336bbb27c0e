//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A process is a command under way, whatever confines it.
type process struct {
	cmd  *exec.Cmd
	spec *Spec
	// started is called once the process runs; if it fails the process is ended.
	started func() error
	// signal sends a signal to the command and all that it started. It is not
	// called before started has returned nor after the process was waited for.
	signal func(syscall.Signal)
	ended  func() // called when the leader ended, before it is waited for; may be nil

	stopped atomic.Bool // because its context was done
}

// run runs it to its end. Its error is that it did not start.
func (p *process) run(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.spec.Limits.Time, errTime)
	defer cancel()
	res := &Result{Stdout: newOutput(p.spec.Limits.Output), Stderr: newOutput(p.spec.Limits.Output)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.spec.Stdin, res.Stdout, res.Stderr
	p.cmd.WaitDelay = drain
	// The thread that starts a process is its parent to the kernel: when the
	// thread ends, the process would.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = attributes()
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s could not be started: %w", p.spec.Args[0], err)
	}
	if err := p.started(); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return nil, err
	}
	err := p.wait(ctx)
	switch {
	case errors.Is(context.Cause(ctx), errTime) && p.stopped.Load():
		res.Ended = "time"
	case p.stopped.Load():
		res.Ended, res.Cause = "cancelled", context.Cause(ctx)
	}
	res.Held = errors.Is(err, exec.ErrWaitDelay)
	res.Code, res.Signal = exitCode(p.cmd.ProcessState)
	return res, nil
}

// wait waits for the process, and ends it when ctx is done: first it is told,
// after the grace it is killed.
func (p *process) wait(ctx context.Context) error {
	var mu sync.Mutex // guards over
	over := false
	send := func(s syscall.Signal) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			p.signal(s)
		}
	}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		p.stopped.Store(true)
		send(syscall.SIGTERM)
		force := time.NewTimer(grace)
		defer force.Stop()
		select {
		case <-done:
		case <-force.C:
			send(syscall.SIGKILL)
		}
	}()
	leader := awaitExit(p.cmd.Process.Pid)
	mu.Lock()
	if p.ended != nil && leader {
		p.ended()
	}
	over = leader
	mu.Unlock()
	err := p.cmd.Wait()
	mu.Lock()
	if p.ended != nil && !leader {
		p.ended()
	}
	over = true
	mu.Unlock()
	close(done)
	<-watched
	return err
}

// exitCode returns the code as shells count it, and the signal that ended the
// process, if one did.
func exitCode(state interface {
	Sys() any
	ExitCode() int
}) (code int, signal string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal().String()
	}
	return state.ExitCode(), ""
}

// explain reads from the exit code what ended the command.
func (r *Result) explain(starved bool) {
	if r.Code > 128 && r.Code < 128+32 && r.Signal == "" {
		r.Signal = syscall.Signal(r.Code - 128).String()
	}
	if r.Ended != "" {
		return
	}
	switch {
	case starved && r.Code != 0:
		r.Ended = "memory"
	case r.Code == 128+int(syscall.SIGXCPU):
		r.Ended = "cpu time"
	case r.Code == 128+int(syscall.SIGXFSZ):
		r.Ended = "file size"
	}
}
