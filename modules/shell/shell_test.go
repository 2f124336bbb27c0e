//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/module"
	"github.com/helve-ai/helve/modules/shell"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/root"
	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/tool"
)

// box confines the commands of these tests by whatever this machine has.
var box = sandbox.New(sandbox.Options{Mode: sandbox.Prefer, Helper: []string{"/proc/self/exe", "__confine"}})

// TestMain makes this binary the sandbox's helper, too.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args[1:], "__confine") {
		os.Exit(sandbox.Help(os.Stderr))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // of the helper
	os.Exit(m.Run())
}

// need skips the test without the program, or fails it where
// HELVE_TEST_REQUIRE lists it.
func need(t *testing.T, program string) {
	t.Helper()
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			continue
		}
		if _, err := exec.LookPath(program); err == nil { // the tests call it themselves, too
			return
		}
	}
	if slices.Contains(strings.FieldsFunc(os.Getenv("HELVE_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), program) {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed in /usr/local/bin, /usr/bin or /bin, or not in PATH; on Debian: apt-get install %s", program, program)
}

// app is a root folder and the pipeline above it.
type app struct {
	t    *testing.T
	dir  string
	exec *pipeline.Executor
	ts   *module.Toolset
}

// open returns an app whose files are given by name; "" makes a folder.
func open(t *testing.T, config string, files map[string]string) *app {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return openAt(t, dir, config)
}

func openAt(t *testing.T, dir, config string) *app {
	t.Helper()
	r, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	ts, err := shell.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Root: r, Sandbox: box}, json.RawMessage(config))
	if err != nil {
		t.Fatal(err)
	}
	var reg tool.Registry
	if err := reg.Add(ts.Tools...); err != nil {
		t.Fatal(err)
	}
	rules := &guard.Rules{MaxRisk: tool.High, Module: func(*tool.Call) guard.Policy { return ts.Judge }}
	return &app{t, dir, pipeline.New(&reg, guard.Resolve(&reg, nil, nil, nil), guard.Validate(), guard.Paths(r), guard.Permit(rules.Judge)), ts}
}

// do runs a command through the pipeline.
func (a *app) do(ctx context.Context, args map[string]any) *tool.Result {
	a.t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	res, err := a.exec.Do(ctx, &tool.Call{Name: "shell.run", Args: data})
	if err != nil {
		a.t.Fatal(err)
	}
	return res
}

// output runs a command that must not be refused, and returns the answer.
func (a *app) output(cmd, profile string) string {
	a.t.Helper()
	res := a.do(a.t.Context(), map[string]any{"cmd": cmd, "profile": profile})
	if res.Err != nil {
		a.t.Fatalf("%s: %v", cmd, res.Err)
	}
	return res.JoinText()
}

// judge asks the module's policy alone.
func (a *app) judge(cmd, profile string) (tool.Verdict, string) {
	a.t.Helper()
	data, _ := json.Marshal(map[string]string{"cmd": cmd, "profile": profile})
	return a.ts.Judge(a.t.Context(), &tool.Call{Name: "shell.run", Tool: a.ts.Tools[0], Args: data})
}

// refused fails unless the pipeline and the handler alone both refuse the
// command, with the words.
func (a *app) refused(args map[string]any, words ...string) {
	a.t.Helper()
	data, _ := json.Marshal(args)
	_, direct := a.ts.Tools[0].Handle(a.t.Context(), &tool.Call{Name: "shell.run", Tool: a.ts.Tools[0], Args: data})
	for where, err := range map[string]error{"pipeline": errorOf(a.do(a.t.Context(), args)), "handler": direct} {
		if err == nil {
			a.t.Errorf("%s: %s runs, and should be refused", where, data)
			continue
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				a.t.Errorf("%s: %s: %q is not in %q", where, data, w, err)
			}
		}
	}
}

func errorOf(res *tool.Result) error {
	if res.Err == nil {
		return nil
	}
	return res.Err
}

func TestRuns(t *testing.T) {
	a := open(t, "", map[string]string{"a.txt": "one\ntwo\n", "b.txt": "three", "sub/c.txt": "four\n", ".hidden": "x"})
	for _, test := range []struct{ cmd, want string }{
		{"ls", "exit_code: 0\nstdout:\na.txt\nb.txt\nsub\nstderr:\n"},
		{"cat a.txt", "exit_code: 0\nstdout:\none\ntwo\nstderr:\n"},
		{"cat b.txt", "exit_code: 0\nstdout:\nthree\nstderr:\n"},
		{"cat *.txt", "exit_code: 0\nstdout:\none\ntwo\nthree\nstderr:\n"},
		{"cat '" + a.dir + "/sub/c.txt'", "exit_code: 0\nstdout:\nfour\nstderr:\n"},
		{"grep -c two a.txt", "exit_code: 0\nstdout:\n1\nstderr:\n"},
		{"grep -r four .", "exit_code: 0\nstdout:\n./sub/c.txt:four\nstderr:\n"},
		{"grep nothing a.txt", "exit_code: 1\nstdout:\nstderr:\n"},
		{"echo 'a | b > c; $(d)'", "exit_code: 0\nstdout:\na | b > c; $(d)\nstderr:\n"},
		{"cat", "exit_code: 0\nstdout:\nstderr:\n"}, // there is no input
	} {
		if got := a.output(test.cmd, "passive"); got != test.want {
			t.Errorf("%s:\n%q, want\n%q", test.cmd, got, test.want)
		}
	}
	if got := a.output("cat missing.txt", "passive"); !strings.HasPrefix(got, "exit_code: 1\nstdout:\nstderr:\ncat: ") {
		t.Errorf("a non-zero exit code: %q", got)
	}
}

func TestRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := open(t, "", map[string]string{
		"a.txt": "x", "run.py": "print(1)", ".env": "KEY=value", ".helveignore": ".env\nprivate/\n", ".git/config": "[core]",
		"private/p.txt": "p", "open/o.txt": "o", "open/HEAD:private/x": "",
	})
	for name, target := range map[string]string{"out.txt": outside, "up": "..", "env-link": ".env"} {
		if err := os.Symlink(target, filepath.Join(a.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ cmd, word string }{
		{"cat $(echo a.txt)", "substitution"},
		{"cat `echo a.txt`", "substitution"},
		{"cat $HOME", "expansion"},
		{"cat a.txt | head", "one call runs one command"},
		{"cat a.txt && ls", "one call runs one command"},
		{"ls; ls", "one call runs one command"},
		{"ls > b.txt", "redirection"},
		{"cat < a.txt", "redirection"},
		{"cat <<EOF\nx\nEOF", "heredoc"},
		{"X=1 ls", ""},
		{"cat /etc/passwd", "leads out of the root"},
		{"cat ../secret.txt", "leads out of the root"},
		{"cat sub/../../x", ""},
		{"cat out.txt", "leads out of the root"},
		{"cat up/x", "leads out of the root"},
		{"cat /dev/zero", "leads out of the root"},
		{"cat /proc/self/environ", "leads out of the root"},
		{"cat .env", ".helveignore"},
		{"cat env-link", ".helveignore"},
		{"cat private/p.txt", ".helveignore"},
		{"cat .git/config", "belongs to git"},
		{"cat open/HEAD:private/x", ".helveignore"},
		{"git show open/HEAD:private/x", ".helveignore"},
		{"git show HEAD:.env", ".helveignore"},
		{"git show HEAD:./private/p.txt", ".helveignore"},
		{"git log -p -- ':(top).env'", ".helveignore"},
		{"git show :0:.env", ".helveignore"},
		{"git log -L1,5:.env", ".helveignore"},
		{"git diff -- ':!.env'", ".helveignore"},
		{"grep -r KEY .", "something beneath it is ignored"},
		{"grep -r KEY", "something beneath it is ignored"},
		{"grep --directories=recurse KEY .", "something beneath it is ignored"},
		{"rg KEY", "something beneath it is ignored"},
		{"diff . open", "something beneath it is ignored"},
		{"git grep KEY", "something beneath it is ignored"},
		{"python3 -c 'print(1)'", "full"},
		{"python3 run.py", "full"},
		{"python3 run.py --help", "full"},
		{"python3 -m pytest --help", ""},
		{"env", "secrets"},
		{"sh -c ls", "without a shell"},
		{"rm a.txt", "a tool for files"},
		{"find . -delete", "deletes"},
		{"./run.py", "bare name"},
		{"", "no command"},
		{"ls 'unclosed", "not a complete"},
	} {
		a.refused(map[string]any{"cmd": test.cmd}, test.word)
		if v, _ := a.judge(test.cmd, "passive"); v != tool.Deny {
			t.Errorf("%s: the policy says %v", test.cmd, v)
		}
	}
	if got := a.output("cat *", "passive"); strings.Contains(got, "secret") || strings.Contains(got, "KEY") {
		t.Errorf("wildcards lead to what is ignored: %q", got)
	}
	if got := a.output("grep -r o open", "passive"); got != "exit_code: 0\nstdout:\nopen/o.txt:o\nstderr:\n" {
		t.Errorf("a folder without anything ignored: %q", got)
	}
}

func TestErrorCodes(t *testing.T) {
	a := open(t, "", map[string]string{".env": "KEY=value", ".helveignore": ".env\n"})
	handle := func(cmd string) error {
		data, _ := json.Marshal(map[string]string{"cmd": cmd})
		_, err := a.ts.Tools[0].Handle(t.Context(), &tool.Call{Args: data})
		return err
	}
	for cmd, code := range map[string]tool.Code{"cat .env": tool.CodeIgnoredPath, "grep -r KEY .": tool.CodeIgnoredPath, "cat /etc/passwd": tool.CodePermission, "ls | cat": tool.CodePermission} {
		if got := tool.AsError(handle(cmd)).Code; got != code {
			t.Errorf("%s: code %s, want %s", cmd, got, code)
		}
	}
}

func TestVerdicts(t *testing.T) {
	a := open(t, `{"profile": "unrestricted"}`, map[string]string{"a.py": ""})
	for _, test := range []struct {
		cmd, profile string
		want         tool.Verdict
	}{
		{"ls", "", tool.Allow},
		{"ls", "passive", tool.Allow},
		{"ls", "full", tool.Ask},
		{"python3 a.py", "passive", tool.Deny},
		{"python3 a.py", "full", tool.Ask},
		{"rm -rf .", "full", tool.Deny},
		{"rm -rf .", "unrestricted", tool.Ask},
		{"ls | wc", "unrestricted", tool.Ask},
		{" ", "unrestricted", tool.Deny},
		{"a\x00b", "unrestricted", tool.Deny},
		{"ls", "other", tool.Deny},
	} {
		if v, why := a.judge(test.cmd, test.profile); v != test.want || why == "" {
			t.Errorf("%q under %q: %v (%s), want %v", test.cmd, test.profile, v, why, test.want)
		}
	}
	if v, _ := a.ts.Judge(t.Context(), &tool.Call{Args: json.RawMessage(`{"cmd":1}`)}); v != tool.Deny {
		t.Errorf("arguments that cannot be read: %v", v)
	}
}

func TestCeiling(t *testing.T) {
	const key = "tools.modules.shell.config.profile"
	for _, test := range []struct {
		ceiling string
		effect  tool.Effect
		risk    tool.Risk
		above   []string
	}{
		{"passive", tool.Reads, tool.Low, []string{"full", "unrestricted"}},
		{"full", tool.Writes, tool.Medium, []string{"unrestricted"}},
		{"unrestricted", tool.Destroys, tool.High, nil},
	} {
		a := open(t, fmt.Sprintf(`{"profile": %q}`, test.ceiling), nil)
		d := a.ts.Tools[0].Definition
		if d.Effect != test.effect || d.RiskLevel() != test.risk || !d.Needs.Has(tool.NeedsProcess) || d.GroupName() != tool.GroupSkill {
			t.Errorf("ceiling %s: effect %v, risk %v, needs %v, group %s", test.ceiling, d.Effect, d.RiskLevel(), d.Needs, d.GroupName())
		}
		for _, p := range test.above {
			a.refused(map[string]any{"cmd": "ls", "profile": p}, "permission_denied", key)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	inside := open(t, "", map[string]string{"bin/ls": "#!/bin/sh\n"})
	link := filepath.Join(t.TempDir(), "bin")
	if err := os.Symlink(filepath.Join(inside.dir, "bin"), link); err != nil {
		t.Fatal(err)
	}
	r, err := root.Open(inside.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for config, want := range map[string]string{
		`{"profile": "all"}`:                  "profile",
		`{"profile": ""}`:                     "profile",
		`{"timeout": 0}`:                      "timeout",
		`{"timeout": 601}`:                    "timeout",
		`{"max_output": 1}`:                   "max_output",
		`{"path": []}`:                        "path",
		`{"path": ["bin"]}`:                   "path[0]",
		`{"path": ["/bin:/usr/bin"]}`:         "path[0]",
		`{"path": ["` + link + `"]}`:          "inside the root",
		`{"pass_env": ["A=B"]}`:               "pass_env[0]",
		`{"pass_env": ["OK", "LD_PRELOAD"]}`:  "pass_env[1]",
		`{"pass_env": ["PATH"]}`:              "pass_env[0]",
		`{"pass_env": ["GIT_EXTERNAL_DIFF"]}`: "pass_env[0]",
		`{"unknown": 1}`:                      "unknown",
		`{"readable": ["cache"]}`:             "readable[0]",
		`{"writable": ["/a", "~/b"]}`:         "writable[1]",
	} {
		_, err := shell.Module.Open(t.Context(), &module.Host{Log: slog.New(slog.DiscardHandler), Root: r}, json.RawMessage(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", config, err, want)
		}
	}
}

// A program in a trusted folder that is a link into the root does not run.
func TestProgramInTheRoot(t *testing.T) {
	bin := t.TempDir()
	a := open(t, fmt.Sprintf(`{"path": [%q]}`, bin), map[string]string{"evil": "#!/bin/sh\necho evil\n"})
	if err := os.Chmod(filepath.Join(a.dir, "evil"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(a.dir, "evil"), filepath.Join(bin, "ls")); err != nil {
		t.Fatal(err)
	}
	res := a.do(t.Context(), map[string]any{"cmd": "ls"})
	if res.Err == nil || res.Err.Code != tool.CodePermission || !strings.Contains(res.Err.Message, "config.path") {
		t.Errorf("%v %s", res.Err, res.JoinText())
	}
}

func TestMissingProgram(t *testing.T) {
	a := open(t, fmt.Sprintf(`{"path": [%q]}`, t.TempDir()), nil)
	res := a.do(t.Context(), map[string]any{"cmd": "ls -la"})
	if res.Err != nil || res.JoinText() != "[INFO] tool 'ls' not installed" {
		t.Errorf("%v %q", res.Err, res.JoinText())
	}
}

func TestCwd(t *testing.T) {
	a := open(t, "", map[string]string{"a.txt": "top\n", "sub/a.txt": "sub\n", ".helveignore": "no/\n", "no/x": ""})
	res := a.do(t.Context(), map[string]any{"cmd": "cat a.txt ../a.txt", "cwd": "sub"})
	if got := res.JoinText(); got != "exit_code: 0\nstdout:\nsub\ntop\nstderr:\n" {
		t.Errorf("%v %q", res.Err, got)
	}
	res = a.do(t.Context(), map[string]any{"cmd": "pwd", "cwd": "sub"})
	if got := res.JoinText(); got != "exit_code: 0\nstdout:\n"+a.dir+"/sub\nstderr:\n" {
		t.Errorf("%v %q", res.Err, got)
	}
	for cwd, word := range map[string]string{"..": "out of the root", "/etc": "out of the root", "a.txt": "not a folder", "missing": "not a folder", "no": ".helveignore"} {
		a.refused(map[string]any{"cmd": "ls", "cwd": cwd}, "cwd", word)
	}
	a.refused(map[string]any{"cmd": "cat ../../a.txt", "cwd": "sub"}, "out of the root")
}

// TestFull runs project code, and judges what is written.
func TestFull(t *testing.T) {
	a := open(t, "", map[string]string{"a.txt": "x\n", "evil/.helveprotect": "", ".helveignore": "hide\n", ".helveprotect": "keep\n", "keep": "", "dir/hide": "", "dir/b": "", "free/c": ""})
	if got := a.output("cp a.txt free/b.txt", "full"); got != "exit_code: 0\nstdout:\nstderr:\n" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "free", "b.txt")); err != nil {
		t.Error(err)
	}
	for cmd, word := range map[string]string{
		"mv a.txt keep":             "protects it",
		"touch .helveignore":        "rule file",
		"mkdir ../x":                "out of the root",
		"cp evil/.helveprotect .":   "rule file",
		"cp -r evil/. .":            "ignored",
		"cp -r dir copy":            "ignored",
		"mv dir copy":               "hold",
		"mv keep elsewhere":         "protects it",
		"python3 -m pytest /etc":    "out of the root",
		"python3 -c 'print(1)' | x": "one command",
	} {
		a.refused(map[string]any{"cmd": cmd, "profile": "full"}, word)
	}
	need(t, "python3")
	if got := a.output(`python3 -c 'import sys; print(1 + 1); sys.exit(3)'`, "full"); got != "exit_code: 3\nstdout:\n2\nstderr:\n" {
		t.Error(got)
	}
}

// TestDescribe opens the module without a root.
func TestDescribe(t *testing.T) {
	tools, err := shell.Module.Describe(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatal(tools, err)
	}
	for _, example := range tools[0].Examples {
		if problems := tools[0].Input.Validate(example); len(problems) > 0 {
			t.Errorf("%s: %v", example, problems)
		}
	}
	if _, err := tools[0].Handle(t.Context(), &tool.Call{Args: json.RawMessage(`{"cmd":"ls"}`)}); tool.AsError(err).Code != tool.CodePermission {
		t.Errorf("without a root: %v", err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
