//go:build unix

package mcpbridge

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// A group is a process with all its children.
type group struct{ id int }

// startGroup starts the command in a process group of its own.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd.Process.Pid}, nil
}

// number is the group's number for the watchdog; 0: it needs none.
func (g *group) number() int { return g.id }

// terminate asks all to end.
func (g *group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) } // they may be gone

// kill ends all.
func (g *group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) } // they may be gone

// detach makes the command one that no signal to our group or terminal
// reaches, and that holds no folder.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
}

func watch(in io.Reader) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	groups := map[int]bool{}
	defer func() {
		for id := range groups {
			(&group{id}).kill()
		}
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		number, more := strings.CutPrefix(lines.Text(), "+")
		if !more {
			number = strings.TrimPrefix(number, "-")
		}
		id, err := strconv.Atoi(number)
		if err != nil || id <= 1 || id == syscall.Getpgrp() { // -1 would be everybody
			return fmt.Errorf("%q is not a process group after + or -", lines.Text())
		}
		if delete(groups, id); more {
			groups[id] = true
		}
	}
	return lines.Err()
}
