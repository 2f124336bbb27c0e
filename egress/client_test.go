package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/helve-ai/helve/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is a resolver of a few names that counts what it is asked.
type names struct {
	addrs map[string][]netip.Addr
	mu    sync.Mutex
	asked []string
}

func resolver(addrs map[string]string) *names {
	n := &names{addrs: map[string][]netip.Addr{}}
	for name, list := range addrs {
		for a := range strings.FieldsSeq(list) {
			n.addrs[name] = append(n.addrs[name], netip.MustParseAddr(a))
		}
	}
	return n
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	addrs, ok := n.addrs[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

// serve starts a server on the loopback interface and returns its host:port.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// port returns the port of a host:port.
func port(hostport string) string { return hostport[strings.LastIndexByte(hostport, ':')+1:] }

// client returns a client that is closed with the test.
func client(t *testing.T, p egress.Policy) *http.Client {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	c := egress.Client(p)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get fetches a URL, without ParseURL: the client's own gates must hold.
func get(t *testing.T, c *http.Client, rawURL string) (*egress.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return egress.Do(c, req, 0)
}

// wantError checks an error's code, and what its sentence has in it.
func wantError(t *testing.T, err error, code egress.Code, retryable bool, parts ...string) {
	t.Helper()
	var e *egress.Error
	if !errors.As(err, &e) || e.Code != code || e.Retryable != retryable {
		t.Errorf("error %v (%+v), want code %s, retryable %t", err, e, code, retryable)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}

func TestReachesDeclaredHosts(t *testing.T) {
	var host atomic.Value
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		io.WriteString(w, "hello")
	})
	c := client(t, egress.Policy{
		AllowHosts: []string{addr, "tools.internal:" + port(addr), "linked.internal:" + port(addr)},
		Resolver: resolver(map[string]string{
			"tools.internal":  "127.0.0.2 127.0.0.1", // the first does not answer
			"linked.internal": "169.254.1.1",
		}),
	})
	for _, name := range []string{addr, "tools.internal:" + port(addr), "TOOLS.internal:" + port(addr)} {
		resp, err := get(t, c, "http://"+name+"/x")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := string(resp.Body); got != "hello" || resp.Code != 200 || resp.Status != "200 OK" || resp.Truncated {
			t.Errorf("%s: %q, %+v", name, got, resp)
		}
		if want := strings.ToLower(name); host.Load() != want {
			t.Errorf("%s: the server was asked for host %q, want %q", name, host.Load(), want)
		}
	}
	_, err := get(t, c, "http://linked.internal:"+port(addr)+"/")
	wantError(t, err, egress.CodeRefused, false, "linked.internal leads to", "link-local")
}

func TestRefusesBeforeDialling(t *testing.T) {
	var hits atomic.Int32
	addr := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	stub := resolver(map[string]string{
		"loop.test":   "127.0.0.1",
		"both.test":   "93.184.216.34 127.0.0.1",
		"mapped.test": "::ffff:127.0.0.1",
		"nat.test":    "64:ff9b::127.0.0.1",
		"six.test":    "::1",
		"meta.test":   "169.254.169.254",
		"zone.test":   "fe80::1%lo",
		"empty.test":  "",
		"localhost":   "127.0.0.1",
	})
	c := client(t, egress.Policy{Resolver: stub, AllowHosts: []string{"127.0.0.1:1"}})
	for url, want := range map[string]string{
		"http://127.0.0.1:PORT/":          "loopback",
		"http://[::ffff:127.0.0.1]:PORT/": "IPv4 address in IPv6 form",
		"http://0.0.0.0:PORT/":            "unspecified",
		"http://localhost:PORT/":          "local name",
		"http://localhost.:PORT/":         "ends in a dot",
		"http://2130706433:PORT/":         "four decimal numbers",
		"http://①②⑦.⓪.⓪.①:PORT/":          "stands for",
		"http://user@example.com:PORT/":   "user name",
		"http://loop.test:PORT/":          "loop.test leads to a refused address: 127.0.0.1 is a loopback",
		"http://both.test:PORT/":          "both.test leads to a refused address: 127.0.0.1",
		"http://mapped.test:PORT/":        "127.0.0.1 is a loopback",
		"http://nat.test:PORT/":           "127.0.0.1 is a loopback",
		"http://six.test:PORT/":           "::1 is a loopback",
		"http://meta.test/":               "metadata",
		"http://zone.test/":               "zone",
		"http://empty.test/":              "no host empty.test",
		"http://nowhere.test/":            "no host nowhere.test",
		"http://loop.test:22/":            "port 22",
		"ftp://loop.test/":                "only http and https",
	} {
		url = strings.Replace(url, "PORT", port(addr), 1)
		_, err := get(t, c, url)
		var e *egress.Error
		if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Reason, want) || e.URL == "" {
			t.Errorf("%s: %v, want an error with %q in it", url, err, want)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the server was reached %d times", hits.Load())
	}
	for _, name := range stub.asked {
		if name == "localhost" || strings.Contains(name, "127") {
			t.Errorf("the resolver was asked for %q", name)
		}
	}
}

// A name is resolved once for a connection: a resolver that changes its mind
// after the check changes nothing.
func TestResolvesOnce(t *testing.T) {
	addr := serve(t, func(http.ResponseWriter, *http.Request) {})
	stub := resolver(map[string]string{"tools.internal": "127.0.0.1"})
	c := client(t, egress.Policy{AllowHosts: []string{"tools.internal:" + port(addr)}, Resolver: stub})
	for range 3 {
		if _, err := get(t, c, "http://tools.internal:"+port(addr)+"/"); err != nil {
			t.Fatal(err)
		}
	}
	if len(stub.asked) != 1 {
		t.Errorf("the resolver was asked %d times for one connection", len(stub.asked))
	}
}

func TestRefusesRequests(t *testing.T) {
	addr := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := client(t, egress.Policy{AllowHosts: []string{addr}})
	for _, test := range []struct {
		change func(*http.Request)
		want   string
	}{
		{func(r *http.Request) { r.Host = "other.example" }, "Host header"},
		{func(r *http.Request) { r.Method = "CONNECT" }, "CONNECT"},
		{func(r *http.Request) { r.Method = "TRACE" }, "TRACE"},
		{func(r *http.Request) { r.URL = &url.URL{Scheme: "http", Opaque: "//" + addr, Host: addr} }, "host is missing"},
	} {
		req, err := http.NewRequest("POST", "http://"+addr+"/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body := &closed{Reader: req.Body}
		req.Body = body
		test.change(req)
		_, err = egress.Do(c, req, 0)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q in it", err, test.want)
		}
		if !body.closed {
			t.Errorf("%s: the request's body was left open", test.want)
		}
	}
}

type closed struct {
	io.Reader
	closed bool
}

func (c *closed) Close() error { c.closed = true; return nil }

func TestRedirects(t *testing.T) {
	var inner atomic.Int32
	secret := serve(t, func(http.ResponseWriter, *http.Request) { inner.Add(1) })
	outer := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			io.WriteString(w, "end")
			return
		}
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(302)
	})
	public := "public.internal:" + port(outer)
	c := client(t, egress.Policy{
		AllowHosts: []string{public},
		Resolver:   resolver(map[string]string{"public.internal": "127.0.0.1", "rebound.test": "127.0.0.1"}),
	})
	for to, want := range map[string]string{
		"http://" + secret + "/":                     "loopback",
		"//" + secret + "/":                          "loopback",
		"http://rebound.test:" + port(secret) + "/":  "rebound.test leads to",
		"http://localhost:" + port(secret) + "/":     "local name",
		"http://169.254.169.254/latest/meta-data/":   "metadata",
		"http://[::ffff:169.254.169.254]/":           "IPv6 form",
		"http://0x7f.1:" + port(secret) + "/":        "four decimal numbers",
		"http://①②⑦.⓪.⓪.①:" + port(secret) + "/":     "stands for",
		"http://public.internal:22/":                 "local name",
		"http://a:b@" + public + "/end":              "user name",
		"file:///etc/passwd":                         "only http and https",
		"gopher://127.0.0.1:6379/_FLUSHALL":          "only http and https",
		"javascript:alert(1)":                        "only http and https",
		"http:" + secret:                             "host is missing",
		`http://` + secret + `\@` + public + `/`:     "Location",
		"http://" + public + "/?to=http://127.0.0.1": "loopback",
	} {
		_, err := get(t, c, "http://"+public+"/?to="+url.QueryEscape(to))
		var e *egress.Error
		if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Error(), want) {
			t.Errorf("redirect to %s: %v, want an error with %q in it", to, err, want)
		}
	}
	if inner.Load() != 0 {
		t.Errorf("redirects reached the inner server %d times", inner.Load())
	}
	for _, to := range []string{"/end", "end", "http://" + public + "/end", "//" + public + "/end"} {
		resp, err := get(t, c, "http://"+public+"/?to="+url.QueryEscape(to))
		if err != nil || string(resp.Body) != "end" || resp.FinalURL != "http://"+public+"/end" {
			t.Errorf("redirect to %s: %+v, %v", to, resp, err)
		}
	}
}

func TestRedirectLimit(t *testing.T) {
	var hits atomic.Int32
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		var n int
		fmt.Sscan(r.URL.Path[1:], &n)
		if n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
		}
	})
	for _, test := range []struct {
		max, redirects int
		ok             bool
		code, hits     int
	}{
		{0, 10, true, 200, 11},
		{0, 20, false, 0, 11},
		{2, 2, true, 200, 3},
		{2, 3, false, 0, 3},
		{-1, 3, true, 302, 1},
	} {
		hits.Store(0)
		c := client(t, egress.Policy{AllowHosts: []string{addr}, MaxRedirects: test.max})
		resp, err := get(t, c, fmt.Sprintf("http://%s/%d", addr, test.redirects))
		if !test.ok {
			wantError(t, err, egress.CodeExternal, false, "too many redirects")
		} else if err != nil || resp.Code != test.code {
			t.Errorf("%+v: %+v, %v", test, resp, err)
		}
		if int(hits.Load()) != test.hits {
			t.Errorf("%+v: %d requests", test, hits.Load())
		}
	}
}

// What the operator declared is for the agent to reach, not for pages of
// others to point at.
func TestRedirectFromPublicToDeclared(t *testing.T) {
	var hits atomic.Int32
	declared := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	open := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+declared+"/", http.StatusFound)
	})
	c := client(t, egress.Policy{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // stands for the public network
		AllowHosts:   []string{declared},
	})
	_, err := get(t, c, "http://"+open+"/")
	wantError(t, err, egress.CodeRefused, false, declared, "that the operator declared")
	if hits.Load() != 0 {
		t.Error("the declared host was reached")
	}
}

func TestHeadersOnRedirect(t *testing.T) {
	sent := map[string][]string{
		"Authorization": {"Bearer s"}, "Cookie": {"a=b"}, "X-Api-Key": {"s"}, "Proxy-Authorization": {"s"}, "Referer": {"http://x.example/s"},
		"Accept": {"text/html"}, "User-Agent": {"helve"}, "Accept-Language": {"de"},
	}
	var got http.Header
	var home string
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, "http://"+home+"/show", http.StatusFound)
			return
		}
		got = r.Header
	})
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		got = r.Header
	})
	c := client(t, egress.Policy{AllowHosts: []string{home, away}})
	secrets := []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer", "X-Api-Key"}
	for _, test := range []struct {
		to   string
		want []string
	}{
		{"/show", secrets},
		{"http://" + home + "/show", secrets},
		{"http://" + away + "/show", nil}, // another port is another origin
		{"http://" + away + "/back", nil}, // and coming back does not restore anything
	} {
		req, err := http.NewRequest("GET", "http://"+home+"/?to="+url.QueryEscape(test.to), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = maps.Clone(sent)
		if _, err := egress.Do(c, req, 0); err != nil {
			t.Fatal(err)
		}
		var arrived []string
		for _, name := range secrets {
			if got.Get(name) != "" {
				arrived = append(arrived, name)
			}
		}
		if !slices.Equal(arrived, test.want) {
			t.Errorf("redirect to %s: %q arrived, want %q", test.to, arrived, test.want)
		}
		if got.Get("Accept") != "text/html" || got.Get("User-Agent") != "helve" || got.Get("Accept-Language") != "de" {
			t.Errorf("redirect to %s: plain headers were lost: %v", test.to, got)
		}
	}
}

func TestBodyOnRedirect(t *testing.T) {
	var got atomic.Value
	away := serve(t, func(w http.ResponseWriter, r *http.Request) { got.Store(r.Method) })
	home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/show" {
			body, _ := io.ReadAll(r.Body)
			got.Store(string(body))
			return
		}
		code := 307
		if r.URL.Path == "/other" {
			code = 303
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), code)
	})
	c := client(t, egress.Policy{AllowHosts: []string{home, away}})
	for _, test := range []struct{ path, want string }{
		{"/same?to=/show", "payload"},
		{"/other?to=http://" + away + "/", "GET"},
		{"/same?to=http://" + away + "/", ""},
	} {
		got.Store("")
		req, err := http.NewRequest("POST", "http://"+home+test.path, strings.NewReader("payload"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = egress.Do(c, req, 0)
		if got.Load() != test.want {
			t.Errorf("%s: arrived %q, want %q", test.path, got.Load(), test.want)
		}
		if test.want != "" && err != nil {
			t.Errorf("%s: %v", test.path, err)
		} else if test.want == "" {
			wantError(t, err, egress.CodeRefused, false, "body to another origin")
		}
	}
}

func TestNoProxy(t *testing.T) {
	var hits atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://"+proxy)
	}
	c := client(t, egress.Policy{Resolver: resolver(map[string]string{"loop.test": "127.0.0.1"}), AllowHosts: []string{proxy}})
	_, err := get(t, c, "http://loop.test/")
	wantError(t, err, egress.CodeRefused, false, "loopback")
	if hits.Load() != 0 {
		t.Error("the proxy was used")
	}
}

func TestBodyCap(t *testing.T) {
	bomb := gzipped(t, 8<<20)
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb)
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		default:
			var n int
			fmt.Sscan(r.URL.Path[1:], &n)
			w.Write(make([]byte, n))
		}
	})
	const limit = 1 << 20
	c := client(t, egress.Policy{AllowHosts: []string{addr}, MaxBody: limit})
	for _, test := range []struct {
		path      string
		max       int64
		want      int
		truncated bool
	}{
		{"0", 0, 0, false},
		{"1048575", 0, limit - 1, false},
		{"1048576", 0, limit, false},
		{"1048577", 0, limit, true},
		{"bomb", 0, limit, true},
		{"endless", 0, limit, true},
		{"100", 100, 100, false},
		{"101", 100, 100, true},
		{"bomb", 100, 100, true},
		{"1048577", 2 * limit, limit, true},
	} {
		req, err := http.NewRequest("GET", "http://"+addr+"/"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := egress.Do(c, req, test.max)
		if err != nil || len(resp.Body) != test.want || resp.Truncated != test.truncated {
			t.Errorf("%+v: %v, %d bytes, truncated %t", test, err, len(resp.Body), resp.Truncated)
		}
	}
	resp, err := c.Get("http://" + addr + "/bomb")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if n != limit || !errors.Is(err, egress.ErrTooLarge) {
		t.Errorf("a reader of the client's body got %d bytes and %v, want %d and ErrTooLarge", n, err, limit)
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, egress.ErrTooLarge) {
		t.Errorf("reading on: %d, %v", n, err)
	}
	free := client(t, egress.Policy{AllowHosts: []string{addr}, MaxBody: -1})
	if resp, err := get(t, free, "http://"+addr+"/bomb"); err != nil || len(resp.Body) != 8<<20 {
		t.Errorf("without a limit: %v", err)
	}
}

// gzipped returns n zeros, compressed.
func gzipped(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTimeoutCoversTheBody(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done() // the rest never comes
	})
	c := client(t, egress.Policy{AllowHosts: []string{addr}, Timeout: 50 * time.Millisecond})
	for _, path := range []string{"/head", "/body"} {
		_, err := get(t, c, "http://"+addr+path)
		wantError(t, err, egress.CodeTimeout, true, "http://"+addr+path)
	}
	patient := client(t, egress.Policy{AllowHosts: []string{addr}, Timeout: -1})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/body", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := patient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	_, err = io.ReadAll(resp.Body)
	wantError(t, egress.AsError(err), egress.CodeCancelled, false)
}

func TestFailures(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	vacant := listener.Addr().String()
	listener.Close()
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
		conn.Close()
	})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	cert := secure.Listener.Addr().String()
	c := client(t, egress.Policy{
		AllowHosts: []string{vacant, plain, cert},
		Resolver:   failing{&net.DNSError{Err: "server misbehaving", Name: "x.test", IsTemporary: true}},
	})
	for _, test := range []struct {
		url, want string
		retryable bool
	}{
		{"http://" + vacant + "/", "connect", true},
		{"http://" + plain + "/", "closed the connection before", true},
		{"https://" + plain + "/", "does not speak TLS", false},
		{"https://" + cert + "/", "certificate is not trusted", false},
		{"http://x.test/", "could not be resolved", true},
	} {
		_, err := get(t, c, test.url)
		wantError(t, err, egress.CodeExternal, test.retryable, test.url, test.want)
	}
	if egress.AsError(nil) != nil {
		t.Error("no error is an error")
	}
}

type failing struct{ err error }

func (f failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, f.err
}
