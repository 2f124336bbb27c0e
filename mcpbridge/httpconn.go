package mcpbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// errTooLarge is the error of an answer beyond maxAnswer.
var errTooLarge = fmt.Errorf("the server sent a message of more than %d MiB", maxAnswer>>20)

// An httpTransport carries requests to one server. The operator named it, so
// it may be anywhere; nothing goes anywhere else.
type httpTransport struct {
	base    *http.Transport
	conns   *conns          // of direct calls; nil: they go through base
	life    context.Context // of the connection
	cancel  context.CancelFunc
	address string   // without the user who signs in
	url     *url.URL // of the same; nil: it is none
	agent   string   // what we call ourselves; some doors are shut to the library's name
	headers map[string]string
	account *account    // nil: nobody signs in
	absent  atomic.Bool // the server says that it has no such transport
	direct  *direct     // nil: none
	tally   *tally
	wait    time.Duration // for the first byte of a stream of the server's own news
}

// idleConns is how many connections to a server wait for the next call: two are
// in use by calls that come one after the other, since the end of an answer is
// read behind the next one.
const idleConns = 64

// maxRedirects is how often a request is sent on, within one server.
const maxRedirects = 5

func newHTTPTransport(s *upstream) *httpTransport {
	w := s.full()
	t := &httpTransport{agent: strings.TrimSuffix("helve/"+s.o.Version, "/"), headers: w.Headers, account: w.account, wait: s.startTimeout(), base: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment, // the operator has named the address: nobody has to judge where it leads
		ResponseHeaderTimeout: max(s.startTimeout(), s.callTimeout()), TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: idleConns, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 1 << 20}}
	t.address = w.URL
	t.url, _ = url.Parse(w.URL) // a bad one fails with the first request
	if t.url != nil && t.url.User != nil {
		t.signIn(t.url.User)
	}
	t.life, t.cancel = context.WithCancel(context.Background())
	if peeks && t.url != nil && t.url.Scheme == "http" && isASCII(t.url.Host) && !t.proxied() {
		t.conns = &conns{addr: net.JoinHostPort(t.url.Hostname(), cmp.Or(t.url.Port(), "80")),
			wait: t.base.ResponseHeaderTimeout, most: t.base.MaxResponseHeaderBytes}
	}
	return t
}

// proxied reports whether the environment wants requests to go by a proxy, or
// is wrong about that.
func (t *httpTransport) proxied() bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: t.url})
	return proxy != nil || err != nil
}

// trip makes a request.
func (t *httpTransport) trip(r *http.Request) (*http.Response, error) {
	if ex := exchangeOf(r.Context()); ex != nil && t.conns.suits(r) {
		return t.conns.roundTrip(r, ex)
	}
	return t.base.RoundTrip(r)
}

// signIn sends the user part of the address as browsers do, and takes it out of
// the address, which errors tell.
func (t *httpTransport) signIn(user *url.Userinfo) {
	at := *t.url
	at.User = nil
	t.url, t.address = &at, at.String()
	for name := range t.headers {
		if strings.EqualFold(name, "Authorization") {
			return
		}
	}
	r := http.Request{Header: http.Header{}}
	password, _ := user.Password()
	r.SetBasicAuth(user.Username(), password)
	if t.headers = maps.Clone(t.headers); t.headers == nil {
		t.headers = map[string]string{}
	}
	t.headers["Authorization"] = r.Header.Get("Authorization")
}

func (t *httpTransport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case !t.same(r.URL):
			return fmt.Errorf("the server sends requests on to %s, which is another: its headers are not for it", r.URL.Host)
		case len(via) > maxRedirects:
			return errors.New("the server sends requests on and on")
		}
		return nil
	}}
}

// close ends all requests.
func (t *httpTransport) close() {
	t.cancel()
	t.base.CloseIdleConnections()
	if t.conns != nil {
		t.conns.close()
	}
}

func (t *httpTransport) same(u *url.URL) bool {
	return t.url != nil && u.Scheme == t.url.Scheme && u.Host == t.url.Host
}

// RoundTrip sends a request with the operator's headers. The answer ends with
// the connection, and its size is bounded unless it is a stream, whose events
// are bounded one by one.
func (t *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.same(r.URL) {
		return nil, fmt.Errorf("%s is not the server's address", r.URL.Host)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.life, cancel)
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", t.agent)
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	if err := t.rename(r); err != nil {
		cancel()
		return nil, err
	}
	if r.Method == http.MethodGet {
		timer := time.AfterFunc(t.wait, cancel)
		defer timer.Stop()
	}
	resp, err := t.account.send(r, t.heed)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	if absent(r, resp) {
		t.absent.Store(true)
	}
	body := &boundedBody{ReadCloser: resp.Body, left: maxAnswer, done: func() { stop(); cancel() }}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body.left = -1
		resp.Body = &tallied{ReadCloser: &rest{transform.NewReader(body, runes.ReplaceIllFormed()), body}, tally: t.tally} // as wellFormed
		if call := callOf(r.Context()); call != nil && !isComplete(r.Context()) {
			resp.Body = newMarkedStream(resp.Body, call.mark)
		}
		return resp, nil
	}
	resp.Body = body
	return readWhole(r, resp)
}

// A boundedBody fails when more is read than allowed.
type boundedBody struct {
	io.ReadCloser
	left int64 // negative: no bound
	done func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	if b.left == 0 {
		var probe [1]byte
		if n, err := b.ReadCloser.Read(probe[:]); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// isASCII reports whether a host is written as it is dialled.
func isASCII(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf })
}
