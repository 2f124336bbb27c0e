package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groups is where control groups can be made: below one folder of the unified
// hierarchy, or below one for each controller.
type groups struct {
	memory, pids string
	unified      bool
}

var groupNumber atomic.Int64

// findGroups tries where control groups can be made. Systemd delegates a
// folder to each user; root has them all.
func findGroups() *groups {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	found := &groups{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		controllers := strings.Split(parts[1], ",")
		if parts[1] == "" {
			for _, dir := range []string{parts[2], filepath.Dir(parts[2])} {
				if dir = filepath.Join("/sys/fs/cgroup", dir); usable(dir, "memory.max") && usable(dir, "pids.max") {
					return &groups{memory: dir, pids: dir, unified: true}
				}
			}
		}
		if dir := filepath.Join("/sys/fs/cgroup/memory", parts[2]); slices.Contains(controllers, "memory") && usable(dir, "memory.limit_in_bytes") {
			found.memory = dir
		}
		if dir := filepath.Join("/sys/fs/cgroup/pids", parts[2]); slices.Contains(controllers, "pids") && usable(dir, "pids.max") {
			found.pids = dir
		}
	}
	if found.memory == "" && found.pids == "" {
		return nil
	}
	return found
}

// usable reports whether groups can be made in dir that have the file.
func usable(dir, file string) bool {
	sweep(dir)
	trial := filepath.Join(dir, groupName())
	if err := os.Mkdir(trial, 0o755); err != nil {
		return false
	}
	defer os.Remove(trial)
	f, err := os.OpenFile(filepath.Join(trial, file), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	f.Close()
	// A process must also be let in, which takes rights on the folder above.
	return unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

func groupName() string { return fmt.Sprintf("helve-%d-%d", os.Getpid(), groupNumber.Add(1)) }

// sweep removes groups that a killed Helve left behind.
func sweep(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "helve-*"))
	if err != nil {
		return
	}
	for _, name := range left {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(name), "-")[1])
		if err == nil && pid != os.Getpid() && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			sweep(name) // a Helve that ran in it may have made groups of its own
			_ = os.Remove(name)
		}
	}
}

// A group is the control group of one command.
type cgroup struct {
	dirs    []string
	events  string // the file that counts processes ended for want of memory
	unified bool
}

// make makes a group with limits. Nil: there is none.
func (g *groups) make(l Limits) *cgroup {
	if g == nil {
		return nil
	}
	c := &cgroup{unified: g.unified}
	name := groupName()
	set := func(parent string, files map[string]int64) string {
		dir := filepath.Join(parent, name)
		if parent == "" || os.Mkdir(dir, 0o755) != nil && !slices.Contains(c.dirs, dir) {
			return ""
		}
		if !slices.Contains(c.dirs, dir) {
			c.dirs = append(c.dirs, dir)
		}
		for file, value := range files {
			_ = os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(value, 10)), 0) // not every kernel has every file
		}
		return dir
	}
	if g.unified {
		if dir := set(g.memory, map[string]int64{"memory.max": l.Memory, "memory.swap.max": 0, "memory.oom.group": 0, "pids.max": int64(l.Processes)}); dir != "" {
			c.events = filepath.Join(dir, "memory.events")
		}
	} else {
		if dir := set(g.memory, map[string]int64{"memory.limit_in_bytes": l.Memory, "memory.swappiness": 0}); dir != "" {
			c.events = filepath.Join(dir, "memory.oom_control")
		}
		set(g.pids, map[string]int64{"pids.max": int64(l.Processes)})
	}
	if len(c.dirs) == 0 {
		return nil
	}
	return c
}

// add moves a process into the group.
func (c *cgroup) add(pid int) error {
	if c == nil || pid <= 0 {
		return nil
	}
	for _, dir := range c.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("sandbox: the control group: %w", err)
		}
	}
	return nil
}

// starved reports whether a process of the group was ended for want of memory.
func (c *cgroup) starved() bool {
	if c == nil || c.events == "" {
		return false
	}
	text, err := os.ReadFile(c.events)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			return count != "0"
		}
	}
	return false
}

// remove ends what is left in the group and removes it.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	for _, dir := range c.dirs {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		for range 200 { // processes leave a group some time after they ended
			err := os.Remove(dir)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			killMembers(dir)
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// killMembers ends the processes in a group, for kernels without cgroup.kill.
func killMembers(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
