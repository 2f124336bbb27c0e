package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/idna"

	"github.com/helve-ai/helve/egress"
)

func TestParseURL(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{"https://example.com/", "https://example.com/"},
		{"HTTPS://Example.COM/A?b=c#d", "https://example.com/A?b=c#d"},
		{"http://example.com", "http://example.com"},
		{"http://example.com?q=a%20b", "http://example.com?q=a%20b"},
		{"http://example.com:8080/", "http://example.com:8080/"},
		{"http://a_b.r3---sn-x.example.com/", "http://a_b.r3---sn-x.example.com/"},
		{"http://93.184.216.34/", "http://93.184.216.34/"},
		{"http://[2606:2800:0220::1]:81/", "http://[2606:2800:220::1]:81/"},
		{"http://[2606:2800:0220::1]/", "http://[2606:2800:220::1]/"},
		{"https://XN--bcher-kva.example/", "https://xn--bcher-kva.example/"},
		{"https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"},
		{"https://1.example/", "https://1.example/"},
		{"http://127.0.0.1:8080/", "http://127.0.0.1:8080/"}, // text only: the policy judges
	} {
		u, err := egress.ParseURL(test.raw)
		if err != nil {
			t.Errorf("ParseURL(%q): %v", test.raw, err)
		} else if u.String() != test.want {
			t.Errorf("ParseURL(%q) = %q, want %q", test.raw, u, test.want)
		}
	}
}

func TestParseURLErrors(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{"", "the URL is empty"},
		{"example.com/x", "must begin with https://"},
		{"example.com:80/x", "must begin with https://"},
		{"//example.com/", "must begin with https://"},
		{"ftp://example.com/", `the scheme is "ftp"`},
		{"file:///etc/passwd", `the scheme is "file"`},
		{"javascript:alert(1)", `the scheme is "javascript"`},
		{"http:example.com", "two slashes must follow"},
		{"http:/example.com", "two slashes must follow"},
		{"http:///example.com", "the host is missing"},
		{"http://:80/", "the host"},
		{"http://?x", "the host is missing"},
		{" http://example.com/", "a space at byte 0"},
		{"http://example.com/ ", "a space at byte 19"},
		{"http://example.com/a b", "a space at byte 20"},
		{"http://exam\tple.com/", "a space at byte 11"},
		{"http://example.com/\r\nX: y", "a space at byte 19"},
		{"http://example.com/\x00", "invisible character (U+0000)"},
		{"http://exa\u200bmple.com/", "invisible character (U+200B)"},
		{"http://exa\u00admple.com/", "invisible character (U+00AD)"},
		{"http://example.com/\xff", "not valid UTF-8"},
		{`http://127.0.0.1\@example.com/`, "a backslash at byte 16"},
		{`http:\\example.com/`, "a backslash at byte 5"},
		{"http://user:secret@example.com/", "user name or password"},
		{"http://@example.com/", "user name or password"},
		{"http://[fe80::1%25eth0]/", "has a zone"},
		{"http://127.0.0.1%00.example.com/", "percent-encoded"},
		{"http://%6c%6f%63alhost/", "percent-encoded"},
		{"http://127.1/", "four decimal numbers"},
		{"http://2130706433/", "four decimal numbers"},
		{"http://0x7f000001/", "four decimal numbers"},
		{"http://0x7f.0x0.0x0.0x1/", "four decimal numbers"},
		{"http://0177.0.0.1/", "four decimal numbers"},
		{"http://127.0.0.01/", "four decimal numbers"},
		{"http://256.256.256.256/", "four decimal numbers"},
		{"http://1.2.3.4.5/", "four decimal numbers"},
		{"http://example.0x/", "four decimal numbers"},
		{"http://0.0.0.0b1/", "four decimal numbers"},
		{"http://1.2.3.99999999999999999999999999/", "four decimal numbers"},
		{"http://0xfffffffffffffffffffffff/", "four decimal numbers"},
		{"http://①②⑦.⓪.⓪.①/", `stands for "127"`},
		{"http://127.0.0.①/", "not a name"},
		{"http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", `stands for "localhost"`},
		{"http://ｅｘａｍｐｌｅ.com/", `stands for "example"`},
		{"http://127。0。0。1/", `stands for "127.0.0.1"`},
		{"http://xn--localhost-/", "not valid"},
		{"http://١٢٧.٠.٠.١/", "not valid"},
		{"http://localhost./", "ends in a dot"},
		{"http://example.com./", "ends in a dot"},
		{"http://a..b/", "nothing between two dots"},
		{"http://.a/", "nothing between two dots"},
		{"http://exam!ple.com/", `'!' may not stand in it`},
		{"http://" + strings.Repeat("a", 64) + ".com/", "longer than 63 bytes"},
		{"http://" + strings.Repeat("abc.", 64) + "com/", "253 at most"},
		{"http://example.com/" + strings.Repeat("a", 9000), "8192 are the limit"},
		{"http://example.com:/", "a port must follow the colon"},
		{"http://example.com:0/", `the port "0"`},
		{"http://example.com:65536/", `the port "65536"`},
		{"http://example.com:080/", `the port "080"`},
		{"http://example.com:http/", "not a URL"},
		{"http://[::ffff:8.8.8.8]/", "write 8.8.8.8"},
		{"http://[::1/", "not a URL"},
		{"http://[8.8.8.8]/", "not"},
		{"http://[2606::1]x/", "not a URL"},
		{"http://example.com/%zz", "not a URL"},
	} {
		u, err := egress.ParseURL(test.raw)
		var e *egress.Error
		switch {
		case err == nil:
			t.Errorf("ParseURL(%q) = %q, want an error", test.raw, u)
		case !errors.As(err, &e) || e.Code != egress.CodeInvalid || e.Retryable:
			t.Errorf("ParseURL(%q): %#v, want an Error that says validation_error, once and for all", test.raw, err)
		case !strings.Contains(e.Reason, test.want):
			t.Errorf("ParseURL(%q): %q, want %q in it", test.raw, e.Reason, test.want)
		}
	}
}

func TestCheckURLRefuses(t *testing.T) {
	for _, raw := range []string{
		"http://localhost/", "http://LOCALHOST:8080/", "http://a.localhost/", "http://printer.local/",
		"http://metadata.google.internal/", "http://internal/", "http://intranet/", "http://router.lan/", "http://home.arpa/", "http://api.default.svc/",
		"http://127.0.0.1/", "http://10.0.0.1/", "http://[::1]/", "http://[::]/", "http://0.0.0.0/",
		"http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[::127.0.0.1]/", "http://169.254.169.254/latest/meta-data/",
		"http://example.com:22/", "https://example.com:25/", "http://93.184.216.34:6667/",
	} {
		_, err := egress.CheckURL(raw)
		var e *egress.Error
		if !errors.As(err, &e) || e.Code != egress.CodeRefused || e.URL != raw {
			t.Errorf("CheckURL(%q): %v, want a refusal that names it", raw, err)
		}
	}
}

func TestExceptions(t *testing.T) {
	p := egress.Policy{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("168.63.129.16/32")},
		AllowHosts:   []string{"127.0.0.1:8080", "[::1]:22", "localhost:9000", "Intranet:80", "nonsense"},
	}
	for raw, want := range map[string]bool{
		"http://127.0.0.1:8080/":       true,
		"http://127.0.0.1:8081/":       false,
		"http://127.0.0.1/":            false,
		"http://[::1]:22/":             true, // declared: the operator knows what listens there
		"http://[::1]:23/":             false,
		"http://localhost:9000/":       true,
		"http://localhost:8080/":       false,
		"http://INTRANET/":             true,
		"https://intranet/":            false,
		"http://10.1.2.3/":             true,
		"http://10.1.2.3:22/":          false,
		"http://10.2.2.3/":             false,
		"http://[64:ff9b::10.1.2.3]/":  true,
		"http://[64:ff9b::10.2.2.3]/":  false,
		"http://169.254.1.1/":          true,
		"http://169.254.169.254/":      false, // a wide prefix does not open metadata
		"http://168.63.129.16/":        true,
		"http://nonsense/":             false,
		"http://user@127.0.0.1:8080/":  false,
		"http://127.0.0.1:8080%2f.com": false,
	} {
		if _, err := p.CheckURL(raw); (err == nil) != want {
			t.Errorf("CheckURL(%q): %v, want allowed: %t", raw, err, want)
		}
	}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `allowed host "nonsense": a host and a port are needed`) {
		t.Errorf("Validate: %v, want it to name the malformed host", err)
	}
	if err := (egress.Policy{AllowPrivate: make([]netip.Prefix, 1)}).Validate(); err == nil {
		t.Error("Validate accepts the zero prefix")
	}
}

// lenient reads s as the C library's inet_aton does: one to four numbers,
// decimal, octal or hexadecimal, the last of which fills what is left.
func lenient(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 64)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || n>>bits != 0 {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// readings returns what different readers might make of a host.
func readings(host string) []string {
	all := []string{host}
	for _, profile := range []*idna.Profile{idna.Punycode, idna.Lookup, idna.Display, idna.Registration, idna.New(idna.MapForLookup(), idna.Transitional(true))} {
		for _, read := range []func(string) (string, error){profile.ToASCII, profile.ToUnicode} {
			if s, err := read(host); err == nil {
				all = append(all, s)
			}
		}
	}
	if s, err := url.PathUnescape(host); err == nil {
		all = append(all, s)
	}
	return all
}

// FuzzCheckURL holds CheckURL to its law: whoever reads an accepted URL, in
// whatever way, reads neither localhost nor an address that is refused.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/", "http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://①②⑦.⓪.⓪.①/",
		"http://localhost./", "http://xn--bcher-kva.example:81/x?y#z", "http://a@b/", "http://%31/", "http://[fe80::1%25eth0]/",
		"http://1.2.3.4", "http://017700000001/", "http://[::127.0.0.1]:80", "http://ＬＯＣＡＬＨＯＳＴ/", "http://127。0.0.1/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := egress.CheckURL(raw)
		if err != nil {
			var e *egress.Error
			if !errors.As(err, &e) || e.Reason == "" {
				t.Fatalf("CheckURL(%q): %v is no Error with a reason", raw, err)
			}
			return
		}
		again, err := egress.CheckURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("CheckURL(%q) = %q, which is then read as %v, %v", raw, u, again, err)
		}
		parsed, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("CheckURL(%q) accepts what net/url does not: %v", raw, err)
		}
		for _, host := range append(readings(u.Hostname()), readings(parsed.Hostname())...) {
			host = strings.ToLower(strings.TrimRight(host, "."))
			if host == "localhost" || strings.HasSuffix(host, ".localhost") {
				t.Fatalf("CheckURL(%q) accepts localhost, read as %q", raw, host)
			}
			ip, err := netip.ParseAddr(host)
			if err != nil {
				var ok bool
				if ip, ok = lenient(host); !ok {
					continue
				}
			}
			if err := (egress.Policy{}).CheckAddr(ip); err != nil {
				t.Fatalf("CheckURL(%q) accepts an address, read as %q: %v", raw, host, err)
			}
		}
	})
}

func BenchmarkCheckURL(b *testing.B) {
	for _, raw := range []string{"https://example.com/a/b?c=d", "https://bücher.example/", "http://169.254.169.254/"} {
		b.Run(raw, func(b *testing.B) {
			for b.Loop() {
				egress.CheckURL(raw)
			}
		})
	}
}
