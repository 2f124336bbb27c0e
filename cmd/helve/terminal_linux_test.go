package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/sys/unix"
)

// atTerminal runs helve at a terminal of that many columns, types, and returns
// what the terminal showed and the exit code.
func atTerminal(t *testing.T, dir string, columns uint16, typed string, env []string, args ...string) (shown string, code int) {
	t.Helper()
	return atWatchedTerminal(t, dir, columns, typed, env, func(string) {}, args...)
}

// atWatchedTerminal is atTerminal with somebody who sees what is shown so far.
func atWatchedTerminal(t *testing.T, dir string, columns uint16, typed string, env []string, see func(shown string), args ...string) (shown string, code int) {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer main.Close()
	fd := int(main.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("helve", args...)
	cmd.Dir, cmd.Env = dir, environ(env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	io.WriteString(main, typed)
	var out []byte
	for chunk := make([]byte, 4096); ; {
		n, err := main.Read(chunk)
		out = append(out, chunk[:n]...)
		see(string(out))
		if err != nil { // the last user of the terminal is gone
			break
		}
	}
	cmd.Wait()
	return strings.ReplaceAll(string(out), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

func TestTerminalAsks(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "b.txt")
	args := []string{"tools", "call", "filesystem.write", `{"path":"b.txt","content":"x"}`}
	for _, typed := range []string{"n\n", "\n", "maybe\n", "yesterday\n", "\x04"} {
		shown, code := atTerminal(t, dir, 100, typed, nil, args...)
		if code != 3 || exists(file) {
			t.Errorf("the answer %q: exit code %d, written: %v\n%s", typed, code, exists(file), shown)
		}
		for _, want := range []string{"wants to run", `"path":"b.txt"`, "because the default policy asks about tools of medium risk", "[y/N]", "approval_denied"} {
			if !strings.Contains(shown, want) {
				t.Errorf("the answer %q: %q is not shown in\n%s", typed, want, shown)
			}
		}
	}
	for _, typed := range []string{"y\n", "YES\n"} {
		os.Remove(file)
		if shown, code := atTerminal(t, dir, 100, typed, nil, args...); code != 0 || !exists(file) {
			t.Errorf("the answer %q: exit code %d, written: %v\n%s", typed, code, exists(file), shown)
		}
	}
	os.Remove(file)
	// What turns directions is shown, not obeyed.
	if shown, _ := atTerminal(t, dir, 100, "n\n", nil, "tools", "call", "filesystem.write", `{"path":"b\u202etxt.sh","content":"`+"\u2066x"+`"}`); strings.ContainsAny(shown, "\u202e\u2066") || !strings.Contains(shown, "<U+2066>x") {
		t.Errorf("directions are turned in %q", shown)
	}
	// A call that makes calls is asked about for each of them.
	both := []string{"tools", "call", "run_parallel", `{"actions":[{"name":"filesystem.write","params":{"path":"b.txt","content":"x"}}]}`}
	if shown, code := atTerminal(t, dir, 100, "y\n", nil, both...); code != 0 || !exists(file) || !strings.Contains(shown, "filesystem.write") {
		t.Errorf("run_parallel: exit code %d, written: %v\n%s", code, exists(file), shown)
	}
}

func TestTerminalColours(t *testing.T) {
	dir := folder(t, "escape.txt", "\x1b]0;stolen title\x07plain\x1b[31m red\n")
	if shown, _ := atTerminal(t, dir, 100, "", nil, "tools", "list"); !strings.Contains(shown, "\x1b[1mTOOL") {
		t.Errorf("no colours at a terminal:\n%s", shown)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		for _, args := range [][]string{{"tools", "list"}, {"doctor"}, {"nonsense"}, {"--help"}, {"app", "explain"}, {"version"}} {
			if shown, _ := atTerminal(t, dir, 100, "", []string{env}, args...); strings.Contains(shown, "\x1b") {
				t.Errorf("%s: colours of %v:\n%q", env, args, shown)
			}
		}
	}
	shown, code := atTerminal(t, dir, 100, "", []string{"NO_COLOR=1"}, "tools", "call", "filesystem.read", `{"path":"escape.txt"}`)
	if code != 0 || strings.Contains(shown, "\x1b") || strings.Contains(shown, "\a") || !strings.Contains(shown, "plain") {
		t.Errorf("a file with control sequences is shown as %q", shown)
	}
}

func TestTerminalWidth(t *testing.T) {
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": child(t, "strange")}))
	must(t, dir, "tools", "call", "filesystem.glob", `{"pattern":"`+strings.Repeat("ünï", 100)+`"}`)
	run(t, dir, "", "tools", "call", "mcp.a_server.with_a_tool_whose_name_is_long_and_says_文件系统_much_of_what_it_does")
	must(t, dir, "tokens", "create", "--name", strings.Repeat("name", 10), "--profile", "read,web,+filesystem.write,-filesystem.stat")
	for _, columns := range []uint16{60, 80, 120} {
		for _, args := range [][]string{{"tools", "list"}, {"tools", "list", "--app", "app.yaml"}, {"tools", "search", "read"}, {"audit"}, {"tokens", "list"}} {
			shown, _ := atTerminal(t, dir, columns, "", []string{"NO_COLOR=1"}, args...)
			for l := range strings.Lines(shown) {
				if w := displaywidth.String(strings.TrimSuffix(l, "\n")); w > int(columns) {
					t.Errorf("%v at %d columns prints %d: %q", args, columns, w, l)
				}
			}
		}
	}
}

// Who waits for servers is told for which, and afterwards which of them gave
// no answer; the tools of the others are there.
func TestTerminalWaits(t *testing.T) {
	t.Parallel()
	dir := folder(t, "app.yaml", "app: {app_id: a, name: A}\ntools: {mcp_servers: {mute: {command: tail, args: [-f, /dev/null]}}}\n")
	for _, args := range [][]string{{"tools", "search", "read", "file"}, {"tools", "list", "filesystem"}} {
		shown, code := atTerminal(t, dir, 100, "", nil, append(args, "--app", "app.yaml", "--wait", "200ms")...)
		for _, want := range []string{"Waiting up to 200ms for the tools of mute…\n", "no answer within 200ms, so their tools are missing: mute\n", "filesystem.read"} {
			if code != 0 || !strings.Contains(shown, want) {
				t.Errorf("%s: exit code %d, %q is not shown in\n%s", args, code, want, shown)
			}
		}
	}
	// What is no terminal is not told what is waited for.
	_, stderr, code := run(t, dir, "", "tools", "search", "read", "file", "--app", "app.yaml", "--wait", "100ms")
	if code != 0 || strings.Contains(stderr, "Waiting") || !strings.Contains(stderr, "missing: mute") {
		t.Errorf("without a terminal: %d, %s", code, stderr)
	}
}

// What is pasted is one message, and none of its lines answers what is asked
// meanwhile.
func TestTerminalPaste(t *testing.T) {
	t.Parallel()
	dir := folder(t, "app.yaml", `
app: {app_id: writes, name: Writes}
agents:
  - id: writer
    brain:
      backend: script
      config:
        turns:
          - {expect: "(?s)^Do this:\ny$", calls: [{tool: filesystem.write, args: {path: b.txt, content: x}}]}
          - say: "Said: [[last]]"
tools: {modules: {filesystem: {}}}
`)
	shown, code := atTerminal(t, dir, 100, "Do this:\ny\n\x04", []string{"NO_COLOR=1"}, "chat", "app.yaml")
	if code != 0 || exists(filepath.Join(dir, "b.txt")) || !strings.Contains(shown, "not approved: nobody answers: the input has ended") {
		t.Errorf("exit code %d, written: %v\n%s", code, exists(filepath.Join(dir, "b.txt")), shown)
	}
	if !strings.Contains(shown, "> \nhelve chat app.yaml --resume ") {
		t.Errorf("the end does not begin a line:\n%s", shown)
	}
}

// The lines of calls fit, whatever they are about.
func TestTerminalChatWidth(t *testing.T) {
	t.Parallel()
	dir := folder(t, "app.yaml", `
app: {app_id: reads, name: Reads}
agents:
  - id: reader
    brain:
      backend: script
      config:
        turns:
          - calls:
              - {tool: filesystem.read, args: {path: `+strings.Repeat("文件系统", 30)+`}}
              - {tool: filesystem.list, args: {path: ., depth: 1, hidden: true, limit: 1000}}
          - say: Done.
tools: {modules: {filesystem: {}}}
`, strings.Repeat("文件", 30)+".txt", "")
	for _, columns := range []uint16{50, 100} {
		shown, _ := atTerminal(t, dir, columns, "Go\n\x04", []string{"NO_COLOR=1"}, "chat", "app.yaml")
		lines := 0
		for l := range strings.Lines(shown) {
			l = strings.TrimPrefix(l, "> ") // nobody pressed Return after it
			if strings.HasPrefix(l, "→ ") || strings.HasPrefix(l, "✓ ") || strings.HasPrefix(l, "✗ ") {
				lines++
				if w := displaywidth.String(strings.TrimSuffix(l, "\n")); w > int(columns) {
					t.Errorf("at %d columns %d are printed: %q", columns, w, l)
				}
			}
		}
		if lines != 4 {
			t.Errorf("%d lines of calls in\n%s", lines, shown)
		}
	}
}

// A command that waits for a server to tell its tools says so, and for which.
func TestTerminalWaitsForTools(t *testing.T) {
	for _, args := range [][]string{{"tools", "get", "mcp.late.get_defs"}, {"tools", "call", "mcp.late.get_defs", `{"head":{}}`}} {
		late, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dir := folder(t, "app.yaml", serversApp(t, object{"late": child(t, "late="+late.Addr().String(), "strange"), "other": child(t, "late="+late.Addr().String())}))
		shown, code := atWatchedTerminal(t, dir, 100, "", nil, func(shown string) {
			if strings.Contains(shown, "…") {
				late.Close() // which lets them go on
			}
		}, append(args, "--app", "app.yaml")...)
		if code != 0 || !strings.HasPrefix(shown, "Waiting up to 15s for the tools of late…\n") {
			t.Errorf("helve %s: exit code %d\n%s", strings.Join(args, " "), code, shown)
		}
	}
}

// What a tool says of its progress is shown at a terminal, fit for it and
// without secrets.
func TestTerminalShowsProgress(t *testing.T) {
	dir := folder(t, "app.yaml", serversApp(t, object{"kid": child(t, "telling")}))
	shown, code := atTerminal(t, dir, 100, "", nil, "tools", "call", "mcp.kid.get_noise", "--app", "app.yaml")
	if code != 0 || !strings.Contains(shown, "red [redacted]") || strings.Contains(shown, shapedSecret) || strings.Contains(shown, "owned") || len(shown) > 4<<10 {
		t.Errorf("exit code %d, %d bytes:\n%.500q", code, len(shown), shown)
	}
}

// A call that starts its server says so, if that takes long.
func TestTerminalWaitsForServer(t *testing.T) {
	late, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late.Close()
	dir := folder(t, "app.yaml", serversApp(t, object{"late": child(t, "late="+late.Addr().String(), "strange")}))
	args := []string{"tools", "call", "mcp.late.get_defs", `{"head":{}}`, "--app", "app.yaml"}
	must(t, dir, args...) // which keeps what the server lists
	if late, err = net.Listen("tcp", late.Addr().String()); err != nil {
		t.Fatal(err)
	}
	shown, code := atWatchedTerminal(t, dir, 100, "", nil, func(shown string) {
		if strings.Contains(shown, "…") {
			late.Close() // which lets it go on
		}
	}, args...)
	if code != 0 || !strings.HasPrefix(shown, "Waiting for the MCP server late to start…\n") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
}
