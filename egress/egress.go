// Package egress is the one way out to the network: an HTTP client that
// reaches public addresses only.
//
// Three gates stand in a row. [ParseURL] refuses text that two readers could
// understand differently. The client's transport refuses ports, local names
// and address literals before anything is resolved, for the first request and
// for every redirect. The dialer resolves a name once, refuses it if any of
// its addresses is refused, and judges the address once more at connect time,
// on the socket: what is judged is what is dialled.
package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

// Defaults of a Policy's limits.
const (
	DefaultMaxRedirects = 10
	DefaultTimeout      = 30 * time.Second
	DefaultMaxBody      = 10 << 20
)

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 256 << 10

// A Resolver finds the addresses of a name; a *net.Resolver is one. Host is a
// name in ASCII, network is "ip". It must be safe for concurrent use.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A Policy says what may be reached, and how much of it. The zero Policy
// reaches public addresses only.
type Policy struct {
	// AllowPrivate are the operator's exceptions among addresses. A metadata
	// address needs an exception of its own (a /32 or a /128): no wider
	// prefix opens it. Local names stay refused.
	AllowPrivate []netip.Prefix

	// AllowHosts are the operator's exceptions among services, each an exact
	// "host:port", such as "127.0.0.1:8080", "[::1]:8080" or "db.internal:80".
	// A name declared here may be local, and may resolve to loopback and
	// private addresses, but to no other special ones. What is malformed
	// (see Validate) allows nothing.
	AllowHosts []string

	MaxRedirects int           // 0: DefaultMaxRedirects; below 0: none is followed, the redirect is the answer
	Timeout      time.Duration // of an exchange, its redirects and its body included; 0: DefaultTimeout; below 0: none
	MaxBody      int64         // bytes of a body, as the caller reads it: after decompression; 0: DefaultMaxBody; below 0: no limit
	Resolver     Resolver      // nil: the system's
}

// Validate reports the first exception that is not well formed.
func (p Policy) Validate() error {
	for i, prefix := range p.AllowPrivate {
		if !prefix.IsValid() {
			return fmt.Errorf("allowed prefix %d is not valid: write one like 10.0.0.0/8", i)
		}
	}
	for _, entry := range p.AllowHosts {
		if _, err := parseHostPort(entry); err != nil {
			return fmt.Errorf("allowed host %q: %v", entry, err)
		}
	}
	return nil
}

// Client returns a client that obeys p. It uses no proxy, keeps no cookies and
// adds no credentials. On a redirect that leaves the origin, only headers that
// say nothing about the caller go along, and a body never does. What it
// refuses is an [*Error] inside the client's *url.Error; [AsError] finds it.
//
// A copy of the client with a shorter Timeout or another CheckRedirect still
// obeys p: addresses are judged below both. Its Transport must stay.
func Client(p Policy) *http.Client {
	d := &dialer{policy: p}
	timeout := or(p.Timeout, DefaultTimeout)
	return &http.Client{
		Timeout:       max(timeout, 0),
		CheckRedirect: p.checkRedirect,
		Transport: &transport{policy: p, next: &http.Transport{
			Proxy:                  nil, // a proxy would dial in our place, unjudged
			DialContext:            d.dial,
			ForceAttemptHTTP2:      true,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    15 * time.Second,
			ExpectContinueTimeout:  time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConns:           32,
			MaxResponseHeaderBytes: maxHeader,
		}},
	}
}

// or returns v, or the default if v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// transport judges requests before they are sent, and caps the bodies that
// come back.
type transport struct {
	policy Policy
	next   *http.Transport
}

// RoundTrip sends a request that the policy allows.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out, err := t.admit(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	if limit := or(t.policy.MaxBody, DefaultMaxBody); limit > 0 {
		resp.Body = &cappedBody{ReadCloser: resp.Body, url: req.URL.String(), limit: limit, left: limit}
	}
	return resp, nil
}

// CloseIdleConnections closes connections that no request uses.
func (t *transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// admit returns the request to send for req, its host in canonical form.
func (t *transport) admit(req *http.Request) (*http.Request, error) {
	raw := req.URL.Redacted()
	switch req.Method {
	case http.MethodConnect, http.MethodTrace:
		return nil, refused(raw, "the method %s is not sent: use one that reads or writes a resource", req.Method)
	}
	at, err := readURL(req.URL)
	if err != nil {
		return nil, err
	}
	if req.Host != "" && req.Host != req.URL.Host {
		return nil, refused(raw, "the Host header says %q: it must be the host of the URL", req.Host)
	}
	if err := t.policy.checkPlace(raw, at); err != nil {
		return nil, err
	}
	host := at.hostIn(req.URL)
	if host == req.URL.Host {
		return req, nil
	}
	out := req.Clone(req.Context())
	out.URL.Host, out.Host = host, ""
	return out, nil
}

// cappedBody fails with ErrTooLarge once the body turns out to be longer than
// the limit; everything up to the limit has been read by then.
type cappedBody struct {
	io.ReadCloser
	url         string
	limit, left int64
	err         error
}

func (b *cappedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 { // the byte above the limit tells a full body from a longer one
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		err = &Error{URL: b.url, Code: CodeExternal, Err: ErrTooLarge,
			Reason: fmt.Sprintf("the body is longer than %d bytes: ask for less, or for a part of it", b.limit)}
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}
