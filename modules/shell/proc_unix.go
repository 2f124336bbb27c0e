//go:build unix

package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	shellProgram  = "/bin/sh"
	programSuffix = ""
)

// isAbs reports whether a name is absolute in a form that package path does not know.
func isAbs(name string) bool { return filepath.IsAbs(name) }

// group is the processes that a command started, as far as they stay together.
type group struct {
	mu    sync.Mutex
	pid   int // of the leader; zero before it starts, and once it may be another's
	force *time.Timer
}

// prepare makes the command the leader of a session of its own. When its
// context is done the group is told to end, and after the grace it is ended.
func (g *group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error {
		g.signal(syscall.SIGTERM)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.force = time.AfterFunc(grace, func() { g.signal(syscall.SIGKILL) })
		return nil
	}
}

func (g *group) started(pid int, limit time.Duration) {
	g.mu.Lock()
	g.pid = pid
	g.mu.Unlock()
	restrict(pid, limit)
}

// wait waits for the command, and ends what it left behind.
func (g *group) wait(cmd *exec.Cmd) error {
	if awaitExit(cmd.Process.Pid) {
		g.end()
		return cmd.Wait()
	}
	defer g.end()
	return cmd.Wait()
}

// end ends what is left of the group, and lets go of its number.
func (g *group) end() {
	g.signal(syscall.SIGKILL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = 0
	if g.force != nil {
		g.force.Stop()
	}
}

func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid > 0 {
		_ = syscall.Kill(-g.pid, s)
	}
}

// exitCode returns the code as shells count it, and the signal that ended the
// process, if one did.
func exitCode(state *os.ProcessState) (code int, signal string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal().String()
	}
	return state.ExitCode(), ""
}
