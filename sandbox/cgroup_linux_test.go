package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUnifiedMount(t *testing.T) {
	const host = "28 23 0:25 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "30 25 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	const inside = "700 690 0:25 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	for _, test := range []struct{ mounts, group, top, own string }{
		{host, "/user.slice/run.scope", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/run.scope"},
		{host, "/", "/sys/fs/cgroup", "/sys/fs/cgroup"},
		{hybrid, "/a", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/a"},
		{inside, "/docker/abc/x", "/sys/fs/cgroup", "/sys/fs/cgroup/x"},
		{inside, "/docker/other", "", ""},
		{host, "/../outside", "", ""}, // of another namespace
		{"", "/", "", ""},
		{"28 23 0:25 / - cgroup2\n- cgroup2 x\n", "/", "", ""},
	} {
		if top, own := unifiedMount(test.mounts, test.group); top != test.top || own != test.own {
			t.Errorf("%s in %q: %q, %q", test.group, test.mounts, top, own)
		}
	}
}

// What a group does not hold is limited for each process, and a group whose
// limits cannot be set is none.
func TestWhatGroupsDoNotHold(t *testing.T) {
	l := Limits{}.filled()
	for _, h := range []held{{}, {Memory: true}, {Processes: true}, {true, true}} {
		m := rlimits(l, h)
		if _, data := m[unix.RLIMIT_DATA]; data == h.Memory {
			t.Errorf("%+v: memory of each process: %t", h, data)
		}
		if _, number := m[unix.RLIMIT_NPROC]; number == h.Processes {
			t.Errorf("%+v: number of processes: %t", h, number)
		}
	}
	dir := t.TempDir()
	c := new(cgroup)
	if c.set(filepath.Join(dir, "a"), [][2]string{{"no/such.file", "1"}}, nil) || len(c.dirs) > 0 {
		t.Error("a limit that cannot be set counts as one")
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the group was left behind")
	}
	if !descends(os.Getpid(), os.Getppid()) || descends(os.Getppid(), os.Getpid()) || descends(1, os.Getpid()) {
		t.Error("whose child is whose")
	}
}
