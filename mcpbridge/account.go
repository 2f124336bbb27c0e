package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/helve-ai/helve/credentials"
)

// An account is our login to one server: it adds the token to requests, and
// renews it. It never signs anybody in by itself. It is safe for concurrent use.
type account struct {
	server  string // its name
	url     *url.URL
	address string // its URL, as it was given
	name    string // under which the grant is kept
	o       OAuth
	hosts   []string
	command string
	store   *credentials.Store // nil: nothing is kept
	learn   func(secret string)
	// identity is the login to the provider that vouches for the person; nil:
	// there is none, or its tokens come from elsewhere.
	identity *account
	vouches  bool // it is such a login itself

	mu       sync.Mutex
	stamp    string    // of the store when the grant was read
	looked   time.Time // at the stamp
	read     bool
	grant    *grant // as it was read or made last, and never changed from then on; nil: none could be read
	broken   error  // why it could not be read
	unsaved  *grant // a renewed one that could not be kept yet
	renewal  *renewal
	need     *LoginNeeded // of the last request
	asked    challenge    // by the last request that was refused
	probing  bool         // no token is sent
	nonces   nonces       // that are to be repeated
	proofs   *proof       // the key of proofKey
	proofKey string
	vain     vain // what need not be asked again for now
	closed   bool
	renewing sync.WaitGroup
}

// A renewal is under way.
type renewal struct {
	done  chan struct{}
	grant *grant
	err   error
}

// renewTime bounds a renewal. It goes on when the call that needs it is
// cancelled, since the answer may hold the only refresh token that is valid.
const renewTime = 30 * time.Second

// newAccount returns the account with a server over HTTP; nil if there cannot
// be one, because the operator gave a credential, or does not want any.
func newAccount(up *Upstream, o *UpstreamOptions) *account {
	u, err := url.Parse(up.URL)
	if up.URL == "" || err != nil || up.OAuth.Off || u.User != nil {
		return nil
	}
	for name := range up.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	a := &account{server: up.Name, url: u, address: up.URL, name: grantName(up.Name, up.URL), o: up.OAuth, hosts: o.AllowHosts,
		command: orElse(o.LoginCommand, "helve login") + " " + up.Name, store: o.Credentials, learn: o.Learn}
	if a.learn == nil {
		a.learn = func(string) {}
	}
	a.identity = a.newIdentity()
	return a
}

// close waits until nothing is renewed any more.
func (a *account) close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.renewing.Wait()
	a.identity.close()
}

// stampAge is how long the store is not looked at anew. To sign in takes longer.
const stampAge = 10 * time.Millisecond

// current reads the grant if it has changed since, or if the keyring kept it
// from being read. The caller holds a.mu.
func (a *account) current() *grant {
	if a.store == nil {
		return &grant{Server: a.address}
	}
	if a.read && a.broken == nil && time.Since(a.looked) < stampAge {
		return orElseGrant(a.grant, a.address)
	}
	a.looked = time.Now()
	if stamp := a.store.Stamp(); !a.read || stamp != a.stamp || errors.Is(a.broken, credentials.ErrKeyring) {
		a.stamp, a.read = stamp, true
		a.grant, a.broken = a.load()
		a.adopt(a.grant)
	}
	return orElseGrant(a.grant, a.address)
}

// orElseGrant returns g, or the grant of nothing where there is none.
func orElseGrant(g *grant, address string) *grant {
	if g == nil {
		return &grant{Server: address}
	}
	return g
}

// load reads the grant. That of another client than the operator's is none.
func (a *account) load() (*grant, error) {
	g, err := loadGrant(a.store, a.name, a.address)
	if err == nil && a.o.ClientID != "" && g.Client.ID != a.o.ClientID {
		g = &grant{Server: g.Server, Wanted: g.Wanted, Metadata: g.Metadata}
	}
	return g, err
}

// adopt makes g the grant. The caller holds a.mu.
func (a *account) adopt(g *grant) {
	if a.grant = g; g != nil {
		for _, s := range g.secrets() {
			a.learn(s)
		}
	}
}

// changed reports whether somebody signed in or out since the last request.
func (a *account) changed() bool {
	if a == nil || a.store == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.store.Stamp() != a.stamp
}

// needed returns why the last request was refused; nil: it was not.
func (a *account) needed() *LoginNeeded {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.need
}

// send sends a request with the token, once more if the token was too old, or
// lacked what the server gives to be repeated.
func (a *account) send(r *http.Request, trip func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if a == nil {
		return trip(r)
	}
	g, err := a.bearer(r.Context())
	if err != nil {
		return nil, err
	}
	for again, repeated := true, false; ; {
		out := r.Clone(r.Context())
		if err := a.authorize(out, g); err != nil {
			return nil, err
		}
		if r.GetBody != nil {
			if out.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := trip(out)
		if err != nil {
			return nil, err
		}
		a.nonces.note(&a.nonces.resource, resp)
		asked, refused := challenged(resp)
		if !refused {
			if g.Access != "" { // without one, an older form of the request may be answered for itself
				a.settle()
			}
			return resp, nil
		}
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
		resp.Body.Close()
		if asked.repeat && g.Bound && !repeated {
			repeated = true
			continue
		}
		if g, err = a.refused(r.Context(), g.Access, asked, again); err != nil {
			return nil, err
		}
		again = false
	}
}

// authorize puts the token on a request.
func (a *account) authorize(r *http.Request, g *grant) error {
	r.Header.Del("Authorization")
	r.Header.Del("DPoP")
	switch {
	case g.Access == "":
		return nil
	case !g.Bound:
		r.Header.Set("Authorization", "Bearer "+g.Access)
		return nil
	}
	p, err := a.proof(g)
	if err != nil {
		return err
	}
	at := *r.URL
	at.RawQuery, at.Fragment, at.User = "", "", nil
	text, err := p.of(r.Method, at.String(), g.Access, a.nonces.get(&a.nonces.resource))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "DPoP "+g.Access)
	r.Header.Set("DPoP", text)
	return nil
}

// proof returns the key to which the grant's tokens are bound; nil: to none.
func (a *account) proof(g *grant) (*proof, error) {
	if g.Key == "" {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proofs == nil || a.proofKey != g.Key {
		p, err := readProof(g.Key)
		if err != nil {
			return nil, err
		}
		a.proofs, a.proofKey = p, g.Key
	}
	return a.proofs, nil
}

// Nonces are what servers want to see repeated in the next proof, so that none
// is made in advance (RFC 9449, sections 8 and 9). The zero value has none.
type nonces struct {
	mu       sync.Mutex
	resource string // of the MCP server
	issuer   string // of the authorization server
}

func (n *nonces) get(of *string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return *of
}

// note takes the nonce of an answer, and reports whether it has a new one.
func (n *nonces) note(of *string, resp *http.Response) bool {
	told := resp.Header.Get("DPoP-Nonce")
	n.mu.Lock()
	defer n.mu.Unlock()
	if told == "" || len(told) > 1024 || told == *of {
		return false
	}
	*of = told
	return true
}

// forget forgets how the last request went.
func (a *account) forget() {
	if a != nil {
		a.settle()
	}
}

// settle notes that a request was not refused.
func (a *account) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.need = nil
}

// bearer returns the grant with the token to send; "": none. One that has
// expired is renewed.
func (a *account) bearer(ctx context.Context) (*grant, error) {
	a.mu.Lock()
	if a.probing || !secure(a.url) {
		a.mu.Unlock()
		return &grant{}, nil
	}
	g := a.current()
	a.mu.Unlock()
	if g.Access == "" || g.Expires.IsZero() || time.Now().Before(g.Expires) || g.Refresh == "" && a.o.Grant == ByPerson {
		return g, nil // the server will say if that is not enough
	}
	renewed, err := a.renew(ctx, g.Access)
	var none *LoginNeeded
	if errors.As(err, &none) { // the server will say what it wants
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.current(), nil
	}
	return renewed, err
}

// refused returns the grant with whose token a request that was refused can be
// sent again.
func (a *account) refused(ctx context.Context, used string, asked challenge, again bool) (*grant, error) {
	a.mu.Lock()
	a.asked = asked
	a.looked = time.Time{} // somebody may have signed in this very moment
	other := a.current()
	probing, broken := a.probing, a.broken
	a.mu.Unlock()
	switch {
	case !secure(a.url):
		return nil, a.want("", fmt.Errorf("tokens are not sent over http: the server %s wants one, and its URL is not https", a.server))
	case probing:
		return nil, a.want("", nil)
	case broken != nil:
		return nil, a.want(broken.Error(), nil)
	case again && other.Access != used && other.Access != "":
		return other, nil // somebody has renewed it, or signed in
	case asked.status == http.StatusForbidden:
		a.remember(asked)
		return nil, a.want(fmt.Sprintf("the login lacks what the call asks for: %s", strings.Join(asked.scopes, " ")), nil)
	case !again && used != "":
		return nil, a.want("the server refuses the token", nil)
	}
	if again && (used != "" || a.o.Grant != ByPerson) {
		g, err := a.renew(ctx, used)
		var none *LoginNeeded
		if err == nil || !errors.As(err, &none) {
			return g, err
		}
		a.remember(asked)
		return nil, a.want(none.Why, nil)
	}
	a.remember(asked)
	return nil, a.want("", nil)
}

// want notes and returns that a login is needed, or err if it cannot be had.
func (a *account) want(why string, err error) error {
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if why == "" {
		why = a.current().Ended
	}
	a.need = &LoginNeeded{Server: a.server, Command: a.command, Why: cut(printable(why), 500)}
	return a.need
}

// remember keeps what a call was refused for, so that the next login asks for
// it. Nothing is lost if it cannot be kept: the login asks the server again.
func (a *account) remember(asked challenge) {
	if a.store == nil || len(asked.scopes) == 0 && asked.metadata == "" {
		return
	}
	_ = a.update(func(g *grant) bool {
		wanted := g.Wanted
		if asked.status == http.StatusForbidden {
			wanted = union(g.Wanted, asked.scopes)
		}
		if slices.Equal(wanted, g.Wanted) && (asked.metadata == "" || asked.metadata == g.Metadata) {
			return false
		}
		g.Wanted, g.Metadata = wanted, orElse(asked.metadata, g.Metadata)
		return g.Access != "" || g.Client.ID != "" // of a server where nobody ever signed in nothing is kept
	})
}

// update changes the grant that is kept, if change says so. Nobody else does
// meanwhile.
func (a *account) update(change func(*grant) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	unlock, err := a.store.Lock(ctx, a.name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := a.load()
	if err != nil {
		return err
	}
	if !change(g) {
		return nil
	}
	return a.save(g)
}

// save keeps a grant, and uses it from then on. The caller holds its lock.
func (a *account) save(g *grant) error {
	if err := saveGrant(a.store, a.name, g); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stamp, a.read, a.broken = a.store.Stamp(), true, nil
	a.adopt(g)
	return nil
}

// renew returns a grant whose token is newer than the one used. However many
// ask for it at once, one renewal is made.
func (a *account) renew(ctx context.Context, used string) (*grant, error) {
	a.mu.Lock()
	r := a.renewal
	switch {
	case a.closed:
		a.mu.Unlock()
		return nil, errors.New("the process is stopping")
	case a.store == nil:
		a.mu.Unlock()
		return nil, &LoginNeeded{Server: a.server, Command: a.command}
	case r == nil:
		r = &renewal{done: make(chan struct{})}
		a.renewal = r
		a.renewing.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), renewTime)
			defer cancel()
			r.grant, r.err = a.renewed(ctx, used)
			a.mu.Lock()
			a.renewal = nil
			a.mu.Unlock()
			close(r.done)
		})
	}
	a.mu.Unlock()
	select {
	case <-r.done:
		return r.grant, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// renewed gets a new token by the refresh token, unless another process has
// just done so, and keeps it before it is used.
func (a *account) renewed(ctx context.Context, used string) (*grant, error) {
	unlock, err := a.store.Lock(ctx, a.name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	a.mu.Lock()
	unsaved := a.unsaved
	a.mu.Unlock()
	if unsaved != nil {
		return a.keep(unsaved)
	}
	g, err := a.load()
	switch {
	case err != nil:
		return nil, err
	case g.Access != "" && g.Access != used:
		a.mu.Lock()
		a.adopt(g)
		a.mu.Unlock()
		return g, nil
	case a.o.Grant != ByPerson:
		return a.unattended(ctx, g)
	case g.Refresh == "":
		if g.Ended = orElse(g.Ended, "the login has ended"); g.Access != "" { // it was refused
			g.Access = ""
			if err := a.save(g); err != nil {
				return nil, err
			}
		}
		return nil, &LoginNeeded{Server: a.server, Command: a.command, Why: g.Ended}
	}
	got, err := a.token(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {g.Resource}})
	var no *oauthError
	if errors.As(err, &no) && no.final() {
		g.Access, g.Refresh, g.Ended = "", "", "the login has ended: "+no.Error()
		if no.code != "invalid_grant" && g.Client.Kind == clientRegistered {
			g.Client = client{}
		}
		if err := a.save(g); err != nil {
			return nil, err
		}
		return nil, &LoginNeeded{Server: a.server, Command: a.command, Why: g.Ended}
	}
	if err != nil {
		return nil, fmt.Errorf("the login to the MCP server %s cannot be renewed: %w", a.server, err)
	}
	got.fill(g, nil)
	return a.keep(g)
}

// keep keeps a renewed grant, or holds on to it until it can be kept.
func (a *account) keep(g *grant) (*grant, error) {
	err := a.save(g)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved = nil; err != nil {
		a.unsaved = g
		return nil, fmt.Errorf("the renewed login to the MCP server %s cannot be kept: %w", a.server, err)
	}
	return g, nil
}

// A challenge is what a server that refuses a request says of why.
type challenge struct {
	status   int
	metadata string   // the address of its metadata; "": not told
	scopes   []string // that are needed; nil: not told
	bound    bool     // it knows tokens that are bound to keys
	repeat   bool     // what it gives is to be repeated in the proof
}

// challenged reports whether a request was refused for want of a login, or of
// one with more scopes.
func challenged(resp *http.Response) (challenge, bool) {
	c := challenge{status: resp.StatusCode}
	if c.status != http.StatusUnauthorized && c.status != http.StatusForbidden {
		return c, false
	}
	all, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")) // what cannot be read says nothing
	short := false
	for _, one := range all {
		if one.Scheme != "bearer" && one.Scheme != "dpop" {
			continue
		}
		c.bound = c.bound || one.Scheme == "dpop"
		c.repeat = c.repeat || one.Params["error"] == "use_dpop_nonce"
		c.metadata = orElse(c.metadata, one.Params["resource_metadata"])
		if c.scopes == nil {
			c.scopes = strings.Fields(one.Params["scope"])
		}
		short = short || one.Params["error"] == "insufficient_scope"
	}
	return c, c.status == http.StatusUnauthorized || short
}
