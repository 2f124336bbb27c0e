package sandbox

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the leader has ended, and leaves it to be reaped: so
// long, its number stands for its group and for nothing else. It reports
// whether it could.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// rlimits are the limits of each process, but for those that are held for all of
// them.
func rlimits(l Limits, all held) map[int]uint64 {
	m := map[int]uint64{
		unix.RLIMIT_CPU:      uint64((l.CPU + time.Second - 1) / time.Second),
		unix.RLIMIT_FSIZE:    uint64(l.FileSize),
		unix.RLIMIT_NOFILE:   uint64(l.Files),
		unix.RLIMIT_CORE:     0,
		unix.RLIMIT_MSGQUEUE: 0,
		unix.RLIMIT_MEMLOCK:  8 << 20,
	}
	if !all.Memory {
		// Address space would count what is only reserved: gigabytes in the
		// runtimes of Go, Java and JavaScript.
		m[unix.RLIMIT_DATA] = uint64(l.Memory)
	}
	if !all.Processes {
		m[unix.RLIMIT_NPROC] = uint64(l.Processes)
	}
	return m
}

// limitProcess sets the limits of a process and of what it starts from then on.
func limitProcess(pid int, l Limits, all held) error {
	for resource, most := range rlimits(l, all) {
		var have unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &have); err != nil {
			return err
		}
		have.Cur = min(have.Cur, have.Max, most)
		if resource == unix.RLIMIT_CPU {
			most++ // SIGXCPU first, which says why, and a second later SIGKILL
		}
		have.Max = min(have.Max, most)
		if err := unix.Prlimit(pid, resource, &have, nil); err != nil {
			return err
		}
	}
	return nil
}

// limitStarted limits a command that runs already: what it did before is not
// held, which is why this is for commands without a helper only.
func limitStarted(pid int, l Limits) error {
	if err := limitProcess(pid, l, held{}); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
