package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The helper is this program once more. It starts a second one, which confines
// itself and becomes the command; the first stays, for it is the parent of all
// that the command leaves behind, and ends that.

const (
	stageMark = "HELVE_SANDBOX_STAGE" // set for the second
	requestFD = 3
	reportFD  = 4
)

// A request is what the helper is told.
type request struct {
	Spec Spec
	Home string
	ABI  int  // of Landlock; 0: limits alone
	Held held // by a control group
}

// A report is what the helper tells of a command.
type report struct {
	Error  string `json:"error,omitempty"` // why the command did not start
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// runHelper runs a command by the helper.
func (r *Runner) runHelper(ctx context.Context, s *Spec, status Status) (*Result, error) {
	home, err := makeHome(s)
	if err != nil {
		return nil, err
	}
	defer removeHome(home)
	control, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer ours.Close()
	defer control.Close()
	news, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer news.Close()
	defer theirs.Close()
	group := status.group.make(s.Limits)
	defer group.remove()
	ask := request{Spec: *s, Home: home, Held: group.holds()}
	ask.Spec.Env = append(slices.Clone(s.Env), homeEnv(home)...)
	if status.Active == Landlock {
		ask.ABI = status.abi
	}
	p := &process{cmd: exec.Command(r.o.Helper[0], r.o.Helper[1:]...), spec: s}
	p.cmd.Dir, p.cmd.Env = "/", helperEnv()
	p.cmd.ExtraFiles = []*os.File{control, theirs}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it ends when control ends, and ends the command first
	var told report
	read := make(chan error, 1)
	p.started = func() error {
		control.Close()
		theirs.Close()
		if err := group.add(p.cmd.Process.Pid); err != nil {
			return err
		}
		go func() { read <- json.NewDecoder(news).Decode(&told) }()
		return json.NewEncoder(ours).Encode(ask)
	}
	p.signal = func(sig syscall.Signal) {
		if sig == syscall.SIGKILL {
			ours.Close()
			return
		}
		_, _ = ours.Write([]byte("t\n"))
	}
	res, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	return finish(res, <-read, told, group)
}

// finish makes the helper's report the result.
func finish(res *Result, err error, told report, group *cgroup) (*Result, error) {
	starved := group.starved()
	switch {
	case told.Error != "":
		return nil, errors.New(told.Error)
	case err != nil && starved:
		res.Code, res.Signal = 128+int(syscall.SIGKILL), "killed"
	case err != nil && res.Ended == "":
		return nil, fmt.Errorf("sandbox: the helper ended (%s) without a report; the command may not have run", describe(res))
	case err == nil:
		res.Code, res.Signal = told.Code, told.Signal
	}
	res.explain(starved)
	return res, nil
}

func describe(res *Result) string {
	head, tail, _ := res.Stderr.Kept(500)
	return strings.TrimSpace(fmt.Sprintf("exit code %d %s", res.Code, bytes.TrimSpace(append(head, tail...))))
}

// helperEnv is the helper's own environment, of which the command sees nothing.
func helperEnv() []string {
	env := []string{}
	for _, name := range []string{"GORACE", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Help is the helper: it does what a [Runner] tells it by its third and fourth
// file, and returns the exit code. What it says, it says to stderr.
func Help(stderr io.Writer) int {
	asked := os.NewFile(requestFD, "request")
	news := os.NewFile(reportFD, "report")
	unix.CloseOnExec(requestFD)
	unix.CloseOnExec(reportFD)
	var ask request
	d := json.NewDecoder(asked)
	if err := d.Decode(&ask); err != nil {
		fmt.Fprintf(stderr, "this command is run by helve itself, to confine others: %v\n", err)
		return 2
	}
	if os.Getenv(stageMark) != "" {
		runtime.LockOSThread()
		err := become(&ask)
		fmt.Fprint(news, err)
		return 1
	}
	told := supervise(&ask, io.MultiReader(d.Buffered(), asked))
	if err := json.NewEncoder(news).Encode(told); err != nil {
		return 1
	}
	return 0
}

// supervise starts the command, and ends all that it started when it has
// ended or control does. A line on control tells the command to end.
func supervise(ask *request, control io.Reader) report {
	runtime.LockOSThread() // which is the command's parent to the kernel
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report{Error: "sandbox: subreaper: " + err.Error()}
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	leader, err := startCommand(ask)
	if err != nil {
		endAll()
		return report{Error: err.Error()}
	}
	var mu sync.Mutex // guards over
	over := false
	go func() {
		line := make([]byte, 1)
		for {
			_, err := control.Read(line)
			mu.Lock()
			switch {
			case over:
			case err != nil:
				_ = unix.Kill(-leader, unix.SIGKILL)
			case line[0] == 't':
				_ = unix.Kill(-leader, unix.SIGTERM)
			}
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return report{Error: "sandbox: waiting: " + err.Error()}
		}
		var ws unix.WaitStatus
		mu.Lock()
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		over = over || err == nil && pid == leader
		mu.Unlock()
		if err == nil && pid == leader {
			endAll()
			told := report{Code: ws.ExitStatus()}
			if ws.Signaled() {
				told = report{Code: 128 + int(ws.Signal()), Signal: ws.Signal().String()}
			}
			return told
		}
	}
}

// startCommand starts the second helper and waits until it has become the command.
func startCommand(ask *request) (pid int, err error) {
	text, err := json.Marshal(ask)
	if err != nil {
		return 0, err
	}
	in, err := memory("request", text)
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	defer in.Close()
	trouble, theirs, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	defer trouble.Close()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(helperEnv(), stageMark+"=1")
	cmd.Dir = ask.Spec.Dir
	cmd.ExtraFiles = []*os.File{in, theirs}
	cmd.SysProcAttr = attributes()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	said, err := io.ReadAll(trouble) // until the command takes its place
	if err != nil || len(said) > 0 {
		_ = cmd.Wait()
		return 0, errors.New(string(said))
	}
	// It is waited for with all others.
	return cmd.Process.Pid, nil
}

// endAll ends all that is left of the command: those that lose their parent
// become this process's children, however far they went.
func endAll() {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if err != nil || pid <= 0 {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists the processes that this one is the parent of.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
