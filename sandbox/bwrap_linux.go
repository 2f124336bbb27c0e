package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The private places of a command under bubblewrap.
const (
	privateHome = "/run/home"
	privateTemp = "/tmp"
	otherTemp   = "/run/tmp" // where the root is /tmp
)

// tempDir returns the folder for temporary files of a command.
func tempDir(s *Spec) string {
	if s.Root == privateTemp || slices.Contains(s.Writable, privateTemp) {
		return otherTemp
	}
	return privateTemp
}

// bwrapArgs are bubblewrap's options for a command, without the command.
func bwrapArgs(s *Spec, userns bool) ([]string, error) {
	size := strconv.FormatInt(s.Limits.Temp, 10)
	args := []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL",
		"--new-session", "--die-with-parent", "--hostname", "sandbox"}
	if userns {
		args = append(args, "--unshare-user")
	}
	if !s.Network {
		args = append(args, "--unshare-net")
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--size", size, "--tmpfs", "/run", "--perms", "0700", "--dir", privateHome, "--size", size, "--perms", "1777", "--tmpfs", privateTemp,
		"--dir", "/home", "--dir", "/root", "--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run")
	if t := tempDir(s); t != privateTemp {
		args = append(args, "--perms", "0700", "--dir", t)
	}
	for _, dir := range systemDirs {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
			continue
		}
		args = append(args, "--ro-bind-try", dir, dir)
	}
	masks := 0
	hide := func(paths []string) {
		for _, p := range paths {
			masks++
			if info, err := os.Lstat(p); err != nil {
				continue
			} else if info.IsDir() {
				args = append(args, "--perms", "0000", "--tmpfs", p, "--remount-ro", p)
			} else {
				args = append(args, "--ro-bind", "/dev/null", p) // which cannot be opened: the mount permits no devices
			}
		}
	}
	hide(hiddenInSystem())
	if s.Network {
		if file := resolverFile(); file != "" {
			args = append(args, "--ro-bind-try", file, file)
		}
	}
	for _, p := range s.Readable {
		args = append(args, "--ro-bind-try", p, p)
	}
	for _, p := range s.Writable {
		args = append(args, "--bind-try", p, p)
	}
	root := "--bind"
	if s.ReadOnly {
		root = "--ro-bind"
	}
	args = append(args, root, s.Root, s.Root)
	if !s.ReadOnly {
		masks += len(s.anchors)
		for _, dir := range s.anchors { // what is mounted cannot be renamed, nor removed
			args = append(args, "--bind", dir, dir)
		}
	}
	for _, p := range s.Keep {
		masks++
		args = append(args, "--ro-bind-try", p, p)
	}
	hide(s.Hide)
	if masks > maxMasks {
		return nil, fmt.Errorf("%w: more than %d files and folders are ignored or protected one by one; name folders rather than single files in .helveignore and .helveprotect", ErrUnconfined, maxMasks)
	}
	return append(args, "--remount-ro", "/", "--chdir", s.Dir), nil
}

// visible reports whether a file is among those that a command sees.
func visible(file string, s *Spec) bool {
	return slices.ContainsFunc(slices.Concat(systemDirs, s.Readable, s.Writable, []string{s.Root}), func(dir string) bool {
		return beneath(file, dir)
	})
}

// A bwrapRun is one run of bubblewrap, with the pipes by which it is told what
// to do and tells what became of it.
type bwrapRun struct {
	cmd    *exec.Cmd
	closes []*os.File // of ours, once it has started
	gate   *os.File   // the command waits until something is written
	news   *os.File
	status chan bwrapStatus
	pid    chan int
}

// bwrapStatus is what bubblewrap tells: ExitCode is there only if the command
// was really started.
type bwrapStatus struct {
	ChildPID int  `json:"child-pid"`
	ExitCode *int `json:"exit-code"`
}

// child returns the reading end for the child of a pipe and our writing end,
// or the other way about, as the number in the child's list of files.
func (b *bwrapRun) pass(f *os.File) string {
	b.cmd.ExtraFiles = append(b.cmd.ExtraFiles, f)
	b.closes = append(b.closes, f)
	return strconv.Itoa(2 + len(b.cmd.ExtraFiles))
}

// text returns a file to pass that holds the bytes.
func memory(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// newBwrap prepares a run.
func newBwrap(s *Spec, status Status) (*bwrapRun, error) {
	args, err := bwrapArgs(s, status.userns)
	if err != nil {
		return nil, err
	}
	program, err := filter(calls())
	if err != nil {
		return nil, err
	}
	// What this process was started with would be handed on to the command.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("sandbox: open files: %w", err)
	}
	b := &bwrapRun{cmd: exec.Command(status.program), status: make(chan bwrapStatus, 1), pid: make(chan int, 1)}
	fail := func(err error) (*bwrapRun, error) {
		b.close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	filterFile, err := memory("filter", filterBytes(program))
	if err != nil {
		return fail(err)
	}
	args = append([]string{"--seccomp", b.pass(filterFile)}, args...)
	gate, ours, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	b.gate = ours
	args = append([]string{"--block-fd", b.pass(gate)}, args...)
	news, theirs, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	b.news = news
	args = append([]string{"--json-status-fd", b.pass(theirs)}, args...)
	var list bytes.Buffer
	for _, a := range args {
		list.WriteString(a)
		list.WriteByte(0)
	}
	argFile, err := memory("args", list.Bytes())
	if err != nil {
		return fail(err)
	}
	b.cmd.Args = slices.Concat([]string{"bwrap", "--args", b.pass(argFile), "--", calledAs(s)}, s.Args[1:])
	b.cmd.Dir = "/"
	b.cmd.Env = append(slices.Clone(s.Env), "HOME="+privateHome, "TMPDIR="+tempDir(s))
	return b, nil
}

// calledAs is the name by which bubblewrap finds the program: the bare one where
// it leads to the same, for that is how programs call themselves in messages.
func calledAs(s *Spec) string {
	name := s.Args[0]
	if name != filepath.Base(s.Path) || strings.HasPrefix(name, "-") {
		return s.Path
	}
	for _, setting := range s.Env {
		list, ok := strings.CutPrefix(setting, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				continue
			}
			if filepath.Join(dir, name) == s.Path {
				return name
			}
			break
		}
	}
	return s.Path
}

func (b *bwrapRun) close() {
	for _, f := range append(b.closes, b.gate, b.news) {
		if f != nil {
			f.Close()
		}
	}
	b.closes = nil
}

// listen reads what bubblewrap tells until it ends.
func (b *bwrapRun) listen() {
	var last bwrapStatus
	d := json.NewDecoder(b.news)
	told := false
	for {
		var s bwrapStatus
		if err := d.Decode(&s); err != nil {
			break
		}
		if s.ChildPID != 0 {
			last.ChildPID = s.ChildPID
			if !told {
				told = true
				b.pid <- s.ChildPID
			}
		}
		if s.ExitCode != nil {
			last.ExitCode = s.ExitCode
		}
	}
	if !told {
		b.pid <- 0
	}
	b.status <- last
}

// runBwrap runs a command under bubblewrap.
func runBwrap(ctx context.Context, s *Spec, status Status) (*Result, error) {
	if !visible(realPath(s.Path), s) {
		return nil, fmt.Errorf("%w: the program %s leads to %s, which commands do not see; the operator adds its folder to tools.modules.shell.config.readable", ErrUnconfined, s.Path, realPath(s.Path))
	}
	b, err := newBwrap(s, status)
	if err != nil {
		return nil, err
	}
	defer b.close()
	group := status.group.make(s.Limits)
	defer group.remove()
	child := 0
	p := &process{cmd: b.cmd, spec: s, signal: func(sig unix.Signal) {
		switch {
		case sig == unix.SIGKILL:
			_ = b.cmd.Process.Kill()
		case child > 0:
			_ = unix.Kill(-child, sig) // the session of the command, but for its first process, which takes no signals from us
		}
	}}
	p.started = func() error {
		for _, f := range b.closes {
			f.Close()
		}
		b.closes = nil
		go b.listen()
		if child = <-b.pid; child == 0 {
			return nil // it has failed, and says why
		}
		if err := group.add(child); err != nil {
			return err
		}
		_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(child), "oom_score_adj"), []byte("500"), 0)
		if err := limitProcess(child, s.Limits, group.holds()); err != nil {
			return fmt.Errorf("sandbox: limits: %w", err)
		}
		_, err := b.gate.Write([]byte{1})
		return err
	}
	res, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	told := <-b.status
	if told.ExitCode == nil && res.Ended == "" && !group.starved() {
		return nil, bwrapFailure(res, s)
	}
	if told.ExitCode != nil {
		res.Code, res.Signal = *told.ExitCode, ""
	}
	res.explain(group.starved())
	return res, nil
}

// bwrapFailure is the error of a command that bubblewrap did not start.
func bwrapFailure(res *Result, s *Spec) error {
	head, tail, _ := res.Stderr.Kept(2 << 10)
	said := strings.TrimSpace(string(head) + string(tail))
	if reason, ok := strings.CutPrefix(said, "bwrap: execvp "+calledAs(s)+": "); ok {
		return fmt.Errorf("%s could not be started: %s", s.Args[0], reason)
	}
	if said == "" {
		said = fmt.Sprintf("it ended with %d before the command began", res.Code)
	}
	return errors.New("sandbox: bubblewrap: " + strings.TrimPrefix(said, "bwrap: "))
}
