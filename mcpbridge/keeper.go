package mcpbridge

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// watchdogMark tells a process that it was started as a watchdog: whatever
	// it is, it starts none itself.
	watchdogMark  = "HELVE_WATCHDOG"
	watchdogGrace = 2 * time.Second // for its end
)

// A keeper starts servers so that none outlives this process.
type keeper struct {
	command []string // of the watchdog
	log     *slog.Logger

	mu     sync.Mutex
	jobs   chan func()    // for the thread that starts them; nil: there is none
	groups map[int]string // their marks
	dog    *watchdog
	failed bool // the watchdog does not start
}

// A watchdog is a process that ends groups when its input ends.
type watchdog struct {
	cmd   *exec.Cmd
	input *os.File
	gone  chan struct{}
}

// start starts a server's command in a group of its own. All are started by
// one thread, which lives as long as the keeper: on Linux a child is killed
// when the thread ends that started it.
func (k *keeper) start(cmd *exec.Cmd) (*group, error) {
	var g *group
	var err error
	done := make(chan struct{})
	k.thread() <- func() {
		defer close(done)
		g, err = startGroup(cmd)
	}
	<-done
	if err == nil {
		k.watch(g)
	}
	return g, err
}

func (k *keeper) thread() chan<- func() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.jobs == nil {
		jobs := make(chan func())
		k.jobs = jobs
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for job := range jobs {
				job()
			}
		}()
	}
	return k.jobs
}

// watch has the watchdog end the group if we cannot.
func (k *keeper) watch(g *group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.command) == 0 || g.number() == 0 || os.Getenv(watchdogMark) != "" {
		return
	}
	if k.groups == nil {
		k.groups = map[int]string{}
	}
	k.groups[g.number()] = g.name()
	k.tell('+', g.number())
}

// forget is for groups that have ended.
func (k *keeper) forget(g *group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.groups[g.number()]; known {
		delete(k.groups, g.number())
		k.tell('-', g.number())
	}
}

// tell tells the watchdog of a change. If it is gone, another takes its
// place. The caller holds k.mu.
func (k *keeper) tell(sign byte, group int) {
	if k.dog != nil && k.dog.say(sign, group, k.groups[group]) == nil || k.failed {
		return
	}
	k.dismiss()
	if len(k.groups) == 0 {
		return
	}
	dog, err := startWatchdog(k.command)
	for _, id := range slices.Sorted(maps.Keys(k.groups)) {
		if err == nil {
			err = dog.say('+', id, k.groups[id])
		}
	}
	k.dog = dog
	if err != nil {
		k.dismiss()
		k.failed = true
		k.log.Warn("the watchdog cannot be started: if Helve is killed, what MCP servers have started may go on running", "error", err)
	}
}

// dismiss ends the watchdog. The caller holds k.mu.
func (k *keeper) dismiss() {
	if k.dog == nil {
		return
	}
	k.dog.input.Close()
	select {
	case <-k.dog.gone:
	case <-time.After(watchdogGrace):
		_ = k.dog.cmd.Process.Kill() // it may have ended
		<-k.dog.gone
	}
	k.dog = nil
}

// close ends the watchdog and the thread. All servers must have ended.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dismiss()
	if k.jobs != nil {
		close(k.jobs)
		k.jobs = nil
	}
}

func startWatchdog(command []string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d := &watchdog{cmd: exec.Command(command[0], command[1:]...), input: w, gone: make(chan struct{})}
	d.cmd.Stdin = r
	d.cmd.Env = append(os.Environ(), watchdogMark+"=1")
	detach(d.cmd)
	if err := d.cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	go func() {
		defer close(d.gone)
		_ = d.cmd.Wait() // how it ends does not matter
	}()
	return d, nil
}

// say writes a line, unless the watchdog is gone or does not read.
func (d *watchdog) say(sign byte, group int, mark string) error {
	_ = d.input.SetWriteDeadline(time.Now().Add(time.Second)) // what cannot have one does not block for long
	_, err := fmt.Fprintln(d.input, strings.TrimSpace(fmt.Sprintf("%c%d %s", sign, group, mark)))
	return err
}

// Watch ends process groups when in ends, unless it was told that they are
// gone: it is what the command [UpstreamOptions].Watchdog does with its
// input. Each line is + and a group's number, a space and the group's mark, or
// - and its number. On Linux it also ends processes that have left their
// group, by the mark in their environments. Signals that ask this process to
// end are ignored from here on.
func Watch(in io.Reader) error { return watch(in) }
