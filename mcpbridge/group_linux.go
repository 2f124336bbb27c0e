package mcpbridge

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithUs has the kernel kill the process when the thread that starts it ends.
func endWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

const (
	sweepTime  = 2 * time.Second      // for processes to end that were killed
	sweepPause = 5 * time.Millisecond // until it is looked again
)

// sweep kills those who have left the group: all processes whose environment
// holds the mark, and those that they start meanwhile. What hides its
// environment, or runs as another user, is not found.
func sweep(mark string) {
	for until := time.Now().Add(sweepTime); signalMarked(mark, unix.SIGKILL) > 0 && time.Now().Before(until); {
		time.Sleep(sweepPause)
	}
}

// signalMarked sends a signal to the processes whose environment holds the
// mark, and returns how many there are.
func signalMarked(mark string, sig unix.Signal) (found int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The descriptor means this process also if its number is given to another.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		env, err := os.ReadFile(dir + "/environ") // that of others cannot be read
		if err == nil && holds(env, mark) {
			found++
			_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may be gone
		}
		unix.Close(fd)
	}
	return found
}

func holds(env []byte, mark string) bool {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if marks, ok := bytes.CutPrefix(kv, []byte(childMark+"=")); ok {
			return slices.Contains(strings.Split(string(marks), ","), mark)
		}
	}
	return false
}
