package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/helve-ai/helve/tool"
)

// A command that is told to end has the grace to do so; what holds its output
// open after it ended is waited for no longer than the drain.
const (
	grace = 2 * time.Second
	drain = grace + time.Second
)

// inside reports whether a file or folder lies in the root, its links resolved.
func (s *shell) inside(name string) bool {
	for _, p := range []string{filepath.Clean(name), realPath(name)} {
		if rel, err := filepath.Rel(s.root.Dir(), p); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return filepath.Clean(name)
}

// find returns the program of that name in the trusted folders; "" when there
// is none. An absolute name stands for itself.
func (s *shell) find(name string) (string, error) {
	candidates := []string{name}
	if !filepath.IsAbs(name) {
		candidates = nil
		for _, dir := range s.cfg.Path {
			candidates = append(candidates, filepath.Join(dir, name+programSuffix))
		}
	}
	for _, file := range candidates {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || programSuffix == "" && info.Mode()&0o111 == 0 {
			continue
		}
		if s.inside(file) {
			return "", tool.Errorf(tool.CodePermission, "the program %s leads into the root, where tools could have changed it; the operator sets tools.modules.shell.config.path", file)
		}
		return file, nil
	}
	return "", nil
}

// errTime is the cause of a context whose command ran too long.
var errTime = errors.New("the command's time is over")

// execute runs the program and returns what it printed.
func (s *shell) execute(ctx context.Context, program string, p *plan, limit time.Duration) (*tool.Result, error) {
	home, err := s.makeHome()
	if err != nil {
		return nil, err
	}
	defer removeHome(home)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, p.argv[1:]...)
	cmd.Args[0] = p.argv[0]
	cmd.Dir = p.dir
	cmd.Env = append(s.environment(home, p.dir), p.env...)
	settings, err := withoutFilters(ctx, program, p, cmd.Env)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, settings...)
	stdout, stderr := newCapture(s.cfg.MaxOutput), newCapture(s.cfg.MaxOutput)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = drain
	stopped, err := runGroup(cmd, limit)
	if stopped {
		return nil, ended(context.Cause(ctx), limit, stdout, stderr)
	}
	if cmd.ProcessState == nil {
		return nil, fmt.Errorf("%s could not be started: %w", p.argv[0], err)
	}
	code, signal := exitCode(cmd.ProcessState)
	res := tool.Text(render(code, stdout.text(s.cfg.MaxOutput), stderr.text(s.cfg.MaxOutput)))
	if signal != "" {
		res.Notes = append(res.Notes, "the command was ended by the signal: "+signal)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		res.Notes = append(res.Notes, "a process that the command left behind held its output open; what it printed later is missing")
	}
	return res, nil
}

// ended returns the error for a command that was not let run to its end.
func ended(cause error, limit time.Duration, stdout, stderr *capture) *tool.Error {
	const shown = 2 << 10
	printed := fmt.Sprintf("stdout so far:\n%sstderr so far:\n%s", line(stdout.text(shown)), stderr.text(shown))
	if errors.Is(cause, errTime) {
		return tool.Errorf(tool.CodeTimeout, "the command was ended after %v, with all that it had started; a longer timeout, %d seconds at most, may help\n%s", limit, maxSeconds, printed).Retry()
	}
	return tool.Errorf(tool.CodeCancelled, "the call was cancelled (%v) and the command ended\n%s", cause, printed)
}

// runGroup runs a command in a process group of its own, and ends what is left
// of the group when the command is done. It reports whether the command was
// stopped because its context was done.
func runGroup(cmd *exec.Cmd, limit time.Duration) (stopped bool, err error) {
	// The thread that starts a process is its parent to the kernel: when the
	// thread ends, the process would.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &group{}
	g.prepare(cmd)
	var cancelled atomic.Bool
	stop := cmd.Cancel
	cmd.Cancel = func() error {
		cancelled.Store(true)
		return stop()
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	g.started(cmd.Process.Pid, limit)
	err = g.wait(cmd)
	return cancelled.Load(), err
}

// environment is all that a command sees of the world's settings.
func (s *shell) environment(home, dir string) []string {
	var env []string
	for _, name := range s.cfg.PassEnv {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env,
		"PATH="+strings.Join(s.cfg.Path, string(filepath.ListSeparator)),
		"HOME="+home, "TMPDIR="+filepath.Join(home, "tmp"), "PWD="+dir,
		"LANG=C.UTF-8", "TERM=dumb",
		// Git would take a repository above the root for the root's own.
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(s.root.Dir()),
	)
}

// makeHome makes the folder that a command takes for the user's own.
func (s *shell) makeHome() (string, error) {
	if s.inside(os.TempDir()) {
		return "", tool.Errorf(tool.CodePermission, "the folder for temporary files, %s, lies inside the root, where tools could place settings for the command; the operator chooses another root or sets TMPDIR", os.TempDir())
	}
	home, err := os.MkdirTemp("", "helve-shell-")
	if err != nil {
		return "", fmt.Errorf("the command's home: %w", err)
	}
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		return "", errors.Join(fmt.Errorf("the command's home: %w", err), os.RemoveAll(home))
	}
	return home, nil
}

// removeHome removes it, with folders that were made read-only (Go's modules).
func removeHome(home string) {
	if os.RemoveAll(home) == nil {
		return
	}
	r, err := os.OpenRoot(home)
	if err != nil {
		return
	}
	defer r.Close()
	_ = fs.WalkDir(r.FS(), ".", func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = r.Chmod(name, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(home)
}
