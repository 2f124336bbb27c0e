package mcpbridge

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

func inPEM(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func pkcs8(t *testing.T, key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return inPEM(t, "PRIVATE KEY", der, err)
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Each kind of key signs what its public part verifies, by each algorithm.
func TestSigning(t *testing.T) {
	ec := func(c elliptic.Curve) *ecdsa.PrivateKey {
		return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(c, rand.Reader))
	}
	p256, p384, p521 := ec(elliptic.P256()), ec(elliptic.P384()), ec(elliptic.P521())
	long := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(p256)
	for name, row := range map[string]struct {
		pem  string
		key  crypto.Signer
		algs string
	}{
		"P-256":   {pkcs8(t, p256), p256, "ES256"},
		"SEC 1":   {inPEM(t, "EC PRIVATE KEY", sec1, err), p256, "ES256"},
		"P-384":   {pkcs8(t, p384), p384, "ES384"},
		"P-521":   {pkcs8(t, p521), p521, "ES512"},
		"RSA":     {pkcs8(t, long), long, "RS256 PS256 RS384 PS384 RS512 PS512"},
		"PKCS #1": {inPEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(long), nil), long, "RS256"},
		"Ed25519": {pkcs8(t, ed), ed, "EdDSA Ed25519"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := readSigner("\n"+row.pem, "k1")
			if err != nil {
				t.Fatal(err)
			}
			for _, alg := range strings.Fields(row.algs) {
				if got, err := s.choose([]string{"HS256", alg}); got != alg || err != nil {
					t.Errorf("of %s is chosen %s, %v", alg, got, err)
				}
				token, err := s.assertion(alg, "me", "https://as.example")
				if err != nil {
					t.Fatal(err)
				}
				parts := strings.Split(token, ".")
				signature, err := base64.RawURLEncoding.DecodeString(parts[2])
				if err != nil || !verifies(row.key.Public(), alg, parts[0]+"."+parts[1], signature) {
					t.Errorf("%s: the signature is wrong (%v)", alg, err)
				}
				var head struct{ Alg, Kid, Typ string }
				text, _ := base64.RawURLEncoding.DecodeString(parts[0])
				if json.Unmarshal(text, &head) != nil || head.Alg != alg || head.Kid != "k1" || head.Typ != "JWT" {
					t.Errorf("the header is %s", text)
				}
				if c, err := claimsOf(token); err != nil || c["iss"] != "me" || c["sub"] != "me" || c["aud"] != "https://as.example" || c["exp"].(float64)-c["iat"].(float64) != 60 {
					t.Errorf("%v, %v", c, err)
				}
			}
			if _, err := s.choose([]string{"HS256"}); err == nil || !strings.Contains(err.Error(), "HS256 are asked for") {
				t.Error(err)
			}
		})
	}
}

func verifies(public crypto.PublicKey, alg, text string, signature []byte) bool {
	if k, ok := public.(ed25519.PublicKey); ok {
		return ed25519.Verify(k, []byte(text), signature)
	}
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[2:]]
	h := hash.New()
	h.Write([]byte(text))
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		half := len(signature) / 2
		return half == (k.Params().BitSize+7)/8 && ecdsa.Verify(k, h.Sum(nil), new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	case *rsa.PublicKey:
		if strings.HasPrefix(alg, "PS") {
			return rsa.VerifyPSS(k, hash, h.Sum(nil), signature, nil) == nil
		}
		return rsa.VerifyPKCS1v15(k, hash, h.Sum(nil), signature) == nil
	}
	return false
}

// What is no key that can sign is told of, and not shown.
func TestBadKeys(t *testing.T) {
	public, err := x509.MarshalPKIXPublicKey(must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public())
	p224 := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	for want, text := range map[string]string{
		"not a private key in PEM":   "aHVudGVyMg==",
		"and no private key":         inPEM(t, "PUBLIC KEY", public, err),
		"passphrase":                 inPEM(t, "ENCRYPTED PRIVATE KEY", []byte("hunter2"), nil),
		"holds no private key":       inPEM(t, "PRIVATE KEY", []byte("hunter2"), nil),
		"of a kind that signs no to": pkcs8(t, p224),
	} {
		if _, err := readSigner(text, ""); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// The digest of a key is made of its members in the order of RFC 7638, and is
// the same after the key was kept.
func TestKeptProof(t *testing.T) {
	p, kept, err := newProof()
	if err != nil {
		t.Fatal(err)
	}
	again, err := readProof(kept)
	if err != nil || again.thumbprint() != p.thumbprint() {
		t.Errorf("%v", err)
	}
	text, _ := json.Marshal(p.jwk)
	if !strings.HasPrefix(string(text), `{"crv":"P-256","kty":"EC","x":"`) {
		t.Errorf("the members are not in the order that the digest wants: %s", text)
	}
	if _, err := readProof("AAAA"); err == nil {
		t.Error("a key that is none was read")
	}
}
