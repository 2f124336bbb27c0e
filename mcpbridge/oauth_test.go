package mcpbridge_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/internal/oauthtest"
	"github.com/helve-ai/helve/mcpbridge"
	"github.com/helve-ai/helve/pipeline"
)

// A signed is an MCP server behind an authorization server, and a store.
type signed struct {
	as   *oauthtest.Server
	up   mcpbridge.Upstream
	o    mcpbridge.UpstreamOptions
	logs *lockedBuffer
}

func newSigned(t testing.TB) *signed {
	s := sdkServer(func(s *mcp.Server) { nopTool(s, "get_it") })
	g := &signed{as: oauthtest.New(t), logs: new(lockedBuffer)}
	at := g.as.Guard(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	g.up = mcpbridge.Upstream{Name: "web", URL: at, CallTimeout: 20 * time.Second}
	g.o = mcpbridge.UpstreamOptions{Root: t.TempDir(), Version: "test", Log: slog.New(slog.NewTextHandler(g.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Credentials: credentials.New(credentials.Options{Backend: credentials.File, Dir: t.TempDir()})}
	return g
}

func (s *signed) open(t testing.TB) *guest {
	t.Helper()
	g := &guest{}
	g.run = pipeline.New(&g.reg)
	o := s.o
	o.Publish = g.reg.Replace
	g.ups = mcpbridge.OpenUpstreams(t.Context(), []mcpbridge.Upstream{s.up}, o)
	t.Cleanup(func() { g.ups.Close() })
	g.ups.Wait(t.Context())
	return g
}

func (s *signed) login(t testing.TB) (*mcpbridge.LoginReport, error) {
	return mcpbridge.Login(t.Context(), s.up, s.o, mcpbridge.LoginOptions{Show: oauthtest.Browse, Timeout: time.Minute})
}

func (s *signed) mustLogin(t testing.TB) *mcpbridge.LoginReport {
	t.Helper()
	r, err := s.login(t)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// A server that asks for a login is signed in to without any key, whoever runs
// notices, and the login outlives the process and its tokens.
func TestLogin(t *testing.T) {
	s := newSigned(t)
	g := s.open(t)
	if st := g.status(t); st.State != mcpbridge.NeedsLogin || !strings.Contains(st.Error, "run helve login web") {
		t.Fatalf("%+v", st)
	}
	if logins, _, _ := s.as.Counts(); logins != 0 {
		t.Error("somebody was signed in by surprise")
	}
	r := s.mustLogin(t)
	if r.Tools != 1 || !r.Renews || r.Issuer != s.as.URL || !slices.Contains(r.Scopes, "read") || !slices.Contains(r.Scopes, "offline_access") {
		t.Errorf("%+v", r)
	}
	eventually(t, "the one that runs notices", func() bool { return g.status(t).State == mcpbridge.Started })
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	for range 2 { // the second time with a rotated refresh token
		s.as.Expire()
		g.ok(t, "mcp.web.get_it", `{}`, "get_it")
		g = s.open(t)
		g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	}
	logins, renewals, registered := s.as.Counts()
	if logins != 1 || renewals != 2 || registered != 1 {
		t.Errorf("%d logins, %d renewals, %d registrations", logins, renewals, registered)
	}
	s.mustLogin(t)
	if _, _, registered := s.as.Counts(); registered != 1 {
		t.Errorf("the second login has registered another client: %d", registered)
	}
	for _, token := range s.as.Tokens() {
		if strings.Contains(s.logs.String(), token) {
			t.Error("a token is in the log")
		}
	}
}

// Tokens that are known to have expired are renewed before they are sent.
func TestExpiry(t *testing.T) {
	s := newSigned(t)
	s.as.Lifetime = 1
	s.mustLogin(t)
	g := s.open(t)
	eventually(t, "the token expires", func() bool {
		g.ok(t, "mcp.web.get_it", `{}`, "get_it")
		_, renewals, _ := s.as.Counts()
		return renewals > 0
	})
}

// However many need it, in however many processes, one renewal is made: a
// refresh token that is used twice ends the login.
func TestOneRenewal(t *testing.T) {
	s := newSigned(t)
	s.mustLogin(t)
	var guests []*guest
	for range 3 {
		guests = append(guests, s.open(t))
	}
	s.as.Expire()
	asked, release := s.as.Hold()
	var all sync.WaitGroup
	for _, g := range guests {
		for range 4 {
			all.Go(func() {
				if res := g.call(t, "mcp.web.get_it", `{}`); res.Err != nil {
					t.Error(res.Err)
				}
			})
		}
	}
	<-asked
	release()
	all.Wait()
	if _, renewals, _ := s.as.Counts(); renewals != 1 {
		t.Errorf("%d renewals", renewals)
	}
}

// A login that was revoked is needed again, which is told without what was sent.
func TestRevoked(t *testing.T) {
	s := newSigned(t)
	s.as.Echo = true
	s.mustLogin(t)
	g := s.open(t)
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	tokens := s.as.Tokens()
	s.as.Revoke()
	res := g.call(t, "mcp.web.get_it", `{}`)
	if res.Err == nil || !strings.Contains(res.Err.Message, "run helve login web") || !strings.Contains(res.Err.Message, "no such refresh token") {
		t.Fatalf("%+v", res.Err)
	}
	again := s.open(t)
	st := again.status(t)
	if st.State != mcpbridge.NeedsLogin || !strings.Contains(st.Error, "the login has ended") {
		t.Errorf("%+v", st)
	}
	for _, token := range tokens {
		if strings.Contains(res.Err.Message+st.Error+s.logs.String(), token) {
			t.Error("a token is told")
		}
	}
	s.mustLogin(t)
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
	eventually(t, "the other notices", func() bool { return again.status(t).State == mcpbridge.Started })
}

// A call that needs more than was granted says so, and the next login asks for
// it and for what there was.
func TestStepUp(t *testing.T) {
	s := newSigned(t)
	s.as.Calls = []string{"read", "write"}
	s.mustLogin(t)
	g := s.open(t)
	res := g.call(t, "mcp.web.get_it", `{}`)
	if res.Err == nil || !strings.Contains(res.Err.Message, "lacks what the call asks for: read write") || !strings.Contains(res.Err.Message, "helve login web") {
		t.Fatalf("%+v", res.Err)
	}
	if r := s.mustLogin(t); !slices.Contains(r.Scopes, "write") || !slices.Contains(r.Scopes, "offline_access") {
		t.Errorf("%+v", r)
	}
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
}

func TestLogout(t *testing.T) {
	s := newSigned(t)
	s.mustLogin(t)
	g := s.open(t)
	was, err := mcpbridge.Logout(t.Context(), s.up, s.o)
	if !was || err != nil || len(s.as.Tokens()) != 0 {
		t.Errorf("%v, %v, %d tokens are valid", was, err, len(s.as.Tokens()))
	}
	if res := g.call(t, "mcp.web.get_it", `{}`); res.Err == nil || !strings.Contains(res.Err.Message, "helve login web") {
		t.Errorf("%+v", res)
	}
	if was, err := mcpbridge.Logout(t.Context(), s.up, s.o); was || err != nil {
		t.Errorf("the second time: %v, %v", was, err)
	}
}

// One login is made at a time; who comes second shares its outcome.
func TestOneLogin(t *testing.T) {
	s := newSigned(t)
	shown, goOn, waits := make(chan string, 1), make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_, err := mcpbridge.Login(t.Context(), s.up, s.o, mcpbridge.LoginOptions{Show: func(address string) error {
			shown <- address
			<-goOn
			return oauthtest.Browse(address)
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-shown
	all.Go(func() {
		r, err := mcpbridge.Login(t.Context(), s.up, s.o, mcpbridge.LoginOptions{Show: oauthtest.Browse, Waiting: func() { close(waits) }})
		if err != nil || !r.Already {
			t.Errorf("the second login: %+v, %v", r, err)
		}
	})
	<-waits
	close(goOn)
	all.Wait()
	if logins, _, _ := s.as.Counts(); logins != 1 {
		t.Errorf("%d logins", logins)
	}
}

// What is wrong with an authorization server, or with the answer in its name,
// ends the login before a code or a token is given away.
func TestHostileLogin(t *testing.T) {
	meta := func(key string, value any) func(*signed) {
		return func(s *signed) { s.as.Change = func(m map[string]any) { m[key] = value } }
	}
	back := func(key, value string) func(*signed) {
		return func(s *signed) { s.as.Answer = func(q url.Values) { q.Set(key, value) } }
	}
	for name, test := range map[string]struct {
		how  func(*signed)
		want string
	}{
		"other issuer":      {meta("issuer", "https://elsewhere.example"), "issuer"},
		"plain token":       {meta("token_endpoint", "http://as.example/token"), "is not https"},
		"plain codes":       {meta("authorization_endpoint", "http://as.example/authorize"), "is not https"},
		"private token":     {meta("token_endpoint", "https://10.0.0.1/token"), "private address"},
		"local token":       {meta("token_endpoint", "https://vault.internal/token"), "local name"},
		"private revoking":  {meta("revocation_endpoint", "https://169.254.169.254/x"), "revocation_endpoint"},
		"script":            {meta("authorization_endpoint", "javascript:alert(1)"), "scheme"},
		"no PKCE":           {meta("code_challenge_methods_supported", []string{}), "PKCE"},
		"weak PKCE":         {meta("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		"no registration":   {meta("registration_endpoint", ""), "oauth: {client_id"},
		"iss of another":    {back("iss", "https://elsewhere.example"), "was asked"},
		"no iss":            {back("iss", ""), "always says so"},
		"no code":           {back("code", ""), "without a code"},
		"refused":           {back("error", "access_denied"), "access_denied"},
		"a code of another": {back("code", "guessed"), "no such code"},
		"other resource":    {func(s *signed) { s.as.Resource = "https://elsewhere.example/mcp" }, "its tokens would be for another"},
		"longer resource":   {func(s *signed) { s.as.Resource = s.up.URL + "/more" }, "its tokens would be for another"},
		"client of another": {func(s *signed) {
			s.up.OAuth = mcpbridge.OAuth{ClientID: "me", ClientSecret: "hunter2", Issuer: "https://elsewhere.example"}
		}, "oauth.issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSigned(t)
			test.how(s)
			_, err := s.login(t)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v; want an error with %q", err, test.want)
			}
			if logins, _, _ := s.as.Counts(); logins != 0 || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%d logins; %v", logins, err)
			}
		})
	}
}

// An answer with another state does not end the login.
func TestStrayAnswer(t *testing.T) {
	s := newSigned(t)
	_, err := mcpbridge.Login(t.Context(), s.up, s.o, mcpbridge.LoginOptions{Show: func(address string) error {
		u, _ := url.Parse(address)
		stray := u.Query().Get("redirect_uri") + "?code=theirs&state=guessed&error=no"
		if err := oauthtest.Browse(stray); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("the stray answer: %v", err)
		}
		return oauthtest.Browse(address)
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestLoginTimeout(t *testing.T) {
	s := newSigned(t)
	_, err := mcpbridge.Login(t.Context(), s.up, s.o, mcpbridge.LoginOptions{Show: func(string) error { return nil }, Timeout: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "nobody signed in within 1ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err = mcpbridge.Login(ctx, s.up, s.o, mcpbridge.LoginOptions{Show: func(string) error { cancel(); return nil }}); err == nil {
		t.Error("a login that was given up succeeds")
	}
}

// Servers to which nobody can sign in say why.
func TestNoLogin(t *testing.T) {
	s := newSigned(t)
	for want, change := range map[string]func(*mcpbridge.Upstream){
		"is a program":         func(u *mcpbridge.Upstream) { u.URL, u.Command = "", "x" },
		"reached by http":      func(u *mcpbridge.Upstream) { u.URL = "http://mcp.example.com/mcp" },
		"Authorization header": func(u *mcpbridge.Upstream) { u.Headers = map[string]string{"authorization": "Bearer x"} },
		"says oauth: false":    func(u *mcpbridge.Upstream) { u.OAuth.Off = true },
	} {
		up := s.up
		change(&up)
		if _, err := mcpbridge.Login(t.Context(), up, s.o, mcpbridge.LoginOptions{Show: oauthtest.Browse}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// The operator's own header is sent as it is, and no token in its place.
func TestOwnAuthorization(t *testing.T) {
	s := newSigned(t)
	s.mustLogin(t)
	s.up.Headers = map[string]string{"Authorization": "Bearer mine"}
	if st := s.open(t).status(t); st.State != mcpbridge.Failed {
		t.Errorf("%+v", st)
	}
}

// A store that cannot be read stops those servers alone that want a login.
func TestBrokenStore(t *testing.T) {
	s := newSigned(t)
	s.mustLogin(t)
	s.o.Credentials = credentials.New(credentials.Options{Key: "none", Dir: t.TempDir()})
	if st := s.open(t).status(t); st.State != mcpbridge.NeedsLogin || !strings.Contains(st.Error, "not an age identity") {
		t.Errorf("%+v", st)
	}
	s.up = serveHTTP(t, sdkServer(func(s *mcp.Server) { nopTool(s, "get_it") }), false)
	g := s.open(t)
	g.ok(t, "mcp.web.get_it", `{}`, "get_it")
}

// Secrets in a server's address are not told.
func TestHidden(t *testing.T) {
	const secret = "s3cr3t/with+signs"
	var logs bytes.Buffer
	up := mcpbridge.Upstream{Name: "web", URL: "http://127.0.0.1:1/mcp?key=" + secret, Hidden: []string{secret}}
	ups := mcpbridge.OpenUpstreams(t.Context(), []mcpbridge.Upstream{up}, mcpbridge.UpstreamOptions{Log: slog.New(slog.NewTextHandler(&logs, nil)), Root: t.TempDir()})
	ups.Wait(t.Context())
	st := ups.Status()[0]
	ups.Close()
	if st.State != mcpbridge.Failed || strings.Contains(st.Error+logs.String(), "s3cr3t") || !strings.Contains(st.Error, "[redacted]") {
		t.Errorf("%+v, %s", st, logs.String())
	}
}
