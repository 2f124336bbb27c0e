package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A server that lacks a secret, or a variable, says so alone: its tools are
// found as they were listed, calls of them tell what to do, the others serve,
// and it is used as soon as the secret is kept.
func TestServersThatLackSomething(t *testing.T) {
	needsUnix(t)
	dir := folder(t)
	kept := "HELVE_CREDENTIALS_DIR=" + filepath.Join(dir, "kept")
	app := func(secret, variable string) string {
		servers := object{"fine": child(t, "strange")}
		for name, value := range map[string]string{"secret": secret, "variable": variable} {
			s := child(t, "strange")
			s["env"] = object{"KEY": value}
			servers[name] = s
		}
		through := child(t, "strange")
		through["env"] = object{"KEY": "{{half}}"}
		servers["through"] = through
		servers["gone"] = object{"url": "${HELVE_TEST_NO_SUCH_URL}", "headers": object{"X-Key": "{{env.HELVE_TEST_NO_SUCH_KEY}}"}}
		variables := `{"dev": {"variables": {"half": "{{whole}}/x", "whole": "{{env.HELVE_TEST_NO_SUCH_WHOLE}}", "spare": "{{env.HELVE_TEST_NO_SUCH_SPARE}}"}}, `
		return variables + strings.TrimPrefix(serversApp(t, servers), "{")
	}
	write(t, dir+"/app.yaml", app("known", "known"))

	first := serve(t, dir, "--app", "app.yaml")
	eventually(t, func() bool {
		is := first.states(t, dir)
		return is["fine"] == "started" && is["secret"] == "started" && is["variable"] == "started"
	})
	first.stop(t)

	write(t, dir+"/app.yaml", app("{{secret.HELVE_TEST_LATER}}", "${HELVE_TEST_NO_SUCH_VARIABLE}"))
	_, warned, code := run(t, dir, "", "app", "check", "app.yaml")
	if code != 0 || strings.Count(warned, "warning: app.yaml:1:") != 4 {
		t.Errorf("checking the file: exit code %d\n%s", code, warned)
	}
	d := serveEnv(t, dir, []string{kept}, "--app", "app.yaml")
	eventually(t, func() bool {
		is := d.states(t, dir)
		return is["fine"] == "manifest_known" && is["secret"] == "needs_setup" && is["variable"] == "needs_setup" && is["gone"] == "needs_setup" && is["through"] == "needs_setup"
	})
	if said := d.errs.String(); strings.Count(said, "the MCP server cannot be used") != 4 || strings.Contains(said, "retry=") {
		t.Errorf("nothing is tried again until somebody acts, and the log says:\n%s", said)
	}
	s := d.connect(t, "/mcp/full")
	for name, why := range map[string]string{
		"mcp.secret.get_defs":   "the MCP server secret cannot be used: env: KEY: secret HELVE_TEST_LATER: the secret \"HELVE_TEST_LATER\" is not set; helve secrets set HELVE_TEST_LATER keeps it",
		"mcp.variable.get_defs": "tools.mcp_servers.variable.env.KEY: the environment variable HELVE_TEST_NO_SUCH_VARIABLE is not set; set it, or write ${HELVE_TEST_NO_SUCH_VARIABLE:-default}",
	} {
		if got := call(t, s, "execute_tool", object{"name": name, "params": object{"head": object{}}}); !strings.Contains(got.Text, why) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := call(t, s, "search_tools", object{"query": name}); !strings.Contains(got.Text, name) {
			t.Errorf("%s is not found: %+v", name, got)
		}
	}
	fine := func(name string) bool {
		got := call(t, s, "execute_tool", object{"name": name, "params": object{"head": object{}}})
		return strings.Contains(got.Text, `{"head":{}}`)
	}
	if !fine("mcp.fine.get_defs") {
		t.Error("the other server does not serve")
	}

	cmd := command(t.Context(), dir, "secrets", "set", "HELVE_TEST_LATER", "--app", "app.yaml")
	cmd.Env, cmd.Stdin = append(cmd.Env, kept), strings.NewReader("value")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, func() bool { // it was called, so it may be started at once
		is := d.states(t, dir)["secret"]
		return is == "manifest_known" || is == "started"
	})
	if !fine("mcp.secret.get_defs") || d.states(t, dir)["variable"] != "needs_setup" {
		t.Error("with the secret the server does not serve, or another does")
	}
}
