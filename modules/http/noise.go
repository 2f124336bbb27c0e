package http

import (
	"fmt"
	"regexp"
	"strings"
)

// isWeb reports whether a type is one of pages, feeds and data that hold
// addresses for readers; what is plain text or code stays as it was received.
func isWeb(media string) bool {
	return media == "text/html" || media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml") && media != "image/svg+xml" || isJSON(media)
}

var (
	// addresses end where JSON, HTML and prose end them; & may be written as &amp; or \u0026.
	address = regexp.MustCompile("(?:https?:\\\\?/\\\\?/|[\"'(=]\\\\?/)[^\\s\"'<>`]*(?:[?&;]|\\\\u0026)[^\\s\"'<>`]*")

	separator = `(&amp;|&#38;|\\u0026|&|\?)`
	tracking  = regexp.MustCompile(`(?i)` + separator + `(?:utm_[a-z_]+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_cid|mc_eid|_hsenc|_hsmi|_openstat|mkt_tok|vero_id|phpsessid|jsessionid|aspsessionid[a-z]*|cfid|cftoken|sessionid|session_id)=[^&#\s"'<>\\]*`)
	pathID    = regexp.MustCompile(`(?i);(?:jsessionid|phpsessid)=[^?#&;/\s"'<>\\]*`)
	emptied   = regexp.MustCompile(`\?(?:&amp;|&#38;|\\u0026|&)`)

	dataURI = regexp.MustCompile(`(?i)\bdata:([a-z0-9.+-]+/[a-z0-9.+-]+)?((?:;[a-z0-9.=_-]+)*),([^\s"'<>)\\]+)`)
)

// maxData is how long the content of a data: URI may be that is left alone.
const maxData = 64

// withoutNoise takes out of the addresses in a text what tells nothing to a
// reader: parameters that track, ids of sessions, and data that is written out.
func withoutNoise(text string) string {
	text = dataURI.ReplaceAllStringFunc(text, func(uri string) string {
		m := dataURI.FindStringSubmatch(uri)
		if len(m[3]) <= maxData {
			return uri
		}
		return fmt.Sprintf("data:%s%s,[%d characters left out]", m[1], m[2], len(m[3]))
	})
	return address.ReplaceAllStringFunc(text, cleanAddress)
}

func cleanAddress(a string) string {
	out := pathID.ReplaceAllString(a, "")
	out = tracking.ReplaceAllStringFunc(out, func(p string) string {
		if p[0] == '?' {
			return "?"
		}
		return ""
	})
	if out == a {
		return a
	}
	out = emptied.ReplaceAllString(out, "?")
	path, fragment, has := strings.Cut(out, "#")
	path = strings.TrimSuffix(path, "?")
	if has {
		return path + "#" + fragment
	}
	return path
}
