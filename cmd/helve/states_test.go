package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// states asks a running helve for the states of its upstream servers.
func (d *daemon) states(t testing.TB, dir string, env ...string) map[string]string {
	t.Helper()
	cmd := command(t.Context(), dir, "upstreams", "--at", d.URL, "--json")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	var all struct {
		Servers []struct{ Name, State string }
	}
	if err != nil || json.Unmarshal(out, &all) != nil {
		t.Fatalf("helve upstreams: %v\n%s", err, out)
	}
	states := map[string]string{}
	for _, s := range all.Servers {
		states[s.Name] = s.State
	}
	return states
}

// The states of upstream servers, as a person sees them beside a running helve.
func TestStatesOfUpstreamServers(t *testing.T) {
	needsUnix(t)
	g := newGate(t)
	dir := folder(t)
	eager := child(t, "strange")
	eager["eager"] = true
	servers := object{"eager": eager, "kid": child(t, "slow="+g.Addr().String()), "off": object{"command": "x", "disabled": true}, "lost": child(t, "broken")}
	write(t, dir+"/app.yaml", serversApp(t, servers))
	first := serve(t, dir, "--app", "app.yaml") // which starts all of them, to learn their tools
	eventually(t, func() bool { return first.states(t, dir)["kid"] == "started" })
	first.stop(t)
	must(t, dir, "upstreams", "--app", "app.yaml")

	d := serve(t, dir, "--app", "app.yaml")
	want := map[string]string{"eager": "started", "kid": "manifest_known", "off": "stopped", "lost": "failed"}
	eventually(t, func() bool { return reflect.DeepEqual(d.states(t, dir), want) })

	done := slowly(t, d.connect(t, "/mcp"))
	answer := g.called(t)
	want["kid"] = "in_use"
	if got := d.states(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("during a call: %v", got)
	}
	answer("done")
	<-done
	want["kid"] = "started"
	eventually(t, func() bool { return reflect.DeepEqual(d.states(t, dir), want) })

	if _, errs, code := run(t, dir, "", "upstreams", "--at", d.URL+"/nonsense"); code != 1 || !strings.Contains(errs, "HTTP status 404") {
		t.Errorf("at another address: exit code %d, %s", code, errs)
	}
	d = serve(t, folder(t), "--token", "s3cret")
	if _, errs, code := run(t, dir, "", "upstreams", "--at", d.URL); code != 1 || !strings.Contains(errs, "HELVE_TOKEN") {
		t.Errorf("without the token: exit code %d, %s", code, errs)
	}
	if got := d.states(t, dir, "HELVE_TOKEN=s3cret"); len(got) != 0 {
		t.Errorf("with the token: %v", got)
	}
}
