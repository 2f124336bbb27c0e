package mcpbridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helve-ai/helve/credentials"
)

// LoginOptions say how a person signs in.
type LoginOptions struct {
	// Show shows the address at which to sign in, in a browser if that can be.
	Show func(address string) error
	// Waiting is told that another login to the server is under way, whose end
	// is waited for; nil: nobody is told.
	Waiting func()
	Timeout time.Duration // for the person; 0: DefaultLoginTimeout
}

// DefaultLoginTimeout is the Timeout of LoginOptions that state none.
const DefaultLoginTimeout = 5 * time.Minute

// A LoginReport says how a login ended.
type LoginReport struct {
	Server  string    `json:"server"`
	Issuer  string    `json:"issuer"`            // the authorization server
	Scopes  []string  `json:"scopes"`            // that were granted
	Expires time.Time `json:"expires,omitzero"`  // of the token; zero: not known
	Renews  bool      `json:"renews"`            // the token is renewed without another login
	Tools   int       `json:"tools"`             // that the server has
	Already bool      `json:"already,omitempty"` // somebody else signed in meanwhile
}

// Login signs a person in to a server over HTTP, and keeps what that gives in
// o.Credentials. One login to a server is made at a time, in whatever process;
// the others wait for its outcome. Whoever uses the server with the same store
// has the new token with the next request.
func Login(ctx context.Context, up Upstream, o UpstreamOptions, lo LoginOptions) (*LoginReport, error) {
	a, s, err := accountOf(up, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.running.Wait()
		a.close()
	}()
	switch {
	case a.o.Grant == ByClient:
		return nil, fmt.Errorf("the MCP server %s: nobody need sign in, the client does so itself when the server asks for it (oauth.grant)", up.Name)
	case a.o.Grant == ByAssertion:
		return nil, fmt.Errorf("the MCP server %s: nobody need sign in, the token in %s is presented when the server asks for it (oauth.assertion_file)", up.Name, a.o.AssertionFile)
	case a.o.Identity.TokenFile != "":
		return nil, fmt.Errorf("the MCP server %s: nobody need sign in, the ID token in %s is presented when the server asks for it (oauth.identity.token_file)", up.Name, a.o.Identity.TokenFile)
	}
	who := a
	if a.identity != nil {
		who = a.identity
	}
	began := time.Now()
	unlock, waited, err := who.turn(ctx, lo.Waiting)
	if err != nil {
		return nil, err
	}
	defer unlock()
	old, err := who.load()
	if err != nil {
		return nil, err
	}
	if waited && old.Made.After(began) && old.Access != "" {
		return a.report(ctx, s, true)
	}
	if who == a {
		err = a.signInTo(ctx, s, old, lo)
	} else {
		err = who.signInAt(ctx, old, lo)
	}
	if err != nil {
		return nil, err
	}
	return a.report(ctx, s, false)
}

// signInTo signs a person in to the server.
func (a *account) signInTo(ctx context.Context, s *upstream, old *grant, lo LoginOptions) error {
	asked, err := a.probe(ctx, s)
	if err != nil {
		return err
	}
	asked.metadata = orElse(asked.metadata, old.Metadata)
	r, err := a.discover(ctx, asked)
	if err != nil {
		return err
	}
	if !slices.Contains(r.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %s does not know PKCE with S256, without which codes can be stolen", r.Issuer)
	}
	return a.signIn(ctx, r, asked, old, lo)
}

func accountOf(up Upstream, o UpstreamOptions) (*account, *upstream, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := newUpstream(up, o)
	s.running, s.relay.news = new(sync.WaitGroup), new(news)
	switch err := up.check(); {
	case err != nil:
		return nil, nil, err
	case up.URL == "":
		return nil, nil, fmt.Errorf("the MCP server %s is a program that Helve runs: only servers with a URL have logins", up.Name)
	case o.Credentials == nil:
		return nil, nil, errors.New("there is no store for credentials")
	case s.full().account == nil:
		return nil, nil, fmt.Errorf("the MCP server %s has no login: the app file gives it an Authorization header, or says oauth: false", up.Name)
	case !secure(s.full().account.url):
		return nil, nil, fmt.Errorf("the MCP server %s is reached by http: tokens are sent over https only, except on this machine", up.Name)
	}
	return s.full().account, s, nil
}

// turn waits until nobody else signs in to the server.
func (a *account) turn(ctx context.Context, waiting func()) (unlock func(), waited bool, err error) {
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	unlock, err = a.store.Lock(soon, "login "+a.name)
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return unlock, false, err
	}
	if waiting != nil {
		waiting()
	}
	unlock, err = a.store.Lock(ctx, "login "+a.name)
	return unlock, true, err
}

// probe asks the server, without a token, what it wants of those who sign in.
func (a *account) probe(ctx context.Context, s *upstream) (challenge, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(), fmt.Errorf("the server did not answer within %s", s.startTimeout()))
	defer cancel()
	a.setProbing(true)
	defer a.setProbing(false)
	l, err := dial(ctx, s)
	if err == nil {
		defer l.stop()
		_, err = l.listTools(ctx) // some ask only those who want something
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked.status != 0 {
		return a.asked, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the server cannot be asked what it wants: %s", s.plain(err))
	}
	return challenge{}, err
}

func (a *account) setProbing(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probing = on
}

// signIn has the person sign in, and keeps the grant.
func (a *account) signIn(ctx context.Context, r *realm, asked challenge, old *grant, lo LoginOptions) error {
	b, err := a.listen(old, r.Issuer)
	if err != nil {
		return err
	}
	defer b.close()
	c, err := a.identify(ctx, r, old, b.address)
	if err != nil {
		return err
	}
	g := &grant{Server: a.address, Resource: r.resource, Issuer: r.Issuer, TokenURL: r.TokenEndpoint, RevokeURL: r.RevocationEndpoint,
		Client: c, Metadata: asked.metadata}
	var thumbprint string
	if r.bound {
		p, kept, err := newProof()
		if err != nil {
			return err
		}
		g.Key, thumbprint = kept, p.thumbprint()
	}
	nonce := ""
	if a.vouches {
		nonce = secret()
	}
	want := a.scopes(r, asked, old)
	verifier := secret()
	sum := sha256.Sum256([]byte(verifier))
	to, err := url.Parse(r.AuthorizationEndpoint)
	if err != nil {
		return err
	}
	q := to.Query()
	for key, value := range map[string]string{"response_type": "code", "client_id": c.ID, "redirect_uri": b.address, "state": b.state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
		"resource": r.resource, "scope": strings.Join(want, " "), "dpop_jkt": thumbprint, "nonce": nonce} {
		if value != "" {
			q.Set(key, value)
		}
	}
	to.RawQuery = q.Encode()
	code, err := b.code(ctx, to.String(), r, lo)
	if err != nil {
		return err
	}
	got, err := a.token(ctx, g, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {b.address},
		"code_verifier": {verifier}, "resource": {r.resource}})
	if err != nil {
		return fmt.Errorf("the authorization server %s gives no token: %w", r.Issuer, err)
	}
	if a.vouches {
		if err := checkID(got.ID, r.Issuer, c.ID, nonce); err != nil {
			return err
		}
	}
	got.fill(g, want)
	g.Made = time.Now()
	unlock, err := a.store.Lock(ctx, a.name)
	if err != nil {
		return err
	}
	defer unlock()
	return a.save(g)
}

// secret returns a text that nobody can guess, of 43 characters.
func secret() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// report tries the login, and says what it is good for.
func (a *account) report(ctx context.Context, s *upstream, already bool) (*LoginReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(), fmt.Errorf("the server did not answer within %s", s.startTimeout()))
	defer cancel()
	var tools int
	l, err := dial(ctx, s)
	if err == nil {
		defer l.stop()
		var all []json.RawMessage
		all, err = l.listTools(ctx)
		tools = len(all)
	}
	if need := a.needed(); need != nil && err != nil {
		err = need
	}
	if err != nil {
		return nil, fmt.Errorf("the login is kept, but the MCP server %s cannot be used with it: %s", s.Name, s.plain(err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.current()
	return &LoginReport{Server: s.Name, Issuer: g.Issuer, Scopes: union(g.Scopes, []string{}), Expires: g.Expires, Renews: g.Refresh != "", Tools: tools, Already: already}, nil
}

// Logout forgets the login to a server, and tells the authorization server if
// it takes notice of that. It reports whether there was one; if the
// authorization server could not be told, the login is forgotten all the same.
func Logout(ctx context.Context, up Upstream, o UpstreamOptions) (was bool, err error) {
	a, _, err := accountOf(up, o)
	if err != nil {
		return false, err
	}
	was, err = a.forgetAll(ctx)
	if a.identity != nil && a.o.Identity.TokenFile == "" {
		vouched, more := a.identity.forgetAll(ctx)
		was, err = was || vouched, errors.Join(err, more)
	}
	return was, err
}

// forgetAll forgets the login, and reports whether there was one.
func (a *account) forgetAll(ctx context.Context) (was bool, err error) {
	unlock, err := a.store.Lock(ctx, a.name)
	if err != nil {
		return false, err
	}
	defer unlock()
	g, err := loadGrant(a.store, a.name, a.address)
	if err != nil {
		return false, err
	}
	switch err := a.store.Delete(a.name); {
	case errors.Is(err, credentials.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return g.Access != "" || g.Refresh != "", a.revoke(ctx, g)
}

// revoke tells the authorization server that the tokens are not used any more
// (RFC 7009).
func (a *account) revoke(ctx context.Context, g *grant) error {
	token := orElse(g.Refresh, g.Access)
	if g.RevokeURL == "" || token == "" {
		return nil
	}
	r, err := a.form(ctx, g, g.RevokeURL, url.Values{"token": {token}})
	if err != nil {
		return err
	}
	resp, err := a.web().Do(r)
	if err != nil {
		return fmt.Errorf("signed out here, but %s could not be told: %w", g.Issuer, err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("signed out here, but %s answered %s", g.Issuer, resp.Status)
	}
	return nil
}

// A comeback is where the browser comes back after the login.
type comeback struct {
	address string
	state   string
	server  *http.Server
	answers chan url.Values
}

// listen waits for the browser on the port that the client was registered
// with, if it can be had, unless the operator names another.
func (a *account) listen(old *grant, issuer string) (*comeback, error) {
	port := a.o.RedirectPort
	if u, err := url.Parse(old.Client.Return); port == 0 && err == nil && old.Client.Kind == clientRegistered && old.Issuer == issuer {
		fmt.Sscan(u.Port(), &port)
	}
	at := func(port int) (net.Listener, error) { return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) }
	l, err := at(port)
	if err != nil && a.o.RedirectPort == 0 {
		l, err = at(0) // then the client is registered anew
	}
	if err != nil {
		return nil, fmt.Errorf("the port on which the browser comes back is taken (oauth.redirect_port): %w", err)
	}
	b := &comeback{address: "http://" + l.Addr().String() + "/callback", state: secret(), answers: make(chan url.Values, 1)}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go b.server.Serve(l) // until close
	return b, nil
}

func (b *comeback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for the page to be read
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		b.server.Close()
	}
}

// ServeHTTP takes the answer that belongs to this login. Whatever else comes
// does not end it.
func (b *comeback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.URL.Path != "/callback" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		http.Error(w, "This answer does not belong to the login that is under way.", http.StatusBadRequest)
		return
	}
	select {
	case b.answers <- q:
	default: // there is one already
	}
	text := "You are back at Helve. The terminal says how the login went on; this page can be closed."
	if e := q.Get("error"); e != "" {
		text = "The login was refused: " + e
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "<!doctype html><title>Helve</title><p>%s</p>", html.EscapeString(cut(text, 500)))
}

// code shows the person where to sign in, and returns the code that comes back.
func (b *comeback) code(ctx context.Context, address string, r *realm, lo LoginOptions) (string, error) {
	limit := cmp.Or(lo.Timeout, DefaultLoginTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("nobody signed in within %s; --timeout gives more time, and helve logout makes the next login register anew", limit))
	defer cancel()
	if err := lo.Show(address); err != nil {
		return "", err
	}
	var q url.Values
	select {
	case q = <-b.answers:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if err := checkIssuer(q.Get("iss"), r); err != nil {
		return "", err
	}
	if e := q.Get("error"); e != "" {
		return "", fmt.Errorf("the login was refused: %w", &oauthError{cut(printable(e), 100), cut(printable(q.Get("error_description")), 500)})
	}
	if q.Get("code") == "" {
		return "", errors.New("the browser came back without a code")
	}
	return q.Get("code"), nil
}

// checkIssuer makes sure that the answer is the one of the authorization
// server that was asked (RFC 9207): else a code would be given to another.
func checkIssuer(iss string, r *realm) error {
	switch {
	case iss == "" && r.AuthorizationResponseIssParameterSupported:
		return fmt.Errorf("the answer does not say that it is from %s, which always says so: it may be from another", r.Issuer)
	case iss != "" && iss != r.Issuer:
		return fmt.Errorf("the answer is from %s, and %s was asked", excerptOf(iss), r.Issuer)
	case iss != "" && !r.AuthorizationResponseIssParameterSupported:
		return fmt.Errorf("the answer says that it is from %s, which does not announce that it says so: it may be from another", r.Issuer)
	}
	return nil
}
