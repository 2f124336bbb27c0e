//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// held returns a function that waits until all are gone who hold a FIFO that
// is made at path. A server that opens it waits until this was called.
func held(t *testing.T, path string) func(why string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(path) // waits for a writer
		opened <- f
	}()
	return func(why string) {
		t.Helper()
		select {
		case f := <-opened:
			defer f.Close()
			f.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := f.Read(make([]byte, 1)); os.IsTimeout(err) {
				t.Errorf("%s: the server or its child lives on", why)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the server was not started", why)
		}
	}
}

// An upstream server is started to learn its tools, then by calls only; it
// stops when it is idle, and with Helve however that ends, with its children.
func TestLifeOfAnUpstreamServer(t *testing.T) {
	dir := folder(t)
	log, fifo := filepath.Join(dir, "starts"), filepath.Join(dir, "fifo")
	starts := func() int { return strings.Count(read(t, log), "x") }
	kid := child(t, "change")
	script := fmt.Sprintf("echo x >>'%s'; exec 9>'%s'; sleep 1000 & exec '%s' change", log, fifo, kid["command"])
	app := func(more object) string {
		server := object{"command": "/bin/sh", "args": []string{"-c", script}}
		for k, v := range more {
			server[k] = v
		}
		return serversApp(t, object{"kid": server})
	}
	write(t, filepath.Join(dir, "app.yaml"), app(nil))
	gone := held(t, fifo)
	d := serve(t, dir, "--app", "app.yaml")
	if got := call(t, d.connect(t, "/mcp"), "mcp.kid.get_before", object{"x": 1}); got.Text != `{"x":1}` {
		t.Fatalf("the first call: %+v", got)
	}
	d.stop(t)
	gone("after SIGTERM")

	if out := must(t, dir, "tools", "search", "get_before", "--app", "app.yaml"); !strings.Contains(out, "mcp.kid.get_before") {
		t.Errorf("the search does not find the tool of a server that does not run:\n%s", out)
	}
	must(t, dir, "tools", "get", "mcp.kid.get_before", "--app", "app.yaml")
	write(t, filepath.Join(dir, "app.yaml"), app(object{"idle_timeout": 1}))
	d = serve(t, dir, "--app", "app.yaml")
	s := d.connect(t, "/mcp")
	if got := call(t, s, "mcp.list_servers", nil); !strings.Contains(got.Text, "manifest_known") {
		t.Errorf("before the first call: %+v", got)
	}
	if n := starts(); n != 1 {
		t.Fatalf("looking at the tools started the server: %d starts", n)
	}
	gone = held(t, fifo)
	if got := call(t, s, "mcp.kid.get_before", object{"x": 2}); got.Text != `{"x":2}` || starts() != 2 {
		t.Fatalf("the first call: %+v, %d starts", got, starts())
	}
	gone("after a second without calls")
	gone = held(t, fifo)
	if got := call(t, s, "mcp.kid.get_before", object{"x": 3}); got.Text != `{"x":3}` || starts() != 3 {
		t.Fatalf("the call after that: %+v, %d starts", got, starts())
	}
	d.cmd.Process.Kill()
	gone("after SIGKILL")
}

// However helve ends, nothing is left of its servers: neither they, who do not
// heed a signal, nor a child in their group, nor on Linux one that has left it.
func TestNothingOutlivesHelve(t *testing.T) {
	// What this process ignores, as nohup has it, its children would ignore too.
	caught := make(chan os.Signal, 1)
	ossignal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	t.Cleanup(func() { ossignal.Stop(caught) })
	escape := ""
	if _, err := exec.LookPath("setsid"); runtime.GOOS == "linux" && err == nil {
		escape = "setsid sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & sleep 1000; true' & "
	}
	script := "trap '' TERM HUP INT; exec 9>\"$FIFO\"; sleep 1000 & " + escape + "'%s' change; sleep 1000"
	kill := func(s syscall.Signal) func(*exec.Cmd, io.Closer) {
		return func(cmd *exec.Cmd, _ io.Closer) { cmd.Process.Signal(s) }
	}
	for way, end := range map[string]func(*exec.Cmd, io.Closer){
		"SIGTERM": kill(syscall.SIGTERM), "SIGINT": kill(syscall.SIGINT), "SIGHUP": kill(syscall.SIGHUP),
		"SIGKILL": kill(syscall.SIGKILL), "SIGQUIT": kill(syscall.SIGQUIT), "SIGABRT": kill(syscall.SIGABRT),
		"end of input": func(_ *exec.Cmd, in io.Closer) { in.Close() },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			fifo := filepath.Join(dir, "fifo")
			write(t, filepath.Join(dir, "app.yaml"), serversApp(t, object{"kid": object{"command": "/bin/sh", "env": object{"FIFO": fifo},
				"args": []string{"-c", fmt.Sprintf(script, child(t)["command"])}}}))
			gone := held(t, fifo)
			cmd := command(t.Context(), dir, "mcp", "--app", "app.yaml")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n"+
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp.kid.get_before","arguments":{"x":1}}}`+"\n")
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.Contains(lines.Text(), `"id":2`) {
			}
			if !strings.Contains(lines.Text(), `{\"x\":1}`) {
				t.Fatalf("the call: %s", lines.Text())
			}
			end(cmd, in)
			cmd.Wait()
			gone("after " + way)
		})
	}
}
