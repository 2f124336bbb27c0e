package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A peer is a version of the official TypeScript library.
type peer struct {
	name           string // of its servers, after the transport
	client, server string // its packages
	revision       string // the newest that it speaks
	http           string // how its servers are served over HTTP
}

const peerAsks = "2025-06-18" // the first revision in which servers ask

func peers() []peer {
	all := []peer{{name: "2", client: "@modelcontextprotocol/client", server: "@modelcontextprotocol/server", revision: "2026-07-28", http: "http"}}
	for _, v := range []struct{ version, revision, http string }{
		{"1.32", "2025-11-25", "http"}, {"1.20", "2025-06-18", "http"}, {"1.12", "2025-03-26", "http"}, {"1.0", "2024-11-05", "sse"}} {
		pkg := "sdk-" + v.version
		all = append(all, peer{strings.ReplaceAll(v.version, ".", ""), pkg, pkg, v.revision, v.http})
	}
	return all
}

// peerPrograms returns a folder with the programs of testdata/peers beside
// these libraries, or skips the test.
func peerPrograms(t *testing.T) string {
	t.Helper()
	modules := filepath.Join(os.Getenv("HELVE_TEST_NPM"), "node_modules")
	there := os.Getenv("HELVE_TEST_NPM") != ""
	for _, p := range peers() {
		there = there && exists(filepath.Join(modules, filepath.FromSlash(p.client))) && exists(filepath.Join(modules, filepath.FromSlash(p.server)))
	}
	if !there {
		why := "needs versions of the TypeScript library: npm install --prefix DIR --no-save --ignore-scripts " +
			"sdk-1.0@npm:@modelcontextprotocol/sdk@1.0.4 sdk-1.12@npm:@modelcontextprotocol/sdk@1.12.3 " +
			"sdk-1.20@npm:@modelcontextprotocol/sdk@1.20.2 sdk-1.32@npm:@modelcontextprotocol/sdk@1.32.2 " +
			"@modelcontextprotocol/client@2.4.0 @modelcontextprotocol/server@2.4.0, then set HELVE_TEST_NPM=DIR"
		if slices.Contains(strings.Split(os.Getenv("HELVE_TEST_REQUIRE"), ","), "npm") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	dir := t.TempDir()
	link(t, dir, modules, "node_modules")
	for _, program := range []string{"server.mjs", "client.mjs"} {
		write(t, filepath.Join(dir, program), read(t, filepath.Join("testdata", "peers", program)))
	}
	return dir
}

// peerServers are servers of all peers, over all transports, with the revision
// of each.
func peerServers(t *testing.T, dir string) (servers object, revisionOf map[string]string) {
	servers, revisionOf = object{}, map[string]string{}
	program, node := filepath.Join(dir, "server.mjs"), lookPath(t, "node")
	for _, p := range peers() {
		pipe, web := "pipe"+p.name, "web"+p.name
		revisionOf[pipe], revisionOf[web] = p.revision, p.revision
		servers[pipe] = object{"command": node, "args": []string{program, p.server, pipe, "stdio"}}
		cmd := exec.Command(node, program, p.server, web, p.http)
		errs := new(buffer)
		cmd.Stderr = errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		url, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v\n%s", web, err, errs)
		}
		servers[web] = object{"url": strings.TrimSpace(url)}
	}
	return servers, revisionOf
}

// Clients of the official TypeScript library, of every revision of the
// protocol, use servers of it, of every revision, through helve mcp and helve
// serve.
func TestPeers(t *testing.T) {
	dir := peerPrograms(t)
	servers, revisionOf := peerServers(t, dir)
	write(t, filepath.Join(dir, "app.yaml"), serversApp(t, servers))
	d := serve(t, dir, "--app", "app.yaml", "--state", filepath.Join(t.TempDir(), "state"))
	d.rawList(t, "/mcp/full") // which waits until every server has answered
	d.speaks(t, revisionOf)
	names := strings.Join(sortedKeys(revisionOf), ",")
	for _, p := range peers() {
		gates := map[string][]string{"stdio": {"stdio", lookPath(t, "helve"), "mcp", "--present", "full", "--app", "app.yaml", "--state", filepath.Join(t.TempDir(), "state")},
			"http": {"http", d.URL + "/mcp/full"}}
		if p.http == "sse" {
			delete(gates, "http") // this client has no transport that is still spoken
		}
		for transport, gate := range gates {
			t.Run(p.client+" "+transport, func(t *testing.T) {
				p.uses(t, dir, revisionOf, append([]string{p.client, p.client + " " + transport, names}, gate...))
			})
		}
	}
}

// speaks holds the servers to the revisions that are theirs.
func (d *daemon) speaks(t *testing.T, revisionOf map[string]string) {
	t.Helper()
	text, _ := d.rawCall(t, "/mcp/full", "mcp__list_servers", "{}")
	var list struct {
		Servers []struct{ Name, State, Protocol, Error string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Servers) != len(revisionOf) {
		t.Fatalf("%v: %s", err, text)
	}
	for _, s := range list.Servers {
		if s.Protocol != revisionOf[s.Name] || s.State != "started" || s.Error != "" {
			t.Errorf("the server is %+v, and speaks %s", s, revisionOf[s.Name])
		}
	}
}

// A peerReport is what a client prints.
type peerReport struct {
	Revision                  string
	Tools, Resources, Prompts []string
	Servers                   map[string]map[string]any
}

func (p peer) uses(t *testing.T, dir string, revisionOf map[string]string, args []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, lookPath(t, "node"), append([]string{filepath.Join(dir, "client.mjs")}, args...)...)
	cmd.Dir, cmd.Env = dir, environ()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	var got peerReport
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if got.Revision != p.revision {
		t.Errorf("the client speaks %s, not %s", got.Revision, p.revision)
	}
	for name, revision := range revisionOf {
		for _, own := range []string{"get_rich", "get_steps", "get_late", "get_begun", "get_cancelled", "get_failed", "get_name", "get_last"} {
			if !slices.Contains(got.Tools, "mcp__"+name+"__"+own) {
				t.Errorf("%s of %s is not listed", own, name)
			}
		}
		if !slices.Contains(got.Resources, name+"://own") || !slices.Contains(got.Prompts, name+"__greet") {
			t.Errorf("%s: resources %q, prompts %q", name, got.Resources, got.Prompts)
		}
		for what, want := range p.expects(name, revision) {
			if text, ok := want.(string); ok && strings.Contains(fmt.Sprint(got.Servers[name][what]), text) {
				continue
			}
			if !reflect.DeepEqual(got.Servers[name][what], want) {
				t.Errorf("%s: %s:\n got %v\nwant %v", name, what, got.Servers[name][what], want)
			}
		}
	}
}

// expects returns what a client gets from a server: a value, or a text that is
// in it.
func (p peer) expects(name, revision string) map[string]any {
	said := func(text string) any { return []any{object{"type": "text", "text": text}} }
	named := said("accept Ann")
	switch {
	case revision < peerAsks:
		named = said("cannot ask")
	case p.revision < peerAsks && revision >= "2026-07-28": // its server is told what the client can
		named = "do not declare the required capability"
	case p.revision < peerAsks:
		named = "cannot be asked"
	}
	return map[string]any{
		"rich":       p.rich(name),
		"structured": object{"n": 7.0},
		"steps":      object{"progress": []any{[]any{1.0, 3.0}, []any{2.0, 3.0}, []any{3.0, 3.0}}, "text": "stepped"},
		"cancels":    []any{"given up", "cancelled"},
		"failed":     "external_service_error: it failed",
		"name":       named,
		"resource":   []any{object{"uri": name + "://own", "mimeType": "text/plain", "text": "own of " + name}},
		"prompt":     []any{object{"role": "user", "content": object{"type": "text", "text": name + " greets W"}}},
	}
}

// rich is the content of get_rich in what the client's revision has.
func (p peer) rich(name string) []any {
	audio := object{"type": "audio", "data": "d2F2", "mimeType": "audio/wav"}
	if p.revision < "2025-03-26" {
		audio = object{"type": "resource", "resource": object{"uri": "helve:result", "mimeType": "audio/wav", "blob": "d2F2"}}
	}
	own := object{"type": "resource_link", "uri": name + "://own", "name": "own", "mimeType": "text/plain"}
	if p.revision < "2025-06-18" {
		own = object{"type": "text", "text": "[link to own: " + name + "://own]"}
	}
	return []any{object{"type": "text", "text": "rich of " + name},
		object{"type": "image", "data": "AAH/", "mimeType": "image/png"},
		object{"type": "resource", "resource": object{"uri": name + "://inside", "mimeType": "text/plain", "text": "inside"}}, audio, own}
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
