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
// hierarchy (version 2), or below one for each controller.
type groups struct {
	memory, pids string // "": not there
	unified      bool
}

// String says where that is.
func (g *groups) String() string {
	switch {
	case g == nil:
		return ""
	case g.unified:
		return "cgroup v2, " + g.memory
	}
	return "cgroup v1, " + strings.Trim(g.memory+" and "+g.pids, " and")
}

var groupNumber atomic.Int64

// findGroups tries where control groups can be made. Systemd delegates a
// folder to each user, and to services that ask for it; root has them all.
func findGroups() *groups {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
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
			if dir := unifiedGroup(string(mounts), parts[2]); dir != "" {
				return &groups{memory: dir, pids: dir, unified: true}
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

// unifiedGroup returns the folder of version 2 below which groups can be made,
// by where it is mounted and the group that this process is in: that group or
// the one above it. "": there is none.
func unifiedGroup(mounts, group string) string {
	top, own := unifiedMount(mounts, group)
	if own == "" {
		return ""
	}
	for _, dir := range []string{own, filepath.Dir(own)} {
		if !beneath(dir, top) {
			break
		}
		if usable(dir, "memory.max", "pids.max") || dir == own && delegate(dir) && usable(dir, "memory.max", "pids.max") {
			return dir
		}
	}
	return ""
}

// unifiedMount returns where version 2 is mounted, and where in it a group is.
func unifiedMount(mounts, group string) (top, own string) {
	if filepath.Clean(group) != group || strings.HasPrefix(group, "/..") {
		return "", "" // it lies outside this namespace
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		if rel, err := filepath.Rel(fields[3], group); err == nil && filepath.IsLocal(rel) {
			return fields[4], filepath.Join(fields[4], rel)
		}
	}
	return "", ""
}

// delegate has the groups below dir count memory and processes, where this
// process may say so: in the topmost group of the system, and in one that
// systemd has delegated to the service that this process is. There it first
// leaves dir, which must have no processes of its own then, with all of its
// own. It reports whether they count.
func delegate(dir string) bool {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if names := strings.Fields(string(have)); err != nil || !slices.Contains(names, "memory") || !slices.Contains(names, "pids") {
		return false
	}
	count := func() error {
		return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0)
	}
	err = count()
	if !errors.Is(err, unix.EBUSY) || !delegated(dir) {
		return err == nil
	}
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return false
	}
	pids := strings.Fields(string(members))
	for _, pid := range pids {
		if n, err := strconv.Atoi(pid); err != nil || !descends(n, os.Getpid()) {
			return false // somebody else's
		}
	}
	own := filepath.Join(dir, groupName())
	if os.Mkdir(own, 0o755) != nil {
		return false
	}
	for _, pid := range pids {
		_ = os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte(pid), 0) // or it has ended
	}
	return count() == nil
}

// delegated reports whether systemd says that a group is this service's to
// divide (Delegate=yes).
func delegated(dir string) bool {
	mark := make([]byte, 8)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, mark); err == nil && string(mark[:n]) == "1" {
			return true
		}
	}
	return false
}

// descends reports whether a process is another or was started by it, however
// indirectly.
func descends(pid, from int) bool {
	for range 1000 {
		if pid == from || pid <= 1 {
			return pid == from
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false
		}
	}
	return false
}

// usable reports whether groups can be made in dir that have the files.
func usable(dir string, files ...string) bool {
	sweep(dir)
	trial := filepath.Join(dir, groupName())
	if err := os.Mkdir(trial, 0o755); err != nil {
		return false
	}
	defer os.Remove(trial)
	for _, file := range files {
		f, err := os.OpenFile(filepath.Join(trial, file), os.O_WRONLY, 0)
		if err != nil {
			return false
		}
		f.Close()
	}
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

// A cgroup is the control group of one command.
type cgroup struct {
	dirs   []string
	events string // the file that counts processes ended for want of memory
	held   held
}

// held says which limits hold for a command as a whole.
type held struct{ Memory, Processes bool }

// make makes a group with limits. Nil: there is none.
func (g *groups) make(l Limits) *cgroup {
	if g == nil {
		return nil
	}
	c := &cgroup{}
	memory, pids := strconv.FormatInt(l.Memory, 10), strconv.Itoa(l.Processes)
	name := groupName()
	if g.unified {
		if c.set(filepath.Join(g.memory, name), [][2]string{{"memory.max", memory}, {"pids.max", pids}}, [][2]string{{"memory.swap.max", "0"}, {"memory.oom.group", "0"}}) {
			c.held, c.events = held{true, true}, filepath.Join(g.memory, name, "memory.events")
		}
	} else {
		if g.memory != "" && c.set(filepath.Join(g.memory, name), [][2]string{{"memory.limit_in_bytes", memory}}, [][2]string{{"memory.swappiness", "0"}}) {
			c.held.Memory, c.events = true, filepath.Join(g.memory, name, "memory.oom_control")
		}
		c.held.Processes = g.pids != "" && c.set(filepath.Join(g.pids, name), [][2]string{{"pids.max", pids}}, nil)
	}
	if len(c.dirs) == 0 {
		return nil
	}
	return c
}

// set makes a folder with limits, and with others that not every kernel has. It
// reports whether the limits are set; if not, there is no folder.
func (c *cgroup) set(dir string, limits, more [][2]string) bool {
	if os.Mkdir(dir, 0o755) != nil {
		return false
	}
	for _, f := range limits {
		if os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0) != nil {
			_ = os.Remove(dir)
			return false
		}
	}
	for _, f := range more {
		_ = os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0)
	}
	c.dirs = append(c.dirs, dir)
	return true
}

// holds returns which limits the group holds. A nil group holds none.
func (c *cgroup) holds() held {
	if c == nil {
		return held{}
	}
	return c.held
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
