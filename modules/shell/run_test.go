//go:build unix

package shell_test

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/helve-ai/helve/sandbox"
	"github.com/helve-ai/helve/tool"
)

// TestHostileRepository runs git where the configuration names programs.
func TestHostileRepository(t *testing.T) {
	need(t, "git")
	a := open(t, "", map[string]string{"a": "one\n", ".gitattributes": "a filter=evil diff=evil\n"})
	trace, evil := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> '"+trace+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, a.dir, "init", "-q", "-b", "main")
	git(t, a.dir, "add", ".")
	git(t, a.dir, "commit", "-qm", "first")
	if err := os.WriteFile(filepath.Join(a.dir, "a"), []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.E.v=il.clean", "filter.late.process"} {
		git(t, a.dir, "config", key, evil)
	}
	if err := os.WriteFile(filepath.Join(a.dir, ".git", "info", "attributes"), []byte("a filter=E.v=il\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"git status", "git status --porcelain", "git diff", "git diff --stat", "git -C . status", "git log -p", "git blame a", "git show HEAD:a"} {
		got := a.output(cmd, "passive")
		if !strings.HasPrefix(got, "exit_code: 0\n") {
			t.Errorf("%s: %s", cmd, got)
		}
		if ran, err := os.ReadFile(trace); err == nil {
			t.Fatalf("%s ran a program of the configuration: %s", cmd, ran)
		}
	}
	if got := a.output("git diff", "passive"); !strings.Contains(got, "\n-one\n+two\n") {
		t.Errorf("git diff: %s", got)
	}
	git(t, a.dir, "status")
	if _, err := os.Stat(trace); err != nil {
		t.Error("the hostile repository runs nothing by itself, so that it proves nothing")
	}
}

// Git runs itself in submodules, whose configuration names programs too.
func TestHostileSubmodule(t *testing.T) {
	need(t, "git")
	a := open(t, "", map[string]string{"sub/b": "one\n", "sub/.gitattributes": "b filter=evil\n"})
	trace, evil := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> '"+trace+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(a.dir, "sub")
	for _, dir := range []string{sub, a.dir} {
		git(t, dir, "init", "-q", "-b", "main")
		git(t, dir, "add", ".")
		git(t, dir, "commit", "-qm", "first")
	}
	git(t, sub, "config", "core.fsmonitor", evil)
	git(t, sub, "config", "filter.evil.clean", evil)
	if err := os.WriteFile(filepath.Join(sub, "b"), []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"git status", "git diff", "git diff --submodule=diff", "git diff --ignore-submodules=none", "git diff-index HEAD", "git describe --always --dirty", "git -C sub status"} {
		if got := a.output(cmd, "passive"); !strings.HasPrefix(got, "exit_code: 0\n") {
			t.Errorf("%s: %s", cmd, got)
		}
		if ran, err := os.ReadFile(trace); err == nil {
			t.Fatalf("%s ran a program of the configuration: %s", cmd, ran)
		}
	}
	git(t, a.dir, "status")
	if _, err := os.Stat(trace); err != nil {
		t.Error("the hostile submodule runs nothing by itself, so that it proves nothing")
	}
}

// What was committed of an ignored file is not shown, however it is asked for;
// the rest is.
func TestIgnoredInHistory(t *testing.T) {
	need(t, "git")
	a := open(t, "", map[string]string{"a.txt": "open\n", "dir/key.txt": "SECRET\n", ".env": "KEY=SECRET\n", "in/b.txt": "two\n", "sub/.env": "SECRET\n"})
	sub := filepath.Join(a.dir, "sub")
	git(t, sub, "init", "-q", "-b", "main")
	git(t, sub, "add", "-f", ".")
	git(t, sub, "commit", "-qm", "inner")
	git(t, a.dir, "init", "-q", "-b", "main")
	git(t, a.dir, "add", "-f", "a.txt", "in", "dir", ".env", "sub")
	git(t, a.dir, "commit", "-qm", "first")
	git(t, a.dir, "config", "diff.submodule", "diff")
	blob, err := exec.Command("git", "-C", a.dir, "rev-parse", "HEAD:.env").Output()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := exec.Command("git", "-C", a.dir, "hash-object", "-t", "tree", "-w", "/dev/null").Output()
	if err != nil {
		t.Fatal(err)
	}
	git(t, a.dir, "rm", "-q", "--cached", ".env") // and still in the history
	if err := os.WriteFile(filepath.Join(a.dir, ".helveignore"), []byte(".env\n/dir/*.txt\n!dir/none.txt\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hash, empty := strings.TrimSpace(string(blob)), strings.TrimSpace(string(tree))
	for _, cmd := range []string{"git log -p", "git log -u", "git -P -C in log -p", "git show", "git show HEAD", "git show --submodule=diff", "git log -p --full-diff -- a.txt",
		"git log -p --follow .", "git log -p --follow -- dir", "git show " + hash, "git show " + hash[:8], "git show " + hash + "^{blob}", "git cat-file -p " + hash, "git cat-file blob " + hash,
		"git diff " + empty + " HEAD", "git diff " + empty + "..HEAD", "git diff --cached " + hash, "git diff-tree --root -p HEAD", "git diff HEAD:in HEAD:dir", "git --literal-pathspecs show",
		"git log -p -- dir", "git log -p --all -- . in", "git grep SECRET HEAD", "git grep -h KEY HEAD -- .", "git whatchanged -p", "git log -S SECRET --format=found-%h", "git stash show -p", "git log -G SECRET --format=found-%h",
		"git status -v", "git status -sbvv", "git status --verbose in", "git -C dir show HEAD:./key.txt", "git -C . -C dir cat-file -p HEAD:./key.txt", "git -C in show HEAD:../dir/key.txt",
		"git -C dir show :./key.txt", "git -C dir log --format=%h -L1,1:key.txt", "git -C dir blame key.txt", "git -C dir/../dir show :0:./key.txt"} {
		res := a.do(t.Context(), map[string]any{"cmd": cmd, "profile": "passive"})
		if got := res.JoinText(); strings.Contains(got, "SECRET") || strings.Contains(got, "found-") {
			t.Errorf("%s: %s", cmd, got)
		}
	}
	for cmd, want := range map[string]string{"git log -p": "+open", "git show": "+open", "git show HEAD": "+two", "git show HEAD:a.txt": "open", "git log -p -- in": "+two",
		"git cat-file -p HEAD:a.txt": "open", "git log --oneline": "first", "git diff-tree --root -p HEAD": "+open", "git log -S open --format=found-%h": "found-", "git cat-file -t " + hash: "blob",
		"git -C in show HEAD:./b.txt": "two", "git status": "deleted:"} {
		if got := a.output(cmd, "passive"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", cmd, got)
		}
	}
}

// A repository above the root is not the root's.
func TestRepositoryAbove(t *testing.T) {
	need(t, "git")
	outer := t.TempDir()
	git(t, outer, "init", "-q")
	dir := filepath.Join(outer, "root")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a := openAt(t, dir, "")
	if got := a.output("git status", "passive"); !strings.HasPrefix(got, "exit_code: 128\n") {
		t.Errorf("git reads the repository above the root: %s", got)
	}
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"SHELL_TEST_PASSED": "yes", "SHELL_TEST_OTHER": "no", "SHELL_TEST_API_KEY": "no", "LD_LIBRARY_PATH": "/nowhere"} {
		t.Setenv(name, value)
	}
	a := open(t, `{"profile": "unrestricted", "pass_env": ["SHELL_TEST_PASSED", "SHELL_TEST_API_KEY", "SHELL_TEST_UNSET"]}`, nil)
	got := a.output("env", "unrestricted")
	var names []string
	var home string
	for _, l := range strings.Split(got, "\n") {
		if name, value, ok := strings.Cut(l, "="); ok {
			names = append(names, name)
			if name == "HOME" {
				home = value
			}
		}
	}
	known := []string{"PATH", "HOME", "TMPDIR", "PWD", "LANG", "TERM", "GIT_CEILING_DIRECTORIES", "SHELL_TEST_PASSED", "OLDPWD", "SHLVL", "_"} // the last three are of shells
	for _, name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("commands see %s", name)
		}
	}
	for _, name := range known[:8] {
		if !slices.Contains(names, name) {
			t.Errorf("commands do not see %s", name)
		}
	}
	if _, err := os.Stat(home); home == "" || err == nil {
		t.Errorf("the command's home %q is left behind", home)
	}
	got = a.output(`mkdir -p "$HOME/a/b" && chmod 500 "$HOME/a" && touch "$TMPDIR/x" && ls -ld "$HOME" | cut -c1-10 && echo "$HOME"`, "unrestricted")
	lines := strings.Split(got, "\n")
	if len(lines) < 4 || lines[2] != "drwx------" {
		t.Fatalf("the home is not private: %s", got)
	}
	if _, err := os.Stat(lines[3]); err == nil {
		t.Errorf("the command's home %q is left behind", lines[3])
	}
}

func TestUnrestricted(t *testing.T) {
	a := open(t, `{"profile": "unrestricted"}`, nil)
	if got := a.output("echo a | tr a b > c; cat c; echo $((1+1)) >&2; exit 7", "unrestricted"); got != "exit_code: 7\nstdout:\nb\nstderr:\n2\n" {
		t.Error(got)
	}
	res := a.do(t.Context(), map[string]any{"cmd": "kill -9 $$", "profile": "unrestricted"})
	if res.Err != nil || !strings.HasPrefix(res.JoinText(), "exit_code: 137\n") || !strings.Contains(strings.Join(res.Notes, " "), "killed") {
		t.Errorf("a signal: %v %q %v", res.Err, res.JoinText(), res.Notes)
	}
}

func TestOutput(t *testing.T) {
	a := open(t, `{"profile": "unrestricted", "max_output": 1024}`, nil)
	got := a.output(`printf 'é%.0s' $(seq 1 10000); echo; echo the end; echo err >&2`, "unrestricted")
	if len(got) > 1300 || !strings.Contains(got, "bytes left out …]") || !strings.HasSuffix(got, "é\nthe end\nstderr:\nerr\n") || strings.Contains(got, "\uFFFD") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	const of = "of 20009 bytes"
	if !strings.Contains(got, of) {
		t.Errorf("%q is not in the marker of %.700q", of, got)
	}
	for cmd, want := range map[string]string{
		`printf 'a\033[1;31mred\033[0m\033]0;title\007b\033(Bc\a\000d'`: "aredbcd\n",
		`printf 'x\377y'`:    "x\uFFFDy\n",
		`printf 'a\tb\r\nc'`: "a\tb\r\nc\n",
		`seq 1 3`:            "1\n2\n3\n",
	} {
		if got := a.output(cmd, "unrestricted"); got != "exit_code: 0\nstdout:\n"+want+"stderr:\n" {
			t.Errorf("%s: %q, want %q", cmd, got, want)
		}
	}
}

// lifeline makes a named pipe "alive" in the root. Commands that begin with
// hold keep it open as long as one of their processes lives.
func (a *app) lifeline() *os.File {
	a.t.Helper()
	name := filepath.Join(a.dir, "alive")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		a.t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { f.Close() })
	return f
}

const hold = "exec 3> alive; echo up >&3; "

// allGone waits until no process holds the lifeline.
func (a *app) allGone(f *os.File) {
	a.t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		a.t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "up\n" {
		a.t.Errorf("%q, %v: a process outlives the call", text, err)
	}
}

func TestTimeoutEndsTheGroup(t *testing.T) {
	t.Parallel()
	a := open(t, `{"profile": "unrestricted"}`, nil)
	alive := a.lifeline()
	res := a.do(t.Context(), map[string]any{"cmd": hold + `echo begun; trap '' TERM; sleep 1000 & (trap '' TERM; while :; do sleep 1000; done)`, "profile": "unrestricted", "timeout": 1})
	if res.Err == nil || res.Err.Code != tool.CodeTimeout || !strings.Contains(res.Err.Message, "stdout so far:\nbegun\n") {
		t.Errorf("%v %s", res.Err, res.JoinText())
	}
	a.allGone(alive)
}

// A process that is left behind and holds the output open neither hangs the
// call nor outlives it.
func TestLeftBehind(t *testing.T) {
	a := open(t, `{"profile": "unrestricted"}`, nil)
	alive := a.lifeline()
	if got := a.output(hold+"sleep 1000 & echo done", "unrestricted"); got != "exit_code: 0\nstdout:\ndone\nstderr:\n" {
		t.Error(got)
	}
	a.allGone(alive)
}

// Nor does one that left the group, where something confines commands.
func TestLeftTheGroup(t *testing.T) {
	need(t, "setsid")
	if box.Status().Active == sandbox.None {
		t.Skip("nothing confines commands here: " + box.Status().Remedy)
	}
	t.Parallel()
	a := open(t, `{"profile": "unrestricted"}`, nil)
	alive := a.lifeline()
	if got := a.output(`mkfifo up; setsid sh -c 'exec 3> alive; echo up >&3; echo up > up; exec sleep 1000' & cat up`, "unrestricted"); got != "exit_code: 0\nstdout:\nup\nstderr:\n" {
		t.Error(got)
	}
	a.allGone(alive)
}

// The repository's own folder can be changed only where the app permits it.
func TestGitWrite(t *testing.T) {
	need(t, "git")
	if box.Status().Active == sandbox.None {
		t.Skip("nothing confines commands here: " + box.Status().Remedy)
	}
	for config, code := range map[string]string{`{"profile": "unrestricted"}`: "exit_code: 128\n", `{"profile": "unrestricted", "git_write": true}`: "exit_code: 0\n"} {
		a := open(t, config, map[string]string{"sub/a": "x\n"})
		git(t, a.dir, "init", "-q")
		if got := a.output("git add sub/a", "unrestricted"); !strings.HasPrefix(got, code) {
			t.Errorf("%s: %s", config, got)
		}
	}
}

// What lies outside the root is seen and changed as the app grants it.
func TestGrantedFolders(t *testing.T) {
	if box.Status().Active == sandbox.None {
		t.Skip("nothing confines commands here: " + box.Status().Remedy)
	}
	cache, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "x"), []byte("cached\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range [][2]string{{`{}`, ""}, {`{"readable": ["` + cache + `"]}`, "cached\n"}, {`{"writable": ["` + cache + `"]}`, "cached\nnew\n"}} {
		config, want := test[0], test[1]
		a := open(t, strings.Replace(config, "{", `{"profile": "unrestricted"`+map[bool]string{true: ", "}[config != "{}"], 1), nil)
		got := a.output("cat "+cache+"/x 2>/dev/null; (echo new > "+cache+"/y) 2>/dev/null; cat "+cache+"/y 2>/dev/null; echo", "unrestricted")
		if got != "exit_code: 0\nstdout:\n"+want+"\nstderr:\n" {
			t.Errorf("%s: %q", config, got)
		}
	}
}

func TestLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits are set from outside on Linux only")
	}
	a := open(t, `{"profile": "unrestricted"}`, nil)
	got := a.output(`until [ "$(ulimit -c)" = 0 ]; do :; done; ulimit -Hc`, "unrestricted")
	if got != "exit_code: 0\nstdout:\n0\nstderr:\n" {
		t.Error(got)
	}
}

func TestCancel(t *testing.T) {
	a := open(t, `{"profile": "unrestricted"}`, nil)
	alive := a.lifeline()
	ctx, cancel := context.WithCancel(t.Context())
	begun := filepath.Join(a.dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		_, _ = os.ReadFile(begun) // until the command has written it
	}()
	args, _ := json.Marshal(map[string]string{"cmd": hold + "echo > begun; sleep 1000", "profile": "unrestricted"})
	_, err := a.ts.Tools[0].Handle(ctx, &tool.Call{Args: args})
	if err == nil || tool.AsError(err).Code != tool.CodeCancelled {
		t.Error(err)
	}
	a.allGone(alive)
}

// TestEvals runs the labelled commands of HELVE_EVALS through the policy.
func TestEvals(t *testing.T) {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	file, err := os.Open(filepath.Join(dir, "safety", "shell.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a := open(t, "", map[string]string{"file.txt": "x"})
	allow, allowed, compound, refuse := 0, 0, 0, 0
	for rows := bufio.NewScanner(file); rows.Scan(); {
		var row struct{ Cmd, Expect, Why string }
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		verdict, why := a.judge(row.Cmd, "passive")
		switch {
		case row.Expect == "refuse":
			refuse++
			if verdict == tool.Allow {
				t.Errorf("%q is allowed, but must be refused: %s", row.Cmd, row.Why)
			}
		case strings.Contains(why, "one call runs one command"):
			compound++
		default:
			allow++
			if verdict == tool.Allow {
				allowed++
			} else {
				t.Logf("%q: %s", row.Cmd, why)
			}
		}
	}
	t.Logf("%d of %d harmless simple commands are allowed; %d compound ones are not; %d rows to refuse", allowed, allow, compound, refuse)
	if refuse == 0 || allow == 0 || allowed*10 < allow*9 {
		t.Errorf("%d of %d harmless simple commands are allowed; at least 9 of 10 are wanted", allowed, allow)
	}
}
