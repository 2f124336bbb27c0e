package guard

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/helve-ai/helve/egress"
)

// matchURL matches a URL as those read it who answer it: with its dots
// resolved, without a fragment, whatever way host, port and letters are spelt.
// A URL that servers may read in two ways matches as the quantifier says.
func matchURL(pattern, raw string, q quantifier) (bool, error) {
	u, err := egress.ParseURL(raw)
	if err != nil {
		return false, err
	}
	path := plainEscapes(u.EscapedPath())
	pattern = plainEscapes(pattern)
	for _, path := range slices.Compact([]string{withoutDots(path), withoutDots(merged(path)), withoutDots(merged(opened(path)))}) {
		ok := false
		for _, spelling := range spellings(u, path) {
			fits, err := matchGlob(pattern, spelling, q)
			if err != nil {
				return false, err
			}
			ok = ok || fits
		}
		if ok != (q == everyValue) {
			return ok, nil
		}
	}
	return q == everyValue, nil
}

// spellings lists how the URL can be written with that path.
func spellings(u *url.URL, path string) (all []string) {
	hosts := []string{u.Hostname()}
	if name, err := idna.ToUnicode(u.Hostname()); err == nil && name != u.Hostname() {
		hosts = append(hosts, name)
	}
	own := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	ports := []string{":" + u.Port()}
	if u.Port() == "" || u.Port() == own {
		ports = []string{"", ":" + own}
	}
	paths := []string{path}
	if path == "/" {
		paths = append(paths, "")
	}
	query := ""
	if u.RawQuery != "" || u.ForceQuery {
		query = "?" + u.RawQuery
	}
	for _, host := range hosts {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		for _, port := range ports {
			for _, path := range paths {
				all = append(all, u.Scheme+"://"+host+port+path+query)
			}
		}
	}
	return all
}

// plainEscapes writes what need not be escaped plainly, and other escapes in
// capitals (RFC 3986, 6.2.2).
func plainEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		char, err := url.PathUnescape(s[i : i+3])
		switch {
		case err != nil:
			b.WriteByte('%')
			continue
		case strings.IndexByte("-._~", char[0]) >= 0, '0' <= char[0] && char[0] <= '9', 'a' <= char[0]|0x20 && char[0]|0x20 <= 'z':
			b.WriteString(char)
		default:
			b.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// merged is how servers read a path that take several slashes for one.
func merged(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// opened is how servers read a path that take escaped slashes for slashes, and
// what follows a semicolon for no part of a name.
func opened(path string) string {
	parts := strings.Split(strings.NewReplacer("%2F", "/", "%5C", "/", "%3B", ";").Replace(path), "/")
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(part, ";")
	}
	return strings.Join(parts, "/")
}

// withoutDots resolves "." and ".." (RFC 3986, 5.2.4).
func withoutDots(path string) string {
	var out []string
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if part != "." && part != ".." {
			out = append(out, part)
			continue
		}
		if part == ".." && len(out) > 0 {
			out = out[:len(out)-1]
		}
		if i == len(parts)-1 {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}
