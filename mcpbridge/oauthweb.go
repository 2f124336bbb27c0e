package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/helve-ai/helve/egress"
)

const maxOAuthBody = 1 << 20 // bytes of a document or an answer

// Requests to authorization servers go to addresses that the server named, so
// they pass the gates of egress. Two things are opened: the host of the server
// itself, which the operator named, and for a server on this machine the others
// on it.

// policy returns what may be reached of the place u.
func (a *account) policy(u *url.URL) egress.Policy {
	p := egress.Policy{AllowHosts: append([]string{hostPort(a.url)}, a.hosts...), MaxBody: maxOAuthBody}
	if isLoopback(a.url.Hostname()) && isLoopback(u.Hostname()) {
		p.AllowHosts = append(p.AllowHosts, hostPort(u))
	}
	return p
}

// hostPort returns the host and the port of an http or https URL.
func hostPort(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// admit reads an address that was told, and refuses one that no secret may be
// sent to.
func (a *account) admit(what, address string) (*url.URL, error) {
	u, err := egress.ParseURL(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	case !secure(u):
		return nil, fmt.Errorf("%s: %s is not https", what, address)
	}
	if _, err := a.policy(u).CheckURL(address); err != nil {
		return nil, fmt.Errorf("%s: %w; if it is right, the operator can allow it by security.allow_hosts", what, err)
	}
	return u, nil
}

// web returns the client for requests to authorization servers, which follows
// redirects only where they read documents.
func (a *account) web() *http.Client {
	return &http.Client{Timeout: renewTime, Transport: gate{a}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// A gate lets those requests pass that may be made.
type gate struct{ a *account }

// RoundTrip sends a request to where it may go.
func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := g.a.admit("the address", r.URL.String())
	if err != nil {
		return nil, err
	}
	c := egress.Client(g.a.policy(u))
	resp, err := c.Transport.RoundTrip(r)
	if err != nil {
		return nil, egress.AsError(err)
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxOAuthBody, done: c.CloseIdleConnections}
	return resp, nil
}

// A realm is where to sign in to a server.
type realm struct {
	resource string
	scopes   []string // that the server's metadata names
	bound    bool     // tokens are to be bound to a key
	*issuer
}

// An issuer is what an authorization server says of itself.
type issuer struct {
	oauthex.AuthServerMeta
	// ProofAlgs are those by which it checks proofs; none if it binds no tokens.
	ProofAlgs []string `json:"dpop_signing_alg_values_supported"`
}

// errNoLogin says that a server tells nothing of logins.
var errNoLogin = errors.New("the server does not say where to sign in: it has no metadata of a protected resource, nor of an authorization server")

// discover finds out where to sign in (RFC 9728, RFC 8414). A server without
// metadata may be its own authorization server, as in revision 2025-03-26.
func (a *account) discover(ctx context.Context, asked challenge) (*realm, error) {
	prm, err := a.resource(ctx, asked.metadata)
	if err != nil {
		return nil, err
	}
	old := prm == nil
	if old {
		root := url.URL{Scheme: a.url.Scheme, Host: a.url.Host}
		prm = &oauthex.ProtectedResourceMetadata{Resource: a.canonical(), AuthorizationServers: []string{root.String()}}
	}
	at := prm.AuthorizationServers[0]
	if slices.Contains(prm.AuthorizationServers, a.o.Issuer) {
		at = a.o.Issuer
	}
	if a.o.Issuer != "" && !sameIssuer(a.o.Issuer, at) {
		return nil, fmt.Errorf("the server signs in at %s, and the client is one of %s (oauth.issuer): it is not used elsewhere", at, a.o.Issuer)
	}
	meta, err := a.issuerAt(ctx, at)
	switch {
	case err != nil:
		return nil, err
	case meta == nil && !old:
		return nil, fmt.Errorf("the authorization server %s has no metadata", at)
	case meta == nil && asked.status != http.StatusUnauthorized:
		return nil, errNoLogin
	case meta == nil:
		meta = &issuer{AuthServerMeta: oauthex.AuthServerMeta{Issuer: at, AuthorizationEndpoint: at + "/authorize", TokenEndpoint: at + "/token",
			RegistrationEndpoint: at + "/register", CodeChallengeMethodsSupported: []string{"S256"}}}
	}
	bound, err := binds(meta, prm, asked)
	if err != nil {
		return nil, err
	}
	return &realm{prm.Resource, prm.ScopesSupported, bound, meta}, nil
}

// binds reports whether tokens are to be bound to a key (DPoP, RFC 9449): where
// both know that, since a server that does not would take no such token.
func binds(as *issuer, prm *oauthex.ProtectedResourceMetadata, asked challenge) (bool, error) {
	knows := asked.bound || slices.Contains(prm.DPOPSigningAlgValuesSupported, proofAlgorithm)
	switch {
	case slices.Contains(as.ProofAlgs, proofAlgorithm):
		return knows || prm.DPOPBoundAccessTokensRequired, nil
	case prm.DPOPBoundAccessTokensRequired && len(as.ProofAlgs) > 0:
		return false, fmt.Errorf("the server takes only tokens that are bound to a key (DPoP), and the authorization server %s binds none by %s", as.Issuer, proofAlgorithm)
	}
	return prm.DPOPBoundAccessTokensRequired, nil // one that announces nothing may do it all the same
}

func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// issuerAt reads what an authorization server says of itself (RFC 8414, OpenID
// Connect); nil: nothing.
func (a *account) issuerAt(ctx context.Context, at string) (*issuer, error) {
	u, err := a.admit("the authorization server", at)
	if err != nil {
		return nil, err
	}
	below := strings.Trim(u.Path, "/")
	places := []string{"/.well-known/oauth-authorization-server/" + below, "/.well-known/openid-configuration/" + below}
	if below != "" {
		places = append(places, "/"+below+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		from := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(place, "/")}
		var meta issuer
		there, err := a.document(ctx, from.String(), &meta)
		if err == nil && there && !sameIssuer(meta.Issuer, at) {
			err = fmt.Errorf("its metadata is that of another issuer, %s", excerptOf(meta.Issuer))
		}
		if err != nil {
			return nil, fmt.Errorf("the authorization server %s: %w", at, err)
		}
		if there {
			return &meta, a.admitAll(&meta)
		}
	}
	return nil, nil
}

// admitAll refuses an authorization server with an address to which no secret
// may be sent.
func (a *account) admitAll(meta *issuer) error {
	for what, address := range map[string]string{"authorization_endpoint": meta.AuthorizationEndpoint, "token_endpoint": meta.TokenEndpoint,
		"registration_endpoint": meta.RegistrationEndpoint, "revocation_endpoint": meta.RevocationEndpoint} {
		if address == "" && (what != "token_endpoint" && what != "authorization_endpoint" || what == "authorization_endpoint" && a.o.Grant != ByPerson) {
			continue
		}
		if _, err := a.admit("the authorization server's "+what, address); err != nil {
			return err
		}
	}
	return nil
}

// canonical returns the server's address as tokens are asked for it.
func (a *account) canonical() string {
	u := *a.url
	u.Fragment, u.RawQuery, u.User = "", "", nil
	return u.String()
}

// resource returns the server's metadata, nil if it has none. Where the server
// names an address, that one holds.
func (a *account) resource(ctx context.Context, told string) (*oauthex.ProtectedResourceMetadata, error) {
	at := func(p string) string {
		u := url.URL{Scheme: a.url.Scheme, Host: a.url.Host, Path: path.Join("/.well-known/oauth-protected-resource", p)}
		return u.String()
	}
	places := []string{at(a.url.Path), at("")}
	if told != "" {
		places = append([]string{told}, places...)
	}
	for _, place := range slices.Compact(places) {
		prm := new(oauthex.ProtectedResourceMetadata)
		switch there, err := a.document(ctx, place, prm); {
		case err != nil:
			return nil, fmt.Errorf("the server's metadata at %s: %w", place, err)
		case !there:
			continue
		case !covers(prm.Resource, a.url):
			return nil, fmt.Errorf("the server's metadata at %s is that of %s, and the server is %s: its tokens would be for another", place, excerptOf(prm.Resource), a.canonical())
		case len(prm.AuthorizationServers) == 0:
			return nil, fmt.Errorf("the server's metadata at %s names no authorization server", place)
		}
		return prm, nil
	}
	return nil, nil
}

func excerptOf(s string) string { return fmt.Sprintf("%q", cut(printable(s), 200)) }

// covers reports whether the resource, as metadata names it, is the server or
// a folder above it.
func covers(resource string, server *url.URL) bool {
	u, err := egress.ParseURL(resource)
	if err != nil || u.Scheme != server.Scheme || !strings.EqualFold(hostPort(u), hostPort(server)) || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	above, below := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(server.Path, "/")
	return above == below || strings.HasPrefix(below, above+"/")
}

// document reads metadata into v, and reports whether there is any.
func (a *account) document(ctx context.Context, address string, v any) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := a.web().Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return false, nil
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("the server answered %s", resp.Status)
	case kind != "application/json":
		return false, nil // a page for people, such as the front page of an old server
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return false, fmt.Errorf("it is not JSON: %w", err)
	}
	return true, nil
}

// identify returns who we are to the authorization server: the operator's
// client, the one that its document describes, the one registered earlier, or
// a new one.
func (a *account) identify(ctx context.Context, r *realm, old *grant, comeback string) (client, error) {
	methods := r.TokenEndpointAuthMethodsSupported
	switch {
	case a.o.ClientID != "":
		c := client{ID: a.o.ClientID, Secret: a.o.ClientSecret, Method: "none", Kind: clientGiven, Return: comeback}
		if c.Secret == "" && a.o.PrivateKey == "" {
			return c, nil
		}
		if old.Issuer != "" && old.Client.Kind == clientGiven && old.Issuer != r.Issuer {
			return c, fmt.Errorf("the server signs in at %s now, and the client was one of %s: if that is right, sign out first (helve logout %s)", r.Issuer, old.Issuer, a.server)
		}
		if a.o.PrivateKey != "" {
			return a.keyed(c, r)
		}
		if c.Method = "client_secret_basic"; slices.Contains(methods, "client_secret_post") && !slices.Contains(methods, c.Method) {
			c.Method = "client_secret_post"
		}
		return c, nil
	case a.o.ClientMetadataURL != "" && r.ClientIDMetadataDocumentSupported:
		c := client{ID: a.o.ClientMetadataURL, Method: "none", Kind: clientDocument, Return: comeback}
		if a.o.PrivateKey != "" {
			return a.keyed(c, r)
		}
		return c, nil
	case a.o.Grant == ByAssertion:
		return client{Method: "none", Kind: clientGiven}, nil // the assertion says who it is
	case old.Issuer == r.Issuer && old.Client.Kind == clientRegistered && old.Client.Return == comeback && (old.Client.Expires.IsZero() || time.Now().Before(old.Client.Expires)):
		return old.Client, nil
	case r.RegistrationEndpoint == "":
		return client{}, fmt.Errorf("the authorization server %s lets no client register itself: write oauth: {client_id: …} of one that is registered there", r.Issuer)
	}
	method := "none"
	if len(methods) > 0 && !slices.Contains(methods, method) {
		i := slices.IndexFunc(methods, func(m string) bool { return m == "client_secret_basic" || m == "client_secret_post" })
		if i < 0 {
			return client{}, fmt.Errorf("the authorization server %s knows its clients by %s only, which is not supported", r.Issuer, strings.Join(methods, ", "))
		}
		method = methods[i]
	}
	return a.register(ctx, r, method, comeback)
}

// keyed returns the client as one that proves itself by its key.
func (a *account) keyed(c client, r *realm) (client, error) {
	key, err := readSigner(a.o.PrivateKey, a.o.KeyID)
	if err != nil {
		return c, fmt.Errorf("oauth.private_key: %w", err)
	}
	if methods := r.TokenEndpointAuthMethodsSupported; len(methods) > 0 && !slices.Contains(methods, "private_key_jwt") {
		return c, fmt.Errorf("the authorization server %s knows its clients by %s, and not by a key (oauth.private_key)", r.Issuer, cut(printable(strings.Join(methods, ", ")), 200))
	}
	if c.Alg, err = key.choose(r.TokenEndpointAuthSigningAlgValuesSupported); err != nil {
		return c, fmt.Errorf("the authorization server %s: oauth.private_key: %w", r.Issuer, err)
	}
	c.Secret, c.Method = "", "private_key_jwt"
	return c, nil
}

// register registers a new client (RFC 7591).
func (a *account) register(ctx context.Context, r *realm, method, comeback string) (client, error) {
	got, err := oauthex.RegisterClient(ctx, r.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "Helve", RedirectURIs: []string{comeback}, ApplicationType: "native", TokenEndpointAuthMethod: method,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, a.web())
	if err != nil {
		text := printable(err.Error())
		if strings.Contains(text, "successful") { // what cannot be read may hold the secret
			text = "its answer cannot be read"
		}
		return client{}, fmt.Errorf("the authorization server %s does not register a client: %s", r.Issuer, cut(text, 500))
	}
	c := client{ID: got.ClientID, Secret: got.ClientSecret, Method: got.TokenEndpointAuthMethod, Kind: clientRegistered, Return: comeback}
	if !got.ClientSecretExpiresAt.IsZero() && got.ClientSecretExpiresAt.Unix() > 0 {
		c.Expires = got.ClientSecretExpiresAt
	}
	switch c.Method {
	case "client_secret_basic", "client_secret_post", "none":
	case "":
		c.Method = method
	default:
		return client{}, fmt.Errorf("the authorization server %s wants the client to prove itself by %s, which is not supported", r.Issuer, excerptOf(c.Method))
	}
	return c, nil
}

// An oauthError is what an authorization server answers instead of a token.
type oauthError struct{ code, text string }

// Error says what went wrong, in the server's words.
func (e *oauthError) Error() string {
	if e.text == "" {
		return e.code
	}
	return e.code + " (" + e.text + ")"
}

// final reports whether asking again is in vain.
func (e *oauthError) final() bool {
	return e.code == "invalid_grant" || e.code == "invalid_client" || e.code == "unauthorized_client"
}

// A tokens is an authorization server's answer.
type tokens struct {
	Access  string  `json:"access_token"`
	Type    string  `json:"token_type"`
	Expires float64 `json:"expires_in"` // seconds; 0: not told
	Refresh string  `json:"refresh_token"`
	ID      string  `json:"id_token"`
	Issued  string  `json:"issued_token_type"` // of an exchange
	Scope   *string `json:"scope"`

	Code string `json:"error"`
	Text string `json:"error_description"`
}

// fill puts the tokens into a grant; requested are the scopes that were asked
// for, nil on a renewal.
func (t *tokens) fill(g *grant, requested []string) {
	g.Access, g.Expires, g.Ended, g.Bound = t.Access, time.Time{}, "", strings.EqualFold(t.Type, "dpop")
	g.ID = orElse(t.ID, g.ID)
	if t.Refresh != "" {
		g.Refresh = t.Refresh
	}
	if t.Expires > 0 {
		life := time.Duration(min(t.Expires, 10*365*24*3600) * float64(time.Second))
		g.Expires = time.Now().Add(life - min(life/10, 30*time.Second)) // the answer took its time, and so will the request
	}
	switch {
	case t.Scope != nil && *t.Scope != "":
		g.Scopes = strings.Fields(*t.Scope)
	case requested != nil:
		g.Scopes = requested
	}
}

// token asks the authorization server of the grant for tokens that the server
// is to take.
func (a *account) token(ctx context.Context, g *grant, form url.Values) (*tokens, error) {
	t, err := a.ask(ctx, g, form)
	switch {
	case err != nil:
		return nil, err
	case strings.EqualFold(orElse(t.Type, "bearer"), "bearer"), strings.EqualFold(t.Type, "dpop") && g.Key != "":
		return t, nil
	}
	return nil, fmt.Errorf("%s answered with a token of the type %s, which is not supported", g.TokenURL, excerptOf(t.Type))
}

// ask makes a request for tokens, once more if it lacked what the authorization
// server gives to be repeated. No error shows what was sent.
func (a *account) ask(ctx context.Context, g *grant, form url.Values) (*tokens, error) {
	hidden := append(g.secrets(), form.Get("code"), form.Get("code_verifier"), form.Get("assertion"), form.Get("subject_token"))
	for again := true; ; again = false {
		r, err := a.form(ctx, g, g.TokenURL, form)
		if err != nil {
			return nil, err
		}
		resp, err := a.web().Do(r)
		if err != nil {
			return nil, err
		}
		news := a.nonces.note(&a.nonces.issuer, resp)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		var t tokens
		bad := json.Unmarshal(body, &t)
		switch {
		case bad == nil && t.Code == "use_dpop_nonce" && g.Key != "" && news && again:
			continue
		case bad == nil && t.Code != "":
			return nil, &oauthError{hide(cut(printable(t.Code), 100), hidden), hide(cut(printable(t.Text), 500), hidden)}
		case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
			return nil, fmt.Errorf("%s answered %s", g.TokenURL, resp.Status)
		case bad != nil:
			return nil, fmt.Errorf("%s answered what cannot be read", g.TokenURL)
		case t.Access == "" || strings.ContainsFunc(t.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("%s answered without a token that can be used", g.TokenURL)
		}
		return &t, nil
	}
}

// form returns a request to the grant's authorization server, with what proves
// that we are its client.
func (a *account) form(ctx context.Context, g *grant, to string, what url.Values) (*http.Request, error) {
	form := maps.Clone(what)
	if form.Get("resource") == "" {
		form.Del("resource")
	}
	if g.Client.Method != "client_secret_basic" && g.Client.ID != "" {
		form.Set("client_id", g.Client.ID)
	}
	switch g.Client.Method {
	case "client_secret_post":
		form.Set("client_secret", g.Client.Secret)
	case "private_key_jwt":
		key, err := readSigner(a.o.PrivateKey, a.o.KeyID)
		if err != nil {
			return nil, fmt.Errorf("oauth.private_key: %w", err)
		}
		text, err := key.assertion(g.Client.Alg, g.Client.ID, g.Issuer)
		if err != nil {
			return nil, fmt.Errorf("oauth.private_key: %w", err)
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", text)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if g.Client.Method == "client_secret_basic" {
		r.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret)) // RFC 6749, section 2.3.1
	}
	if p, err := a.proof(g); err != nil {
		return nil, err
	} else if p != nil {
		text, err := p.of(http.MethodPost, to, "", a.nonces.get(&a.nonces.issuer))
		if err != nil {
			return nil, err
		}
		r.Header.Set("DPoP", text)
	}
	return r, nil
}

// hide takes secrets out of a text.
// Redacted stands in place of secrets.
const Redacted = "[redacted]"

func hide(text string, secrets []string) string {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			text = strings.ReplaceAll(text, form, Redacted)
		}
	}
	return text
}

// scopes returns what to ask for: what the operator says, else what the server
// asked for, else what it supports; with what is there already, and what a
// call was refused for.
func (a *account) scopes(r *realm, asked challenge, old *grant) []string {
	want := a.o.Scopes
	if len(want) == 0 {
		want = asked.scopes
	}
	if len(want) == 0 {
		want = r.scopes
	}
	if old.Issuer == r.Issuer {
		want = union(union(old.Scopes, want), old.Wanted)
	}
	if slices.Contains(r.ScopesSupported, "offline_access") && a.o.Grant == ByPerson {
		want = union(want, []string{"offline_access"})
	}
	return want
}
