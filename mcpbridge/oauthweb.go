package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
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
	if err == nil && !secure(u) {
		err = fmt.Errorf("%s is not https", address)
	}
	if err == nil {
		_, err = a.policy(u).CheckURL(address)
	}
	if err != nil {
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
	*oauthex.AuthServerMeta
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
	issuer := prm.AuthorizationServers[0]
	if slices.Contains(prm.AuthorizationServers, a.o.Issuer) {
		issuer = a.o.Issuer
	}
	switch {
	case a.o.Issuer != "" && strings.TrimSuffix(a.o.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
		return nil, fmt.Errorf("the server signs in at %s, and the client is one of %s (oauth.issuer): it is not used elsewhere", issuer, a.o.Issuer)
	}
	if _, err := a.admit("the authorization server", issuer); err != nil {
		return nil, err
	}
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, a.web())
	switch {
	case err != nil:
		return nil, fmt.Errorf("the authorization server %s: %s", issuer, printable(err.Error()))
	case meta == nil && !old:
		return nil, fmt.Errorf("the authorization server %s has no metadata", issuer)
	case meta == nil && asked.status != http.StatusUnauthorized:
		return nil, errNoLogin
	case meta == nil:
		meta = &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register"}
	case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
		return nil, fmt.Errorf("the authorization server %s does not know PKCE with S256, without which codes can be stolen", issuer)
	}
	for what, address := range map[string]string{"authorization_endpoint": meta.AuthorizationEndpoint, "token_endpoint": meta.TokenEndpoint,
		"registration_endpoint": meta.RegistrationEndpoint, "revocation_endpoint": meta.RevocationEndpoint} {
		if address == "" && strings.HasPrefix(what, "re") {
			continue
		}
		if _, err := a.admit("the authorization server's "+what, address); err != nil {
			return nil, err
		}
	}
	return &realm{prm.Resource, prm.ScopesSupported, meta}, nil
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
		prm, err := a.fetch(ctx, place)
		if err != nil {
			return nil, fmt.Errorf("the server's metadata at %s: %w", place, err)
		}
		if prm == nil {
			continue
		}
		switch {
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

// fetch reads metadata; nil: there is none.
func (a *account) fetch(ctx context.Context, address string) (*oauthex.ProtectedResourceMetadata, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := a.web().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	case kind != "application/json":
		return nil, nil // a page for people, such as the front page of an old server
	}
	var prm oauthex.ProtectedResourceMetadata
	if err := json.NewDecoder(resp.Body).Decode(&prm); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return &prm, nil
}

// identify returns who we are to the authorization server: the operator's
// client, the one that its document describes, the one registered earlier, or
// a new one.
func (a *account) identify(ctx context.Context, r *realm, old *grant, comeback string) (client, error) {
	methods := r.TokenEndpointAuthMethodsSupported
	switch {
	case a.o.ClientID != "":
		c := client{ID: a.o.ClientID, Secret: a.o.ClientSecret, Method: "none", Kind: clientGiven, Return: comeback}
		if c.Secret == "" {
			return c, nil
		}
		if old.Issuer != "" && old.Client.Kind == clientGiven && old.Issuer != r.Issuer {
			return c, fmt.Errorf("the server signs in at %s now, and the client was one of %s: if that is right, sign out first (helve logout %s)", r.Issuer, old.Issuer, a.server)
		}
		if c.Method = "client_secret_basic"; slices.Contains(methods, "client_secret_post") && !slices.Contains(methods, c.Method) {
			c.Method = "client_secret_post"
		}
		return c, nil
	case a.o.ClientMetadataURL != "" && r.ClientIDMetadataDocumentSupported:
		return client{ID: a.o.ClientMetadataURL, Method: "none", Kind: clientDocument, Return: comeback}, nil
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
	Scope   *string `json:"scope"`

	Code string `json:"error"`
	Text string `json:"error_description"`
}

// fill puts the tokens into a grant; requested are the scopes that were asked
// for, nil on a renewal.
func (t *tokens) fill(g *grant, requested []string) {
	g.Access, g.Expires, g.Ended = t.Access, time.Time{}, ""
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

// token asks the authorization server of the grant for tokens. No error shows
// what was sent.
func (a *account) token(ctx context.Context, g *grant, form url.Values) (*tokens, error) {
	hidden := append(g.secrets(), form.Get("code"), form.Get("code_verifier"))
	if form.Get("resource") == "" {
		form.Del("resource")
	}
	if g.Client.Method != "client_secret_basic" {
		form.Set("client_id", g.Client.ID)
	}
	if g.Client.Method == "client_secret_post" {
		form.Set("client_secret", g.Client.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if g.Client.Method == "client_secret_basic" {
		r.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret)) // RFC 6749, section 2.3.1
	}
	resp, err := a.web().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var t tokens
	bad := json.Unmarshal(body, &t)
	switch {
	case bad == nil && t.Code != "":
		return nil, &oauthError{hide(cut(printable(t.Code), 100), hidden), hide(cut(printable(t.Text), 500), hidden)}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return nil, fmt.Errorf("%s answered %s", g.TokenURL, resp.Status)
	case bad != nil:
		return nil, fmt.Errorf("%s answered what cannot be read", g.TokenURL)
	case t.Access == "" || strings.ContainsFunc(t.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("%s answered without a token that can be used", g.TokenURL)
	case !strings.EqualFold(orElse(t.Type, "bearer"), "bearer"):
		return nil, fmt.Errorf("%s answered with a token of the type %s, which is not supported", g.TokenURL, excerptOf(t.Type))
	}
	return &t, nil
}

// hide takes secrets out of a text.
func hide(text string, secrets []string) string {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			text = strings.ReplaceAll(text, form, "[redacted]")
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
	if slices.Contains(r.ScopesSupported, "offline_access") && !a.o.Machine {
		want = union(want, []string{"offline_access"})
	}
	return want
}

// machine signs in as the client itself.
func (a *account) machine(ctx context.Context, old *grant) (string, error) {
	a.mu.Lock()
	asked := a.asked
	a.mu.Unlock()
	r, err := a.discover(ctx, asked)
	if err != nil {
		return "", err
	}
	c, err := a.identify(ctx, r, old, "")
	if err != nil {
		return "", err
	}
	g := &grant{Server: a.address, Resource: r.resource, Issuer: r.Issuer, TokenURL: r.TokenEndpoint, RevokeURL: r.RevocationEndpoint, Client: c, Made: time.Now().UTC()}
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {r.resource}}
	want := a.scopes(r, asked, old)
	if len(want) > 0 {
		form.Set("scope", strings.Join(want, " "))
	}
	got, err := a.token(ctx, g, form)
	if err != nil {
		return "", fmt.Errorf("the authorization server %s: %w", r.Issuer, err)
	}
	got.fill(g, want)
	g.Refresh = "" // none is needed
	return a.keep(g)
}
