package mcpbridge

import (
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is a process with all its children: a job.
type group struct {
	job  windows.Handle
	once sync.Once
}

// startGroup starts the command in a job whose processes end with its handle.
func startGroup(cmd *exec.Cmd) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	g := &group{job: job}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		g.kill()
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	if err := cmd.Start(); err != nil {
		g.kill()
		return nil, err
	}
	if err := g.adopt(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		g.kill()
		return nil, err
	}
	return g, nil
}

func (g *group) adopt(pid int) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	return windows.AssignProcessToJobObject(g.job, h)
}

// terminate ends all: there is no kinder way that console programs heed.
func (g *group) terminate() { g.kill() }

// kill ends all.
func (g *group) kill() {
	g.once.Do(func() { _ = windows.CloseHandle(g.job) }) // which ends its processes
}

// number is the group's number for the watchdog; 0: it needs none, since the
// kernel closes our handles.
func (g *group) number() int { return 0 }

func (g *group) name() string { return "" }

func detach(*exec.Cmd) {}

func watch(io.Reader) error { return errors.New("on Windows nothing needs to be watched") }
