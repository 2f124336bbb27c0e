// Package shell is the module of the tool that runs commands, without a shell unless the app permits one.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/checkpoint"
	"github.com/helve-ai/helve/command"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/tool"
)

// Module is the shell module.
var Module = module.New("shell", "Run commands in the root folder, restricted by a profile that the app sets.",
	Config{Profile: command.Full, Timeout: 60, MaxOutput: 64 << 10, Path: trustedPath, Limits: Limits{
		Memory: int(sandbox.DefaultLimits.Memory >> 20), Processes: sandbox.DefaultLimits.Processes,
		FileSize: int(sandbox.DefaultLimits.FileSize >> 20), Temp: int(sandbox.DefaultLimits.Temp >> 20),
	}}, open)

// maxSeconds is the longest a command may run.
const maxSeconds = 600

// Config configures the module.
type Config struct {
	Profile   command.Profile `json:"profile" enum:"passive,full,unrestricted" jsonschema:"the most that a call may ask for: passive reads and parses only, full also runs project code, tests and package commands, unrestricted gives any text to a real shell"`
	Timeout   int             `json:"timeout" min:"1" max:"600" jsonschema:"seconds that a command may run when the call does not say"`
	MaxOutput int             `json:"max_output" min:"1024" max:"1048576" jsonschema:"bytes that are kept of each output stream, from its beginning and its end"`
	Path      []string        `json:"path" jsonschema:"the folders in which programs are looked up, and nowhere else; none may lie inside the root. Programs elsewhere, such as a node of one's own, need their folder added here"`
	PassEnv   []string        `json:"pass_env,omitempty" jsonschema:"names of Helve's environment variables that commands see, such as GOCACHE; names that look like credentials are left out"`

	NeedsNetwork bool     `json:"needs_network,omitempty" jsonschema:"commands may reach the network, private addresses included"`
	Readable     []string `json:"readable,omitempty" jsonschema:"folders and files outside the root that commands may read, such as a cache of modules; system folders such as /usr need not be named"`
	Writable     []string `json:"writable,omitempty" jsonschema:"folders outside the root that commands of profiles full and unrestricted may change, such as a build cache"`
	GitWrite     bool     `json:"git_write,omitempty" jsonschema:"commands of profile unrestricted may change .git, to commit for instance, and thereby what git runs when it is called outside the sandbox"`
	Limits       Limits   `json:"limits,omitzero" jsonschema:"what one command may use"`
}

// Limits are what one command may use. Zero means the default.
type Limits struct {
	Memory    int `json:"memory,omitempty" min:"0" max:"1048576" jsonschema:"MiB of memory; the default is 4096"`
	Processes int `json:"processes,omitempty" min:"0" max:"65536" jsonschema:"processes and threads at once; the default is 1024"`
	FileSize  int `json:"file_size,omitempty" min:"0" max:"1048576" jsonschema:"MiB of one file; the default is 4096"`
	Temp      int `json:"temp,omitempty" min:"0" max:"1048576" jsonschema:"MiB of the private folder for temporary files, under bubblewrap; the default is 2048"`
}

// Validate reports the first setting that cannot be meant.
func (c Config) Validate() error {
	switch {
	case !c.Profile.Permits(command.Passive):
		return fmt.Errorf("profile: %q is not passive, full or unrestricted", c.Profile)
	case c.Timeout < 1 || c.Timeout > maxSeconds:
		return fmt.Errorf("timeout: %d is not between 1 and %d seconds", c.Timeout, maxSeconds)
	case c.MaxOutput < 1<<10 || c.MaxOutput > 1<<20:
		return fmt.Errorf("max_output: %d is not between 1024 and 1048576 bytes", c.MaxOutput)
	case len(c.Path) == 0:
		return errors.New("path: it is empty, so no program could be found; leave it out for the standard folders")
	}
	for name, list := range map[string][]string{"readable": c.Readable, "writable": c.Writable} {
		for i, path := range list {
			if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
				return fmt.Errorf("%s[%d]: %q is not an absolute path", name, i, path)
			}
		}
	}
	for i, dir := range c.Path {
		if !filepath.IsAbs(dir) || strings.ContainsRune(dir, filepath.ListSeparator) {
			return fmt.Errorf("path[%d]: %q is not one absolute folder", i, dir)
		}
	}
	for i, name := range c.PassEnv {
		if !envName.MatchString(name) {
			return fmt.Errorf("pass_env[%d]: %q is not the name of a variable", i, name)
		}
		if unsafeEnv.MatchString(name) {
			return fmt.Errorf("pass_env[%d]: %s is set by the module, or changes which programs run; remove it", i, name)
		}
	}
	return nil
}

var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// unsafeEnv are variables by which a permitted program would load or run another.
	unsafeEnv = regexp.MustCompile(`(?i)^(PATH|HOME|TMPDIR|PWD|LANG|TERM|SHELL|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|GIT_.*|PAGER|EDITOR|VISUAL|PYTHON.*|NODE_OPTIONS|NODE_PATH|PERL5.*|RUBYOPT|RUBYLIB|POSIXLY_CORRECT|GOFLAGS|GOTOOLCHAIN)$`)
)

// shell is the open module.
type shell struct {
	cfg  Config
	root *root.Root // nil: there is only a description
	box  *sandbox.Runner

	checkpoints *checkpoint.Keeper // nil: nothing is saved
	granted     func(tool.Origin) module.Grant
}

// grant is what skills let the commands of a caller have. Names of variables
// by which a program would load another, or that look like credentials, are not
// passed, whoever wants them.
func (s *shell) grant(from tool.Origin) module.Grant {
	if s.granted == nil {
		return module.Grant{}
	}
	g := s.granted(from)
	g.Env = slices.DeleteFunc(slices.Clone(g.Env), func(name string) bool {
		return !envName.MatchString(name) || unsafeEnv.MatchString(name) || guard.SecretKey(name)
	})
	return g
}

func open(_ context.Context, h *module.Host, c Config) (*module.Toolset, error) {
	s := &shell{cfg: c, root: h.Root, box: h.Sandbox, checkpoints: h.Checkpoints, granted: h.Granted}
	if h.Root != nil {
		for i, dir := range c.Path {
			if s.inside(dir) {
				return nil, fmt.Errorf("path[%d]: %s lies inside the root %s, where tools can change the programs; remove it, or choose another root", i, dir, h.Root.Dir())
			}
		}
	}
	s.cfg.PassEnv = slices.DeleteFunc(slices.Clone(c.PassEnv), func(name string) bool {
		secret := guard.SecretKey(name)
		if secret {
			h.Log.Warn("the variable looks like a credential and is not passed to commands", "name", name)
		}
		return secret
	})
	return &module.Toolset{Tools: []*tool.Tool{tool.NewFor(s.definition(), s.run)}, Judge: s.judge}, nil
}

// input is what a call of shell.run says.
type input struct {
	Cmd     string          `json:"cmd" role:"command" jsonschema:"one command with its arguments; no pipes, && or ;, no redirections, no substitutions, unless the profile is unrestricted"`
	Profile command.Profile `json:"profile,omitempty" enum:"passive,full,unrestricted" default:"\"passive\"" jsonschema:"passive: only reads and parses; full: also runs project code, tests and package commands; unrestricted: a real shell"`
	Cwd     string          `json:"cwd,omitempty" role:"path.read" jsonschema:"the folder in which to run it; the root if absent"`
	Timeout int             `json:"timeout,omitempty" min:"1" max:"600" jsonschema:"seconds until the command is ended; 60 unless the app says otherwise"`
}

const help = `The answer is the exit code, then stdout, then stderr; a non-zero exit code is a result and not an error. ` +
	`Each stream is cut in its middle when it is too long, and the cut is marked. A program that is missing is told by "[INFO] tool 'x' not installed".

Profile passive (the default) permits programs that only read and parse: ls, cat, head, grep, find, wc, diff, jq, git status, git diff, git log, python3 --version, python3 -m py_compile FILE, ruff check and the like. ` +
	`It refuses whatever runs project code: python3 -c, FILE --help, -m MODULE --help. Profile full adds python3 FILE, python3 -c, node, pytest, npm, go, cargo, make and other tools of projects. ` +
	`Under both the command is run directly, without a shell: one command a call, no |, &&, ;, $(), redirections or heredocs; wildcards are expanded. Profile unrestricted gives the text to /bin/sh. The app sets the highest profile.

Paths must lie under the root, links included, and ignore rules apply to every file that a command names. Searches through folders (grep -r, rg, git grep, diff) are refused where something beneath is ignored. ` +
	`Other programs that walk (ls -R, find, tree, du) show the names of ignored files, git shows what was committed of them.

Every command runs in a sandbox unless the app says otherwise: it sees the system's programs and the root, changes nothing outside the root (nothing at all under passive, and .git only where the app permits it), and has no network unless the app, or a skill that is loaded, grants it. ` +
	`The environment is empty but for PATH, HOME and TMPDIR (private, removed afterwards), PWD, LANG, TERM and what the app, or a skill, passes. There is no input. Memory, processor time, processes and the size of files are limited. When the command ends or its time is over, processes that it left behind are ended too.`

func (s *shell) definition() tool.Definition {
	d := tool.Definition{
		Name: "shell.run", Title: "Run a command",
		Description: "Run a command in the root folder and return its exit code, stdout and stderr.\nRead-only commands need no profile; tests, scripts and package commands need profile full.",
		Help:        help, Category: tool.Shell, Group: tool.GroupSkill, Needs: tool.NeedsProcess | tool.NeedsFilesystem,
		Timeout: (maxSeconds + 60) * time.Second, // so that the call's own timeout decides
		Tags:    []string{"shell", "command", "terminal", "bash", "process", "execute", "git", "tests", "build"},
		Aliases: []string{"ShellExec", "run_shell", "run_command", "execute_command", "bash", "shell", "terminal",
			"run a shell command", "command line", "Befehl ausführen", "Kommandozeile", "exécuter une commande", "ligne de commande",
			"ejecutar un comando", "línea de comandos", "eseguire un comando", "riga di comando", "executar um comando", "linha de comando",
			"运行命令", "执行命令", "命令行", "コマンドを実行", "コマンドライン", "выполнить команду", "командная строка"},
		Examples: []json.RawMessage{
			json.RawMessage(`{"cmd": "git status"}`),
			json.RawMessage(`{"cmd": "grep -rn TODO src"}`),
		},
	}
	test := json.RawMessage(`{"cmd": "python3 -m pytest -q", "profile": "full", "timeout": 300}`)
	switch s.cfg.Profile {
	case command.Passive:
		d.Effect, d.Risk, d.ParallelSafe = tool.Reads, tool.Low, true
	case command.Full:
		d.Effect, d.Risk, d.Examples = tool.Writes, tool.Medium, append(d.Examples, test)
		d.SideEffects = []string{"under profile full the project's own code runs"}
	default:
		d.Effect, d.Risk, d.Examples = tool.Destroys, tool.High, append(d.Examples, test)
		d.SideEffects = []string{"under profile full the project's own code runs", "under profile unrestricted anything may happen"}
	}
	return d
}

// judge is the module's default policy: what the profile's allowlist refuses
// is denied, reads are allowed, and anything else is asked about.
func (s *shell) judge(_ context.Context, c *tool.Call) (tool.Verdict, string) {
	var in input
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Deny, fmt.Sprintf("the arguments cannot be read: %v", err)
	}
	p, err := s.plan(in)
	if err != nil {
		return tool.Deny, err.Message
	}
	if err := s.box.Ready(); err != nil {
		return tool.Deny, err.Error()
	}
	switch p.profile {
	case command.Passive:
		return tool.Allow, "a read-only command by the passive allowlist"
	case command.Full:
		return tool.Ask, "profile full may run the project's own code"
	}
	return tool.Ask, "profile unrestricted runs any text in a real shell"
}

// run serves shell.run. It plans anew: what the policy judged may have changed.
func (s *shell) run(ctx context.Context, c *tool.Call, in input) (*tool.Result, error) {
	p, refused := s.plan(in)
	if refused != nil {
		return nil, refused
	}
	program, err := s.find(p.argv[0])
	if err != nil {
		return nil, err
	}
	if program == "" {
		return tool.Text(fmt.Sprintf("[INFO] tool '%s' not installed", p.argv[0])), nil
	}
	limit := in.Timeout
	if limit <= 0 {
		limit = s.cfg.Timeout
	}
	snap, err := s.snapshot(ctx, c, in, p)
	if err != nil {
		return nil, err
	}
	defer snap.Done(ctx)
	res, err := s.execute(ctx, program, p, s.grant(c.From), time.Duration(min(limit, maxSeconds))*time.Second)
	if res != nil && snap != nil {
		res.Notes = append(res.Notes, snap.Notes...)
	}
	return res, err
}
