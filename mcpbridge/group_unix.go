//go:build unix

package mcpbridge

import (
	"os/exec"
	"syscall"
)

// A group is a process with all its children.
type group struct{ id int }

// startGroup starts the command in a process group of its own.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd.Process.Pid}, nil
}

// terminate asks all to end.
func (g *group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) } // they may be gone

// kill ends all.
func (g *group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) } // they may be gone
