// Package sandbox runs one command so that it can do no more than it was granted.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Mode says what happens where a command cannot be confined.
type Mode string

// The modes. The zero Mode is Require.
const (
	Require Mode = "require" // it does not run
	Prefer  Mode = "prefer"  // it runs with limits alone, and the result says so
	Off     Mode = "off"     // it runs with limits alone
)

// Confinement is what holds a command, beside its limits.
type Confinement string

// The confinements, strongest first.
const (
	Bubblewrap Confinement = "bubblewrap" // a mount tree, network and processes of its own
	Landlock   Confinement = "landlock"   // the kernel refuses files and sockets that were not granted
	None       Confinement = "none"
)

// ErrUnconfined says that a command did not run because it cannot be confined.
var ErrUnconfined = errors.New("commands cannot be confined on this machine")

// Limits bound what a command may use, whatever confines it. A zero field is
// that of [DefaultLimits].
type Limits struct {
	Time      time.Duration // until the command and all that it started is ended
	CPU       time.Duration // of one process; zero: what Time allows on all processors
	Memory    int64         // bytes: of all processes where a control group can be had, else of each one's data
	FileSize  int64         // bytes of one file
	Temp      int64         // bytes of the private folder for temporary files, and of the home; under bubblewrap only
	Processes int           // at once; without a control group not for root
	Files     int           // that one process may have open
	Output    int           // bytes that are kept of each output stream
}

// DefaultLimits are the limits of commands for which none are stated.
var DefaultLimits = Limits{Time: time.Minute, Memory: 4 << 30, FileSize: 4 << 30, Temp: 2 << 30, Processes: 1024, Files: 4096, Output: 64 << 10}

func (l Limits) filled() Limits {
	d := DefaultLimits
	if l.Time <= 0 {
		l.Time = d.Time
	}
	if l.CPU <= 0 {
		l.CPU = (l.Time + 5*time.Second) * time.Duration(runtime.NumCPU())
	}
	for _, f := range []struct {
		have *int64
		or   int64
	}{{&l.Memory, d.Memory}, {&l.FileSize, d.FileSize}, {&l.Temp, d.Temp}} {
		if *f.have <= 0 {
			*f.have = f.or
		}
	}
	for _, f := range []struct {
		have *int
		or   int
	}{{&l.Processes, d.Processes}, {&l.Files, d.Files}, {&l.Output, d.Output}} {
		if *f.have <= 0 {
			*f.have = f.or
		}
	}
	return l
}

// Spec is a command and all that it is granted. Every path is absolute.
type Spec struct {
	Path string   // of the program
	Args []string // the first is the name by which the program is called
	Dir  string   // the working directory
	// Env is all that the command sees of the environment, beside HOME and
	// TMPDIR, which are private folders that do not outlive the command.
	Env   []string
	Stdin io.Reader // nil: there is no input

	Root     string   // the folder that the command works on, its links resolved
	ReadOnly bool     // the command changes nothing in it
	Hide     []string // beneath the root: not to be read
	Keep     []string // beneath the root: not to be changed
	Stay     []string // of Hide and Keep: the folders above them are not to be renamed, nor removed
	Readable []string // further files and folders that may be read
	Writable []string // further folders that may be changed
	Network  bool     // the command may reach the network

	Limits Limits

	anchors []string // folders beneath the root that stay where they are: those above Stay, and what Options hide and keep
}

func (s *Spec) check() error {
	if s.Path == "" || len(s.Args) == 0 || s.Root == "" || s.Dir == "" {
		return errors.New("sandbox: a command needs a program, its arguments, a root and a working directory")
	}
	for _, list := range [][]string{{s.Path, s.Dir, s.Root}, s.Hide, s.Keep, s.Stay, s.Readable, s.Writable} {
		for _, p := range list {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
				return fmt.Errorf("sandbox: %q is not a clean absolute path", p)
			}
		}
	}
	for _, list := range [][]string{s.Args, s.Env} {
		for _, text := range list {
			if strings.ContainsRune(text, 0) {
				return errors.New("sandbox: an argument or setting holds a NUL byte")
			}
		}
	}
	return nil
}

// Result is what became of a command that ran.
type Result struct {
	Code   int    // as shells count it: 128 and the number of the signal that ended it
	Signal string // that ended the command, where that is known
	Stdout *Output
	Stderr *Output
	// Ended is the limit that ended the command: "time", "cpu time", "memory"
	// or "file size". With "cancelled" it was the context, whose cause is Cause.
	Ended string
	Cause error
	// Held says that a process which the command left behind held its output
	// open; what it printed later is missing.
	Held bool
	By   Confinement
	// Notes are what the reader of the result should know of the confinement.
	Notes []string
}

// Options are what a Runner needs to know. The zero value requires bubblewrap.
type Options struct {
	Mode Mode
	// Helper is a command that calls [Help] and nothing else: this program with
	// an argument of its own. Landlock needs one. Empty: there is none.
	Helper []string
	// Hide are files and folders that no command reads, and Keep those that none
	// changes, wherever they lie: Helve's own.
	Hide, Keep []string
	// Without names confinements that are not to be used although they work.
	Without []Confinement
}

// Runner runs commands. Its methods may be called concurrently.
type Runner struct {
	o     Options
	probe func() Status
}

// New returns a Runner. What confines its commands is found out at the first
// use, by trying it.
func New(o Options) *Runner {
	if o.Mode == "" {
		o.Mode = Require
	}
	r := &Runner{o: o}
	r.probe = sync.OnceValue(func() Status { return probe(o) })
	return r
}

// Status says what confines commands on this machine.
type Status struct {
	Active  Confinement `json:"active"`
	Detail  string      `json:"detail"`            // its version, or the like
	Weak    []string    `json:"weak,omitempty"`    // what the active one does not stop, or limits that do not hold
	Missing []string    `json:"missing,omitempty"` // why stronger ones are not active
	Remedy  string      `json:"remedy,omitempty"`  // how to get a stronger one
	Groups  string      `json:"groups,omitempty"`  // where a control group is made for each command; "": nowhere
	group   *groups     // where control groups can be made; nil: nowhere
	abi     int         // of Landlock
	userns  bool        // bubblewrap gets a user namespace
	program string      // bubblewrap's
}

// Status finds out, once, what confines the Runner's commands.
func (r *Runner) Status() Status { return r.probe() }

// Mode returns the Runner's mode.
func (r *Runner) Mode() Mode { return r.o.Mode }

// Ready returns an error that wraps [ErrUnconfined] if no command would run.
func (r *Runner) Ready() error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: nothing to confine them was set up", ErrUnconfined)
	case r.o.Mode != Require:
		return nil
	}
	if status := r.probe(); status.Active == None {
		return fmt.Errorf("%w: %s", ErrUnconfined, status.why())
	}
	return nil
}

// why says why nothing confines commands, and what to do.
func (s Status) why() string {
	why := strings.Join(s.Missing, "; ")
	if s.Remedy != "" {
		why += "; " + s.Remedy
	}
	return why + "; or the operator accepts commands without confinement: security.sandbox: prefer in the app file"
}

// Run runs a command to its end. Its error is that the command did not run:
// it wraps [ErrUnconfined] where the Runner's mode forbids to run it as it
// could. Whatever becomes of a command that ran is in the Result.
func (r *Runner) Run(ctx context.Context, spec Spec) (*Result, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: nothing to confine them was set up", ErrUnconfined)
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	spec.Limits = spec.Limits.filled()
	status := r.probe()
	var notes []string
	if r.o.Mode != Off {
		why := cannot(status, spec)
		if why != "" && r.o.Mode != Prefer {
			return nil, fmt.Errorf("%w: %s", ErrUnconfined, why)
		}
		if why != "" {
			status.Active = None
			notes = append(notes, "warning: the command ran unconfined, as security.sandbox prefer permits: "+why)
		}
	}
	res, err := r.run(ctx, spec, status)
	if res != nil {
		res.By = status.Active
		res.Notes = append(notes, res.Notes...)
	}
	return res, err
}

// cannot tells why a command cannot be confined; "" when it can.
func cannot(status Status, spec Spec) string {
	if status.Active == None {
		return status.why()
	}
	for _, dir := range append([]string{spec.Root}, spec.Writable...) {
		if holdsSystem(dir) {
			return fmt.Sprintf("%s holds the system itself; choose a smaller root", dir)
		}
	}
	return ""
}

// errTime is the cause of a context whose command ran too long.
var errTime = errors.New("the command's time is over")

// A command that is told to end has the grace to do so; what holds its output
// open after it ended is waited for no longer than the drain.
const (
	grace = 2 * time.Second
	drain = grace + time.Second
)

// beneath reports whether path is dir or lies beneath it.
func beneath(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return filepath.Clean(name)
}
