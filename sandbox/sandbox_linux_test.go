package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/helve-ai/helve/sandbox"
)

// TestMain makes this binary the sandbox's helper, and a Helve to be killed.
func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args[1:], "__confine"):
		os.Exit(sandbox.Help(os.Stderr))
	case os.Getenv("SANDBOX_TEST_VICTIM") != "":
		os.Exit(victim())
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // of the helper
	os.Exit(m.Run())
}

var confinements = map[sandbox.Confinement]*sandbox.Runner{
	sandbox.Bubblewrap: runner(sandbox.Require, sandbox.Landlock),
	sandbox.Landlock:   runner(sandbox.Require, sandbox.Bubblewrap),
	sandbox.None:       runner(sandbox.Off),
}

func runner(mode sandbox.Mode, without ...sandbox.Confinement) *sandbox.Runner {
	return sandbox.New(sandbox.Options{Mode: mode, Helper: []string{"/proc/self/exe", "__confine"}, Without: without})
}

// each runs a test under every confinement of the machine, and fails where
// HELVE_TEST_REQUIRE names one that it lacks.
func each(t *testing.T, test func(t *testing.T, b *bench)) {
	for _, by := range []sandbox.Confinement{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(by), func(t *testing.T) {
			r := confinements[by]
			if s := r.Status(); s.Active != by {
				lacks(t, string(by), strings.Join(s.Missing, "; ")+"; "+s.Remedy)
			}
			test(t, newBench(t, r))
		})
	}
}

func lacks(t *testing.T, name, why string) {
	t.Helper()
	if slices.Contains(strings.FieldsFunc(os.Getenv("HELVE_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), name) {
		t.Fatalf("%s is required: %s", name, why)
	}
	t.Skip(why)
}

func python(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		lacks(t, "python3", "python3 is not in /usr/bin; on Debian: apt-get install python3")
	}
}

// A bench is a root folder for commands, and a folder outside that they must
// not reach.
type bench struct {
	t             *testing.T
	r             *sandbox.Runner
	root, outside string
	spec          sandbox.Spec
}

func newBench(t *testing.T, r *sandbox.Runner) *bench {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, r: r, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	for _, d := range []string{b.root, b.outside, b.root + "/sub"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.write(b.outside+"/secret", "s3cret")
	b.spec = sandbox.Spec{Path: "/bin/sh", Dir: b.root, Root: b.root, Env: []string{"PATH=/usr/bin:/bin", "OUT=" + b.outside, "ROOT=" + b.root}}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// sh runs a shell's text.
func (b *bench) sh(text string) *sandbox.Result {
	b.t.Helper()
	b.spec.Args = []string{"sh", "-c", text}
	res, err := b.r.Run(b.t.Context(), b.spec)
	if err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
	return res
}

// said returns all that a command printed, on both streams.
func said(res *sandbox.Result) string {
	out, outTail, _ := res.Stdout.Kept(1 << 20)
	errs, errTail, _ := res.Stderr.Kept(1 << 20)
	return string(out) + string(outTail) + string(errs) + string(errTail)
}

// py runs a Python text.
func (b *bench) py(text string, args ...string) *sandbox.Result {
	b.t.Helper()
	python(b.t)
	spec := b.spec
	spec.Path, spec.Args = "/usr/bin/python3", append([]string{"python3", "-c", text}, args...)
	res, err := b.r.Run(b.t.Context(), spec)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// What a command is granted, it has: else the attempts would prove nothing.
func TestGranted(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.write(b.root+"/in", "text")
		b.spec.Readable = []string{b.outside}
		res := b.sh(`set -e; cat in; echo new > out; mv out sub/out; rm in; mkdir d; ln -s sub l; cat $OUT/secret; touch $HOME/a $TMPDIR/b; test -r /etc/passwd; echo err >&2; exit 3`)
		if res.Code != 3 || said(res) != "text"+"s3creterr\n" || res.Ended != "" || res.By != b.r.Status().Active {
			t.Errorf("%+v %q", res, said(res))
		}
		if text, err := os.ReadFile(b.root + "/sub/out"); err != nil || string(text) != "new\n" {
			t.Errorf("%q %v", text, err)
		}
		b.spec.Readable, b.spec.Writable = nil, []string{b.outside}
		if res := b.sh(`echo y > $OUT/made`); res.Code != 0 {
			t.Errorf("a granted folder: %q", said(res))
		}
		if res := b.sh(`kill -9 $$`); res.Code != 137 || res.Signal != "killed" {
			t.Errorf("a signal: %+v", res)
		}
	})
}

// Attempts at files. Each must print nothing of the secret and leave nothing outside.
func TestFiles(t *testing.T) {
	attempts := map[string]string{
		"read outside":       `cat "$OUT/secret"`,
		"list outside":       `ls "$OUT" | grep secret`,
		"climb":              `cat ../outside/secret; cat sub/../../outside/secret`,
		"own root":           `cat /proc/self/root"$OUT"/secret`,
		"root of the first":  `cat /proc/1/root"$OUT"/secret`,
		"parent's folder":    `cat /proc/$PPID/cwd/../outside/secret; cat /proc/$PPID/root"$OUT"/secret`,
		"link to a file":     `ln -s "$OUT/secret" l; cat l`,
		"link to a folder":   `ln -s "$OUT" d; cat d/secret; echo x > d/made`,
		"link of the host's": `cat hostlink; cat hostdir/secret; echo x > hostdir/made`,
		"hard link":          `ln "$OUT/secret" h; cat h`,
		"write outside":      `echo x > "$OUT/made"; touch "$OUT/made2"; mkdir "$OUT/made3"`,
		"move outside":       `echo x > f; mv f "$OUT/made"; cp sub "$OUT/made4" -r`,
		"cut outside":        `: > "$OUT/secret"; truncate -s 0 "$OUT/secret"; dd if=/dev/null of="$OUT/secret" 2>/dev/null`,
		"remove outside":     `rm -f "$OUT/secret"; rmdir "$OUT"; mv "$OUT" sub`,
		"mode outside":       `mount --bind "$OUT" sub; unshare -Urm sh -c "mount --bind $OUT sub; cat sub/secret"; nsenter -t 1 -m cat "$OUT/secret"; chroot / cat "$OUT/secret"`,
		"device":             `mknod disk b 254 0; mknod mem c 1 1; cat mem disk`,
	}
	each(t, func(t *testing.T, b *bench) {
		for link, target := range map[string]string{"hostlink": b.outside + "/secret", "hostdir": b.outside} {
			if err := os.Symlink(target, filepath.Join(b.root, link)); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range attempts {
			if res := b.sh(text); strings.Contains(said(res), "s3cret") {
				t.Errorf("%s: %q", name, said(res))
			}
		}
		entries, err := os.ReadDir(b.outside)
		if err != nil || len(entries) != 1 {
			t.Errorf("outside there is now %v, %v", entries, err)
		}
		if text, err := os.ReadFile(b.outside + "/secret"); err != nil || string(text) != "s3cret" {
			t.Errorf("the secret is now %q, %v", text, err)
		}
	})
}

// The host's secrets: a home, what only root reads, sockets of services, the environment.
func TestSecrets(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SANDBOX_TEST_TOKEN", "s3cret")
	each(t, func(t *testing.T, b *bench) {
		for _, name := range []string{".ssh", ".config"} {
			if err := os.MkdirAll(filepath.Join(home, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		b.write(home+"/.ssh/id_rsa", "s3cret")
		b.write(home+"/notes", "s3cret")
		b.spec.Env = append(b.spec.Env, "REAL_HOME="+home)
		res := b.sh(`cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/notes" ~/notes; env; cat /proc/*/environ | tr '\0' '\n'`)
		if strings.Contains(said(res), "s3cret") {
			t.Error(said(res))
		}
		for _, file := range []string{"/etc/shadow", "/etc/gshadow", "/root/.bashrc", "/var/log/dpkg.log", "/proc/kcore", "/proc/1/environ", "/run/docker.sock", "/dev/mem", "/dev/sda", "/dev/vda"} {
			if res := b.sh("head -c 1 " + file + " | wc -c"); !strings.HasPrefix(said(res), "0\n") && !strings.Contains(file, "/proc/1/") {
				t.Errorf("%s can be read: %q", file, said(res))
			}
		}
		// A home that is the root, or granted, keeps its credentials.
		b.spec.Readable = []string{realPath(t, home)}
		if res := b.sh(`cat "$REAL_HOME/notes"`); said(res) != "s3cret" {
			t.Errorf("a granted home: %q", said(res))
		}
		if res := b.sh(`cat "$REAL_HOME/.ssh/id_rsa"`); strings.Contains(said(res), "s3cret") {
			t.Errorf("the keys of a granted home: %q", said(res))
		}
	})
}

func realPath(t *testing.T, name string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// What is hidden or kept in the root stays so, whatever is done around it.
func TestFences(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, d := range []string{".helve", ".git/hooks", "sub/dark"} {
			if err := os.MkdirAll(filepath.Join(b.root, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		files := map[string]string{".helve/db": "s3cret", "sub/dark/key": "s3cret", "sub/one.pem": "s3cret", ".git/config": "config", ".helveignore": "rules", "sub/free": "free"}
		for name, text := range files {
			b.write(filepath.Join(b.root, name), text)
		}
		at := func(names ...string) (list []string) {
			for _, n := range names {
				list = append(list, filepath.Join(b.root, n))
			}
			return list
		}
		b.spec.Hide, b.spec.Keep = at(".helve", "sub/dark", "sub/one.pem"), at(".git", ".helveignore")
		for _, text := range []string{
			`cat .helve/db sub/dark/key sub/one.pem; cat .helve/* sub/dark/*`,
			`mv .helve away; cat away/db; mv sub/dark sub/light; cat sub/light/key; mv sub/one.pem two; cat two; mv sub away2; cat away2/dark/key`,
			`ln sub/one.pem hard; cat hard; cp -r . copy; cat copy/.helve/db copy/sub/one.pem`,
			`umount .helve sub/dark; cat .helve/db; chmod 777 .helve sub/dark sub/one.pem; cat .helve/db sub/one.pem`,
			`echo x > .helve/db; echo x > .git/config; echo x > .git/hooks/pre-commit; echo x > .helveignore; rm -rf .helve .git .helveignore`,
			`mv .git git2; mv .helveignore other; mv sub/free .helveignore; cp -f sub/free .helveignore; ln -sf sub/free .helveignore`,
		} {
			if res := b.sh(text); strings.Contains(said(res), "s3cret") {
				t.Errorf("%s: %q", text, said(res))
			}
			for _, d := range []string{"away2", "copy"} { // sub may be moved: what is hidden in it goes along
				if _, err := os.Stat(filepath.Join(b.root, "away2")); err == nil {
					_ = os.Rename(filepath.Join(b.root, "away2"), filepath.Join(b.root, "sub"))
				}
				_ = os.RemoveAll(filepath.Join(b.root, d))
			}
		}
		files["sub/free"] = ""
		for name, want := range files {
			if text, err := os.ReadFile(filepath.Join(b.root, name)); (err != nil || string(text) != want) && name != "sub/free" {
				t.Errorf("%s is now %q, %v", name, text, err)
			}
		}
		if _, err := os.Stat(b.root + "/.git/hooks/pre-commit"); err == nil {
			t.Error("a hook was made")
		}
		if res := b.sh(`cat .git/config .helveignore`); said(res) != "configrules" {
			t.Errorf("what is kept cannot be read: %q", said(res))
		}
		b.spec.ReadOnly = true
		if res := b.sh(`echo x > new; echo x > sub/free2; rm -f sub/free; mkdir m; cat .helve/db`); res.Code == 0 || strings.Contains(said(res), "s3cret") {
			t.Errorf("a root that is not to be changed: %q", said(res))
		}
		for _, name := range []string{"new", "sub/free2", "m"} {
			if _, err := os.Stat(filepath.Join(b.root, name)); err == nil {
				t.Errorf("%s was made in a root that is not to be changed", name)
			}
		}
	})
}

const connect = `
import socket, sys
kind, where = sys.argv[1], sys.argv[2]
try:
    if kind == "tcp":
        s = socket.create_connection(("127.0.0.1", int(where)), 10); s.sendall(b"hello")
    elif kind == "udp":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"hello", ("127.0.0.1", int(where)))
    elif kind == "pair":
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b"hello", where)
    else:
        s = socket.socket(socket.AF_UNIX); s.connect(where.replace("@", "\0", 1)); s.sendall(b"hello")
    print("reached")
except OSError as e:
    print("refused", e.errno)
`

func TestNetwork(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer tcp.Close()
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close()
		short, err := os.MkdirTemp("", "s")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(short)
		_, tcpPort, _ := net.SplitHostPort(tcp.Addr().String())
		_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())
		abstract := fmt.Sprintf("@helve-sandbox-test-%d", os.Getpid())
		for kind, where := range map[string]string{"tcp": tcpPort, "udp": udpPort, "unix": short + "/sock", "pair": short + "/gram", "abstract": abstract} {
			switch kind {
			case "unix", "abstract":
				l, err := net.Listen("unix", where)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			case "pair":
				l, err := net.ListenPacket("unixgram", where)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			res := b.py(connect, kind, where)
			if got := said(res); kind != "udp" && !strings.HasPrefix(got, "refused") {
				t.Errorf("%s: %s", kind, got)
			}
		}
		arrived := func() bool {
			if err := udp.SetReadDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			_, _, err := udp.ReadFrom(make([]byte, 10))
			return err == nil
		}
		if arrived() {
			t.Error("a datagram arrived")
		}
		b.spec.Network = true
		if got := said(b.py(connect, "tcp", tcpPort)); got != "reached\n" {
			t.Errorf("a granted network: %s", got)
		}
	})
}

// Other processes are neither seen nor reached.
func TestProcesses(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		other := exec.Command("/bin/sh", "-c", "exec sleep 1000", "s3cret")
		other.Env = []string{"TOKEN=s3cret", "PATH=/usr/bin:/bin"}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
		pid := strconv.Itoa(other.Process.Pid)
		res := b.sh(`cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/` + pid + `/cmdline 2>/dev/null | tr '\0' '\n' | grep 's3cre[t]'; kill -9 ` + pid + ` 2>/dev/null && echo killed; kill -9 $PPID 2>/dev/null; kill -9 -1 2>/dev/null; echo end`)
		if got := said(res); strings.Contains(got, "s3cret") || strings.Contains(got, "killed") {
			t.Error(got)
		}
		if err := other.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the other process is gone: %v", err)
		}
	})
}

// calls tries system calls, by number: name number arguments. ENOSYS and EPERM
// and EACCES are refusals.
const calls = `
import ctypes, sys, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
numbers = {"mount": (165, 40), "unshare": (272, 97), "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "perf_event_open": (298, 241), "setns": (308, 268), "ioctl": (16, 29), "pivot_root": (155, 41), "clone3": (435, 435),
    "open_by_handle_at": (304, 265), "process_vm_readv": (310, 270), "chroot": (161, 51), "pidfd_getfd": (438, 438), "fsopen": (430, 430)}
def call(name, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(numbers[name][0 if x86 else 1]), *args)
    return ctypes.get_errno() if got < 0 else 0
text = ctypes.create_string_buffer(b"x")
tries = [("mount", None, b"/tmp", b"tmpfs", 0, None), ("unshare", 0x10000000), ("unshare", 0x20000), ("keyctl", 0, -3, 1), ("add_key", b"user", b"a", b"b", 1, -3), ("bpf", 0, text, 1),
    ("userfaultfd", 1), ("io_uring_setup", 1, text), ("perf_event_open", text, 0, -1, -1, 0), ("setns", 0, 0), ("ioctl", 0, 0x5412, text), ("ioctl", 0, 0x5412 | 1 << 32, text),
    ("ioctl", 0, 0x541c, text), ("pivot_root", b"/", b"/"), ("clone3", text, 0), ("open_by_handle_at", -100, text, 0), ("process_vm_readv", 1, text, 0, text, 0, 0), ("chroot", b"/"), ("pidfd_getfd", 0, 0, 0), ("fsopen", b"tmpfs", 0)]
for t in tries:
    errno = call(*t)
    if errno not in (1, 13, 38):
        print(t[0], t[1:], errno)
`

func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		if got := said(b.py(calls)); got != "" {
			t.Errorf("calls that were not refused, and what they said: %s", got)
		}
		if got := said(b.py(`print({l.split()[0]: l.split()[1] for l in open("/proc/self/status") if l.startswith(("CapEff", "CapBnd", "NoNewPrivs", "Seccomp:"))})`)); got != "{'CapEff:': '0000000000000000', 'CapBnd:': '0000000000000000', 'NoNewPrivs:': '1', 'Seccomp:': '2'}\n" && os.Getuid() == 0 {
			t.Errorf("powers: %q", got)
		}
	})
}

// No file is handed on but the three streams, and there is no input.
func TestOpenFiles(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		f, err := os.Open(b.outside + "/secret")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fd, err := syscall.Dup(int(f.Fd())) // which a program that is started gets
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		got := said(b.py(`
import os, sys
def there(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(3, 1024) if there(fd)], repr(sys.stdin.read()))`))
		if got != "[] ''\n" {
			t.Error(got)
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SANDBOX_TEST_OTHER", "no")
	each(t, func(t *testing.T, b *bench) {
		var names []string
		for line := range strings.Lines(said(b.sh("env"))) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		names = slices.DeleteFunc(names, func(n string) bool { return n == "_" || n == "SHLVL" || n == "OLDPWD" })
		if want := []string{"HOME", "OUT", "PATH", "PWD", "ROOT", "TMPDIR"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
	})
}

// The limits hold whatever confines the command.
func TestLimits(t *testing.T) {
	check := func(t *testing.T, b *bench) {
		b.spec.Limits = sandbox.Limits{Memory: 200 << 20, Processes: 60, FileSize: 4 << 20, Temp: 8 << 20, Files: 64, Output: 4096, CPU: time.Second, Time: time.Minute}
		if res := b.py(`x = b"x" * (600 << 20); print("has it")`); res.Code == 0 || strings.Contains(said(res), "has it") {
			t.Errorf("memory: %+v %q", res, said(res))
		}
		if s := b.r.Status(); os.Getuid() != 0 || !slices.ContainsFunc(s.Weak, func(w string) bool { return strings.Contains(w, "control group") }) {
			res := b.py(`
import os, time
n = 0
try:
    while n < 300:
        if os.fork() == 0:
            time.sleep(1000)
        n += 1
except OSError: pass
print(n)`)
			if n, err := strconv.Atoi(strings.TrimSpace(said(res))); err != nil || n >= 60 {
				t.Errorf("processes: %q", said(res))
			}
		}
		if res := b.sh(`head -c 20000000 /dev/zero > big`); res.Code == 0 {
			t.Errorf("file size: %+v %q", res, said(res))
		}
		if info, err := os.Stat(b.root + "/big"); err != nil || info.Size() > 4<<20 {
			t.Errorf("file size: %v %v", info, err)
		}
		if res := b.py(`
all = [open("/dev/null") for i in range(1000)]`); res.Code == 0 {
			t.Error("open files: no end")
		}
		if res := b.sh(`yes | head -c 30000000; yes e | head -c 30000000 >&2`); res.Stdout.Total() != 30000000 || res.Stderr.Total() != 30000000 || len(said(res)) > 2*4096 {
			t.Errorf("output: %d bytes of %d are kept", len(said(res)), res.Stdout.Total())
		}
		if res := b.sh(`while :; do :; done`); res.Ended != "cpu time" {
			t.Errorf("cpu time: %+v", res)
		}
	}
	each(t, func(t *testing.T, b *bench) {
		check(t, b)
		if b.r.Status().Active == sandbox.Bubblewrap {
			for _, dir := range []string{"$TMPDIR", "$HOME", "/dev/shm"} {
				if res := b.sh(`cd ` + dir + `; for i in 1 2 3 4 5 6; do head -c 4000000 /dev/zero > f$i || exit 1; done`); res.Code == 0 {
					t.Errorf("%s: no end: %q", dir, said(res))
				}
			}
		}
	})
	t.Run("off", func(t *testing.T) { check(t, newBench(t, confinements[sandbox.None])) })
}

// lifeline makes a named pipe "alive" in the root, and returns a function that
// waits until no process holds it open any more.
func (b *bench) lifeline() (gone func()) {
	b.t.Helper()
	name := filepath.Join(b.root, "alive")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		b.t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { f.Close() })
	return func() {
		b.t.Helper()
		if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			b.t.Fatal(err)
		}
		if text, err := io.ReadAll(f); err != nil || !strings.HasPrefix(string(text), "up\n") {
			b.t.Errorf("%q, %v: a process outlives its command", text, err)
		}
	}
}

// daemon leaves behind a process that went as far as it could: two forks, a
// session of its own, deaf to what asks it to end, no streams.
const daemon = `(setsid sh -c 'trap "" TERM HUP INT; exec 3> alive; echo up >&3; echo up > up; (sleep 1000 &) ; while :; do sleep 1000; done' < /dev/null > /dev/null 2>&1 &) ; read ok < up; `

func TestNothingSurvives(t *testing.T) {
	everyway := func(t *testing.T, b *bench) {
		if err := syscall.Mkfifo(b.root+"/up", 0o600); err != nil {
			t.Fatal(err)
		}
		gone := b.lifeline()
		if res := b.sh(daemon + "echo done"); said(res) != "done\n" || res.Held {
			t.Errorf("%q %+v", said(res), res)
		}
		gone()
		b.spec.Limits.Time = time.Second
		os.Remove(b.root + "/alive")
		gone = b.lifeline()
		if res := b.sh(daemon + "trap '' TERM; while :; do sleep 1; done"); res.Ended != "time" {
			t.Errorf("%+v %q", res, said(res))
		}
		gone()
		b.spec.Limits.Time = 0
		os.Remove(b.root + "/alive")
		gone = b.lifeline()
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := syscall.Mkfifo(b.root+"/begun", 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = os.ReadFile(b.root + "/begun") // until the command wrote it
			cancel(errors.New("enough"))
		}()
		b.spec.Args = []string{"sh", "-c", daemon + "echo > begun; sleep 1000"}
		res, err := b.r.Run(ctx, b.spec)
		if err != nil || res.Ended != "cancelled" || res.Cause == nil || res.Cause.Error() != "enough" {
			t.Errorf("%+v %v", res, err)
		}
		gone()
	}
	each(t, everyway)
	t.Run("off", func(t *testing.T) { everyway(t, newBench(t, confinements[sandbox.None])) })
}

// victim is a Helve that runs a command for ever.
func victim() int {
	root, by := os.Getenv("SANDBOX_TEST_VICTIM"), sandbox.Confinement(os.Getenv("SANDBOX_TEST_BY"))
	_, err := confinements[by].Run(context.Background(), sandbox.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", daemon + "sleep 1000"}, Dir: root, Root: root, Env: []string{"PATH=/usr/bin:/bin"}})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A Helve that is killed takes its commands with it.
func TestKilled(t *testing.T) {
	kill := func(t *testing.T, b *bench, by sandbox.Confinement) {
		if err := syscall.Mkfifo(b.root+"/up", 0o600); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(b.root, "alive")
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		helve := exec.Command(exe)
		helve.Env = append(os.Environ(), "SANDBOX_TEST_VICTIM="+b.root, "SANDBOX_TEST_BY="+string(by))
		helve.Stderr = os.Stderr
		if err := helve.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = helve.Process.Kill(); _ = helve.Wait() }()
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0) // with which reading waits for a writer
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(f, make([]byte, 3)); err != nil {
			t.Fatalf("the command did not begin: %v", err)
		}
		alive, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer alive.Close()
		f.Close()
		if err := helve.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := alive.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(alive); err != nil {
			t.Errorf("%q, %v: a process outlives Helve", text, err)
		}
	}
	each(t, func(t *testing.T, b *bench) { kill(t, b, b.r.Status().Active) })
	t.Run("off", func(t *testing.T) { kill(t, newBench(t, confinements[sandbox.None]), sandbox.None) })
}

// Commands that run at the same time get each their own.
func TestAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				spec := b.spec
				spec.Args = []string{"sh", "-c", fmt.Sprintf("echo %d > $TMPDIR/x; cat $TMPDIR/x; ls $TMPDIR; exit %d", i, i)}
				res, err := b.r.Run(t.Context(), spec)
				if err != nil || res.Code != i || !strings.HasPrefix(said(res), fmt.Sprintf("%d\n", i)) || !strings.Contains(said(res), "x\n") {
					t.Errorf("%d: %+v %v", i, res, err)
				}
			})
		}
		wg.Wait()
	})
}

// What the sandbox cannot do is an error; whatever the command does is a result.
func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, text := range []string{
			`echo 'bwrap: execvp sh: No such file or directory' >&2; exit 1`,
			`echo 'bwrap: Can'"'"'t mkdir' >&2; exit 1`, `exit 126`, `exit 127`, `exit 2`,
		} {
			b.spec.Args = []string{"sh", "-c", text}
			if res, err := b.r.Run(t.Context(), b.spec); err != nil || res.Code == 0 {
				t.Errorf("%s: %+v %v", text, res, err)
			}
		}
		for name, change := range map[string]func(*sandbox.Spec){
			"a missing program":          func(s *sandbox.Spec) { s.Path = "/usr/bin/no-such-program" },
			"a program out of sight":     func(s *sandbox.Spec) { s.Path = b.outside + "/secret" },
			"a missing folder":           func(s *sandbox.Spec) { s.Dir = b.root + "/missing" },
			"a relative root":            func(s *sandbox.Spec) { s.Root = "root" },
			"a root that holds all":      func(s *sandbox.Spec) { s.Root = "/" },
			"a folder with the system":   func(s *sandbox.Spec) { s.Writable = []string{"/usr"} },
			"no arguments":               func(s *sandbox.Spec) { s.Args = nil },
			"a NUL byte":                 func(s *sandbox.Spec) { s.Args = []string{"sh", "a\x00b"} },
			"a NUL byte in a setting":    func(s *sandbox.Spec) { s.Env = []string{"A=b\x00c"} },
			"a path that climbs":         func(s *sandbox.Spec) { s.Readable = []string{"/usr/../home"} },
			"a folder that is a program": func(s *sandbox.Spec) { s.Path = "/usr/bin" },
		} {
			spec := b.spec
			spec.Args = []string{filepath.Base(spec.Path), "-c", "echo ran"}
			change(&spec)
			if res, err := b.r.Run(t.Context(), spec); err == nil {
				t.Errorf("%s: ran: %+v %q", name, res, said(res))
			}
		}
	})
}

// Where nothing confines commands, the mode decides.
func TestModes(t *testing.T) {
	for mode, runs := range map[sandbox.Mode]bool{sandbox.Require: false, sandbox.Prefer: true, sandbox.Off: true, "": false} {
		r := runner(mode, sandbox.Bubblewrap, sandbox.Landlock)
		b := newBench(t, r)
		b.spec.Args = []string{"sh", "-c", "echo ran"}
		res, err := r.Run(t.Context(), b.spec)
		switch {
		case !runs && !errors.Is(err, sandbox.ErrUnconfined), !runs && !errors.Is(r.Ready(), sandbox.ErrUnconfined):
			t.Errorf("%s: %v", mode, err)
		case runs && (err != nil || said(res) != "ran\n" || res.By != sandbox.None || r.Ready() != nil):
			t.Errorf("%s: %+v %v", mode, res, err)
		case mode == sandbox.Prefer && (len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "unconfined")):
			t.Errorf("%s does not warn: %v", mode, res.Notes)
		}
	}
	var none *sandbox.Runner
	if _, err := none.Run(t.Context(), sandbox.Spec{}); !errors.Is(err, sandbox.ErrUnconfined) {
		t.Error(err)
	}
	if err := none.Ready(); !errors.Is(err, sandbox.ErrUnconfined) {
		t.Error(err)
	}
}

// TestAsNobody runs the tests of this package as a user without rights.
func TestAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user; the tests run as this one anyway")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/sandbox.test", text, 0o755), os.Mkdir(dir+"/tmp", 0o700), os.Chown(dir+"/tmp", 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/sandbox.test", "-test.v", "-test.timeout=5m")
	cmd.Dir = dir
	for _, name := range []string{"HELVE_TEST_REQUIRE", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR="+dir+"/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d tests passed", strings.Count(string(out), "--- PASS"))
}
