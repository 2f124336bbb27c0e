package mcpbridge

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxLogLine = 2 << 10 // bytes of a line on stderr that are logged
	keptLines  = 5       // of stderr, to tell why a server ended

	stdinGrace = 500 * time.Millisecond // after its input was closed, until a server is told to end
	termGrace  = 2 * time.Second        // after that, until it is killed
	pipeGrace  = 200 * time.Millisecond // after its end, until its output is given up
	exitGrace  = time.Second            // after the end of its output, until it counts as running
)

// A process is a server that runs as our child, in a group of its own.
type process struct {
	cmd    *exec.Cmd
	group  *group
	keeper *keeper
	stdin  *os.File
	stdout *os.File
	exited chan struct{} // closed when it has ended
	stops  sync.Once

	mu    sync.Mutex
	err   error    // how it ended
	tail  []string // of stderr
	first string   // the first line of stderr that speaks of an error
	stray string   // the first that it printed which is no message
}

// start runs a server's command. Its stderr goes to the log.
func start(up Upstream, dir string, k *keeper, log *slog.Logger) (*process, error) {
	cmd := exec.Command(up.Command, up.Args...)
	cmd.Dir = orElse(up.Cwd, dir)
	if info, err := os.Stat(cmd.Dir); cmd.Dir != "" && (err != nil || !info.IsDir()) { // else it would be the command that is not there
		return nil, fmt.Errorf("its folder (cwd) %s is not there", cmd.Dir)
	}
	cmd.Env = environment(up.Env)
	var ours, theirs [3]*os.File
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			closeAll(theirs[:])
			return nil, err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	g, err := k.start(cmd)
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	p := &process{cmd: cmd, group: g, keeper: k, stdin: ours[0], stdout: ours[1], exited: make(chan struct{})}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.logLines(ours[2], log)
	}()
	go p.wait(ours[2], logged)
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// wait waits for the process, then ends what it left behind.
func (p *process) wait(stderr *os.File, logged <-chan struct{}) {
	err := p.cmd.Wait()
	p.group.kill()
	p.keeper.forget(p.group)
	select {
	case <-logged:
	case <-time.After(pipeGrace): // somebody outside the group holds it open
	}
	stderr.Close()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(p.exited)
	// What the process wrote last can still be read for a moment.
	time.AfterFunc(pipeGrace, func() { p.stdout.Close() })
}

// logLines logs what the server writes to stderr.
func (p *process) logLines(r io.Reader, log *slog.Logger) {
	br := bufio.NewReaderSize(r, 4<<10)
	for {
		l := readLine(br, 64<<10)
		if l.err != nil {
			return
		}
		text := "[a line that is too long]"
		if !l.long {
			text = cut(strings.TrimSpace(printable(string(l.data))), maxLogLine)
		}
		log.Debug("stderr", "text", text)
		if text == "" {
			continue
		}
		p.mu.Lock()
		if p.first == "" && failing.MatchString(text) {
			p.first = cut(text, 300)
		}
		if p.tail = append(p.tail, text); len(p.tail) > keptLines {
			p.tail = slices.Delete(p.tail, 0, 1)
		}
		p.mu.Unlock()
	}
}

// epitaph says how the process ended; "" if it runs.
func (p *process) epitaph() string {
	select {
	case <-p.exited:
	default:
		return ""
	}
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	return fmt.Sprintf("the process ended (%s)%s", how, p.remarks())
}

// strayed notes what the process printed to its standard output, where there
// should be messages alone.
func (p *process) strayed(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stray == "" {
		p.stray = cut(text, 300)
	}
}

// remarks says what the process printed that may explain a failure; "": nothing.
func (p *process) remarks() string {
	text := ""
	if said := p.said(); said != "" {
		text = ", saying: " + said
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stray != "" {
		text += fmt.Sprintf("; it printed what is no message: %s", p.stray)
	}
	return text
}

// failing is what a line says that tells why a program ends; what it was doing
// often follows, and is longer than what is kept.
var failing = regexp.MustCompile(`(?i)\b(?:error|exception|fatal|panic)\b|\b(?:cannot|could not|not found|no such)\b`)

// said returns the last lines that the process wrote to stderr, behind the
// first that speaks of an error.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lead := ""
	if p.first != "" && !slices.ContainsFunc(p.tail, func(line string) bool { return cut(line, 300) == p.first }) {
		lead = p.first + " | … | "
	}
	return cut(lead+strings.Join(p.tail, " | "), maxLogLine)
}

// stop ends the process and all its children, kindly first. It returns when
// they are gone.
func (p *process) stop() {
	p.stops.Do(func() {
		p.stdin.Close()
		for _, step := range []struct {
			grace time.Duration
			then  func()
		}{{stdinGrace, p.group.terminate}, {termGrace, p.group.kill}} {
			timer := time.NewTimer(step.grace)
			select {
			case <-p.exited:
			case <-timer.C:
				step.then()
			}
			timer.Stop()
		}
	})
	<-p.exited
}

// passed are the variables that a server inherits; all else may hold secrets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TERM", "SHELL", "TZ"}

// passedOnWindows are those without which programs do not start there.
var passedOnWindows = []string{"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS",
	"OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE",
	"SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"}

// environment returns what a server sees: a short list, and what the operator adds.
func environment(extra map[string]string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); inherited(name) {
			if _, replaced := extra[name]; !replaced {
				env = append(env, kv)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		env = append(env, name+"="+extra[name])
	}
	return env
}

func inherited(name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
		if slices.Contains(passedOnWindows, name) {
			return true
		}
	}
	return slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}
