package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deprivedMain is helve on a machine that lacks what the first argument names:
// "mount" (so that bubblewrap does not work) or "mount,landlock".
func deprivedMain() {
	without := map[string]uint32{"mount": unix.SYS_MOUNT, "landlock": unix.SYS_LANDLOCK_CREATE_RULESET}
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	for name := range strings.SplitSeq(os.Args[1], ",") {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: without[name], SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
	}
	raw, err := bpf.Assemble(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		panic(err)
	}
	var list []unix.SockFilter
	for _, i := range raw {
		list = append(list, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	exe, err := exec.LookPath("helve")
	if err != nil {
		panic(err)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	filter := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter))); errno != 0 {
		panic(errno)
	}
	panic(syscall.Exec(exe, append([]string{"helve"}, os.Args[2:]...), os.Environ()))
}

// A machine is the command line of helve on it.
type machine []string

var (
	whole        = machine{"helve"}
	landlockOnly = machine{"deprived", "mount"}
	bare         = machine{"deprived", "mount,landlock"}
)

func (m machine) command(t testing.TB, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), m[0], slices.Concat(m[1:], args)...)
	cmd.Dir, cmd.Env = dir, environ()
	return cmd
}

// run returns what helve printed on both streams, and its exit code.
func (m machine) run(t testing.TB, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := m.command(t, dir, args...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// confinement is what the doctor finds.
func (m machine) confinement(t testing.TB, dir string, args ...string) (active, status, remedy string) {
	t.Helper()
	out, err := m.command(t, dir, append([]string{"doctor", "--json"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Checks []struct {
			Check, Status, Remedy string
			Detail                struct{ Active string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Check == "sandbox" {
			return c.Detail.Active, c.Status, c.Remedy
		}
	}
	t.Fatalf("the doctor says nothing of the sandbox: %s", out)
	return
}

// eachMachine runs a test where bubblewrap confines commands, and where
// Landlock does.
func eachMachine(t *testing.T, test func(t *testing.T, m machine)) {
	for by, m := range map[string]machine{"bubblewrap": whole, "landlock": landlockOnly} {
		t.Run(by, func(t *testing.T) {
			if active, _, remedy := m.confinement(t, folder(t)); active != by {
				if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), by) {
					t.Fatalf("%s is required: %s", by, remedy)
				}
				t.Skipf("%s does not confine commands here: %s", by, remedy)
			}
			test(t, m)
		})
	}
}

// unasked is an app that runs any command unasked.
func unasked(sandbox string) string {
	return `app: {app_id: any, name: Any}
tools:
  modules: {shell: {config: {profile: unrestricted}}, filesystem: {}}
  capabilities: {max_risk_level: high, grant: ["shell.run"]}
security: {sandbox: ` + sandbox + `}
`
}

// shell runs a command by the command line and returns what it printed.
func (m machine) shell(t testing.TB, dir, cmd string) string {
	t.Helper()
	args, err := json.Marshal(object{"cmd": cmd, "profile": "unrestricted"})
	if err != nil {
		t.Fatal(err)
	}
	out, code := m.run(t, dir, "--app", "app.yaml", "tools", "call", "shell.run", string(args))
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", cmd, code, out)
	}
	return out
}

// What is granted everything by the policy is held by the sandbox.
func TestCommandsAreConfined(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		dir := folder(t, "app.yaml", unasked("require"), "dark/key", "s3cret", "kept/a", "as it was", ".helveignore", "dark/\n", ".helveprotect", "kept/\n", ".git/config", "as it was", "sub/a", "mine\n", "pairs/x", "")
		outside := folder(t, "secret", "s3cret")
		hardLink(t, dir, "dark/key", "pairs/twin")
		hardLink(t, dir, "kept/a", "pairs/held")
		out := m.shell(t, dir, fmt.Sprintf(`cat dark/key pairs/twin %[1]s/secret .helve/helve.db /etc/shadow ~root/.bashrc; cat sub/a; echo new > sub/new; echo end`, outside))
		if strings.Contains(out, "s3cret") || strings.Contains(out, "SQLite") || strings.Contains(out, "root:") || !strings.Contains(out, "mine\nend\n") {
			t.Errorf("reading: %s", out)
		}
		if read(t, filepath.Join(dir, "sub", "new")) != "new\n" {
			t.Error("what is granted was not written")
		}
		out = m.shell(t, dir, fmt.Sprintf(`for f in app.yaml kept/a pairs/held .helveignore .helveprotect .git/config .git/hooks.sh .helve/x %s/made /etc/made /usr/made; do echo x > $f; rm -f $f; mv $f other; done; mv .helve h; mv .git g; rm -rf .helve .git; echo end`, outside))
		for file, want := range map[string]string{"app.yaml": unasked("require"), "kept/a": "as it was", ".helveignore": "dark/\n", ".helveprotect": "kept/\n", ".git/config": "as it was", "dark/key": "s3cret"} {
			if got := read(t, filepath.Join(dir, file)); got != want {
				t.Errorf("%s is now %q: %s", file, got, out)
			}
		}
		for _, file := range []string{filepath.Join(dir, ".git/hooks.sh"), filepath.Join(outside, "made"), "/etc/made", "/usr/made"} {
			if exists(file) {
				t.Errorf("%s was made", file)
			}
		}
		verified(t, dir, "--app", "app.yaml") // the log is whole: .helve was out of reach
		if out := m.shell(t, dir, "exit 7"); !strings.HasPrefix(out, "exit_code: 7\n") {
			t.Errorf("the exit code comes first: %q", out)
		}
		out, _ = m.run(t, dir, "--app", "app.yaml", "tools", "call", "shell.run", `{"cmd":"rg x sub"}`)
		if _, err := exec.LookPath("rg"); err != nil && !strings.HasPrefix(out, "[INFO] tool 'rg' not installed") {
			t.Errorf("a missing program: %q", out)
		}
	})
}

// A policy below the root is not put aside with its folder.
func TestCommandsLeaveThePolicyInItsPlace(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		file := unasked("require") + "dev: {include: [more/rules.yaml]}\n"
		rules := "tools: {capabilities: {deny: [http.post]}}\n"
		dir := folder(t, "conf/app.yaml", file, "conf/more/rules.yaml", rules, "conf/mine", "x")
		args, err := json.Marshal(object{"profile": "unrestricted", "cmd": "mv conf conf2; mv conf/more m; rm -rf conf/more conf; echo x > conf/more/rules.yaml; echo x > conf/app.yaml; echo new > conf/mine; echo end"})
		if err != nil {
			t.Fatal(err)
		}
		out, code := m.run(t, dir, "--app", "conf/app.yaml", "--root", ".", "tools", "call", "shell.run", string(args))
		if code != 0 || !strings.Contains(out, "end") || read(t, filepath.Join(dir, "conf/app.yaml")) != file || read(t, filepath.Join(dir, "conf/more/rules.yaml")) != rules {
			t.Errorf("%d %s", code, out)
		}
	})
}

// What git and Helve keep beneath the top of the root is out of reach without
// any rules, too.
func TestCommandsLeaveOtherRepositories(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		dir := folder(t, "app.yaml", unasked("require"), "sub/.git/config", "as it was", "tree/.git", "gitdir: ../sub/.git\n", "other/.helve/helve.db", "s3cret", "free/a", "x")
		out := m.shell(t, dir, `cat sub/.git/config other/.helve/helve.db; for f in sub/.git/config sub/.git/hooks tree/.git other/.helve/helve.db; do echo x > $f; rm -f $f; done; rm -rf other/.helve; mv sub z; echo x > z/.git/config; mv z sub; echo new > free/a; echo end`)
		if strings.Contains(out, "s3cret") || !strings.Contains(out, "as it was") || !strings.Contains(out, "end") {
			t.Errorf("%s", out)
		}
		for file, want := range map[string]string{"sub/.git/config": "as it was", "tree/.git": "gitdir: ../sub/.git\n", "other/.helve/helve.db": "s3cret", "free/a": "new\n"} {
			if got := read(t, filepath.Join(dir, file)); got != want {
				t.Errorf("%s is now %q: %s", file, got, out)
			}
		}
		if exists(filepath.Join(dir, "sub/.git/hooks")) {
			t.Error("a hook was made")
		}
	})
}

// What is ignored or protected where it lies is not made readable or writable
// by giving a folder above it another name.
func TestCommandsLeaveWhatIsIgnoredInItsPlace(t *testing.T) {
	eachMachine(t, func(t *testing.T, m machine) {
		dir := folder(t, "app.yaml", unasked("require"), "a/b/dark/key", "s3cret", "a/kept/x", "as it was", "a/b/one.pem", "s3cret", "free/two.pem", "s3cret",
			".helveignore", "/a/b/dark/\n*.pem\n", ".helveprotect", "a/kept\n")
		out := m.shell(t, dir, `mv a z; mv a/b a/c; mv a/b .; mkdir n; mv a n/; mv free other; rm -rf a/b; ln a/kept/x hard; cp -a a copy; echo end`)
		out += m.shell(t, dir, `cat z/b/dark/key a/c/dark/key b/dark/key n/a/b/dark/key copy/b/dark/key other/two.pem a/b/one.pem; for f in z/kept/x n/a/kept/x hard; do echo x > $f; done; echo end`)
		if strings.Contains(out, "s3cret") || strings.Count(out, "end\n") != 2 {
			t.Errorf("%s", out)
		}
		for file, want := range map[string]string{"a/b/dark/key": "s3cret", "a/kept/x": "as it was", "a/b/one.pem": "s3cret"} {
			if got := read(t, filepath.Join(dir, file)); got != want {
				t.Errorf("%s is now %q: %s", file, got, out)
			}
		}
		s := stdio(t, dir, "--app", "app.yaml")
		for _, file := range []string{"z/b/dark/key", "a/c/dark/key", "b/dark/key", "a/b/dark/key", "other/two.pem", "copy/b/dark/key"} {
			if r := call(t, s, "filesystem.read", object{"path": file}); strings.Contains(r.Text, "s3cret") {
				t.Errorf("%s: %+v", file, r)
			}
		}
	})
}

// Whatever git is made to run, it runs it in the sandbox.
func TestGitRunsInTheSandbox(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		fail := t.Skipf
		if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "git") {
			fail = t.Fatalf
		}
		fail("no git in PATH for this test; install it (Debian: apt-get install git)")
	}
	eachMachine(t, func(t *testing.T, m machine) {
		dir, outside := folder(t, "app.yaml", unasked("require"), "a", "one\n", ".gitattributes", "a filter=evil diff=evil\n"), folder(t)
		trace := filepath.Join(outside, "trace")
		evil := "sh -c 'echo ran >> " + trace + "; echo ran >> " + dir + "/inside; cat' -"
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"},
			{"config", "core.fsmonitor", evil}, {"config", "core.pager", evil}, {"config", "filter.evil.clean", evil}, {"config", "diff.external", evil}, {"config", "alias.x", "!" + evil}, {"config", "diff.evil.textconv", evil}} {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v %s", args, err, out)
			}
		}
		write(t, filepath.Join(dir, "a"), "two\n")
		write(t, filepath.Join(dir, ".git/hooks/post-index-change"), "#!/bin/sh\n"+evil+"\n")
		if err := os.Chmod(filepath.Join(dir, ".git/hooks/post-index-change"), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, code := m.run(t, dir, "--app", "app.yaml", "tools", "call", "shell.run", `{"cmd":"git diff"}`); code != 0 || !strings.Contains(out, "+two") {
			t.Errorf("git diff under passive: %d %s", code, out)
		}
		if exists(trace) || exists(filepath.Join(dir, "inside")) {
			t.Error("under passive, git ran a program of the configuration")
		}
		for _, cmd := range []string{"git status", "git diff", "git -p log", "git x", "git add a", "git log -p --textconv --ext-diff"} {
			m.shell(t, dir, cmd)
			if exists(trace) {
				t.Fatalf("%s ran a program outside the sandbox", cmd)
			}
		}
	})
}

// A Helve that is killed while a command runs takes it along, by whichever
// way the command was called.
func TestCommandsDieWithHelve(t *testing.T) {
	const cmd = `(setsid sh -c 'trap "" TERM HUP; exec 3> alive; echo up >&3; sleep 1000' < /dev/null > /dev/null 2>&1 &); sleep 1000`
	eachMachine(t, func(t *testing.T, m machine) {
		for way, args := range map[string][]string{"mcp": {"mcp"}, "call": {"tools", "call", "shell.run", `{"cmd":` + quoted(cmd) + `,"profile":"unrestricted"}`}} {
			t.Run(way, func(t *testing.T) {
				dir := folder(t, "app.yaml", unasked("require"))
				fifo := filepath.Join(dir, "alive")
				if err := syscall.Mkfifo(fifo, 0o600); err != nil {
					t.Fatal(err)
				}
				helve := m.command(t, dir, append([]string{"--app", "app.yaml"}, args...)...)
				if way == "mcp" {
					s, err := newClient(nil).Connect(t.Context(), &mcp.CommandTransport{Command: helve}, nil)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					go s.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell.run", Arguments: object{"cmd": cmd, "profile": "unrestricted"}})
				} else if err := helve.Start(); err != nil {
					t.Fatal(err)
				} else {
					defer helve.Wait()
				}
				hold, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer hold.Close()
				hold.SetReadDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.ReadFull(hold, make([]byte, 3)); err != nil {
					t.Fatalf("the command did not begin: %v", err)
				}
				alive, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer alive.Close()
				hold.Close()
				if err := helve.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				alive.SetReadDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.ReadAll(alive); err != nil {
					t.Errorf("the command lives on: %v", err)
				}
			})
		}
	})
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// Where nothing confines commands, they are refused unless the app says otherwise.
func TestUnconfined(t *testing.T) {
	dir := folder(t, "a.txt", "hello", "prefer.yaml", unasked("prefer"), "off.yaml", unasked("off"))
	if active, status, remedy := bare.confinement(t, dir); active != "none" || status != "warning" || !strings.Contains(remedy, "bubblewrap") {
		t.Errorf("the doctor: %s %s %s", active, status, remedy)
	}
	if active, _, remedy := landlockOnly.confinement(t, dir); active == "landlock" && !strings.Contains(remedy, "bubblewrap") {
		t.Errorf("the doctor does not say how to get more than Landlock: %s", remedy)
	}
	for _, args := range []string{`{"cmd":"cat a.txt"}`, `{"cmd":"python3 -c 1","profile":"full"}`} {
		out, code := bare.run(t, dir, "tools", "call", "shell.run", args, "--yes")
		if code != 3 || !strings.Contains(out, "cannot be confined") || !strings.Contains(out, "bubblewrap") || !strings.Contains(out, "sandbox: prefer") {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
	if out, _ := bare.run(t, dir, "policy", "explain", "shell.run", `{"cmd":"cat a.txt"}`); !strings.Contains(out, "cannot be confined") {
		t.Errorf("policy explain: %s", out)
	}
	if out, code := bare.run(t, dir, "tools", "call", "filesystem.read", `{"path":"a.txt"}`); code != 0 || !strings.Contains(out, "hello") {
		t.Errorf("a tool that needs no sandbox: %d %s", code, out)
	}
	for app, warns := range map[string]bool{"prefer.yaml": true, "off.yaml": false} {
		out, code := bare.run(t, dir, "--app", app, "tools", "call", "shell.run", `{"cmd":"cat a.txt"}`)
		if code != 0 || !strings.Contains(out, "hello") || strings.Contains(out, "unconfined") != warns {
			t.Errorf("%s: %d %s", app, code, out)
		}
	}
}
