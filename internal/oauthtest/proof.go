package oauthtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Know makes client known, with any redirect URI.
func (s *Server) Know(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[client] = "*"
}

// Admit makes the server take the assertion, as long as it is not told another.
func (s *Server) Admit(assertion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assertion = assertion
}

// Presented returns how often an assertion was presented.
func (s *Server) Presented() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presented
}

// JWT returns a token with those claims, which nobody signed.
func JWT(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(body) + "." + rand.Text()
}

// id returns an ID token of the login, for those who ask for one. The caller
// holds s.mu.
func (s *Server) id(l login) string {
	if !holds(l.scope, []string{"openid"}) {
		return ""
	}
	token := JWT(map[string]any{"iss": s.URL, "aud": l.client, "sub": "somebody", "nonce": l.nonce, "exp": time.Now().Add(s.IDLife).Unix(), "jti": rand.Text()})
	s.ids[token] = true
	return token
}

// assert returns the login for which an assertion is presented, or what is
// wrong. The caller holds s.mu.
func (s *Server) assert(form url.Values) (login, string) {
	s.presented++
	l := login{client: form.Get("client_id"), resource: form.Get("resource"), scope: form.Get("scope")}
	text := form.Get("assertion")
	if s.Trusts != nil {
		s.Trusts.mu.Lock()
		defer s.Trusts.mu.Unlock()
		if s.Trusts.vouched[text] != s.URL+" "+l.resource {
			return l, "nobody vouches for this"
		}
		return l, ""
	}
	if text == "" || text != s.assertion {
		return l, "no such assertion"
	}
	return l, ""
}

// exchange answers an ID token with what vouches for the person. The caller
// holds s.mu.
func (s *Server) exchange(w http.ResponseWriter, form url.Values) {
	const kind = "urn:ietf:params:oauth:token-type:"
	if !s.ids[form.Get("subject_token")] || form.Get("subject_token_type") != kind+"id_token" || form.Get("requested_token_type") != kind+"id-jag" {
		answer(w, 400, map[string]any{"error": "invalid_grant", "error_description": "no such ID token"})
		return
	}
	token := JWT(map[string]any{"iss": s.URL, "jti": rand.Text()})
	s.vouched[token] = form.Get("audience") + " " + form.Get("resource")
	answer(w, 200, map[string]any{"access_token": token, "issued_token_type": kind + "id-jag", "token_type": "N_A"})
}

// proves checks the proof of a request (RFC 9449), and returns the digest of
// its key.
func (s *Server) proves(r *http.Request, address, token, nonce string) (string, error) {
	parts := strings.Split(r.Header.Get("DPoP"), ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("no proof")
	}
	var head struct {
		Typ, Alg string
		JWK      struct {
			Crv string `json:"crv"`
			Kty string `json:"kty"`
			X   string `json:"x"`
			Y   string `json:"y"`
		}
	}
	var claims struct {
		JTI, HTM, HTU, ATH, Nonce string
		IAT                       int64
	}
	head64, _ := base64.RawURLEncoding.DecodeString(parts[0])
	body64, _ := base64.RawURLEncoding.DecodeString(parts[1])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if json.Unmarshal(head64, &head) != nil || json.Unmarshal(body64, &claims) != nil || head.Typ != "dpop+jwt" || head.Alg != "ES256" || len(signature) != 64 {
		return "", fmt.Errorf("no proof that can be read")
	}
	x, _ := base64.RawURLEncoding.DecodeString(head.JWK.X)
	y, _ := base64.RawURLEncoding.DecodeString(head.JWK.Y)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, append(x, y...)...))
	if err != nil {
		return "", err
	}
	sum, ath := sha256.Sum256([]byte(parts[0]+"."+parts[1])), ""
	if token != "" {
		digest := sha256.Sum256([]byte(token))
		ath = base64.RawURLEncoding.EncodeToString(digest[:])
	}
	jwk, _ := json.Marshal(head.JWK)
	digest := sha256.Sum256(jwk)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.proofs[claims.JTI]
	s.proofs[claims.JTI] = true
	switch {
	case !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])):
		return "", fmt.Errorf("the proof is signed by another")
	case seen || claims.JTI == "":
		return "", fmt.Errorf("the proof was used before")
	case claims.HTM != r.Method || claims.HTU != address || claims.ATH != ath || time.Since(time.Unix(claims.IAT, 0)).Abs() > time.Minute:
		return "", fmt.Errorf("the proof is of another request: %+v", claims)
	case claims.Nonce != nonce:
		return "", errNonce
	}
	return base64.RawURLEncoding.EncodeToString(digest[:]), nil
}

var errNonce = fmt.Errorf("the proof lacks the nonce")
