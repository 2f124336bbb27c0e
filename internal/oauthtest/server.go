// Package oauthtest is an authorization server for tests, which keeps its promises unless it is told not to.
package oauthtest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Server is an authorization server. Refresh tokens are rotated: one that
// comes back a second time ends every login, as a theft would.
type Server struct {
	URL string // which is its issuer

	// Change may alter the metadata, and Answer the answer to the browser.
	Change func(meta map[string]any)
	Answer func(q url.Values)
	// Lifetime is what tokens are said to live, in seconds; 0: 3600.
	Lifetime int
	Calls    []string // scopes that tools/call needs
	Resource string   // that the server's metadata names; "": its address
	Echo     bool     // errors repeat what was sent

	// Binds has tokens bound to keys. The server takes no others, unless it is
	// Plain; Nonce is what both want to see repeated, "": nothing.
	Binds, Plain bool
	Nonce        string
	// IDLife is how long ID tokens are good, and Trusts is the identity provider
	// whose word is taken; nil: none.
	IDLife time.Duration
	Trusts *Server

	mu       sync.Mutex
	clients  map[string]string // redirect URI by client
	codes    map[string]login
	access   map[string]login
	refresh  map[string]login
	spent    map[string]bool
	renewals int
	logins   int
	registed int
	hold     chan struct{} // token requests wait for its end
	left     chan struct{} // see Left
	held     chan struct{}
	last     url.Values // of the last token request

	proofs    map[string]bool   // that were used
	ids       map[string]bool   // ID tokens
	vouched   map[string]string // for whom, by what says so
	assertion string
	presented int
}

type login struct{ client, comeback, challenge, resource, scope, nonce, key string }

// New starts the server, until the end of the test.
func New(t testing.TB) *Server {
	s := &Server{left: make(chan struct{}, 16), clients: map[string]string{}, codes: map[string]login{}, access: map[string]login{}, refresh: map[string]login{}, spent: map[string]bool{},
		IDLife: time.Hour, proofs: map[string]bool{}, ids: map[string]bool{}, vouched: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) { s.Revoke() })
	web := httptest.NewServer(mux)
	s.URL = web.URL
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return s
}

// Guard serves h to those who are signed in.
func (s *Server) Guard(t testing.TB, h http.Handler) string {
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	at := web.URL + "/mcp"
	meta := web.URL + "/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		resource := s.Resource
		if resource == "" {
			resource = at
		}
		answer(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{s.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		l, ok := s.access[token]
		s.mu.Unlock()
		bound := s.Binds && !s.Plain
		challenge := "Bearer"
		if bound {
			challenge = "DPoP"
		}
		ok = ok && scheme == challenge
		if ok && bound {
			key, err := s.proves(r, at, token, s.Nonce)
			if err == errNonce {
				w.Header().Set("DPoP-Nonce", s.Nonce)
				w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
				w.WriteHeader(401)
				return
			}
			ok = err == nil && key == l.key
		}
		switch {
		case !ok || l.resource != at:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s resource_metadata=%q, scope="read"`, challenge, meta))
			w.WriteHeader(401)
		case bytes.Contains(body, []byte(`"method":"tools/call"`)) && !holds(l.scope, s.Calls):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", resource_metadata=%q, scope=%q`, meta, strings.Join(s.Calls, " ")))
			w.WriteHeader(403)
		default:
			h.ServeHTTP(w, r)
		}
	})
	return at
}

func holds(scope string, want []string) bool {
	all := strings.Fields(scope)
	for _, w := range want {
		if !slices.Contains(all, w) {
			return false
		}
	}
	return true
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	meta := map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
		"authorization_response_iss_parameter_supported": true, "scopes_supported": []string{"read", "write", "offline_access"}}
	if s.Binds {
		meta["dpop_signing_alg_values_supported"] = []string{"ES256"}
	}
	if s.Change != nil {
		s.Change(meta)
	}
	answer(w, 200, meta)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var c struct {
		URIs []string `json:"redirect_uris"`
	}
	if json.NewDecoder(r.Body).Decode(&c) != nil || len(c.URIs) != 1 {
		answer(w, 400, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registed++
	id := rand.Text()
	s.clients[id] = c.URIs[0]
	answer(w, 201, map[string]any{"client_id": id, "redirect_uris": c.URIs, "token_endpoint_auth_method": "none"})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.clients[q.Get("client_id")]; known != "*" && known != q.Get("redirect_uri") || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "bad request", 400)
		return
	}
	code := rand.Text()
	s.codes[code] = login{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource"), q.Get("scope"), q.Get("nonce"), q.Get("dpop_jkt")}
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.URL}}
	if s.Answer != nil {
		s.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	s.mu.Lock()
	s.last = r.PostForm
	hold, held := s.hold, s.held
	s.mu.Unlock()
	if hold != nil {
		select {
		case held <- struct{}{}:
		default:
		}
		select {
		case <-hold:
		case <-r.Context().Done():
			select {
			case s.left <- struct{}{}:
			default:
			}
			return // whoever asked is gone
		}
	}
	key, kind := "", "Bearer"
	if s.Binds && r.Header.Get("DPoP") != "" {
		var err error
		switch key, err = s.proves(r, s.URL+"/token", "", s.Nonce); {
		case err == errNonce:
			w.Header().Set("DPoP-Nonce", s.Nonce)
			answer(w, 400, map[string]any{"error": "use_dpop_nonce"})
			return
		case err != nil:
			answer(w, 400, map[string]any{"error": "invalid_dpop_proof", "error_description": err.Error()})
			return
		}
		kind = "DPoP"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PostForm.Get("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange" {
		s.exchange(w, r.PostForm)
		return
	}
	l, wrong := s.grant(r.PostForm)
	if wrong == "" && l.key != "" && l.key != key {
		wrong = "the key is another"
	}
	l.key = key
	if wrong != "" {
		if s.Echo {
			wrong += ": " + r.PostForm.Encode()
		}
		answer(w, 400, map[string]any{"error": "invalid_grant", "error_description": wrong})
		return
	}
	access, refresh := rand.Text(), rand.Text()
	s.access[access], s.refresh[refresh] = l, l
	life := s.Lifetime
	if life == 0 {
		life = 3600
	}
	answer(w, 200, map[string]any{"access_token": access, "token_type": kind, "expires_in": life, "refresh_token": refresh, "scope": l.scope, "id_token": s.id(l)})
}

// grant returns the login for which tokens are asked, or what is wrong.
func (s *Server) grant(form url.Values) (login, string) {
	switch form.Get("grant_type") {
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		return s.assert(form)
	case "authorization_code":
		l, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || l.client != form.Get("client_id") || l.comeback != form.Get("redirect_uri") || l.resource != form.Get("resource") ||
			l.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return l, "no such code"
		}
		s.logins++
		return l, ""
	case "refresh_token":
		token := form.Get("refresh_token")
		l, ok := s.refresh[token]
		if s.spent[token] {
			s.access, s.refresh = map[string]login{}, map[string]login{}
			return l, "this refresh token was used before"
		}
		if !ok || l.client != form.Get("client_id") || l.resource != form.Get("resource") {
			return l, "no such refresh token"
		}
		delete(s.refresh, token)
		s.spent[token] = true
		s.renewals++
		return l, ""
	}
	return login{}, "no such grant"
}

// Expire ends all access tokens; refresh tokens stay.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = map[string]login{}
}

// Revoke ends all tokens.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access, s.refresh = map[string]login{}, map[string]login{}
}

// Hold keeps token requests waiting until release is called, and tells of each
// by asked.
func (s *Server) Hold() (asked <-chan struct{}, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold, s.held = hold, make(chan struct{}, 16)
	return s.held, func() {
		s.mu.Lock()
		s.hold = nil
		s.mu.Unlock()
		close(hold)
	}
}

// Left tells of each token request that was held when whoever asked went away.
func (s *Server) Left() <-chan struct{} { return s.left }

// Counts returns how often somebody signed in, renewed, and registered.
func (s *Server) Counts() (logins, renewals, registered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins, s.renewals, s.registed
}

// Tokens returns every token that is valid.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for t := range s.access {
		all = append(all, t)
	}
	for t := range s.refresh {
		all = append(all, t)
	}
	return all
}

// Browse does what a person does who agrees to everything.
func Browse(address string) error {
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("%s: %s", address, resp.Status)
	}
	return nil
}
