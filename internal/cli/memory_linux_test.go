package cli

import (
	"bufio"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestUnwritten(t *testing.T) {
	const smaps = `00400000-01400000 r-xp 00000000 08:01 42 /usr/bin/the helve
Rss:                 900 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
01400000-01500000 r--p 01000000 08:01 42 /usr/bin/the helve
Anonymous:             4 kB
Swap:                  0 kB
01500000-01600000 r--p 01100000 08:01 42 /usr/bin/the helve
Anonymous:             0 kB
Swap:                  8 kB
01600000-01700000 rw-p 01200000 08:01 42 /usr/bin/the helve
Anonymous:             0 kB
Swap:                  0 kB
01700000-01800000 r--p 00000000 08:01 43 /usr/lib/libc.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000000000-7f0000100000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
7f0000100000-7f0000200000 r--p 01300000 08:01 42 /usr/bin/the helve
Anonymous:             0 kB
Swap:                  0 kB
`
	got, err := unwritten(bufio.NewScanner(strings.NewReader(smaps)), "/usr/bin/the helve")
	want := []mapping{{0x400000, 0x1400000}, {0x7f0000100000, 0x7f0000200000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("unwritten = %x, %v; want %x", got, err, want)
	}
}

// The program goes on with what it had, read anew.
func TestReleaseBinary(t *testing.T) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Skip("needs /proc: mount it")
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("needs /proc/self/smaps: a kernel with CONFIG_PROC_PAGE_MONITOR")
	}
	defer f.Close()
	if m, err := unwritten(bufio.NewScanner(f), self); err != nil || len(m) == 0 {
		t.Fatalf("nothing can be released: %v, %v", m, err)
	}
	releaseBinary()
	if got := strings.ToUpper("still here"); got != "STILL HERE" {
		t.Errorf("after the release: %q", got)
	}
}
