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

	mu       sync.Mutex
	stamp    string // of the store when the grant was read
	read     bool
	grant    *grant // as it was read or made last; nil: none could be read
	broken   error  // why it could not be read
	unsaved  *grant // a renewed one that could not be kept yet
	renewal  *renewal
	need     *LoginNeeded // of the last request
	asked    challenge    // by the last request that was refused
	probing  bool         // no token is sent
	closed   bool
	renewing sync.WaitGroup
}

// A renewal is under way.
type renewal struct {
	done  chan struct{}
	token string
	err   error
}

// renewTime bounds a renewal. It goes on when the call that needs it is
// cancelled, since the answer may hold the only refresh token that is valid.
const renewTime = 30 * time.Second

// newAccount returns the account with a server over HTTP; nil if there cannot
// be one, because the operator gave a credential, or does not want any.
func newAccount(s *upstream) *account {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil || s.OAuth.Off {
		return nil
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	a := &account{server: s.Name, url: u, address: s.URL, name: grantName(s.Name, s.URL), o: s.OAuth, hosts: s.o.AllowHosts,
		command: orElse(s.o.LoginCommand, "helve login") + " " + s.Name, store: s.o.Credentials, learn: s.o.Learn}
	if a.learn == nil {
		a.learn = func(string) {}
	}
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
}

// current reads the grant if it has changed since. The caller holds a.mu.
func (a *account) current() *grant {
	if a.store == nil {
		return &grant{Server: a.address}
	}
	if stamp := a.store.Stamp(); !a.read || stamp != a.stamp {
		a.stamp, a.read = stamp, true
		a.grant, a.broken = a.load()
		a.adopt(a.grant)
	}
	if a.grant == nil {
		return &grant{Server: a.address}
	}
	return a.grant
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

// send sends a request with the token, once more if the token was too old.
func (a *account) send(r *http.Request, trip func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if a == nil {
		return trip(r)
	}
	token, err := a.bearer(r.Context())
	if err != nil {
		return nil, err
	}
	for again := true; ; again = false {
		out := r.Clone(r.Context())
		out.Header.Del("Authorization")
		if token != "" {
			out.Header.Set("Authorization", "Bearer "+token)
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
		asked, refused := challenged(resp)
		if !refused {
			if token != "" { // without one, an older form of the request may be answered for itself
				a.settle()
			}
			return resp, nil
		}
		io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
		resp.Body.Close()
		if token, err = a.refused(r.Context(), token, asked, again); err != nil {
			return nil, err
		}
	}
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

// bearer returns the token to send; "": none. One that has expired is renewed.
func (a *account) bearer(ctx context.Context) (string, error) {
	a.mu.Lock()
	if a.probing || !secure(a.url) {
		a.mu.Unlock()
		return "", nil
	}
	g := a.current()
	a.mu.Unlock()
	if g.Access == "" || g.Expires.IsZero() || time.Now().Before(g.Expires) || g.Refresh == "" && !a.o.Machine {
		return g.Access, nil // the server will say if that is not enough
	}
	token, err := a.renew(ctx, g.Access)
	var none *LoginNeeded
	if errors.As(err, &none) { // the server will say what it wants
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.current().Access, nil
	}
	return token, err
}

// refused returns the token with which a request that was refused can be sent
// again.
func (a *account) refused(ctx context.Context, used string, asked challenge, again bool) (string, error) {
	a.mu.Lock()
	a.asked = asked
	probing, broken := a.probing, a.broken
	other := a.current().Access
	a.mu.Unlock()
	switch {
	case !secure(a.url):
		return "", a.want("", fmt.Errorf("tokens are not sent over http: the server %s wants one, and its URL is not https", a.server))
	case probing:
		return "", a.want("", nil)
	case broken != nil:
		return "", a.want(broken.Error(), nil)
	case again && other != used && other != "":
		return other, nil // somebody has renewed it, or signed in
	case asked.status == http.StatusForbidden:
		a.remember(asked)
		return "", a.want(fmt.Sprintf("the login lacks what the call asks for: %s", strings.Join(asked.scopes, " ")), nil)
	case !again && used != "":
		return "", a.want("the server refuses the token", nil)
	}
	if again && (used != "" || a.o.Machine) {
		token, err := a.renew(ctx, used)
		var none *LoginNeeded
		if err == nil || !errors.As(err, &none) {
			return token, err
		}
		a.remember(asked)
		return "", a.want(none.Why, nil)
	}
	a.remember(asked)
	return "", a.want("", nil)
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

// renew returns a token that is newer than the one used. However many ask for
// it at once, one renewal is made.
func (a *account) renew(ctx context.Context, used string) (string, error) {
	a.mu.Lock()
	r := a.renewal
	switch {
	case a.closed:
		a.mu.Unlock()
		return "", errors.New("the process is stopping")
	case a.store == nil:
		a.mu.Unlock()
		return "", &LoginNeeded{Server: a.server, Command: a.command}
	case r == nil:
		r = &renewal{done: make(chan struct{})}
		a.renewal = r
		a.renewing.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), renewTime)
			defer cancel()
			r.token, r.err = a.renewed(ctx, used)
			a.mu.Lock()
			a.renewal = nil
			a.mu.Unlock()
			close(r.done)
		})
	}
	a.mu.Unlock()
	select {
	case <-r.done:
		return r.token, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// renewed gets a new token by the refresh token, unless another process has
// just done so, and keeps it before it is used.
func (a *account) renewed(ctx context.Context, used string) (string, error) {
	unlock, err := a.store.Lock(ctx, a.name)
	if err != nil {
		return "", err
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
		return "", err
	case g.Access != "" && g.Access != used:
		a.mu.Lock()
		a.adopt(g)
		a.mu.Unlock()
		return g.Access, nil
	case a.o.Machine:
		return a.machine(ctx, g)
	case g.Refresh == "":
		if g.Ended = orElse(g.Ended, "the login has ended"); g.Access != "" { // it was refused
			g.Access = ""
			if err := a.save(g); err != nil {
				return "", err
			}
		}
		return "", &LoginNeeded{Server: a.server, Command: a.command, Why: g.Ended}
	}
	got, err := a.token(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {g.Resource}})
	var no *oauthError
	if errors.As(err, &no) && no.final() {
		g.Access, g.Refresh, g.Ended = "", "", "the login has ended: "+no.Error()
		if no.code != "invalid_grant" && g.Client.Kind == clientRegistered {
			g.Client = client{}
		}
		if err := a.save(g); err != nil {
			return "", err
		}
		return "", &LoginNeeded{Server: a.server, Command: a.command, Why: g.Ended}
	}
	if err != nil {
		return "", fmt.Errorf("the login to the MCP server %s cannot be renewed: %w", a.server, err)
	}
	got.fill(g, nil)
	return a.keep(g)
}

// keep keeps a renewed grant, or holds on to it until it can be kept.
func (a *account) keep(g *grant) (string, error) {
	err := a.save(g)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved = nil; err != nil {
		a.unsaved = g
		return "", fmt.Errorf("the renewed login to the MCP server %s cannot be kept: %w", a.server, err)
	}
	return g.Access, nil
}

// A challenge is what a server that refuses a request says of why.
type challenge struct {
	status   int
	metadata string   // the address of its metadata; "": not told
	scopes   []string // that are needed; nil: not told
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
		if one.Scheme != "bearer" {
			continue
		}
		c.metadata = orElse(c.metadata, one.Params["resource_metadata"])
		if c.scopes == nil {
			c.scopes = strings.Fields(one.Params["scope"])
		}
		short = short || one.Params["error"] == "insufficient_scope"
	}
	return c, c.status == http.StatusUnauthorized || short
}
