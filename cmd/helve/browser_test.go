package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chromium returns a real browser, or skips the test; it fails where
// HELVE_TEST_REQUIRE lists chromium.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const how = "needs a browser: apt-get install chromium"
	if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "chromium") {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// A person signs in with a real browser, which shows how it went and asks for
// what browsers ask for beside the page. No token, and no code, is on the page.
func TestLoginInABrowser(t *testing.T) {
	t.Parallel()
	program := chromium(t)
	d := newDesk(t)
	page := filepath.Join(d.dir, "page.html")
	write(t, filepath.Join(d.dir, "browse"), fmt.Sprintf(`#!/bin/sh
exec %q --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir=%q --dump-dom "$1" >%q 2>/dev/null
`, program, filepath.Join(d.dir, "profile"), page))
	if err := os.Chmod(filepath.Join(d.dir, "browse"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, v := range d.env {
		if strings.HasPrefix(v, "BROWSER=") {
			d.env[i] = "BROWSER=" + filepath.Join(d.dir, "browse")
		}
	}
	d.env = append(d.env, "HOME="+d.dir)
	d.want(t, "Signed in to web at "+d.as.URL+": it has 1 tools", "login", "web", "--timeout", "120s")
	eventually(t, func() bool { return exists(page) && strings.Contains(read(t, page), "</html>") })
	shown := read(t, page)
	if !strings.Contains(shown, "You are back at Helve.") {
		t.Errorf("the browser shows %s", shown)
	}
	for _, secret := range append(d.as.Tokens(), "code=", "state=") {
		if strings.Contains(shown, secret) {
			t.Errorf("the browser shows %q in %s", secret, shown)
		}
	}
	d.want(t, "got it", "tools", "call", "mcp.web.get_it", "{}")
}
