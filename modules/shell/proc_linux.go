package shell

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trustedPath is where programs are looked up unless the app says otherwise.
var trustedPath = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/go/bin"}

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

// restrict bounds what one process may use. It comes just after the start, and
// holds for what the process starts from then on; a sandbox would hold from the
// first instruction.
func restrict(pid int, limit time.Duration) {
	seconds := uint64(limit/time.Second+5) * uint64(runtime.NumCPU())
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CPU: seconds, unix.RLIMIT_FSIZE: 4 << 30, unix.RLIMIT_NOFILE: 4096, unix.RLIMIT_CORE: 0,
	} {
		var have unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &have) != nil {
			continue
		}
		have.Max = min(have.Max, most)
		have.Cur = min(have.Cur, have.Max)
		_ = unix.Prlimit(pid, resource, &have, nil)
	}
}
