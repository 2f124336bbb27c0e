package mcpbridge_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/inject"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// learnOffers is learn for a server that has more than tools: it waits until the
// store knows all of it.
func (l *lazy) learnOffers(t *testing.T, offers string) {
	t.Helper()
	l.ups[0].Env["HELVE_TEST_OFFERS"] = offers
	g := l.open(t)
	defer g.ups.Close()
	g.call(t, "mcp.kid.get_a", `{}`)
	last := strings.Fields(offers)[len(strings.Fields(offers))-1]
	for deadline := time.Now().Add(20 * time.Second); !bytes.Contains(l.kept(t)["kid"], []byte(`"name":"`+last+`"`)); {
		if time.Now().After(deadline) {
			t.Fatalf("the store does not learn: %s", l.kept(t)["kid"])
		}
	}
}

// front serves what a lazy house has to clients.
func front(t *testing.T, g *guest) *mcp.ClientSession {
	g.withModule(t)
	h := newHouse(t, func(o *mcpbridge.ServerOptions) {
		o.Upstreams = func() *mcpbridge.Upstreams { return g.ups }
		o.View = func(m inject.Mode) inject.View { return inject.Present(g.reg.Set(), inject.Options{Force: m}) }
		o.Resolve = func(_ tool.Origin, name string) *tool.Tool { tl, _ := g.reg.Set().Resolve(name, nil); return tl }
		o.Do = g.run.Do
	})
	return dial(t, h.http(t, "").URL, nil, "")
}

// What a server that does not run has beside tools is listed too; reading it
// starts the server.
func TestOffersOfServersThatDoNotRun(t *testing.T) {
	for what, use := range map[string]func(t *testing.T, s *mcp.ClientSession){
		"reading": func(t *testing.T, s *mcp.ClientSession) {
			res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://one"})
			if err != nil || res.Contents[0].Text != "counted has note://one" {
				t.Errorf("%v: %+v", err, res)
			}
		},
		"reading by a template": func(t *testing.T, s *mcp.ClientSession) {
			res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://7"})
			if err != nil || res.Contents[0].Text != "counted has note://7" {
				t.Errorf("%v: %+v", err, res)
			}
		},
		"getting": func(t *testing.T, s *mcp.ClientSession) {
			res, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "kid__note"})
			if err != nil || res.Description != "of note" {
				t.Errorf("%v: %+v", err, res)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLazy(t, "get_a")
			l.learnOffers(t, "note")
			g := l.open(t)
			s := front(t, g)
			if got := uris(t, s); !slices.Equal(got, []string{"note://one", "note://{id}"}) {
				t.Errorf("resources %q", got)
			}
			if got := promptNames(t, s); !slices.Equal(got, []string{"kid__note"}) {
				t.Errorf("prompts %q", got)
			}
			g.ok(t, "mcp.list_resources", `{}`, "note://one", "note://{id}")
			g.ok(t, "mcp.list_prompts", `{}`, `"name":"note"`)
			if st := g.status(t); st.State != mcpbridge.Known || l.starts() != 1 {
				t.Fatalf("listing: %+v, %d starts", st, l.starts())
			}
			if use(t, s); l.starts() != 2 {
				t.Errorf("%d starts", l.starts())
			}
		})
	}
}

// What a server offers otherwise after a start replaces what was kept; a
// server that offers nothing of the kind any more has nothing kept.
func TestKeptListsAreReplaced(t *testing.T) {
	l := newLazy(t, "get_a")
	l.learnOffers(t, "old note")
	l.learnOffers(t, "note new")
	g := l.open(t)
	if got := promptNames(t, front(t, g)); !slices.Equal(got, []string{"kid__new", "kid__note"}) || l.starts() != 2 {
		t.Errorf("prompts %q, %d starts", got, l.starts())
	}
	g.ups.Close()
	l.ups[0].Env["HELVE_TEST_OFFERS"] = ""
	g = l.open(t)
	g.ok(t, "mcp.kid.get_a", `{}`, "get_a")
	g.ups.Close()
	g = l.open(t)
	if s := front(t, g); len(promptNames(t, s)) != 0 || len(uris(t, s)) != 0 || l.starts() != 3 {
		t.Errorf("prompts %q, resources %q, %d starts", promptNames(t, s), uris(t, s), l.starts())
	}
}

// A kept list that is damaged is not believed.
func TestDamagedLists(t *testing.T) {
	l := newLazy(t, "get_a")
	l.learnOffers(t, "note")
	bad := bytes.Replace(l.kept(t)["kid"], []byte(`"note://one"`), []byte(`"nope://one"`), 1)
	if err := l.store.Update(t.Context(), func(w store.Writer) error { return w.Put("manifests", "kid", bad) }); err != nil {
		t.Fatal(err)
	}
	g := l.open(t)
	if got := uris(t, front(t, g)); !slices.Equal(got, []string{"note://one", "note://{id}"}) || l.starts() != 2 {
		t.Errorf("resources %q, %d starts", got, l.starts())
	}
}
