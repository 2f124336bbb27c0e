//go:build unix

package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	ossignal "os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
	"github.com/helve-ai/helve/tool"
)

// kin are the kinds of children that a server of the tests has: one in its
// group, and where those can be told, one that has left it for a session of its
// own, and one that did so in the way of daemons. None heeds a kind word.
func kin() []string {
	if runtime.GOOS == "linux" {
		return []string{"grandchild", "escaped", "daemon"}
	}
	return []string{"grandchild"}
}

// beget returns the command of a child.
func beget(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HELVE_TEST_CHILD=hold", "HELVE_TEST_ROLE="+role)
	if role != "grandchild" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	return cmd
}

// hold is what a child does: it lives until its test ends.
func hold(role string) {
	deafen()
	if role == "daemon" {
		beget("orphan").Start()
		return
	}
	if conn := dialHome(role); conn != nil {
		io.Copy(io.Discard, conn)
	}
}

// deafen has the process ignore whoever asks it to end.
func deafen() { ossignal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT) }

// actAsHelve runs a server that has a child of its own, and ends as its input says.
func actAsHelve() {
	up := self("family")
	up.Env["HELVE_TEST_ADDR"] = os.Getenv("HELVE_TEST_ADDR")
	reg := &tool.Registry{}
	ups := mcpbridge.OpenUpstreams(context.Background(), []mcpbridge.Upstream{up}, mcpbridge.UpstreamOptions{
		Publish: reg.Replace, Root: "/", Watchdog: []string{up.Command, "__watch"}})
	ups.Wait(context.Background())
	res, err := pipeline.New(reg).Do(context.Background(), &tool.Call{Name: "mcp.kid.get_children", Args: json.RawMessage(`{}`)})
	fmt.Println(err, res.Err, ups.Status())
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch line {
	case "panic\n":
		go panic("as told")
		select {}
	case "exit\n":
		os.Exit(3)
	}
	ups.Close()
}

// However Helve ends, the servers end, what they have started, and the watchdog.
func TestNobodyOutlivesHelve(t *testing.T) {
	// What this process ignores, as nohup has it, its children would ignore too.
	caught := make(chan os.Signal, 1)
	ossignal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	t.Cleanup(func() { ossignal.Stop(caught) })
	signal := func(s syscall.Signal, group bool) func(*exec.Cmd, io.WriteCloser) {
		return func(cmd *exec.Cmd, _ io.WriteCloser) {
			if group {
				syscall.Kill(-cmd.Process.Pid, s)
			} else {
				cmd.Process.Signal(s)
			}
		}
	}
	said := func(line string) func(*exec.Cmd, io.WriteCloser) {
		return func(_ *exec.Cmd, in io.WriteCloser) { io.WriteString(in, line) }
	}
	for way, end := range map[string]func(*exec.Cmd, io.WriteCloser){
		"SIGKILL": signal(syscall.SIGKILL, false), "SIGTERM": signal(syscall.SIGTERM, false), "SIGINT": signal(syscall.SIGINT, false),
		"SIGHUP": signal(syscall.SIGHUP, false), "SIGQUIT": signal(syscall.SIGQUIT, false),
		"SIGINT to the group": signal(syscall.SIGINT, true), "SIGKILL to the group": signal(syscall.SIGKILL, true),
		"panic": said("panic\n"), "exit": said("exit\n"), "end of input": func(_ *exec.Cmd, in io.WriteCloser) { in.Close() },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			cmd := exec.Command(self("").Command)
			cmd.Env = append(os.Environ(), "HELVE_TEST_CHILD=helve", "HELVE_TEST_ADDR="+h.Addr().String())
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
			defer cmd.Process.Kill()
			conns := map[string]net.Conn{}
			for len(conns) < 2+len(kin()) {
				role, conn := h.await(t)
				conns[role] = conn
			}
			ready, _ := bufio.NewReader(out).ReadString('\n')
			if !strings.Contains(ready, "started") || conns["server"] == nil || conns["watchdog"] == nil {
				t.Fatalf("%v: %s", conns, ready)
			}
			end(cmd, in)
			cmd.Wait()
			for role, conn := range conns {
				gone(t, role, conn)
			}
		})
	}
}

func TestWatchdogHeedsOnlyGroups(t *testing.T) {
	const mark = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, line := range []string{"+1 " + mark, "+-1 " + mark, "+0 " + mark, "x", "", "+", "+12x " + mark, "+12", "+12 short", "-12 " + mark, fmt.Sprintf("+%d %s", syscall.Getpgrp(), mark)} {
		cmd := exec.Command(self("").Command, "__watch")
		cmd.Stdin = strings.NewReader(line + "\n")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "is not a process group") {
			t.Errorf("%q: %v, %s", line, err, out)
		}
	}
}
