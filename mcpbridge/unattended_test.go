package mcpbridge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/internal/oauthtest"
	"github.com/helve-ai/helve/mcpbridge"
)

// A workload presents the token that its platform gave it, as it stands in the
// file then; one that was refused is not presented again and again.
func TestAssertion(t *testing.T) {
	s := newSigned(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := oauthtest.JWT(map[string]any{"sub": "a"}), oauthtest.JWT(map[string]any{"sub": "b"})
	s.up.OAuth = mcpbridge.OAuth{Grant: mcpbridge.ByAssertion, AssertionFile: file}
	s.as.Admit(first)
	write(first)
	g := s.open(t)
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	s.as.Admit(second)
	write(second)
	s.as.Expire()
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	if n := s.as.Presented(); n != 2 {
		t.Errorf("assertions were presented %d times", n)
	}

	s.as.Expire()
	old := oauthtest.JWT(map[string]any{"sub": "c", "exp": 1})
	write(old)
	g = s.open(t)
	st := g.status(t)
	if st.State != mcpbridge.Failed || !strings.Contains(st.Error, "no such assertion") || !strings.Contains(st.Error, "expired at 1970-01-01T00:00:01Z") {
		t.Errorf("%+v", st)
	}
	g.call(t, "mcp.web.get_it", `{}`)
	if n := s.as.Presented(); n != 3 {
		t.Errorf("the assertion that was refused was presented %d times", n-2)
	}
	if strings.Contains(st.Error+s.logs.String(), old) {
		t.Error("the assertion is told")
	}
	for text, want := range map[string]string{"hunter2": "three parts", "a.b!.c": "second part"} {
		write(text)
		if st := s.open(t).status(t); st.State != mcpbridge.Failed || !strings.Contains(st.Error, want) || strings.Contains(st.Error, "hunter2") {
			t.Errorf("%+v", st)
		}
	}
	if _, err := s.login(t); err == nil || !strings.Contains(err.Error(), "oauth.assertion_file") {
		t.Error(err)
	}
}

// A person signs in at the identity provider once, for all servers; its ID
// token is renewed, and when that ends the login is needed again.
func TestIdentity(t *testing.T) {
	s := newSigned(t)
	idp := oauthtest.New(t)
	idp.Know("desk")
	s.as.Trusts = idp
	s.up.OAuth = mcpbridge.OAuth{Grant: mcpbridge.ByIdentity, ClientID: "gate", Identity: mcpbridge.Identity{Issuer: idp.URL, ClientID: "desk"}}
	g := s.open(t)
	if st := g.status(t); st.State != mcpbridge.NeedsLogin || !strings.Contains(st.Error, "run helve login web") {
		t.Fatalf("%+v", st)
	}
	if r := s.mustLogin(t); r.Tools != 1 {
		t.Errorf("%+v", r)
	}
	eventually(t, "the one that runs notices", func() bool { return g.status(t).State == mcpbridge.Started })
	other := *s
	other.up.Name = "second"
	other.open(t).ok(t, "mcp.second.get_it", `{}`, "get_it")
	if logins, _, _ := idp.Counts(); logins != 1 {
		t.Errorf("%d logins at the provider", logins)
	}
	if logins, _, _ := s.as.Counts(); logins != 0 {
		t.Errorf("%d logins at the server", logins)
	}

	idp.IDLife = 0 // from now on they have expired when they come
	s.mustLogin(t)
	s.as.Expire()
	res := g.call(t, "mcp.web.get_it", `{}`)
	if _, renewals, _ := idp.Counts(); res.Err == nil || !strings.Contains(res.Err.Message, "no new ID token") || renewals != 1 {
		t.Errorf("%+v, %d renewals", res.Err, renewals)
	}
	idp.IDLife = time.Hour
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")

	tokens := append(idp.Tokens(), s.as.Tokens()...)
	if was, err := mcpbridge.Logout(t.Context(), s.up, s.o); !was || err != nil || len(idp.Tokens()) != 0 {
		t.Errorf("%v, %v, %d tokens are valid", was, err, len(idp.Tokens()))
	}
	eventually(t, "the one that runs notices", func() bool {
		res := g.call(t, "mcp.web.get_it", `{}`)
		return res.Err != nil && strings.Contains(res.Err.Message, "run helve login web")
	})
	for _, token := range tokens {
		if strings.Contains(s.logs.String(), token) {
			t.Error("a token is in the log")
		}
	}
}

// The word of a provider that is not trusted is refused, and the error says by whom.
func TestStrangeIdentity(t *testing.T) {
	s := newSigned(t)
	idp := oauthtest.New(t)
	idp.Know("desk")
	s.as.Trusts = oauthtest.New(t)
	s.up.OAuth = mcpbridge.OAuth{Grant: mcpbridge.ByIdentity, ClientID: "gate", Identity: mcpbridge.Identity{Issuer: idp.URL, ClientID: "desk"}}
	if _, err := s.login(t); err == nil || !strings.Contains(err.Error(), "nobody vouches for this") || !strings.Contains(err.Error(), s.as.URL) {
		t.Error(err)
	}
}

// Tokens are bound to a key where both sides know that: who has the token alone
// cannot use it. The key lasts as long as the login.
func TestBoundTokens(t *testing.T) {
	for _, nonce := range []string{"", "once"} {
		s := newSigned(t)
		s.as.Binds, s.as.Nonce = true, nonce
		r := s.mustLogin(t)
		if r.Tools != 1 {
			t.Errorf("%+v", r)
		}
		for range 2 {
			g := s.open(t)
			g.ok(t, "mcp.web.get_it", `{}`, "get_it")
			s.as.Expire()
			g.ok(t, "mcp.web.get_it", `{}`, "get_it")
		}
		if logins, renewals, _ := s.as.Counts(); logins != 1 || renewals != 2 {
			t.Errorf("%d logins, %d renewals", logins, renewals)
		}
	}
}

// A server that knows no bound tokens gets plain ones, whatever its
// authorization server can do.
func TestUnboundTokens(t *testing.T) {
	s := newSigned(t)
	s.as.Binds, s.as.Plain = true, true
	s.mustLogin(t)
	s.open(t).ok(t, "mcp.web.get_it", `{}`, "get_it")
}
