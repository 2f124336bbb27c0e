package mcpbridge

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // of the longer algorithms
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A signer signs JSON web tokens by one key.
type signer struct {
	key crypto.Signer
	id  string // of the key, as the authorization server knows it; "": none
}

// readSigner reads a private key in PEM: PKCS #8, PKCS #1 or SEC 1. No error
// shows any of it.
func readSigner(text, id string) (*signer, error) {
	block, _ := pem.Decode([]byte(strings.TrimSpace(text)))
	if block == nil {
		return nil, errors.New("it is not a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----")
	}
	key, err := readKey(block)
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() < 2048 {
			return nil, fmt.Errorf("an RSA key of %d bits is too short: 2048 are the least", k.N.BitLen())
		}
		return &signer{k, id}, nil
	case *ecdsa.PrivateKey:
		if _, ok := ecAlgorithms[k.Curve]; ok {
			return &signer{k, id}, nil
		}
	case ed25519.PrivateKey:
		return &signer{k, id}, nil
	}
	return nil, errors.New("it is a key of a kind that signs no tokens here: RSA, EC (P-256, P-384, P-521) and Ed25519 do")
}

func readKey(block *pem.Block) (key any, err error) {
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("it is sealed with a passphrase: keep it without one as a secret (helve secrets set)")
	default:
		return nil, fmt.Errorf("it is %q in PEM, and no private key", block.Type)
	}
	if err != nil {
		return nil, errors.New("its PEM holds no private key that can be read")
	}
	return key, nil
}

var ecAlgorithms = map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}

// algorithms returns those that the key can sign by, the best known first.
func (s *signer) algorithms() []string {
	switch k := s.key.(type) {
	case *ecdsa.PrivateKey:
		return []string{ecAlgorithms[k.Curve]}
	case ed25519.PrivateKey:
		return []string{"EdDSA", "Ed25519"}
	}
	return []string{"RS256", "PS256", "RS384", "PS384", "RS512", "PS512"}
}

// choose returns the algorithm to sign by; supported is what the other side
// can check, nil if it does not say.
func (s *signer) choose(supported []string) (string, error) {
	own := s.algorithms()
	if len(supported) == 0 {
		return own[0], nil
	}
	for _, alg := range own {
		if slices.Contains(supported, alg) {
			return alg, nil
		}
	}
	return "", fmt.Errorf("the key signs by %s, and %s are asked for", strings.Join(own, ", "), cut(printable(strings.Join(supported, ", ")), 200))
}

// sign returns a token with those claims, and what else its header is to say.
func (s *signer) sign(alg string, header, claims map[string]any) (string, error) {
	header["alg"] = alg
	if s.id != "" {
		header["kid"] = s.id
	}
	head, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum, err := s.signature(alg, []byte(text))
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sum), nil
}

// signature signs a text as RFC 7518 and RFC 8037 say.
func (s *signer) signature(alg string, text []byte) ([]byte, error) {
	if k, ok := s.key.(ed25519.PrivateKey); ok {
		return ed25519.Sign(k, text), nil
	}
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[2:]]
	h := hash.New()
	h.Write(text)
	sum := h.Sum(nil)
	switch k := s.key.(type) {
	case *ecdsa.PrivateKey:
		x, y, err := ecdsa.Sign(rand.Reader, k, sum)
		if err != nil {
			return nil, err
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		out := make([]byte, 2*size)
		x.FillBytes(out[:size])
		y.FillBytes(out[size:])
		return out, nil
	case *rsa.PrivateKey:
		if strings.HasPrefix(alg, "PS") {
			return rsa.SignPSS(rand.Reader, k, hash, sum, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}
		return rsa.SignPKCS1v15(rand.Reader, k, hash, sum)
	}
	return nil, errors.New("the key signs no tokens")
}

// assertionLife is how long the tokens are good by which a client proves who
// it is. They are made for one request.
const assertionLife = time.Minute

// assertion returns what proves to an authorization server that we are the
// client (RFC 7523, section 3; the audience as the draft of its revision has it).
func (s *signer) assertion(alg, client, issuer string) (string, error) {
	now := time.Now()
	return s.sign(alg, map[string]any{"typ": "JWT"}, map[string]any{"iss": client, "sub": client, "aud": issuer, "jti": secret(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix()})
}

// A proof is the key to which tokens are bound, so that nobody else can use
// them (DPoP, RFC 9449). It signs by ES256 alone, which all know.
type proof struct {
	signer
	jwk map[string]any
}

const proofAlgorithm = "ES256"

// newProof returns a new key, and how it is kept.
func newProof() (p *proof, kept string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	kept = base64.StdEncoding.EncodeToString(der)
	p, err = readProof(kept)
	return p, kept, err
}

// readProof returns a key that was kept.
func readProof(kept string) (*proof, error) {
	der, err := base64.StdEncoding.DecodeString(kept)
	if err != nil {
		return nil, errors.New("the key of the login cannot be read")
	}
	read, err := x509.ParsePKCS8PrivateKey(der)
	key, ok := read.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key of the login cannot be read")
	}
	public, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	return &proof{signer{key: key}, map[string]any{"kty": "EC", "crv": "P-256",
		"x": base64.RawURLEncoding.EncodeToString(public[1:33]), "y": base64.RawURLEncoding.EncodeToString(public[33:])}}, nil
}

// thumbprint returns the digest of the key (RFC 7638).
func (p *proof) thumbprint() string {
	text, _ := json.Marshal(p.jwk) // its keys in their order, as the digest wants them
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// of returns the proof for one request: its method and address, the token that
// it carries ("": none), and what the server gave to be repeated ("": nothing).
func (p *proof) of(method, address, token, nonce string) (string, error) {
	claims := map[string]any{"jti": secret(), "htm": method, "htu": address, "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	return p.sign(proofAlgorithm, map[string]any{"typ": "dpop+jwt", "jwk": p.jwk}, claims)
}
