package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A seat is a desk whose user has a keyring, and a session bus where systemd
// puts it. The keyring is on the disk; what runs ends with each session.
type seat struct {
	*desk
	prompter string // what runs in place of the dialog that asks for the password, a line for sh
}

// newSeat skips the test without the programs of a desktop, or fails it where
// HELVE_TEST_REQUIRE lists keyring.
func newSeat(t *testing.T) *seat {
	for _, program := range []string{"bwrap", "dbus-daemon", "dbus-send", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			const how = "needs a keyring: apt-get install bubblewrap gnome-keyring dbus (%v)"
			if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "keyring") {
				t.Fatalf(how, err)
			}
			t.Skipf(how, err)
		}
	}
	d := newDesk(t)
	app := filepath.Join(d.dir, "app.yaml")
	write(t, app, strings.Replace(read(t, app), "security: {credentials: file}\n", "", 1))
	return &seat{desk: d, prompter: "echo asked >>prompts; exit 1"}
}

// session runs a script between a login to the machine, with the password of
// the keyring or without it, and the end of all its processes. Helve gets no
// DBUS_SESSION_BUS_ADDRESS, as from clients that clear the environment.
func (s *seat) session(t *testing.T, unlocked bool, script string) string {
	t.Helper()
	start := "gnome-keyring-daemon --start --components=secrets </dev/null"
	if unlocked {
		start = "printf pw | gnome-keyring-daemon --unlock --components=secrets"
	}
	write(t, filepath.Join(s.dir, "prompt"), "#!/bin/sh\ncd "+s.dir+"\n"+s.prompter+"\n")
	if err := os.Chmod(filepath.Join(s.dir, "prompt"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir, "services", "prompter.service"), "[D-BUS Service]\nName=org.gnome.keyring.SystemPrompter\nExec="+s.dir+"/prompt\n")
	at := fmt.Sprintf("/run/user/%d", os.Getuid())
	write(t, filepath.Join(s.dir, "bus.conf"), `<busconfig><type>session</type><listen>unix:path=`+at+`/bus</listen><pidfile>`+s.dir+`/bus.pid</pidfile>
<servicedir>`+s.dir+`/services</servicedir><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`)
	whole := `set -e
unset DBUS_SESSION_BUS_ADDRESS
mkdir -m 700 ` + at + `
rm -f bus.pid
dbus-daemon --config-file=bus.conf --fork
(
  export XDG_RUNTIME_DIR=` + at + ` DBUS_SESSION_BUS_ADDRESS=unix:path=` + at + `/bus
  ` + start + ` >/dev/null
  until dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true; do :; done
) 2>>daemons.log
set +e
` + script + "\ntrue"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a daemon that does not come up is waited for by the script
	defer cancel()
	cmd := exec.CommandContext(ctx, "bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run/user", "--unshare-pid", "--die-with-parent", "bash", "-c", whole)
	cmd.Dir, cmd.Env = s.dir, append(s.env, "HOME="+s.dir, "HELVE="+lookPath(t, "helve"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "daemons.log"))
		t.Fatalf("%v\n%s%s", err, out, log)
	}
	for _, token := range s.as.Tokens() {
		if strings.Contains(string(out), token) {
			t.Error("a token is shown")
		}
	}
	return string(out)
}

// Logins are found again by other processes and after the machine was off,
// their key is in the keyring of the desktop, and one that is locked, or goes
// away, is said and takes nothing down.
func TestSystemKeyring(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	call := "$HELVE --app app.yaml tools call mcp.web.get_it '{}' --state "
	if out := s.session(t, true, "$HELVE --app app.yaml login web; "+call+"a"); !strings.Contains(out, "Signed in to web") || !strings.HasSuffix(out, "got it\n") {
		t.Fatalf("signing in: %s", out)
	}
	if exists(filepath.Join(s.dir, "kept", "identity.txt")) || !exists(filepath.Join(s.dir, "kept", "secrets.keyring.age")) {
		t.Error("the key is not in the keyring")
	}
	s.as.Expire()
	if out := s.session(t, true, call+"b; "+call+"c"); out != "got it\ngot it\n" {
		t.Errorf("another day: %s", out)
	}
	if _, renewals, _ := s.as.Counts(); renewals != 1 {
		t.Errorf("%d renewals", renewals)
	}

	out := s.session(t, false, "$HELVE --app app.yaml doctor | grep credentials; wc -l <prompts; "+call+"d")
	if !strings.Contains(out, "✗ credentials") || !strings.Contains(out, "\n1\n") {
		t.Errorf("the user is not asked once for the keyring: %s", out)
	}
	if want := "(the system's keyring does not answer (it is locked, and was not unlocked); security.credentials: file keeps secrets without one)"; strings.Count(out, want) < 1 {
		t.Errorf("with a locked keyring:\n%s", out)
	}

	s.prompter = "kill $(cat bus.pid)"
	if out := s.session(t, false, "$HELVE --app app.yaml secrets list; echo code $?"); !strings.Contains(out, "the system's keyring does not answer") || !strings.HasSuffix(out, "\ncode 1\n") {
		t.Errorf("when the bus ends while the user is asked: %s", out)
	}
}

// A server whose secret is behind a locked keyring is used once the keyring is
// unlocked, without a new start, and without asking the user again and again.
func TestSecretBehindKeyring(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	write(t, filepath.Join(s.dir, "app.yaml"), strings.Replace(read(t, filepath.Join(s.dir, "app.yaml")), "{web: {url: ", `{bound: {command: "`+lookPath(t, "upstream")+`", args: [strange], env: {KEY: "{{secret.KEY}}"}}, web: {url: `, 1))
	s.session(t, true, "echo value | $HELVE --app app.yaml secrets set KEY")
	out := s.session(t, false, `
$HELVE serve --app app.yaml --addr 127.0.0.1:0 >serve.out 2>serve.err &
until grep -qo 'http://[0-9.:]*' serve.out; do :; done
at=$(grep -o 'http://[0-9.:]*' serve.out | head -1)
is() { until $HELVE upstreams --at $at | grep "^bound" | grep -q "$1"; do :; done; $HELVE upstreams --at $at | grep "^bound"; }
is "needs setup"
wc -l <prompts
(
  export XDG_RUNTIME_DIR=/run/user/$(id -u) DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus
  bus() { dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.$1 string:org.freedesktop.secrets; }
  kill $(bus GetConnectionUnixProcessID | grep -o '[0-9]*$')
  while bus NameHasOwner | grep -q true; do :; done
  printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null
) 2>>daemons.log
is "started"
wc -l <prompts
kill %1; wait`)
	if strings.Count(out, "\n1\n") != 2 || !strings.Contains(out, "it is locked, and was not unlocked") {
		t.Errorf("asked for the keyring, before and after it was unlocked:\n%s", out)
	}
}
