package mcpbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/credentials"
)

// An OAuth says how to sign in to a server that asks for it. Zero: with what
// the server and its authorization server tell, and a client that registers
// itself.
type OAuth struct {
	Off bool // nobody signs in: a server that asks for it fails

	ClientID     string // a client that is registered already
	ClientSecret string // of it; "": it has none
	Issuer       string // the authorization server that knows it; "": whichever the server names first
	// ClientMetadataURL is an https address of a document that describes the
	// client, for authorization servers that take one for a client id.
	ClientMetadataURL string
	Scopes            []string // in place of those that the server names
	RedirectPort      int      // on which the browser comes back; 0: a free one

	// PrivateKey is what the client proves itself by, in PEM, in place of a
	// secret; KeyID is its name at the authorization server, "": none.
	PrivateKey, KeyID string

	Grant Grant
	// AssertionFile holds what ByAssertion presents. It is read for each token,
	// since others write it anew.
	AssertionFile string
	Identity      Identity // who vouches for the person (ByIdentity)
}

// A Grant is in whose name one signs in.
type Grant string

// The grants.
const (
	ByPerson    Grant = ""                   // a person does, in a browser
	ByClient    Grant = "client_credentials" // the client does itself, by its secret or its key
	ByAssertion Grant = "jwt_bearer"         // the workload does, by a token of the platform that runs it (RFC 7523)
	ByIdentity  Grant = "enterprise_managed" // a person does at an identity provider, once for all servers
)

// An Identity is a client of an identity provider, which vouches for the
// person towards the authorization servers of MCP servers.
type Identity struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "": it has none
	// TokenFile holds the person's ID token, which others write anew; "": the
	// person signs in by Login, and Helve renews that.
	TokenFile string
}

// A grant is what signing in to a server gave, as it is kept. It is for one
// server and one authorization server.
type grant struct {
	Server   string `json:"server"`   // the URL to which tokens are sent
	Resource string `json:"resource"` // what the tokens are for, as the server calls it
	Issuer   string `json:"issuer"`

	TokenURL  string `json:"token_url,omitempty"`
	RevokeURL string `json:"revoke_url,omitempty"`
	Client    client `json:"client,omitzero"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // zero: not known
	Scopes  []string  `json:"scopes,omitempty"` // that were granted
	Key     string    `json:"key,omitempty"`    // to which tokens are bound
	Bound   bool      `json:"bound,omitempty"`  // the access token is
	ID      string    `json:"id,omitempty"`     // the person's ID token, of an identity provider
	Made    time.Time `json:"made,omitzero"`    // when somebody signed in
	Ended   string    `json:"ended,omitempty"`  // why there is no token any more

	// What a call was refused for, for the next login to ask for.
	Wanted   []string `json:"wanted,omitempty"`
	Metadata string   `json:"metadata,omitempty"` // where the server says that its metadata is
}

// The kinds of clients.
const (
	clientGiven      = "given"      // by the operator
	clientDocument   = "document"   // by its metadata document
	clientRegistered = "registered" // by itself
)

// A client is who we are to an authorization server.
type client struct {
	ID      string    `json:"id"`
	Secret  string    `json:"secret,omitempty"`
	Method  string    `json:"method"`        // by which it proves itself: none, client_secret_basic, client_secret_post or private_key_jwt
	Alg     string    `json:"alg,omitempty"` // by which its key signs
	Kind    string    `json:"kind"`
	Return  string    `json:"return,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of the secret; zero: never
}

// grantName is the name under which a grant is kept. No name of a user's
// secret has a space.
func grantName(server, address string) string { return "oauth " + server + " " + address }

func loadGrant(s *credentials.Store, name, server string) (*grant, error) {
	g := &grant{Server: server}
	text, err := s.Get(name)
	switch {
	case errors.Is(err, credentials.ErrNotFound):
		return g, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), g); err != nil || g.Server != server {
		return nil, fmt.Errorf("what is kept as %q is not a login to this server; helve secrets delete removes it", name)
	}
	return g, nil
}

func saveGrant(s *credentials.Store, name string, g *grant) error {
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return s.Set(name, string(data))
}

// secrets returns what nobody may see of a grant.
func (g *grant) secrets() []string {
	return slices.DeleteFunc([]string{g.Access, g.Refresh, g.ID, g.Key, g.Client.Secret}, func(s string) bool { return s == "" })
}

// A LoginNeeded is the error of a server that wants to know who calls, while
// nobody has signed in.
type LoginNeeded struct {
	Server  string
	Command string // that signs in
	Why     string // "": nobody has signed in yet
}

// Error says which command signs in.
func (e *LoginNeeded) Error() string {
	why := ""
	if e.Why != "" {
		why = " (" + e.Why + ")"
	}
	return fmt.Sprintf("it needs a login%s: run %s", why, e.Command)
}

func needsLogin(err error) bool {
	var need *LoginNeeded
	return errors.As(err, &need)
}

// isLoopback reports whether a host, as in a URL, is this machine by its name.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// secure reports whether a token may be sent there.
func secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

// union returns the texts of both, each once, in their order.
func union(a, b []string) []string {
	var out []string
	for _, s := range slices.Concat(a, b) {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// loginFirst returns the need for a login if that is behind err, which the
// library may have wrapped beyond recognition.
func (s *upstream) loginFirst(err error) error {
	if need := s.full().account.needed(); need != nil {
		return need
	}
	return err
}

// signedIn lets the server be tried at once if somebody signed in since it was
// refused. The caller holds s.mu.
func (s *upstream) signedIn() {
	if s.status.State == NeedsLogin && s.full().account.changed() {
		s.failures, s.next = 0, time.Time{}
	}
}
