package mcpbridge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	jwtBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	idToken       = "urn:ietf:params:oauth:token-type:id_token"
	idJAG         = "urn:ietf:params:oauth:token-type:id-jag"
)

// A vain is a request for tokens that was refused, and need not be made again
// for a while: starting a server makes several.
type vain struct {
	what  [32]byte
	until time.Time
	err   error
}

const vainTime = 30 * time.Second

// unattended gets a token without a person: by the client's own credentials,
// by an assertion, or by what an identity provider says of the person.
func (a *account) unattended(ctx context.Context, old *grant) (*grant, error) {
	a.mu.Lock()
	asked := a.asked
	a.mu.Unlock()
	said, err := a.presented()
	if err != nil {
		return nil, err
	}
	what := sha256.Sum256([]byte(said))
	a.mu.Lock()
	before := a.vain
	a.mu.Unlock()
	if before.err != nil && before.what == what && time.Now().Before(before.until) {
		return nil, before.err
	}
	g, err := a.obtain(ctx, old, asked, said)
	var no *oauthError
	if errors.As(err, &no) {
		a.mu.Lock()
		a.vain = vain{what, time.Now().Add(vainTime), err}
		a.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return a.keep(g)
}

// presented returns what is kept in a file to be presented; "": nothing is.
func (a *account) presented() (string, error) {
	file, key := a.o.AssertionFile, "oauth.assertion_file"
	switch {
	case a.o.Grant == ByIdentity && a.o.Identity.TokenFile != "":
		file, key = a.o.Identity.TokenFile, "oauth.identity.token_file"
	case a.o.Grant != ByAssertion:
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	text := strings.TrimSpace(string(data))
	if _, err := claimsOf(text); err != nil {
		return "", fmt.Errorf("%s: %s: %w", key, file, err)
	}
	a.learn(text)
	return text, nil
}

// obtain asks for a token.
func (a *account) obtain(ctx context.Context, old *grant, asked challenge, said string) (*grant, error) {
	r, err := a.discover(ctx, asked)
	if err != nil {
		return nil, err
	}
	c, err := a.identify(ctx, r, old, "")
	if err != nil {
		return nil, err
	}
	g := &grant{Server: a.address, Resource: r.resource, Issuer: r.Issuer, TokenURL: r.TokenEndpoint, RevokeURL: r.RevocationEndpoint, Client: c, Made: time.Now().UTC()}
	if r.bound {
		if g.Key = old.Key; g.Key == "" {
			if _, g.Key, err = newProof(); err != nil {
				return nil, err
			}
		}
	}
	form := url.Values{"grant_type": {string(ByClient)}, "resource": {r.resource}}
	want := a.scopes(r, asked, old)
	if len(want) > 0 {
		form.Set("scope", strings.Join(want, " "))
	}
	switch a.o.Grant {
	case ByAssertion:
		form.Set("grant_type", jwtBearer)
		form.Set("assertion", said)
	case ByIdentity:
		jag, err := a.vouched(ctx, r, said, form.Get("scope"))
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", jwtBearer)
		form.Set("assertion", jag)
	}
	got, err := a.token(ctx, g, form)
	if err != nil {
		return nil, fmt.Errorf("the authorization server %s: %w%s", r.Issuer, err, outdated(said))
	}
	got.fill(g, want)
	g.Refresh = "" // none is needed
	return g, nil
}

// claimsOf reads what a token says, without a look at who signed it: that is for
// those to whom it is presented. No error shows any of it.
func claimsOf(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > 64<<10 {
		return nil, errors.New("it is not a JSON web token, which has three parts with dots between them")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]any
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return nil, errors.New("it is not a JSON web token: its second part cannot be read")
	}
	return claims, nil
}

// expiry returns when a token says that it expires; zero: it does not say, or is none.
func expiry(token string) time.Time {
	claims, err := claimsOf(token)
	at, ok := claims["exp"].(float64)
	if err != nil || !ok {
		return time.Time{}
	}
	return time.Unix(int64(at), 0)
}

// outdated returns what to add to an error when what was presented has expired.
func outdated(token string) string {
	if at := expiry(token); token != "" && !at.IsZero() && at.Before(time.Now()) {
		return fmt.Sprintf("; what was presented expired at %s, and whatever writes it has to write it anew", at.UTC().Format(time.RFC3339))
	}
	return ""
}

// newIdentity returns the login to the identity provider; nil if none is used.
func (a *account) newIdentity() *account {
	id := a.o.Identity
	u, err := url.Parse(id.Issuer)
	if a.o.Grant != ByIdentity || err != nil {
		return nil
	}
	return &account{server: a.server, url: u, address: id.Issuer, name: "identity " + id.Issuer + " " + id.ClientID, vouches: true,
		o:     OAuth{ClientID: id.ClientID, ClientSecret: id.ClientSecret, Scopes: []string{"openid"}, RedirectPort: a.o.RedirectPort},
		hosts: a.hosts, command: a.command, store: a.store, learn: a.learn}
}

// realm reads where to sign in at the identity provider.
func (a *account) realm(ctx context.Context) (*realm, error) {
	meta, err := a.issuerAt(ctx, a.address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("oauth.identity: %w", err)
	case meta == nil:
		return nil, fmt.Errorf("oauth.identity: %s has no metadata of OpenID Connect", a.address)
	}
	return &realm{"", nil, false, meta}, nil
}

// signInAt signs a person in at the identity provider.
func (a *account) signInAt(ctx context.Context, old *grant, lo LoginOptions) error {
	r, err := a.realm(ctx)
	if err != nil {
		return err
	}
	return a.signIn(ctx, r, challenge{}, old, lo)
}

// checkID makes sure that an ID token, which comes from the provider itself, is
// of this login (OpenID Connect Core, section 3.1.3.7).
func checkID(token, issuer, client, nonce string) error {
	claims, err := claimsOf(token)
	if err != nil {
		return fmt.Errorf("the identity provider %s gives no ID token: %w", issuer, err)
	}
	var meant []any
	switch aud := claims["aud"].(type) {
	case string:
		meant = []any{aud}
	case []any:
		meant = aud
	}
	switch {
	case claims["iss"] != issuer:
		return fmt.Errorf("the identity provider %s gives an ID token of another issuer", issuer)
	case !slices.Contains(meant, any(client)):
		return fmt.Errorf("the identity provider %s gives an ID token for another client", issuer)
	case claims["nonce"] != nonce:
		return fmt.Errorf("the identity provider %s gives an ID token of another login", issuer)
	}
	return nil
}

// idLeft is how long an ID token must be good for to be presented.
const idLeft = time.Minute

// vouched has the identity provider say to the server's authorization server
// who the person is (token exchange, RFC 8693, for an identity assertion grant).
func (a *account) vouched(ctx context.Context, r *realm, said, scope string) (string, error) {
	id := a.identity
	if id == nil {
		return "", errors.New("oauth.identity: its issuer is not an address")
	}
	if said == "" {
		var err error
		if said, err = id.present(ctx); err != nil {
			return "", err
		}
	}
	at, err := id.realm(ctx)
	if err != nil {
		return "", err
	}
	c, err := id.identify(ctx, at, &grant{}, "")
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {tokenExchange}, "requested_token_type": {idJAG}, "audience": {r.Issuer}, "resource": {r.resource},
		"subject_token": {said}, "subject_token_type": {idToken}}
	if scope != "" {
		form.Set("scope", scope)
	}
	got, err := id.ask(ctx, &grant{Issuer: at.Issuer, TokenURL: at.TokenEndpoint, Client: c}, form)
	var no *oauthError
	switch {
	case errors.As(err, &no) && no.code == "invalid_grant" && a.o.Identity.TokenFile == "":
		return "", &LoginNeeded{Server: a.server, Command: a.command, Why: fmt.Sprintf("the identity provider refuses the ID token: %s", no)}
	case err != nil:
		return "", fmt.Errorf("the identity provider %s does not vouch for the person towards %s: %w%s", at.Issuer, r.Issuer, err, outdated(said))
	case got.Issued != idJAG:
		return "", fmt.Errorf("the identity provider %s answered with a token of the type %s: an identity assertion grant was asked for", at.Issuer, excerptOf(got.Issued))
	}
	a.learn(got.Access)
	return got.Access, nil
}

// present returns the person's ID token, a new one if it has expired.
func (a *account) present(ctx context.Context) (string, error) {
	a.mu.Lock()
	g, broken := a.current(), a.broken
	a.mu.Unlock()
	if broken != nil {
		return "", broken
	}
	good := func() bool { return g.ID != "" && time.Until(expiry(g.ID)) > idLeft }
	if good() {
		return g.ID, nil
	}
	if g.Access == "" {
		return "", &LoginNeeded{Server: a.server, Command: a.command, Why: g.Ended}
	}
	g, err := a.renew(ctx, g.Access)
	switch {
	case err != nil:
		return "", err
	case !good():
		return "", &LoginNeeded{Server: a.server, Command: a.command, Why: "the identity provider has given no new ID token"}
	}
	return g.ID, nil
}
