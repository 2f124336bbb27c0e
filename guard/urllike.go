package guard

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"
)

// maxRounds bounds how often a text is decoded to find what it hides.
const maxRounds = 5

// urlLike says why a text may name a place in a network; "": nothing says so.
// It looks through percent and HTML escapes, width and compatibility forms,
// invisible characters, base64 and hexadecimal, and it would rather refuse too
// much: where money is spent, no address is wanted (SPEC M3).
func urlLike(s string) string {
	for range maxRounds {
		if why := addressIn(s); why != "" {
			return why
		}
		next := decodeOnce(s)
		if next == s {
			return ""
		}
		s = next
	}
	return "it is escaped too deep to be read"
}

// decodeOnce takes off one layer of escapes.
func decodeOnce(s string) string {
	out := plainForm(s)
	if strings.Contains(out, "&") {
		out = html.UnescapeString(out)
	}
	if strings.Contains(out, "%") {
		out = percent.ReplaceAllStringFunc(out, func(e string) string {
			b, err := hex.DecodeString(e[1:])
			if err != nil {
				return e
			}
			return string(b)
		})
	}
	if strings.Contains(out, `\`) {
		out = backslashed.ReplaceAllStringFunc(out, func(e string) string {
			n, err := strconv.ParseUint(e[2:], 16, 32)
			if err != nil {
				return e
			}
			return string(rune(n))
		})
	}
	return out
}

var (
	percent     = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	backslashed = regexp.MustCompile(`\\[ux][0-9a-fA-F]{2,4}`)
)

// plainForm maps what looks or works alike to one form: compatibility forms to
// theirs, dots of all scripts to the dot, and drops what is not seen.
func plainForm(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("。．｡․﹒", r):
			return '.'
		case strings.ContainsRune("／⁄∕⧸", r):
			return '/'
		case strings.ContainsRune("：︰ː∶", r):
			return ':'
		case unicode.In(r, unicode.Cf, unicode.Cc) && r != '\n' && r != '\t', r == 0x034f, 0xfe00 <= r && r <= 0xfe0f:
			return -1
		}
		return r
	}, norm.NFKC.String(s)))
}

var (
	scheme   = regexp.MustCompile(`[a-z][a-z0-9+.-]*:\s*[/\\]{2}`)
	known    = regexp.MustCompile(`(^|[^a-z0-9])(https?|wss?|ftps?|sftp|ssh|file|data|javascript|vbscript|mailto|tel|blob|s3|gs|az|git|ldaps?|gopher|dict|jar|urn|redis|amqps?|postgres(ql)?|mysql|mongodb|unix|tcp|udp|smb|nfs|view-source|about|chrome|intent):`)
	hostPort = regexp.MustCompile(`(^|[^a-z0-9.-])([a-z][a-z0-9-]*(\.[a-z0-9-]+)*|\d+(\.\d+){3}|\d{7,}):\d{1,5}($|[^\d])`)
	hostPath = regexp.MustCompile(`(^|[^a-z0-9./_-])[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]+[/\\?#]`)
	encoded  = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)
)

// addressIn says why a text, in any letter case, may be or hold an address.
func addressIn(text string) string {
	s := plainForm(text)
	slashes := strings.ReplaceAll(s, `\`, "/")
	switch {
	case scheme.MatchString(s), strings.Contains(slashes, "://"):
		return "it holds a URL"
	case strings.HasPrefix(strings.TrimSpace(slashes), "//"), strings.Contains(slashes, " //"):
		return "it begins with //, as an address without a scheme does"
	case known.MatchString(s):
		return "it holds the scheme of an address"
	case hostPort.MatchString(s):
		return "it holds a host with a port"
	case hostPath.MatchString(s):
		return "it holds a host with a path"
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'<>(){},;|@=&?#/\`, r)
	}) {
		if why := hostLike(strings.Trim(word, ".!*_~`")); why != "" {
			return why
		}
	}
	for _, token := range encoded.FindAllString(text, 16) {
		for _, plain := range [][]byte{fromBase64(token), fromHex(token)} {
			if p := strings.ToLower(string(plain)); strings.Contains(p, "://") || known.MatchString(p) {
				return "it holds an encoded URL"
			}
		}
	}
	return ""
}

func fromBase64(s string) []byte {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	b, _ := base64.RawStdEncoding.DecodeString(s)
	return b
}

func fromHex(s string) []byte {
	b, _ := hex.DecodeString(s)
	return b
}

// privateNames end the names of hosts that no registry knows.
var privateNames = map[string]bool{"localhost": true, "localdomain": true, "local": true, "internal": true, "intranet": true, "lan": true,
	"home": true, "corp": true, "private": true, "arpa": true, "onion": true, "test": true, "example": true, "invalid": true,
	"cluster": true, "svc": true, "consul": true, "docker": true, "metadata": true}

// hostLike says why a word, in lower case, may name a host.
func hostLike(word string) string {
	if isAddress(word) {
		return "it holds an IP address"
	}
	labels := strings.Split(word, ".")
	last := labels[len(labels)-1]
	switch {
	case word == "localhost" || strings.HasPrefix(word, "xn--") || strings.Contains(word, ".xn--"):
		return "it names a host"
	case len(labels) < 2 || len(last) < 2 || labels[0] == "":
		return ""
	case privateNames[last]:
		return "it names a host"
	case strings.IndexFunc(last, func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }) >= 0:
		return "it names a host in another script"
	}
	if suffix, icann := publicsuffix.PublicSuffix(word); icann && suffix != word {
		return "it names a host"
	}
	return ""
}

// isAddress reports whether a word is an IP address, in any notation that
// resolvers take: dotted, short, hexadecimal, octal, a single number, IPv6.
func isAddress(word string) bool {
	bare := strings.TrimSuffix(strings.TrimPrefix(word, "["), "]")
	if i := strings.Index(bare, "]:"); i > 0 {
		bare = bare[:i]
	}
	if a, err := netip.ParseAddr(bare); err == nil {
		return a.Is4() || strings.Count(bare, ":") > 1
	}
	parts := strings.Split(bare, ".")
	if len(parts) > 4 {
		return false
	}
	odd := false // a notation that only addresses have
	first := uint64(0)
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32) // 0x…, 0…
		if err != nil || strings.Contains(p, "_") {
			return false
		}
		odd = odd || strings.HasPrefix(p, "0x") || i == 0 && len(p) > 1 && p[0] == '0'
		if i == 0 {
			first = n
		}
	}
	switch len(parts) {
	case 4:
		return true
	case 1:
		return strings.HasPrefix(bare, "0x") && first > 0xffff || first >= 1<<24
	}
	private := first == 0 || first == 10 || first == 127 || first == 169 || first == 172 || first == 192
	return odd && parts[0] != "0" || private && parts[0] != "0"
}

// urlWords are the words of keys under which addresses and bodies of requests
// are given.
var urlWords = map[string]bool{"url": true, "urls": true, "uri": true, "uris": true, "href": true, "endpoint": true, "endpoints": true,
	"host": true, "hosts": true, "hostname": true, "domain": true, "webhook": true, "callback": true, "redirect": true, "proxy": true,
	"server": true, "port": true, "ip": true, "addr": true, "address": true, "link": true, "links": true, "origin": true, "referer": true,
	"site": true, "website": true, "body": true, "payload": true, "headers": true, "header": true, "dsn": true, "baseurl": true, "upstream": true}

// urlName reports whether a key names an address, or the body of a request.
func urlName(key string) bool {
	key = camel.ReplaceAllString(plainFormKeepingCase(key), "${1}_$2")
	for word := range strings.FieldsFuncSeq(strings.ToLower(key), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if urlWords[word] || strings.HasSuffix(word, "url") && word != "curl" || strings.HasSuffix(word, "uri") || strings.HasPrefix(word, "url") || strings.HasSuffix(word, "endpoint") {
			return true
		}
	}
	return false
}

func plainFormKeepingCase(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		s = u
	}
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
}

// The bounds of the options of a metered call.
const (
	maxOptionBytes = 512
	maxOptions     = 64
	maxOptionDepth = 4
)

// wide says where arguments of a metered call hold more than references and
// bounded options, and why; "": nowhere. Pointers in skip are references.
func wide(args json.RawMessage, skip map[string]bool) (pointer, why string) {
	v, err := decodeAny(args)
	if err != nil {
		return "", "they cannot be read: " + err.Error()
	}
	n := 0
	return wideAt("", v, 0, &n, skip)
}

func wideAt(pointer string, v any, depth int, n *int, skip map[string]bool) (string, string) {
	if *n++; *n > maxOptions {
		return pointer, "there are too many options"
	}
	if depth > maxOptionDepth {
		return pointer, "it is nested too deep"
	}
	switch v := v.(type) {
	case string:
		return pointer, wideText(v, depth, n, skip[pointer])
	case []any:
		for i := range v {
			if p, why := wideAt(pointer+"/"+strconv.Itoa(i), v[i], depth+1, n, skip); why != "" {
				return p, why
			}
		}
	case map[string]any:
		for k, e := range v {
			at := pointer + "/" + escapePointer(k)
			if !skip[at] && urlName(k) {
				return at, "its name is that of an address or of a request's body"
			}
			if urlLike(k) != "" {
				return at, "its name looks like an address"
			}
			if p, why := wideAt(at, e, depth+1, n, skip); why != "" {
				return p, why
			}
		}
	}
	return "", ""
}

func wideText(s string, depth int, n *int, reference bool) string {
	if len(s) > maxOptionBytes {
		return "it is longer than " + strconv.Itoa(maxOptionBytes) + " bytes: give long texts as an artifact"
	}
	if reference {
		if strings.Contains(s, "://") || known.MatchString(plainForm(s)) {
			return "it holds a URL"
		}
		return "" // it must be a reviewed file, whatever its name
	}
	if why := urlLike(s); why != "" {
		return why
	}
	if t := strings.TrimSpace(s); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if inner, err := decodeAny([]byte(t)); err == nil {
			_, why := wideAt("", inner, depth+1, n, nil)
			return why
		}
	}
	return ""
}
