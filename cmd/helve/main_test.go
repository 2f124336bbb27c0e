package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary runs as helve, as the upstream MCP server of the tests, and
// as a helve that lacks what could confine commands.
// raced is the helve that long-lived processes are started as: this program.
// HELVE_TEST_BINARY names a built helve that all others are, as a user has it;
// with the race detector a start takes four times as long, and it is starts
// that these tests are made of.
var raced = "helve"

// A withBuilt has the tests find the built helve, if there is one.
type withBuilt struct{ *testing.M }

func (m withBuilt) Run() int {
	built := os.Getenv("HELVE_TEST_BINARY")
	if built == "" {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("", "helve-built-")
	if err == nil {
		defer os.RemoveAll(dir)
		raced, err = exec.LookPath("helve")
	}
	var program []byte
	if err == nil {
		program, err = os.ReadFile(built)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "helve"), program, 0o755)
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err == nil {
		err = exec.Command("helve", "version").Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "HELVE_TEST_BINARY:", err)
		return 2
	}
	return m.M.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(withBuilt{m}, map[string]func(){
		"helve":              main,
		"upstream":           upstreamMain,
		"deprived":           deprivedMain,
		"conformance-client": conformanceClient,
		"browser":            browserMain,
		"authclient":         authClientMain,
	})
}

// quick keeps the race detector from sleeping for a second at the end of every process.
const quick = "GORACE=atexit_sleep_ms=0"

// noBus keeps helve from the keyring of the person who runs the tests.
const noBus = "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent"

// environ is the environment of every helve that is started here: nothing of
// the person who runs the tests gets in.
func environ(more ...string) []string {
	keep := []string{"PATH", "SYSTEMROOT", "TMPDIR", "TMP", "TEMP", "GOCOVERDIR", "LD_LIBRARY_PATH"}
	env := []string{"TERM=xterm", quick, noBus}
	for _, k := range keep {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return append(env, more...)
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			if err != nil {
				return err
			}
			exe, err := exec.LookPath("helve")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("HELVE_BIN", filepath.Dir(exe))
			e.Setenv("TERM", "xterm")
			e.Setenv("GORACE", strings.TrimPrefix(quick, "GORACE="))
			e.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimPrefix(noBus, "DBUS_SESSION_BUS_ADDRESS="))
			e.Setenv("TMPDIR", os.TempDir()) // shell.run wants it outside the root
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":      code,
			"upstreams": upstreams,
			"long":      long,
			"spilled":   spilled,
			"tamper":    tamper,
		},
		RequireUniqueNames: true,
		ContinueOnError:    true,
	})
}

// code runs a command and holds its exit code to the first argument:
//
//	code 64 helve nonsense
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARGS]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		_, got, _ = strings.Cut(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s ended with %v, want exit status %s", strings.Join(args[1:], " "), err, args[0])
	}
}

// upstreams puts the path of the tests' MCP server into app files.
func upstreams(ts *testscript.TestScript, _ bool, args []string) {
	exe, err := exec.LookPath("upstream")
	ts.Check(err)
	for _, file := range args {
		text := ts.ReadFile(file)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.ReplaceAll(text, "UPSTREAM", filepath.ToSlash(exe))), 0o644))
	}
}

// long writes a file that is too long to be shown whole.
func long(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	for i := 1; i <= 1500; i++ {
		fmt.Fprintf(&b, "this is line %d of many lines that are all alike\n", i)
		if i == 800 {
			b.WriteString("needle in the hay\n")
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// spilled puts the id of the result that was cut last into a variable.
func spilled(ts *testscript.TestScript, _ bool, args []string) {
	_, rest, ok := strings.Cut(ts.ReadFile("stdout"), `{"id": "`)
	id, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		ts.Fatalf("there is no id of a result in stdout")
	}
	ts.Setenv(args[0], id)
}

// tamper alters the second line of the newest file of an audit log.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.jsonl"))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("there is no log in %s", args[0])
	}
	file := files[len(files)-1]
	data, err := os.ReadFile(file)
	ts.Check(err)
	ts.Check(os.Chmod(file, 0o600))
	ts.Check(os.WriteFile(file, []byte(strings.Replace(string(data), `"../x"`, `"a.tx"`, 1)), 0o600))
}

// run runs helve in dir and returns what it printed and its exit code.
func run(t testing.TB, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t.Context(), dir, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs helve in dir and expects exit code 0.
func must(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, errs, code := run(t, dir, "", args...)
	if code != 0 {
		t.Fatalf("helve %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "helve", args...)
	cmd.Dir, cmd.Env = dir, environ()
	return cmd
}

// write puts files into a new folder: names and contents in turn.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// needsUnix skips tests that send signals.
func needsUnix(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("signals are not delivered to processes on Windows")
	}
}
