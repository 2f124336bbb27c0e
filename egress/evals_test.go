package egress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helve-ai/helve/egress"
)

// row is a line of safety/urls.jsonl.
type row struct{ URL, Expect, Why, Needs string }

// TestEvaluationData takes every row through the client: what must be refused
// gets an error that says why, and reaches no server; what is allowed passes
// every gate, up to the socket.
func TestEvaluationData(t *testing.T) {
	dir := os.Getenv("HELVE_EVALS")
	if dir == "" {
		t.Skip("set HELVE_EVALS to a folder with the evaluation data to run this")
	}
	f, err := os.Open(filepath.Join(dir, "safety", "urls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.Why, func(t *testing.T) {
			if r.Needs != "" {
				tryStaged(t, r)
				return
			}
			err := try(t, r.URL)
			if (err == nil) != (r.Expect == "allow") {
				t.Errorf("%s: %v, want %s", r.URL, err, r.Expect)
			}
		})
	}
}

// try takes a URL through both gates before the socket, with a resolver that
// knows the public names of loopback and takes all others for public ones.
func try(t *testing.T, raw string) error {
	u, err := egress.CheckURL(raw)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return egress.Policy{}.CheckAddr(addr)
	}
	c := client(t, egress.Policy{Resolver: wildcard{cancel}})
	req, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	if err != nil {
		return err
	}
	_, err = egress.Do(c, req, 0)
	if e := egress.AsError(err); e != nil && e.Code == egress.CodeCancelled {
		return nil // the address was found good, and would now be dialled
	}
	return err
}

// wildcard resolves as the services do whose names spell addresses. It cancels
// the request when it hands out a public one, lest a test leave the machine.
type wildcard struct{ cancel func() }

func (w wildcard) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	parts := strings.SplitN(host, ".", 5)
	if len(parts) == 5 {
		if ip, err := netip.ParseAddr(strings.Join(parts[:4], ".")); err == nil {
			return []netip.Addr{ip}, nil
		}
	}
	if host == "localtest.me" || strings.HasSuffix(host, ".localtest.me") {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	w.cancel()
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// tryStaged plays a row that describes a server or a resolver.
func tryStaged(t *testing.T, r row) {
	location, hits := "", 0
	addr := serve(t, func(w http.ResponseWriter, req *http.Request) {
		hits++
		if location != "" {
			http.Redirect(w, req, location, http.StatusFound)
			return
		}
		w.Write([]byte("a"))
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	})
	public := "public.internal:" + port(addr)
	p := egress.Policy{AllowHosts: []string{public}, Timeout: 50 * time.Millisecond}
	records := map[string]string{"public.internal": "127.0.0.1"}
	start := "http://" + public + "/"
	first, rest, _ := strings.Cut(r.URL, " ")
	switch {
	case strings.HasPrefix(rest, "-> 302 "):
		location, p.Timeout = strings.TrimPrefix(rest, "-> 302 "), 0
	case strings.HasSuffix(rest, " redirects"):
		location, p.Timeout = start, 0
	case strings.HasPrefix(rest, "AAAA "):
		records["aaaa-only.test"], start = strings.TrimPrefix(rest, "AAAA "), first
	case strings.HasPrefix(first, "HTTP_PROXY="):
		t.Setenv("HTTP_PROXY", "http://"+addr)
		records["inner.test"], start = "127.0.0.1", "http://inner.test/"
	case !strings.HasPrefix(r.URL, "slow body"):
		t.Fatalf("this test does not know how to stage %q", r.URL)
	}
	p.Resolver = resolver(records)
	_, err := get(t, client(t, p), start)
	if err == nil || egress.AsError(err).Reason == "" {
		t.Errorf("%s: %v, want an error that says why", r.URL, err)
	}
	if limit := egress.DefaultMaxRedirects + 1; hits > limit {
		t.Errorf("%s: the server was reached %d times", r.URL, hits)
	}
	t.Log(err)
}
