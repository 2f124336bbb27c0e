//go:build unix

package mcpbridge

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// A group is a process with all its children, by the number of their process
// group, and by the mark in their environments that those have too who leave it.
type group struct {
	id   int
	mark string
}

// childMark is the variable that holds the mark, and before it, after commas,
// those of the groups in which we are ourselves.
const childMark = "HELVE_CHILD"

// startGroup starts the command in a process group of its own.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(cmd.SysProcAttr)
	mark := rand.Text()
	all := mark
	if outer := os.Getenv(childMark); outer != "" { // we are a server of another Helve
		all = outer + "," + mark
	}
	cmd.Env = append(cmd.Env, childMark+"="+all)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd.Process.Pid, mark}, nil
}

// number is the group's number for the watchdog; 0: it needs none.
func (g *group) number() int { return g.id }

// name is the group's mark for the watchdog.
func (g *group) name() string { return g.mark }

// terminate asks all to end.
func (g *group) terminate() {
	_ = syscall.Kill(-g.id, syscall.SIGTERM) // they may be gone
	signalMarked(g.mark, syscall.SIGTERM)
}

// kill ends all.
func (g *group) kill() {
	_ = syscall.Kill(-g.id, syscall.SIGKILL) // they may be gone
	sweep(g.mark)
}

// detach makes the command one that no signal to our group or terminal
// reaches, and that holds no folder.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
}

// minMark is how long a mark is at least, lest it be somebody else's.
const minMark = 16

func watch(in io.Reader) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	groups := map[int]string{}
	defer func() {
		for id := range groups { // all of them before any is looked for
			_ = syscall.Kill(-id, syscall.SIGKILL) // they may be gone
		}
		for _, mark := range groups {
			sweep(mark)
		}
	}()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		number, more := strings.CutPrefix(lines.Text(), "+")
		if !more {
			number = strings.TrimPrefix(number, "-")
		}
		number, mark, marked := strings.Cut(number, " ")
		id, err := strconv.Atoi(number)
		if err != nil || id <= 1 || id == syscall.Getpgrp() || more != marked || more && len(mark) < minMark { // -1 would be everybody
			return fmt.Errorf("%q is not a process group and its mark after +, nor a group after -", lines.Text())
		}
		if delete(groups, id); more {
			groups[id] = mark
		}
	}
	return lines.Err()
}
