package sandbox

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// become confines this thread and makes it the command. It returns only if it
// cannot.
func become(ask *request) error {
	s := &ask.Spec
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // the command, rather than its helper
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("sandbox: open files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: no_new_privs: %w", err)
	}
	var program []unix.SockFilter
	if ask.ABI > 0 {
		if err := restrictFiles(s, ask.Home, ask.ABI); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if err := dropCapabilities(); err != nil {
			return fmt.Errorf("sandbox: capabilities: %w", err)
		}
		raw, err := filter(append(calls(), sockets(landlockSockets(s, ask.ABI)...)...))
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		program = sockFilter(raw)
	}
	path, err := unix.BytePtrFromString(s.Path)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(s.Args)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(s.Env)
	if err != nil {
		return err
	}
	// From here on this process may be refused memory.
	debug.SetGCPercent(-1)
	if err := limitProcess(0, s.Limits, ask.Held); err != nil {
		return fmt.Errorf("sandbox: limits: %w", err)
	}
	if len(program) > 0 {
		list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&list))); errno != 0 {
			return fmt.Errorf("sandbox: filter of system calls: %w", errno)
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return fmt.Errorf("%s could not be started: %w", s.Args[0], errno)
}

func sockFilter(raw []bpf.RawInstruction) []unix.SockFilter {
	var list []unix.SockFilter
	for _, i := range raw {
		list = append(list, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	return list
}

// dropCapabilities takes root's powers from this thread, for good: a command
// that root runs is then held by the permissions of files like any other.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EPERM && err != unix.EINVAL {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
