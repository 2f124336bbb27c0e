package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Somebody signs in to Copilot, and an agent thinks by it: against a GitHub of
// the test's own.
func TestCopilot(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/login/device/code":
			io.WriteString(w, `{"device_code":"D","user_code":"AB-CD","verification_uri":"http://127.0.0.1/device","expires_in":60,"interval":1}`)
		case "/login/oauth/access_token":
			io.WriteString(w, `{"access_token":"kept-token"}`)
		case "/copilot_internal/v2/token":
			json.NewEncoder(w).Encode(map[string]any{"token": "short-token", "expires_at": time.Now().Add(time.Hour).Unix()})
		case "/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello from afar\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "app.yaml")
	text := fmt.Sprintf("schema_version: 2\napp: {app_id: far, name: Far}\nagents:\n  - id: pilot\n    brain: {backend: github_copilot, model: gpt-4o, config: {client_id: mine, github_url: %q, base_url: %q}}\n", srv.URL, srv.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "helve", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), noBus, "HELVE_CREDENTIALS_DIR="+filepath.Join(dir, "kept"), "BROWSER=true")
		out, _ := cmd.CombinedOutput() // it says what went wrong
		return string(out)
	}
	if out := run("run", file, "Hi"); !strings.Contains(out, "helve login copilot") {
		t.Errorf("signed out: %s", out)
	}
	if out := run("login", "copilot", "--app", file, "--no-browser"); !strings.Contains(out, "AB-CD") || !strings.Contains(out, "Signed in") || strings.Contains(out, "kept-token") {
		t.Errorf("login: %s", out)
	}
	if out := run("run", file, "Hi"); !strings.Contains(out, "Hello from afar") {
		t.Errorf("run: %s", out)
	}
	want := []string{"/login/device/code ", "/login/oauth/access_token ", "/copilot_internal/v2/token token kept-token", "/copilot_internal/v2/token token kept-token", "/chat/completions Bearer short-token"}
	if strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("GitHub was asked\n%s", strings.Join(asked, "\n"))
	}
	if out := run("logout", "copilot", "--app", file); !strings.Contains(out, "Signed out") {
		t.Errorf("logout: %s", out)
	}
	if out := run("run", file, "Hi"); !strings.Contains(out, "nobody is signed in") {
		t.Errorf("signed out again: %s", out)
	}
}
