package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseBinary gives back the pages of the running program that the start
// has touched: some are never needed again, and the others come back
// from the system's cache of the file when they are. Only mappings that
// nothing has written to are given back: what was written would be lost.
func releaseBinary() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	mappings, err := unwritten(bufio.NewScanner(f), self)
	if err != nil {
		return
	}
	for _, m := range mappings {
		unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // it stays where it is if that fails
	}
}

// A mapping is a part of the address space.
type mapping struct{ start, end uintptr }

// unwritten returns the mappings of file, in the format of /proc/PID/smaps,
// that cannot be written to and of which no page is the process's own.
func unwritten(smaps *bufio.Scanner, file string) (out []mapping, err error) {
	var m mapping
	candidate, clean := false, 0
	for smaps.Scan() {
		fields := strings.Fields(smaps.Text())
		if len(fields) == 0 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") { // a mapping's first line
			candidate, clean = false, 0
			if len(fields) < 6 || !strings.HasPrefix(fields[1], "r") || fields[1][1] != '-' || fields[1][3] != 'p' {
				continue
			}
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.start, &m.end); err != nil {
				return nil, err
			}
			candidate = strings.Join(fields[5:], " ") == file
			continue
		}
		if !candidate || len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Anonymous:", "Swap:": // what is the process's own is in one of them
			if fields[1] != "0" {
				candidate = false
				continue
			}
			if clean++; clean == 2 {
				out = append(out, m)
			}
		}
	}
	return out, smaps.Err()
}
