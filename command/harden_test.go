package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/helve-ai/helve/command"
)

// hostileRepository is a repository whose configuration names a program, which
// leaves a file behind, for all that git is known to run while it reads.
func hostileRepository(t *testing.T) (dir, trace string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	need(t, "git")
	dir, trace = t.TempDir(), filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(evil, "#!/bin/sh\necho \"$0 $*\" >> '"+trace+"'\n", 0o755)
	git := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	write(filepath.Join(dir, "a"), "one\n", 0o644)
	write(filepath.Join(dir, ".gitattributes"), "a diff=evil\n", 0o644)
	git("add", ".")
	git("commit", "-qm", "first")
	write(filepath.Join(dir, "a"), "two\n", 0o644)
	git("stash", "-q")
	write(filepath.Join(dir, "a"), "three\n", 0o644)
	for _, key := range []string{"core.fsmonitor", "core.pager", "diff.external", "diff.evil.command", "diff.evil.textconv", "gpg.program", "core.editor", "core.sshCommand"} {
		git("config", key, evil)
	}
	git("config", "log.showSignature", "true")
	hook := filepath.Join(dir, ".git", "hooks", "post-index-change")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	write(hook, "#!/bin/sh\n"+evil+" hook\n", 0o755)
	return dir, trace
}

// TestPreparedGitRunsNothing runs every git command that the shapes name as
// permitted, as prepared, in a repository that tries to run a program.
func TestPreparedGitRunsNothing(t *testing.T) {
	dir, trace := hostileRepository(t)
	for _, shape := range command.Shapes() {
		for _, text := range shape.Allow {
			if !strings.HasPrefix(text, "git ") {
				continue
			}
			argv, env := command.Prepare(parsePart(t, text), shape.Profile)
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = dir
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
			out, _ := cmd.CombinedOutput()
			if ran, err := os.ReadFile(trace); err == nil {
				t.Fatalf("%s, run as %q, ran a program of the configuration: %s", text, argv, ran)
			}
			if cmd.ProcessState.ExitCode() == 129 && !strings.Contains(text, "git config get") && !strings.Contains(text, "git config list") {
				t.Errorf("%s, run as %q: git does not know an option:\n%.300s", text, argv, out)
			}
		}
	}
}

func TestUnpreparedGitWouldRunIt(t *testing.T) {
	dir, trace := hostileRepository(t)
	cmd := exec.Command("git", "diff")
	cmd.Dir = dir
	_ = cmd.Run()
	if _, err := os.Stat(trace); err != nil {
		t.Errorf("the hostile repository runs nothing, so that it proves nothing: %v", err)
	}
}

// TestPreparedPythonIsIsolated runs py_compile beside a file of that name.
func TestPreparedPythonIsIsolated(t *testing.T) {
	need(t, "python3")
	dir := t.TempDir()
	for name, text := range map[string]string{"py_compile.py": "open('ran', 'w')", "sitecustomize.py": "open('ran', 'w')", "a.py": "x = 1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	argv, _ := command.Prepare(parsePart(t, "python3 -m py_compile a.py"), command.Passive)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a file of the project ran in place of the module")
	}
}

// need skips a test that needs a program which is not installed, or fails it
// where HELVE_TEST_REQUIRE names the program.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if strings.Contains(","+os.Getenv("HELVE_TEST_REQUIRE")+",", ","+program+",") {
		t.Fatalf("%s is not installed, but HELVE_TEST_REQUIRE names it", program)
	}
	t.Skipf("%s is not installed; on Debian: apt-get install %s", program, program)
}
