package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL bounds the length of a URL, in bytes; servers accept about as much.
const maxURL = 8 << 10

// ParseURL reads an absolute http or https URL of which there is one reading
// only. It refuses spaces, control characters and backslashes anywhere;
// credentials, percent-encoding, zones and empty hosts in the authority; IPv4
// addresses that are not four decimal numbers; and names that become other
// names, or addresses, when they are normalised. The result's host is in
// ASCII and lower case. An error is an [*Error] that says what would be right.
//
// It judges the text alone: whether the host may be reached is the client's
// to say, or [CheckURL]'s.
func ParseURL(raw string) (*url.URL, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	scheme, rest, found := strings.Cut(raw, ":")
	if s := strings.ToLower(scheme); !found || s != "http" && s != "https" {
		return nil, wrongScheme(raw, scheme, found)
	}
	rest, found = strings.CutPrefix(rest, "//")
	if !found {
		return nil, invalid(raw, "two slashes must follow the scheme: write %s://host/path", strings.ToLower(scheme))
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if err := checkAuthority(raw, authority); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, invalid(raw, "this is not a URL: %v", err)
	}
	if u.Host != authority {
		return nil, invalid(raw, "its host can be read in two ways, %q and %q", u.Host, authority)
	}
	at, err := readURL(u)
	if err != nil {
		return nil, err
	}
	u.Host = at.hostIn(u)
	return u, nil
}

// CheckURL is ParseURL, and refuses what the zero Policy refuses without
// resolving anything: local names, addresses that are not public, ports of
// other protocols.
func CheckURL(raw string) (*url.URL, error) { return Policy{}.CheckURL(raw) }

// CheckURL is ParseURL, and refuses what p refuses without resolving anything:
// local names, addresses that are not public, ports of other protocols.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	u, err := ParseURL(raw)
	if err != nil {
		return nil, err
	}
	at, err := readURL(u)
	if err != nil {
		return nil, err
	}
	if err := p.checkPlace(raw, at); err != nil {
		return nil, err
	}
	return u, nil
}

// checkText refuses characters that readers of URLs drop, turn or trip over.
func checkText(raw string) error {
	switch {
	case raw == "":
		return invalid(raw, "the URL is empty: write one like https://example.com/path")
	case len(raw) > maxURL:
		return invalid(raw, "the URL is %d bytes long: %d are the limit", len(raw), maxURL)
	case !utf8.ValidString(raw):
		return invalid(raw, "the URL is not valid UTF-8: percent-encode its bytes")
	}
	for i, r := range raw {
		switch {
		case r == '\\':
			return invalid(raw, `there is a backslash at byte %d: write "/", or %%5C if the backslash is meant`, i)
		case unicode.IsSpace(r):
			return invalid(raw, "there is a space at byte %d: remove it, or write %%20 if it is meant", i)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return invalid(raw, "there is an invisible character (%U) at byte %d: remove it", r, i)
		}
	}
	return nil
}

// wrongScheme says what to write instead of a scheme that is not HTTP's.
func wrongScheme(raw, scheme string, found bool) error {
	if !found || strings.ContainsAny(scheme, "./@[?#") {
		return invalid(raw, "the URL is not absolute: it must begin with https:// or http://")
	}
	return invalid(raw, "the scheme is %q: only http and https are allowed", scheme)
}

// checkAuthority refuses what may not stand between the slashes and the path.
func checkAuthority(raw, authority string) error {
	switch {
	case authority == "":
		return invalid(raw, "the host is missing: write one like https://example.com/path")
	case strings.Contains(authority, "@"):
		return invalid(raw, "there is a user name or password before the host: remove everything up to the @")
	case strings.HasPrefix(authority, "[") && strings.Contains(authority, "%"):
		return invalid(raw, "the address has a zone, so it is one of this link: only public addresses may be reached")
	case strings.Contains(authority, "%"):
		return invalid(raw, "the host is percent-encoded: write it plainly")
	}
	return nil
}

// A place is where a connection leads.
type place struct {
	host string     // canonical: lower case ASCII, an IPv6 address without brackets
	addr netip.Addr // of a host that is an address
	port uint16
}

// String returns the place as host:port.
func (at place) String() string { return net.JoinHostPort(at.host, strconv.Itoa(int(at.port))) }

// hostIn returns the place as the host of u, with a port if u states one.
func (at place) hostIn(u *url.URL) string {
	switch {
	case u.Port() != "":
		return at.String()
	case at.addr.Is6():
		return "[" + at.host + "]"
	}
	return at.host
}

// readURL returns the place a parsed URL leads to.
func readURL(u *url.URL) (place, error) {
	raw := u.Redacted()
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "http" && scheme != "https":
		return place{}, wrongScheme(raw, u.Scheme, true)
	case u.User != nil:
		return place{}, invalid(raw, "there is a user name or password before the host: remove everything up to the @")
	case u.Opaque != "" || u.Host == "":
		return place{}, invalid(raw, "the host is missing: write one like %s://example.com/path", scheme)
	}
	hostport := u.Host
	if u.Port() == "" {
		hostport = strings.TrimSuffix(hostport, ":")
		if hostport != u.Host {
			return place{}, invalid(raw, "a port must follow the colon after the host: write it, or remove the colon")
		}
		hostport += map[string]string{"http": ":80", "https": ":443"}[scheme]
	}
	at, err := parseHostPort(hostport)
	if err != nil {
		return place{}, invalid(raw, "%v", err)
	}
	return at, nil
}

// parseHostPort reads "host:port".
func parseHostPort(s string) (place, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return place{}, errors.New("a host and a port are needed, like example.com:443 or [2001:db8::1]:443")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return place{}, fmt.Errorf("the port %q is not a number from 1 to 65535", port)
	}
	at := place{port: uint16(n)}
	if strings.HasPrefix(s, "[") {
		at.addr, err = parseIPv6(host)
		at.host = at.addr.String()
		return at, err
	}
	at.host, at.addr, err = parseHost(host)
	return at, err
}

// parseIPv6 reads what stands between brackets.
func parseIPv6(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(s)
	switch {
	case err != nil || !ip.Is6():
		return ip, fmt.Errorf("[%s] is not an IPv6 address", s)
	case ip.Zone() != "":
		return ip, fmt.Errorf("[%s] has a zone, so it is an address of this link", s)
	case ip.Is4In6():
		return ip, fmt.Errorf("[%s] is an IPv4 address in IPv6 form: write %s", s, ip.Unmap())
	}
	return ip, nil
}

// parseHost returns the canonical form of a name or IPv4 address, and the
// address if it is one. A host whose last label is a number is an address
// (WHATWG URL, "ends in a number"), and then only in the canonical spelling.
func parseHost(s string) (string, netip.Addr, error) {
	none := netip.Addr{}
	if strings.HasSuffix(s, ".") {
		return "", none, fmt.Errorf("the host %q ends in a dot: remove it", s)
	}
	labels := strings.Split(s, ".")
	if isNumber(labels[len(labels)-1]) {
		ip, err := netip.ParseAddr(s)
		if err != nil || !ip.Is4() {
			return "", none, fmt.Errorf("%q is not an IPv4 address: write four decimal numbers from 0 to 255, without leading zeros", s)
		}
		return s, ip, nil
	}
	for i, label := range labels {
		ascii, err := parseLabel(label)
		if err != nil {
			return "", none, fmt.Errorf("the host %q is not a name: %w", s, err)
		}
		labels[i] = ascii
	}
	name := strings.Join(labels, ".")
	if len(name) > 253 {
		return "", none, fmt.Errorf("the host is %d bytes long: a name has 253 at most", len(name))
	}
	return name, none, nil
}

// isNumber reports whether some reader of addresses takes s for a number: in
// decimal, whatever zeros it begins with, or with a prefix such as 0x, even if
// nothing follows it.
func isNumber(s string) bool {
	if strings.Trim(s, "0123456789") == "" {
		return s != ""
	}
	_, err := strconv.ParseUint(s, 0, 64)
	return err == nil || errors.Is(err, strconv.ErrRange) || strings.EqualFold(s, "0x")
}

// parseLabel returns one part of a name in lower case ASCII. A label that is
// not ASCII must stay what it is under IDNA: one that becomes plain ASCII, or
// falls into several labels, was written to look like something else.
func parseLabel(label string) (string, error) {
	lower := strings.ToLower(label)
	ascii := true
	for _, c := range label {
		ascii = ascii && c < utf8.RuneSelf
	}
	switch {
	case label == "":
		return "", errors.New("there is nothing between two dots, or before the first")
	case len(label) > 63 && ascii:
		return "", fmt.Errorf("the part %q is longer than 63 bytes", label)
	case ascii && !strings.HasPrefix(lower, "xn--"):
		for _, c := range lower {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return "", fmt.Errorf("%q may not stand in it", c)
			}
		}
		return lower, nil
	}
	out, err := idna.Lookup.ToASCII(label)
	switch {
	case err != nil:
		return "", fmt.Errorf("the part %q is not valid (%v)", label, err)
	case !strings.HasPrefix(out, "xn--") || strings.Contains(out, "."):
		return "", fmt.Errorf("the part %q stands for %q: write that, in plain letters", label, out)
	}
	return out, nil
}
