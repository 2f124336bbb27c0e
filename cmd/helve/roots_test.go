//lint:file-ignore SA1019 servers and clients of the older revisions have roots

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A rootsKeeper is a server with sessions that asks for roots when it begins
// and when they change, keeps them, and has a tool that says which it keeps.
type rootsKeeper struct {
	mu    sync.Mutex
	roots []string
	asked int // after changes
}

func (k *rootsKeeper) ask(s *mcp.ServerSession) {
	res, err := s.ListRoots(context.Background(), nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.roots = nil
	if err != nil {
		k.roots = []string{err.Error()}
		return
	}
	for _, r := range res.Roots {
		k.roots = append(k.roots, strings.TrimPrefix(r.URI, "file:///"))
	}
}

func (k *rootsKeeper) said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.roots, " ")
}

func (k *rootsKeeper) changes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

func (k *rootsKeeper) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "roots", Version: "1"}, &mcp.ServerOptions{
		InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) { go k.ask(r.Session) },
		RootsListChangedHandler: func(_ context.Context, r *mcp.RootsListChangedRequest) {
			k.mu.Lock()
			k.asked++
			k.mu.Unlock()
			go k.ask(r.Session)
		},
	})
	onlyOld(s)
	addTool(s, "get_roots", `{"type":"object"}`, func(context.Context, json.RawMessage) string { return k.said() })
	return s
}

func rootOf(name string) *mcp.Root { return &mcp.Root{URI: "file:///" + name, Name: name} }

// Where a server with sessions is told the roots of clients, it is told those
// of the client that calls, and when they change; nobody else's changes concern it.
func TestRootsChange(t *testing.T) {
	k := new(rootsKeeper)
	web := object{"url": theirHTTP(t, k.server()), "roots": "client", "trusted": true}
	pipe := child(t, "roots")
	pipe["roots"], pipe["trusted"] = "client", true
	dir := folder(t)
	write(t, dir+"/app.yaml", serversApp(t, object{"web": web, "pipe": pipe}))
	d := serve(t, dir, "--app", "app.yaml")
	eventually(t, func() bool { is := d.states(t, dir); return is["web"] == "started" && is["pipe"] == "started" })

	type person struct {
		*mcp.Client
		*mcp.ClientSession
	}
	meet := func(name, version string) person {
		c := newClient(nil)
		c.AddRoots(rootOf(name))
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: d.URL + "/mcp/full"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return person{c, s}
	}
	ann, bob, carl := meet("ann", "2025-11-25"), meet("bob", "2025-06-18"), meet("carl", "2026-07-28")
	rootless, err := dialVersion(t, d.URL+"/mcp/full", "2025-11-25", &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	if err != nil {
		t.Fatal(err)
	}
	// A change is told before the call, and may be heeded after it.
	knows := func(who *mcp.ClientSession, server, want string) {
		t.Helper()
		got := ""
		eventually(t, func() bool {
			got = call(t, who, "mcp__"+server+"__get_roots", object{}).Text
			if got != want && !t.Failed() {
				t.Logf("%s: %q, not yet %q", server, got, want)
			}
			return got == want
		})
	}
	for _, server := range []string{"web", "pipe"} {
		knows(ann.ClientSession, server, "ann")
		knows(bob.ClientSession, server, "bob")
		knows(carl.ClientSession, server, "carl")
		knows(rootless, server, "")
		knows(ann.ClientSession, server, "ann")
	}

	ann.AddRoots(rootOf("more"))
	eventually(t, func() bool { return k.said() == "ann more" }) // without a call
	knows(ann.ClientSession, "pipe", "ann more")
	ann.RemoveRoots("file:///ann")
	eventually(t, func() bool { return k.said() == "more" })

	knows(bob.ClientSession, "web", "bob")
	before := k.changes()
	ann.AddRoots(rootOf("secret")) // the server knows bob's by now
	knows(bob.ClientSession, "web", "bob")
	if n := k.changes() - before; n != 0 {
		t.Errorf("the server was told %d times of what does not concern it", n)
	}
	knows(ann.ClientSession, "web", "more secret")
}

// Over stdio it is the same.
func TestRootsChangeOverStdio(t *testing.T) {
	k := new(rootsKeeper)
	dir := folder(t)
	write(t, dir+"/app.yaml", serversApp(t, object{"web": object{"url": theirHTTP(t, k.server()), "roots": "client", "trusted": true}}))
	cmd := exec.Command(raced, "mcp", "--app", "app.yaml", "--present", "full")
	cmd.Dir, cmd.Env = dir, environ()
	c := newClient(nil)
	c.AddRoots(rootOf("one"))
	s, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if all := names(t, s); !slices.Contains(all, "mcp__web__get_roots") {
		t.Fatalf("the tools are %q", all)
	}
	for i := range 3 {
		want := k.said()
		if i == 0 {
			want = "one"
		}
		eventually(t, func() bool { return call(t, s, "mcp__web__get_roots", object{}).Text == want })
		c.AddRoots(rootOf(fmt.Sprintf("root%d", i)))
		eventually(t, func() bool { return strings.HasSuffix(k.said(), fmt.Sprintf("root%d", i)) })
	}
}
